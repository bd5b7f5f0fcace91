"""Looking things up while somebody is still speaking.

A partial transcript that refers to the past, names somebody or says more than a few words asks memory what each NPC
here has heard about it. The answers are there before the question is finished; a late one is simply not there yet.
Nothing of this is awaited by the voice path, and what was fetched for one NPC is shown to no other.

What is known of people who are named is in memory and looked up when it is needed (`glyphoxa.context.selection`). When
somebody begins to speak, its changes are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Final

from loguru import logger

from glyphoxa.context.selection import ByName, without_call
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, NpcId, PlayerId, UtteranceId
from glyphoxa.domain.knowledge import RecalledTalk
from glyphoxa.language.asking import speaks_of_the_past
from glyphoxa.transcript.ports import PastTalk, TalkQuery

_FEW_WORDS: Final = 3


class Prefetch:
    """What was looked up ahead for the speech that is going on.

    Args:
        language: Of what is spoken.
        present: The NPCs in the scene, with their names, asked for at each partial.
        known_utterances: What an NPC's prompt already holds, so that it is not recalled again.
        deadline_ms: After this a look-up is given up; well above what a healthy database needs.
        max_recalled: Utterances that memory is asked for.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        campaign: CampaignId,
        *,
        by_name: ByName,
        talk: PastTalk | None,
        language: str,
        present: Callable[[], Mapping[NpcId, str]],
        known_utterances: Callable[[NpcId], Sequence[UtteranceId]],
        deadline_ms: int = 1_000,
        max_recalled: int = 8,
    ) -> None:
        self._campaign = campaign
        self.by_name = by_name
        self._talk = talk
        self._language = language
        self._present = present
        self._known_utterances = known_utterances
        self._deadline_ms = deadline_ms
        self._max_recalled = max_recalled
        self._recalled: dict[NpcId, tuple[RecalledTalk, ...]] = {}
        self._answered: dict[NpcId, list[str]] = {}
        self._asked: dict[PlayerId, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._talking: dict[PlayerId, list[asyncio.Task[None]]] = {}

    def has_asked(self, npc: NpcId, question: str) -> bool:
        """Whether memory has answered this very question while it was spoken, the mark at its end aside. The last
        word often carries it.
        """
        return self._answered.get(npc) == _words(question)

    def forget(self, player: PlayerId) -> None:
        """A new speech begins: what was recalled for the last one does not belong to it, and what was known then may be
        known otherwise now.
        """
        self._asked.pop(player, None)
        self._recalled.clear()
        self._answered.clear()
        self.by_name.forget()
        self._start(self.by_name.refresh)

    def on_partial(self, player: PlayerId, text: str) -> None:
        """A corrected partial transcript. Starts look-ups and returns at once."""
        words = text.split()
        # The last word of a partial is often half a word, unless a sentence ends with it.
        question = " ".join(words if text.rstrip().endswith((".", "?", "!")) else words[:-1])
        if self._talk is None or self._asked.get(player) == question:
            return
        is_worth_asking = len(words) > _FEW_WORDS or speaks_of_the_past(text, language=self._language)
        asking = {
            npc: name for npc, name in self._present().items() if is_worth_asking or self.by_name.named(npc, text)
        }
        if not asking:
            return
        self._asked[player] = question
        # Only the newest words matter; an older look-up that is still running is in their way.
        for look_up in self._talking.pop(player, ()):
            look_up.cancel()
        called_first = sorted(asking, key=lambda npc: asking[npc].casefold() not in text.casefold())
        asked = [(npc, without_call(question, asking[npc])) for npc in called_first]
        self._recall_nowait(*asked[0])
        self._talking[player] = [self._start(partial(self._recall_all, asked))]

    def recalled(self, npc: NpcId) -> tuple[RecalledTalk, ...]:
        """What this NPC recalled by the speech so far."""
        return self._recalled.get(npc, ())

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, look_up: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Something that is read ahead. It has a deadline of its own, and ends with this."""
        task = asyncio.create_task(look_up)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _start(self, look_up: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def within_deadline() -> None:
            try:
                async with asyncio.timeout(self._deadline_ms / 1000):
                    await look_up()
            except (TimeoutError, GlyphoxaError) as error:
                logger.debug("pre-fetch gave up: {}", str(error) or type(error).__name__)

        return self.start(within_deadline())

    async def _recall_all(self, asked: Sequence[tuple[NpcId, str]]) -> None:
        """One after the other: each takes milliseconds of the event loop, and sound must get through in between."""
        for npc, question in asked[1:]:
            await asyncio.sleep(0)
            self._recall_nowait(npc, question)
        for npc, question in asked:
            await self._start(partial(self._fetch_talk, npc, question))

    def _recall_nowait(self, npc: NpcId, question: str) -> None:
        """By words and at once; what it means to say is asked behind it."""
        assert self._talk is not None  # noqa: S101 - only called with memory
        found = self._talk.recall_nowait(self._campaign, npc, self._query(npc, question))
        if found is not None:
            self._recalled[npc] = tuple(found)

    async def _fetch_talk(self, npc: NpcId, question: str) -> None:
        assert self._talk is not None  # noqa: S101 - only started with memory
        recalled = await self._talk.recall(self._campaign, npc, self._query(npc, question), patient=True)
        self._recalled[npc] = tuple(recalled)
        self._answered[npc] = _words(question)

    def _query(self, npc: NpcId, question: str) -> TalkQuery:
        return TalkQuery(question, self._known_utterances(npc), self._max_recalled)


def _words(question: str) -> list[str]:
    return question.casefold().rstrip(" .,!?").split()
