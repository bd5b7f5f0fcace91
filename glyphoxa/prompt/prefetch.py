"""Look things up while a player still speaks.

If a partial transcript refers to the past, names somebody or has more than a few words, memory is asked what each
present NPC has heard about it. The answers are ready before the question ends; a late one is not used yet. The voice
path awaits none of this, and results for one NPC are never shown to another.

Results belong to the player who speaks and to the words so far. A question that continues these words uses them, and
another player's speech leaves them alone. They serve for a few seconds: what they contain may be retracted, and more
may be said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from loguru import logger

from glyphoxa.actors.deadline import end_tasks
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.events import TableEvent, UtteranceRetracted
from glyphoxa.domain.heard import SpeechStarted
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.knowledge import RecalledTalk
from glyphoxa.language.sentence_form import AskKind, question_of
from glyphoxa.language.text import Text
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.recall.recall import Recall
from glyphoxa.transcript.ports import TalkQuery

_FEW_WORDS: Final = 3
_LEAST_KEPT: Final = 0.5
"""Share of the words so far that a question has if it continues them: a recogniser corrects its last words."""
_DEADLINE_MS: Final = 1_000
"""Time limit of a look-up; well above what a healthy database needs."""
_LASTS_S: Final = 10.0
"""Time for which results serve: the recogniser's last words and a turn that waits are sooner."""


def continues(question: str, so_far: str) -> bool:
    """Return whether a question begins with these words, or is the same speech as a recogniser hears it now."""
    words = Text.of(so_far).spoken
    return bool(words) and len(set(words) & set(Text.of(question).spoken)) >= _LEAST_KEPT * len(set(words))


@dataclass(slots=True)
class _Speech:
    """The words of one player so far, and the results for them.

    Attributes:
        question: The words that memory was asked with.
        asked_s: When it was asked, by the event loop's clock.
        recalled: Results for each NPC.
        answered: The words that memory has answered, for each NPC, also by their meaning.
    """

    question: str = ""
    asked_s: float = 0.0
    recalled: dict[NpcId, tuple[RecalledTalk, ...]] = field(default_factory=dict)
    answered: dict[NpcId, tuple[str, ...]] = field(default_factory=dict)
    look_ups: list[asyncio.Task[None]] = field(default_factory=list)


