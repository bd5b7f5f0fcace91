"""Look things up while a player still speaks.

If a partial transcript refers to the past, names somebody or has more than a few words, memory is asked what each
present NPC has heard about it. The answers are ready before the question ends; a late one is not used yet. The voice
path awaits none of this, and results for one NPC are never shown to another.

Facts about named entities are in memory and looked up when needed (`glyphoxa.prompt.selection`). Their changes are
read when somebody starts to speak.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, NpcId, PlayerId
from glyphoxa.domain.knowledge import RecalledTalk
from glyphoxa.language.asking import AskKind, question_of
from glyphoxa.language.text import Text
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.selection import ByName
from glyphoxa.transcript.ports import PastTalk, TalkQuery

_FEW_WORDS: Final = 3


_DEADLINE_MS: Final = 1_000
"""Time limit of a look-up; well above what a healthy database needs."""


class Prefetch:
    """Results of look-ups for the current speech.

    Args:
        present: Returns the NPCs in the scene, with their names, at each partial.
        conversations: The NPCs' transcripts. Lines in a prompt are not recalled again.
        max_recalled: Utterances to request from memory.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        campaign: CampaignId,
        *,
        by_name: ByName,
        talk: PastTalk | None,
        language: str,
        present: Callable[[], Mapping[NpcId, str]],
        conversations: Mapping[NpcId, Conversation] | None = None,
        max_recalled: int = 8,
    ) -> None:
        self._campaign = campaign
        self.by_name = by_name
        self._talk = talk
        self._language = language
        self._present = present
        self.conversations = {} if conversations is None else conversations
        self._max_recalled = max_recalled
        self._recalled: dict[NpcId, tuple[RecalledTalk, ...]] = {}
        self._answered: dict[NpcId, tuple[str, ...]] = {}
        self._asked: dict[PlayerId, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._talking: dict[PlayerId, list[asyncio.Task[None]]] = {}

    def has_asked(self, npc: NpcId, question: str) -> bool:
        """Return whether memory has answered this question during the speech, ignoring punctuation.

        The last word often carries it.
        """
        return self._answered.get(npc) == Text.of(question).spoken

    def forget(self, player: PlayerId) -> None:
        """Start a new speech: drop earlier results, and read changes of the world."""
        self._asked.pop(player, None)
        self._recalled.clear()
        self._answered.clear()
        self.by_name.forget()
        self._start(self.by_name.refresh)

    def query(self, npc: NpcId, question: str) -> TalkQuery:
        """Return what to ask memory: nothing that the NPC's prompt has."""
        heard = self.conversations.get(npc)
        return TalkQuery(question, () if heard is None else heard.utterance_ids, self._max_recalled)

    def on_partial(self, player: PlayerId, text: str) -> None:
        """Take a corrected partial transcript. Starts look-ups and returns at once."""
        words = text.split()
        # The last word of a partial is often incomplete, unless it ends a sentence.
        question = " ".join(words if text.rstrip().endswith((".", "?", "!")) else words[:-1])
        if self._talk is None or self._asked.get(player) == question:
            return
        is_worth_asking = len(words) > _FEW_WORDS or question_of(text, self._language).has(AskKind.PAST)
        asking = {
            npc: name for npc, name in self._present().items() if is_worth_asking or self.by_name.named(npc, text)
        }
        if not asking:
            return
        self._asked[player] = question
        # Only the newest words matter, so older look-ups are cancelled.
        for look_up in self._talking.pop(player, ()):
            look_up.cancel()
        called_first = sorted(asking, key=lambda npc: asking[npc].casefold() not in text.casefold())
        asked = [(npc, self.by_name.asked(npc, question)) for npc in called_first]
        self._recall_nowait(*asked[0])
        self._talking[player] = [self._start(partial(self._recall_all, asked))]

    def recalled(self, npc: NpcId) -> tuple[RecalledTalk, ...]:
        """Return what this NPC has recalled for the speech so far."""
        return self._recalled.get(npc, ())

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

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

    async def _recall_all(self, asked: Sequence[tuple[NpcId, str]]) -> None:
        """One after the other: each takes milliseconds of the event loop, and audio must get through in between."""
        for npc, question in asked[1:]:
            await asyncio.sleep(0)
            self._recall_nowait(npc, question)
        for npc, question in asked:
            await self._start(partial(self._fetch_talk, npc, question))

    def _recall_nowait(self, npc: NpcId, question: str) -> None:
        """Recall by words at once; recall by meaning follows."""
        assert self._talk is not None  # noqa: S101 - only called with memory
        found = self._talk.recall_nowait(self._campaign, npc, self.query(npc, question))
        if found is not None:
            self._recalled[npc] = tuple(found)

    async def _fetch_talk(self, npc: NpcId, question: str) -> None:
        assert self._talk is not None  # noqa: S101 - only started with memory
        recalled = await self._talk.recall(self._campaign, npc, self.query(npc, question), patient=True)
        self._recalled[npc] = tuple(recalled)
        self._answered[npc] = Text.of(question).spoken
