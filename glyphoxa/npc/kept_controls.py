"""What the DM has in force, kept with the session: who opens it again finds the same NPCs muted and directed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, NpcId, PlayerId, SessionId
from glyphoxa.turns.dm_controls import Direction, DmControls

_AGAIN_S: Final = 1.0
_WAIT_FOR_S: Final = 1.0


class ControlsStore(Protocol):
    """Calls raise `Unavailable` when the database is away."""

    async def controls(self, campaign: CampaignId, session: SessionId) -> Mapping[str, Any]:
        """As they were kept last; empty if they never were."""
        ...

    async def keep_controls(self, campaign: CampaignId, session: SessionId, controls: Mapping[str, Any]) -> None: ...


class KeptControls:
    """Writes them behind the talk, the newest only."""

    def __init__(self, campaign: CampaignId, session: SessionId, store: ControlsStore) -> None:
        self._campaign = campaign
        self._session = session
        self._store = store
        self._newest: Mapping[str, Any] = {}
        self._changed = asyncio.Event()
        self._is_kept = asyncio.Event()
        self._is_kept.set()

    async def before(self, npcs: Mapping[NpcId, str]) -> DmControls:
        """What was in force when the session was left, as far as it is known and of these NPCs."""
        try:
            return _of_json(await self._store.controls(self._campaign, self._session), npcs)
        except GlyphoxaError as error:
            logger.warning("whom the DM had muted or directed in this session is not known: {}", error)
            return DmControls(npcs)

    def on_changed(self, controls: DmControls) -> None:
        self._newest = _as_json(controls)
        self._changed.set()
        self._is_kept.clear()

    async def wait_until_kept(self) -> None:
        """Until the database has what is in force now, or for a moment: who is told that a command was obeyed may rely
        on it after a crash, and it is obeyed all the same.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_FOR_S):
                await self._is_kept.wait()

    async def run(self) -> None:
        """The actor's body."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._store.keep_controls(self._campaign, self._session, self._newest)
            except GlyphoxaError as error:
                logger.debug("what the DM has in force is not kept yet: {}", error)
                self._changed.set()
                await asyncio.sleep(_AGAIN_S)
            if not self._changed.is_set():
                self._is_kept.set()


def _as_json(controls: DmControls) -> dict[str, Any]:
    return {
        "muted": sorted(controls.muted),
        "directions": {npc: [each.text, each.turns_left] for npc, each in controls.directions.items()},
        "puppets": dict(controls.puppets),
        "npc_to_npc": controls.npc_to_npc,
        "is_paused": controls.is_paused,
    }


def _of_json(kept: Mapping[str, Any], npcs: Mapping[NpcId, str]) -> DmControls:
    """Without those whom the campaign has no more."""
    directions = {NpcId(npc): Direction(text, left) for npc, (text, left) in kept.get("directions", {}).items()}
    puppets = {PlayerId(player): NpcId(npc) for player, npc in kept.get("puppets", {}).items()}
    return DmControls(
        npcs,
        muted={NpcId(npc) for npc in kept.get("muted", ())} & npcs.keys(),
        directions={npc: each for npc, each in directions.items() if npc in npcs},
        puppets={player: npc for player, npc in puppets.items() if npc in npcs},
        npc_to_npc=kept.get("npc_to_npc"),
        is_paused=bool(kept.get("is_paused")),
    )