class Prefetch:
    """Results of look-ups for what players say at the moment.

    Args:
        talk: None without long-term memory: there is nothing to look up.
        present: Returns the NPCs in the scene, with their names, at each partial.
        conversations: The NPCs' transcripts. Lines in a prompt are not recalled again.
        max_recalled: Utterances to request from memory.
    """

    def __init__(
        self,
        world: KnownWorld,
        *,
        talk: Recall | None,
        present: Callable[[], Mapping[NpcId, str]],
        conversations: Mapping[NpcId, Conversation] | None = None,
        max_recalled: int = 8,
    ) -> None:
        self.world = world
        self.conversations = {} if conversations is None else conversations
        self._campaign = world.campaign.id
        self._talk = talk
        self._present = present
        self._max_recalled = max_recalled
        self._speeches: dict[PlayerId, _Speech] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def has_memory(self) -> bool:
        """Return whether past talk can be recalled."""
        return self._talk is not None

    def on(self, event: TableEvent) -> None:
        """Take an event of the table. Returns at once."""
        match event:
            case SpeechStarted(player):
                self.begin(player)
            case UtteranceRetracted():
                self._speeches.clear()  # some of what was found may be retracted
            case _:
                pass

    def begin(self, player: PlayerId) -> None:
        """Start a new speech: drop what was found for the player's last one, and read changes of the world."""
        self._speeches[player] = _Speech()
        self._start(self.world.refresh)

    def on_partial(self, player: PlayerId, text: str) -> None:
        """Take a corrected partial transcript. Starts look-ups and returns at once."""
        words = text.split()
        # The last word of a partial is often incomplete, unless it ends a sentence.
        question = " ".join(words if text.rstrip().endswith((".", "?", "!")) else words[:-1])
        speech = self._speeches.setdefault(player, _Speech())
        if self._talk is None or speech.question == question:
            return
        is_worth_asking = len(words) > _FEW_WORDS or question_of(text, self.world.campaign.language).has(AskKind.PAST)
        asking = {npc: name for npc, name in self._present().items() if is_worth_asking or self.world.named(npc, text)}
        if not asking:
            return
        speech.question, speech.asked_s = question, asyncio.get_running_loop().time()
        # Only the newest words matter, so older look-ups are cancelled.
        for look_up in speech.look_ups:
            look_up.cancel()
        called_first = sorted(asking, key=lambda npc: asking[npc].casefold() not in text.casefold())
        asked = [(npc, self.world.asked(npc, question)) for npc in called_first]
        self._recall_nowait(speech, self._talk, *asked[0])
        speech.look_ups = [self._start(partial(self._recall_all, speech, self._talk, asked))]

    def recalled(self, npc: NpcId, question: str) -> tuple[RecalledTalk, ...]:
        """Return what this NPC has recalled for the words of a question so far."""
        found = self._of(question)
        return () if found is None else found.recalled.get(npc, ())

    def has_answered(self, npc: NpcId, question: str) -> bool:
        """Return whether memory has answered this question while it was spoken, ignoring punctuation."""
        asked = Text.of(self.world.asked(npc, question)).spoken
        return any(speech.answered.get(npc) == asked for speech in self._latest())

    async def recall(self, npc: NpcId, question: str) -> Sequence[RecalledTalk]:
        """Return what this NPC recalls for a whole question.

        Raises:
            GlyphoxaError: Memory cannot be asked.
        """
        if self._talk is None or not question:
            return ()
        return await self._talk.recall(self._campaign, npc, self._query(npc, self.world.asked(npc, question)))

    async def close(self) -> None:
        await end_tasks(*self._tasks)

    def _of(self, question: str) -> _Speech | None:
        """Return the speech that a question continues, that with most words first."""
        continued = (speech for speech in self._latest() if continues(question, speech.question))
        return max(continued, key=lambda speech: len(speech.question), default=None)

    def _latest(self) -> list[_Speech]:
        """Return the speeches whose results still serve."""
        since_s = asyncio.get_running_loop().time() - _LASTS_S
        return [speech for speech in self._speeches.values() if speech.asked_s >= since_s]

    def _query(self, npc: NpcId, question: str) -> TalkQuery:
        """Return what to ask memory: nothing that the NPC's prompt has."""
        heard = self.conversations.get(npc)
        return TalkQuery(question, () if heard is None else heard.utterance_ids, self._max_recalled)

    def _start(self, look_up: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def within_deadline() -> None:
            try:
                async with asyncio.timeout(_DEADLINE_MS / 1000):
                    await look_up()
            except (TimeoutError, GlyphoxaError) as error:
                logger.debug("pre-fetch gave up: {}", str(error) or type(error).__name__)

        task = asyncio.create_task(within_deadline())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _recall_all(self, speech: _Speech, talk: Recall, asked: Sequence[tuple[NpcId, str]]) -> None:
        """One after the other: each takes milliseconds of the event loop, and audio must get through in between."""
        for npc, question in asked[1:]:
            await asyncio.sleep(0)
            self._recall_nowait(speech, talk, npc, question)
        for npc, question in asked:
            await self._start(partial(self._fetch_talk, speech, talk, npc, question))

    def _recall_nowait(self, speech: _Speech, talk: Recall, npc: NpcId, question: str) -> None:
        """Recall by words at once; recall by meaning follows."""
        found = talk.recall_nowait(self._campaign, npc, self._query(npc, question))
        if found is not None:
            speech.recalled[npc] = tuple(found)

    async def _fetch_talk(self, speech: _Speech, talk: Recall, npc: NpcId, question: str) -> None:
        recalled = await talk.recall(self._campaign, npc, self._query(npc, question), patient=True)
        speech.recalled[npc] = tuple(recalled)
        speech.answered[npc] = Text.of(question).spoken
