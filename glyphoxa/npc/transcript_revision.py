"""Revises stored utterances: corrects names in the background, and applies what changes a transcript.

   UtteranceKept ──▶ sound (S2S only: ears have done it already) ──┐
                  └─▶ doubtful words? ──▶ a language model ────────┴──▶ log, page, NPCs' transcripts, learning

The utterance is stored before this starts, so on any failure it keeps the recognised text. Nothing waits for this. If
the model is the NPCs' own, the reviser waits until the table has been quiet for a while, and drops the question (to ask
it again later) when somebody speaks. Work of more than a millisecond runs in a thread, because the event loop carries
the table's audio. An utterance that fails twice is skipped, so that it blocks no other.

Protocol of use: subscribe `on` to the table, start `run` as a task, and call `finish` at the end of the session. The
state survives a crash of `run`, which may be started again.

`Revisions` apply changes to the recent transcript, the NPCs' prompts and the page. They are what the DM retracted,
rolled back or reworded, the results of a second look, and spoken requests to forget.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeVar

from loguru import logger

from glyphoxa.actors.deadline import done_within
from glyphoxa.actors.supervisor import follow
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import ModelQuestion
from glyphoxa.chronicle.consent_requests import SpokenRequests
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.domain.events import NpcSpeaks, TableEvent, UtteranceKept, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.heard import UNSURE, EagerTurn, PartialHeard, SpeechStarted, TurnEnded, Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.language.words import Places, applied, composed, leads_to
from glyphoxa.names.corrector import Corrected
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.commands import CommandInbox
from glyphoxa.npc.second_look import (
    MAX_NAMES,
    CorrectedTranscript,
    Span,
    declared_in,
    doubtful_spans,
    likely_names,
    question_about,
    verified,
)
from glyphoxa.npc.table_state import TableState
from glyphoxa.transcript.journal import RecentTalk
from glyphoxa.transcript.ports import Decided, DecidedTalk, News

# Ask a language model about words that the recogniser was unsure of.


@dataclass(frozen=True, slots=True)
class Asking:
    """How to query the language model.

    Attributes:
        low_confidence: Words below it are doubtful.
        most_names: Names in a question; each costs a small model time.
        rest_ms: How long the table must have been quiet.
        gives_way: Query only while the table is quiet, and drop the query when somebody speaks: for a model that the
            NPCs use too.
    """

    model: ModelAsker
    low_confidence: float = UNSURE
    most_names: int = MAX_NAMES
    rest_ms: int = 2_000
    gives_way: bool = False


@dataclass(eq=False, slots=True)
class Doubted:
    utterance: Utterance
    doubtful: tuple[Span, ...]
    before: tuple[Utterance, ...]


class GaveWay(Exception):
    """Somebody speaks and needs the model: ask again later."""


@dataclass(eq=False, slots=True)
class SecondLook:
    """
    Args:
        gazetteer: Returns the campaign's current names.
        nearby: Entities of the scene.
        wait_until_quiet: Returns when nobody speaks and no NPC is answering.
        in_thread: Runs pure work outside the event loop.
    """

    asking: Asking
    gazetteer: Callable[[], Gazetteer]
    _: KW_ONLY
    nearby: Callable[[], Container[EntityId]] = frozenset
    wait_until_quiet: Callable[[], Awaitable[None]] | None = None
    in_thread: Callable[[Callable[[], Any]], Awaitable[Any]] = asyncio.to_thread
    _answering: asyncio.Task[CorrectedTranscript] | None = field(default=None, init=False)
    _disturbed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def disturb(self) -> None:
        """Report that somebody speaks."""
        self._disturbed.set()
        if self.asking.gives_way and self._answering is not None:
            self._answering.cancel()

    def doubtful(self, utterance: Utterance) -> tuple[Span, ...]:
        """Return the words to ask about. Takes microseconds; a very long utterance has none."""
        if len(utterance.text) > _LONGEST_CHARS:
            return ()
        return doubtful_spans(
            utterance.text,
            gazetteer=self.gazetteer(),
            corrections=utterance.corrections,
            heard=utterance.words,
            low_confidence=self.asking.low_confidence,
        )

    async def at(self, doubted: Doubted, *, is_wanted: Callable[[], bool]) -> UtteranceRevised | None:
        """Return a better text; None if the text stays as it is.

        Args:
            is_wanted: Asked after the wait for a quiet table.

        Raises:
            GaveWay: It was not checked.
        """
        asking = self.asking
        if asking.gives_way:
            await self._wait_for_rest(asking.rest_ms)
            if not is_wanted():
                raise GaveWay
        gazetteer, nearby = self.gazetteer(), self.nearby()
        question = await self.in_thread(lambda: self._prepared(doubted, gazetteer, nearby, asking.most_names))
        if asking.gives_way and self._disturbed.is_set():
            raise GaveWay
        answering = self._answering = asyncio.ensure_future(asking.model.ask(question))
        try:
            await asyncio.wait({answering})
        finally:
            self._answering = None
            answering.cancel()
        if answering.cancelled():
            raise GaveWay
        try:
            return await self._checked(doubted, answering.result(), gazetteer)
        except GlyphoxaError as error:
            is_news = asking.model.breaker.n_failures == 1
            logger.log("WARNING" if is_news else "INFO", "names are not checked again: {}", error)
            return None

    def _prepared(
        self, doubted: Doubted, gazetteer: Gazetteer, nearby: Container[EntityId], most_names: int
    ) -> ModelQuestion[CorrectedTranscript]:
        """Takes milliseconds for a long utterance, so it runs in a thread."""
        text, doubtful = doubted.utterance.text, doubted.doubtful
        names = likely_names(text, doubtful, gazetteer, nearby=nearby, limit=most_names)
        before = [f"{each.speaker_name}: {each.text}" for each in doubted.before]
        return question_about(text, doubtful, names, language=gazetteer.language, before=before)

    async def _wait_for_rest(self, rest_ms: int) -> None:
        while True:
            self._disturbed.clear()
            if self.wait_until_quiet is not None:
                await self.wait_until_quiet()
            if not await done_within(rest_ms, self._disturbed.wait()):
                return

    async def _checked(
        self, doubted: Doubted, answer: CorrectedTranscript, gazetteer: Gazetteer
    ) -> UtteranceRevised | None:
        """Return the valid part of an answer; None if there is none."""
        was, text, declared = doubted.utterance, answer.corrected_text, declared_in(answer)
        edits = await self.in_thread(
            lambda: verified(was.text, text, declared, doubtful=doubted.doubtful, gazetteer=gazetteer)
        )
        if not edits:
            return None
        raw = was.raw_text
        if was.npc_id is not None:  # the rest of what was heard of it follows
            raw = raw[: Places(was.corrections).in_raw(0, len(was.text))[1]]
        if not leads_to(raw, was.corrections, was.text):
            logger.error("utterance {} keeps the recognised words: its corrections do not make its text", was.id)
            return None
        corrections = composed(raw, was.corrections, edits)
        return UtteranceRevised(replace(was, text=applied(was.text, edits), corrections=corrections), was)


CAPACITY = 200
MOST_TRIES = 2
"""Attempts for one utterance, after errors that waiting does not repair."""
_WAITING_WRITES = 1_000
_LINES_BEFORE = 2
_LONGEST_CHARS = 2_000


_Waiting = TypeVar("_Waiting", Doubted, UtteranceRevised)


@dataclass(eq=False, kw_only=True, slots=True)
class Reviser:
    """See the module.

    Args:
        correct: The stage by sound (`glyphoxa.names.corrector`); None skips it.
        revise: Stores an utterance in place of the version that follows; see `glyphoxa.transcript.delivery.Delivery`.
        second_look: None queries no language model.
        transcribed: NPCs whose words come from a speech-to-speech provider's transcript and are not corrected yet.
            Other NPCs' words are the model's own text and are skipped.
        pause: Awaited between attempts while the log is unavailable.
    """

    correct: Callable[[str], Corrected] | None
    tell: Callable[[UtteranceRevised], None]
    revise: Callable[[Utterance, Utterance], Awaitable[None]]
    second_look: SecondLook | None = None
    transcribed: Container[NpcId] = frozenset()
    pause: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(5.0)
    capacity: int = CAPACITY
    _questions: deque[Doubted] = field(default_factory=deque, init=False)
    _writes: deque[UtteranceRevised] = field(default_factory=deque, init=False)
    _before: deque[Utterance] = field(default_factory=lambda: deque(maxlen=_LINES_BEFORE), init=False)
    _work: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _moved: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    # -- events of the table

    def on(self, event: TableEvent) -> None:
        """Take an event. Returns at once."""
        match event:
            case UtteranceKept(utterance):
                self._take(utterance)
                self._before.append(utterance)
            case UtteranceRetracted(utterance):
                self._say_before(utterance.id, None)
                self._let_be(utterance.id)
            case UtteranceRevised(utterance):
                self._say_before(utterance.id, utterance)
                self._let_be(utterance.id, unless_it_says=utterance.text)
            case SpeechStarted() | PartialHeard() | EagerTurn() | TurnEnded() | NpcSpeaks():
                if self.second_look is not None:
                    self.second_look.disturb()
            case _:
                pass

    def _say_before(self, utterance: UtteranceId, now: Utterance | None) -> None:
        """Update an utterance that is shown as context of a question; None if it was retracted."""

        def shown(before: Iterable[Utterance]) -> list[Utterance]:
            said = ((now if each.id == utterance else each) for each in before)
            return [each for each in said if each is not None]

        self._before = deque(shown(self._before), maxlen=_LINES_BEFORE)
        for doubted in self._questions:
            doubted.before = tuple(shown(doubted.before))

    def _let_be(self, utterance: UtteranceId, *, unless_it_says: str | None = None) -> None:
        """Drop an utterance from the queue, because the DM has decided its text."""
        decided = [each for each in self._questions if each.utterance.id == utterance]
        for doubted in decided:
            if doubted.utterance.text != unless_it_says:
                self._questions.remove(doubted)
        self._moved.set()

    def _take(self, utterance: Utterance) -> None:
        is_transcribed = utterance.npc_id in self.transcribed
        if utterance.npc_id is not None and not (is_transcribed and utterance.raw_text.startswith(utterance.text)):
            return
        if not utterance.text.strip() or utterance.typed:
            return
        if is_transcribed and self.correct is not None:
            utterance = self._by_sound(utterance, self.correct)
        if self.second_look is not None and (doubtful := self.second_look.doubtful(utterance)):
            if len(self._questions) >= self.capacity:
                # The first one may be in progress.
                del self._questions[min(1, len(self._questions) - 1)]
                logger.warning("too many utterances to check again: an older one keeps its recognised words")
            self._questions.append(Doubted(utterance, doubtful, tuple(self._before)))
            self._work.set()

    def _by_sound(self, utterance: Utterance, correct: Callable[[str], Corrected]) -> Utterance:
        """Correct an utterance as an ear would."""
        corrected = correct(utterance.text)
        if corrected.text == utterance.text:
            return utterance
        better = replace(utterance, text=corrected.text, corrections=corrected.corrections)
        self._revise(UtteranceRevised(better, utterance))
        return better

    def _revise(self, revision: UtteranceRevised) -> None:
        """Publish a revision: to the table at once, to the log as soon as possible."""
        if len(self._writes) >= _WAITING_WRITES:
            self._writes.popleft()
            logger.error("long-term memory was unavailable for too long: a correction is dropped")
        self._writes.append(revision)
        self._work.set()
        # Not within the event that caused it: others must receive the utterance before its revision.
        asyncio.get_running_loop().call_soon(self.tell, revision)

    # -- the actor

    async def run(self) -> None:
        """Run the actor."""
        self._work.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._work_off(self._write, self._writes))
            group.create_task(self._work_off(self._ask, self._questions))

    async def finish(self, deadline_ms: int) -> bool:
        """Wait until everything is checked and written, while `run` continues. Return False if that took too long."""
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                while self._questions or self._writes:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            logger.warning("{} utterances were not checked again", len(self._questions) + len(self._writes))
            return False
        return True

    async def _work_off(self, do: Callable[[_Waiting], Awaitable[None]], waiting: deque[_Waiting]) -> None:
        while True:
            while waiting:
                await self._try(do, waiting)
            self._moved.set()
            while not waiting:
                self._work.clear()
                await self._work.wait()

    async def _try(self, do: Callable[[_Waiting], Awaitable[None]], waiting: deque[_Waiting]) -> None:
        first = waiting[0]
        for _ in range(MOST_TRIES):
            if not waiting or waiting[0] is not first:
                return  # it was dropped meanwhile
            try:
                await do(first)
                return
            except Exception as error:  # one utterance, or one bad answer, must not stop this for the evening
                logger.opt(exception=error).error("utterance {} could not be checked again", first.utterance.id)
        logger.error("utterance {} keeps its stored words", first.utterance.id)
        self._done_with(waiting, first)

    def _done_with(self, waiting: deque[Any], item: object) -> None:
        # It may have been dropped meanwhile to make room.
        if waiting and waiting[0] is item:
            waiting.popleft()
        self._moved.set()

    async def _write(self, revision: UtteranceRevised) -> None:
        try:
            await self.revise(revision.utterance, revision.was)
        except Unavailable as error:
            logger.debug("a correction waits for the log: {}", error)
            await self.pause()
            return
        except InvalidInput as error:
            logger.error("a correction cannot be stored: {}", error)
        self._done_with(self._writes, revision)

    async def _ask(self, doubted: Doubted) -> None:
        if self.second_look is not None:
            try:
                revision = await self.second_look.at(doubted, is_wanted=lambda: self._is_next(doubted))
            except GaveWay:
                return  # it stays first in the queue
            if revision is not None:
                self._revise(revision)
        self._done_with(self._questions, doubted)

    def _is_next(self, doubted: Doubted) -> bool:
        return bool(self._questions) and self._questions[0] is doubted


@dataclass(frozen=True, slots=True)
class DmChannels:
    """Carries the DM's decisions from other processes to an open table.

    Attributes:
        decisions: Yields whenever the DM may have made a decision on the transcript.
        decided: Returns all decisions of a session, in the order of its utterances, as they are now.
        refresh: Rereads the transcript that recall holds in memory. Otherwise a removed utterance could be recalled.
    """

    commands: CommandInbox
    decisions: Callable[[], AsyncGenerator[object, None]]
    decided: Callable[[CampaignId, SessionId], Awaitable[Sequence[Decided]]]
    refresh: Callable[[], Awaitable[object]]


@dataclass(eq=False, repr=False)
class Revisions:
    """Applies revisions to prompts when no turn is affected. `run` and `follow` are actors; the rest returns at once.

    A changed prompt must be read again by the engine, which must not happen during a turn.

    Args:
        wait_until_quiet: Waits until nobody speaks and no NPC answers.
    """

    recent: RecentTalk
    npcs: Mapping[NpcId, NpcActor]
    state: TableState
    _: KW_ONLY
    wait_until_quiet: Callable[[], Awaitable[None]]
    _requests: SpokenRequests = field(default_factory=SpokenRequests, init=False)
    _waiting: list[News] = field(default_factory=list, init=False)
    _work: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._decided = DecidedTalk(self._utterance_of)

    def on(self, event: TableEvent) -> None:
        """Have a line forgotten as soon as its player asks for it, also while there is no database."""
        if isinstance(event, UtteranceKept) and (withheld := self._requests.take(event.utterance)):
            # Later, because all subscribers must have taken this event before.
            asyncio.get_running_loop().call_soon(self.at_once, [UtteranceRetracted(each) for each in withheld])

    def at_once(self, news: Sequence[News]) -> None:
        """Apply decisions of the DM or of players at once. Answers in progress are unaffected."""
        self._remember(news)
        self._spread(news)
        for one in news:
            self.state.events.tell(one)

    def when_quiet(self, event: UtteranceRevised) -> None:
        """Apply a better transcript: to the recent transcript and page now, to NPCs when nobody speaks."""
        self._remember([event])
        self._waiting.append(event)
        self._work.set()
        self.state.events.tell(event)

    async def run(self) -> None:
        """Run the actor."""
        while True:
            if not self._waiting:
                self._work.clear()
                await self._work.wait()
            await self.wait_until_quiet()
            waiting, self._waiting = self._waiting, []
            self._spread(waiting)

    async def follow(self, dm: DmChannels) -> None:
        """Apply the DM's decisions on this session's transcript. Recall follows by itself."""

        async def take(_: object) -> None:
            now = await dm.decided(self.state.campaign.id, self.state.session)
            try:
                await dm.refresh()
            except GlyphoxaError as error:
                logger.debug("the transcript in memory is not refreshed yet: {}", error)
            self.at_once(self._decided.take(now))

        await follow(dm.decisions, take, what="decisions of the DM")

    def _utterance_of(self, utterance: UtteranceId) -> Utterance | None:
        recent = self.recent.of(self.state.session, limit=sys.maxsize)
        return next((said for said in recent if said.id == utterance), None)

    def _remember(self, news: Sequence[News]) -> None:
        for one in news:
            match one:
                case UtteranceRetracted(utterance, is_retracted=True):
                    self.recent.retracted(utterance.id)
                case UtteranceRevised(utterance):
                    self.recent.revised(utterance)
                case _:
                    pass  # restored utterances can be recalled, but do not return to the conversation

    def _spread(self, news: Sequence[News]) -> None:
        concerned: dict[NpcId, None] = {}
        for one in news:
            heard_it = sorted(one.utterance.witnesses & self.npcs.keys())
            concerned |= dict.fromkeys(heard_it)
            for npc in heard_it:
                self.npcs[npc].take(one)
        for npc in concerned:
            self.npcs[npc].get_ready("", self.state.likely_speaker())
