"""Primes the NPCs' engines while nobody asks them, so that the next answer comes sooner.

Rules of the preparation:

- Engines of the opening scene read their personas before the table opens (`open_scene`), all others while the table is
  idle (`run`). This takes seconds for each on a small machine.
- The table is idle while nobody speaks and no answer is in progress. When somebody begins to speak, reading stops at
  once and keeps its progress.
- NPCs of the current scene are read first, also after a change of scene.
- An NPC that is addressed before it is ready reads its persona with that answer, which comes later than usual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from loguru import logger

from glyphoxa.actors.deadline import end_tasks
from glyphoxa.domain.events import NpcsGetReady, SceneChanged, TableEvent
from glyphoxa.domain.heard import SpeechStarted
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.table_state import TableState


class Preparation:
    """An actor that lets engines read their personas, by the rules of this module.

    Args:
        wait_until_quiet: Waits until nobody speaks and no answer is in progress.
        now_ms: Unix epoch.
    """

    def __init__(
        self,
        npcs: Mapping[NpcId, NpcActor],
        state: TableState,
        *,
        wait_until_quiet: Callable[[], Awaitable[None]],
        now_ms: Callable[[], int],
    ) -> None:
        for npc in npcs.values():
            npc.is_ready = False
        self._npcs = npcs
        self._present = state.present
        self._likely_speaker = state.likely_speaker
        self._wait_until_quiet = wait_until_quiet
        self._tell = state.events.tell
        self._now_ms = now_ms
        self._told: tuple[NpcId, ...] = ()
        self._give_way = asyncio.Event()
        self._is_done = asyncio.Event()

    async def open_scene(self, tell: Callable[[str], None]) -> None:
        """Open all engines and let those of the scene read their personas, before anybody speaks.

        Args:
            tell: Receives a progress message for each.
        """
        for npc in self._npcs.values():
            await npc.open()
        present = self._present()
        for n, npc_id in enumerate(present, start=1):
            npc = self._npcs[npc_id]
            await npc.read_persona(self._likely_speaker())
            npc.is_ready = True
            tell(f"{npc.npc.name} is ready ({n} of {len(present)})")

    def on(self, event: TableEvent) -> None:
        """Take an event of the table."""
        match event:
            case SpeechStarted():
                self._give_way.set()
            case SceneChanged():
                self._give_way.set()
                self._tell_of_scene()

    async def run(self) -> None:
        """Run the actor. Ends when all engines are ready."""
        while (npc := self._next()) is not None:
            await self._wait_until_quiet()
            self._give_way.clear()
            if await self._read(npc):
                n_ready = sum(1 for other in self._npcs.values() if other.is_ready)
                logger.info("{} is ready ({} of {})", npc.npc.name, n_ready, len(self._npcs))
                self._tell_of_scene()
        self._is_done.set()

    async def wait_until_done(self) -> None:
        """Wait until all engines are ready, before measuring answers."""
        await self._is_done.wait()

    def _next(self) -> NpcActor | None:
        waiting = [self._npcs[npc] for npc in (*self._present(), *self._npcs)]
        return next((npc for npc in waiting if not npc.is_ready), None)

    async def _read(self, npc: NpcActor) -> bool:
        """Let an engine read its persona. False if somebody needed the machine."""
        reading = asyncio.ensure_future(self._read_after_scene(npc))
        giving_way = asyncio.ensure_future(self._give_way.wait())
        try:
            await asyncio.wait((reading, giving_way), return_when=asyncio.FIRST_COMPLETED)
            if self._give_way.is_set():
                npc.pause_reading()
                return False
            if (error := reading.exception()) is not None:  # it reads again when it is addressed
                logger.warning("{} could not be prepared: {}", npc.npc.name, error)
            npc.is_ready = True
            return True
        finally:
            await end_tasks(reading, giving_way)

    async def _read_after_scene(self, npc: NpcActor) -> None:
        """Let an engine read its persona after engines of the scene have read the new conversation."""
        for other in self._present():
            if self._npcs[other].is_ready:
                await self._npcs[other].wait_until_read()
        await npc.read_persona(self._likely_speaker())

    def _tell_of_scene(self) -> None:
        unready = tuple(npc for npc in self._present() if not self._npcs[npc].is_ready)
        if unready != self._told:
            self._told = unready
            self._tell(NpcsGetReady(tuple(self._npcs[npc].npc.name for npc in unready), self._now_ms()))
