"""Learn wrong forms of names: applies the rules of `glyphoxa.names.wrong_forms` to a `LearnedNames`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound
from glyphoxa.domain.events import TableEvent, UtteranceKept
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, UtteranceId
from glyphoxa.names.followed import LearnedNames
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.spelled_out import SpelledOut
from glyphoxa.names.wrong_forms import (
    ENOUGH_OF_ORDINARY_WORDS,
    AlreadyTaken,
    Happened,
    LearnedName,
    Proof,
    Step,
    TypedClaims,
    Uses,
    as_heard,
    is_ordinary,
    objection,
    proofs_of,
    too_short_or_long,
    warning,
)

_MAX_SHOWN = 60


@dataclass(frozen=True, slots=True)
class NameLearning:
    """Learning and unlearning of wrong forms in one campaign. Raises `Unavailable` when the database is away.

    Args:
        now_ms: Milliseconds since the Unix epoch.
    """

    campaign: CampaignId
    store: LearnedNames
    now_ms: Callable[[], int]

    async def confirm(
        self, heard: str, entity: EntityId, names: Gazetteer, *, unless: str | None = None, why: str = ""
    ) -> tuple[LearnedName, str | None]:
        """Record the DM's confirmation: the form becomes active at once.

        Args:
            unless: The end of the error for words that are common in ordinary speech; None: confirm such words.

        Returns:
            The pair, and a warning about the words that this rewrites, if any.

        Raises:
            InvalidInput: This must not be learned, or was confirmed for another name. Or the words are common.
        """
        problem = objection(heard, entity, names)  # some need no search of the transcript
        uses = Uses() if problem is not None else await self.store.uses(self.campaign, heard)
        problem = problem or objection(heard, entity, names, uses=uses)
        if problem is not None:
            raise InvalidInput(f"{_shown(heard)} cannot be learned: it {problem}")
        warned = warning(as_heard(heard), names.vocabulary, uses)
        if warned is not None and unless is not None:
            raise InvalidInput(f"{warned}. {unless}")
        try:
            step = Step("confirmed", entity, "dm", why, self.now_ms())
            return await self.store.record(self.campaign, heard, step), warned
        except AlreadyTaken as taken:
            other = next((name.canonical for name in names.names if name.entity_id == taken.entity_id), taken.entity_id)
            raise InvalidInput(
                f"{as_heard(heard)!r} is already confirmed for {other!r}: reject it there first"
            ) from None

    async def reject(self, heard: str, entity: EntityId, *, why: str = "") -> LearnedName:
        """Record the DM's rejection: the form becomes inactive and is not suggested again.

        Raises:
            InvalidInput: This is not a valid form.
        """
        if (problem := too_short_or_long(heard)) is not None:
            raise InvalidInput(f"{_shown(heard)} cannot be a wrong form: it {problem}")
        return await self.store.record(self.campaign, heard, Step("rejected", entity, "dm", why, self.now_ms()))

    async def undo(self, heard: str | None = None) -> Happened:
        """Undo the DM's last decision, on one form if given.

        Raises:
            NotFound: There is none left.
        """
        taken_back = await self.store.undo(self.campaign, at_ms=self.now_ms(), heard=heard)
        if taken_back is None:
            about = "" if heard is None else f" on {as_heard(heard)!r}"
            raise NotFound(f"there is no decision{about} to undo in campaign {self.campaign!r}")
        return taken_back

    async def prove(self, proofs: Iterable[Proof], names: Gazetteer) -> list[LearnedName]:
        """Record proofs from utterances; return the affected pairs. Inadmissible forms are skipped."""
        pairs: list[LearnedName] = []
        for proof in proofs:
            if objection(proof.heard, proof.entity_id, names) is not None:
                continue
            step = Step(
                "proved",
                proof.entity_id,
                proof.by,
                proof.why,
                self.now_ms(),
                utterance=proof.utterance,
                is_ordinary=is_ordinary(proof.heard, names.vocabulary),
            )
            if step.is_ordinary:
                uses = await self.store.uses(self.campaign, proof.heard, meant_in=proof.utterance)
                if objection(proof.heard, proof.entity_id, names, uses=uses) is not None:
                    continue
                # With little proof nothing follows, and earlier misheard names count as ordinary uses too.
                if uses.spoken > uses.meant >= ENOUGH_OF_ORDINARY_WORDS:
                    why = "these words have their ordinary meaning"
                    doubt = replace(step, kind="disproved", by="talk", why=why, utterance=None)
                    await self.store.record(self.campaign, proof.heard, doubt)
            pairs.append(await self.store.record(self.campaign, proof.heard, step))
        return pairs


_CAPACITY = 1_000


@dataclass(frozen=True, slots=True)
class _Lesson:
    said: Utterance
    is_revision: bool = False


class Learner:
    """An actor that learns from one table's utterances.

    Protocol of use: subscribe `on` to the table, pass `proved` to the second look; run `run` as a task; call `finish`
    at the end of the session. While the database is away, nothing is learned or queued: a wrong form that matters will
    recur.

    Args:
        names: Returns the current names.
        wait_until_logged: See `glyphoxa.transcript.journal.Journal`. None if nothing is recorded.
    """

    def __init__(
        self,
        learning: NameLearning,
        names: Callable[[], Gazetteer],
        wait_until_logged: Callable[[UtteranceId], Awaitable[bool]] | None = None,
    ) -> None:
        self._learning = learning
        self._names = names
        self._wait_until_logged = wait_until_logged
        self._spelled_out = SpelledOut()
        self._typed_claims = TypedClaims()
        self._lessons = asyncio.Queue[_Lesson](_CAPACITY)
        self._last: _Lesson | None = None

    def on(self, event: TableEvent) -> None:
        """Process an event of the table. Returns at once."""
        if isinstance(event, UtteranceKept) and event.utterance.npc_id is None:
            self._take(_Lesson(event.utterance))

    def proved(self, heard: str, name: str, utterance: Utterance) -> None:
        """See `glyphoxa.transcript.reviser.OnProof`. Called once per word; the utterance contains all of them."""
        self._take(_Lesson(utterance, is_revision=True))

    async def run(self) -> None:
        """The actor's body."""
        while True:
            lesson = await self._lessons.get()
            try:
                await self._learn(lesson)
            finally:
                self._lessons.task_done()

    async def finish(self, deadline_ms: int) -> bool:
        """Wait until everything is learned, while `run` continues. False on timeout."""
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                await self._lessons.join()
        except TimeoutError:
            return False
        return True

    async def heard(self, said: Utterance) -> list[LearnedName]:
        """Process an utterance after the inline stage, in order; return the affected pairs."""
        return await self._prove(said, self._spelled_out.heard(said, self._names()))

    async def revised(self, said: Utterance) -> list[LearnedName]:
        """Process an utterance again after the LLM stage has corrected it."""
        return await self._prove(said, ())

    async def _prove(self, said: Utterance, proofs: Iterable[Proof]) -> list[LearnedName]:
        names = self._names()
        return await self._learning.prove(self._typed_claims.weighed(said, [*proofs, *proofs_of(said, names)]), names)

    def _take(self, lesson: _Lesson) -> None:
        if lesson == self._last:
            return
        self._last = lesson
        if self._lessons.full():
            self._lessons.get_nowait()
            self._lessons.task_done()
        self._lessons.put_nowait(lesson)

    async def _learn(self, lesson: _Lesson) -> None:
        try:
            if lesson.is_revision:
                await self.revised(lesson.said)
                return
            # Other uses of a form are counted in the log.
            if self._wait_until_logged is not None and not await self._wait_until_logged(lesson.said.id):
                logger.debug("an utterance is processed before it is in the log")
            await self.heard(lesson.said)
        except GlyphoxaError as error:
            logger.debug("nothing is learned from an utterance: {}", error)


def _shown(heard: str) -> str:
    shown = as_heard(heard) or heard
    return repr(shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}...")
