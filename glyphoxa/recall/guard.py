"""Let a table query memory without waiting for an unreachable database.

Every answer is the database's, or `Unavailable`, which is raised at once while the database is known to be away. The
caller then continues with what it has. Past utterances and named entities come from memory. A query that failed, or was
abandoned too late, triggers a check of the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, ParamSpec, TypeVar

from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.domain.knowledge import RecalledSummary, RecalledTalk
from glyphoxa.recall.transcript_memory import TranscriptMemory
from glyphoxa.recall.world import World, WorldMemory
from glyphoxa.transcript.delivery import MemoryWatch
from glyphoxa.transcript.ports import PastTalk, TalkQuery

P = ParamSpec("P")
T = TypeVar("T")


class MemoryGuard:
    """Wraps a `PastTalk` and a `WorldMemory`. See the module.

    Args:
        watch: None: the database is asked whenever it is needed.
    """

    def __init__(self, talk: PastTalk, world: WorldMemory, watch: MemoryWatch | None) -> None:
        self._talk = talk
        self._world = world
        self._watch = watch
        self.refresh = self.guarded(world.refresh)
        # Reads of what is in memory, which are never late.
        self.recall_nowait = talk.recall_nowait
        self.meanings = world.meanings

    @property
    def world(self) -> World | None:
        """See `WorldMemory`."""
        return self._world.world

    @property
    def _is_away(self) -> bool:
        return self._watch is not None and self._watch.is_away

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> list[RecalledTalk]:
        if self._is_away:
            # What is in memory needs no database. The embedder may be a service that is as far away.
            cached = self.recall_nowait(campaign, npc, query)
            if cached is not None:
                return cached
        return await self.guarded(self._talk.recall)(campaign, npc, query, patient=patient)

    def guarded(self, query: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return a query that fails at once while the database is away, and has it checked when it fails."""

        async def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            if self._is_away:
                raise Unavailable("long-term memory is unavailable")  # `MemoryWatch` reports the reason once
            try:
                return await query(*args, **kwargs)
            except (GlyphoxaError, asyncio.CancelledError):
                if self._watch is not None:
                    self._watch.suspect()  # a caller that gave up may have waited too long
                raise

        return answer


def earlier_sessions(
    memory: WorldMemory | MemoryGuard, transcript: TranscriptMemory, npc: NpcId
) -> Iterator[RecalledSummary]:
    """Return what an NPC may know of the summaries of sessions, the latest session first.

    Raises:
        Unavailable: They are not in memory.
    """
    world, index = memory.world, transcript.index
    if world is None or index is None:
        raise Unavailable("earlier sessions are not in memory")
    began = index.session_starts()
    texts = ((session, world.summary(npc, session)) for session in sorted(began, key=began.__getitem__, reverse=True))
    return (RecalledSummary(session, text, began[session]) for session, text in texts if text is not None)
