"""The DM's controls outlive their process, as far as the database and the campaign still have them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.npc.commands import StoredControls
from glyphoxa.turns.questions import Direction, DmControls
from tests.support.builders import CAMPAIGN, INNKEEPER, SESSION, SMITH, TAMSIN
from tests.support.patience import DEADLINE_S
from tests.support.virtual_time import run_in_virtual_time

NPCS = {SMITH, INNKEEPER}


class ControlsTwin:
    """Keeps them in memory; a number of calls fail first."""

    def __init__(self, *, n_failing: int = 0) -> None:
        self.kept: Mapping[str, Any] = {}
        self.n_failing = n_failing
        self.written = asyncio.Event()

    async def controls(self, campaign: CampaignId, session: SessionId) -> Mapping[str, Any]:
        self._fail()
        return self.kept

    async def keep_controls(self, campaign: CampaignId, session: SessionId, controls: Mapping[str, Any]) -> None:
        self._fail()
        self.kept = controls
        self.written.set()

    def _fail(self) -> None:
        if self.n_failing:
            self.n_failing -= 1
            raise Unavailable("the database is away")


async def after_a_restart(store: ControlsTwin, controls: DmControls, npcs: Collection[NpcId]) -> DmControls:
    kept = StoredControls(CAMPAIGN, SESSION, store)
    running = asyncio.create_task(kept.run())
    kept.on_changed(DmControls())
    kept.on_changed(controls)
    async with asyncio.timeout(DEADLINE_S):
        await store.written.wait()
    running.cancel()
    return await StoredControls(CAMPAIGN, SESSION, store).before(npcs)


def in_force() -> DmControls:
    return DmControls(
        muted={SMITH},
        directions={INNKEEPER: Direction("Be short.", 3)},
        puppets={TAMSIN: INNKEEPER},
        npc_to_npc=2,
        memory_interval=7,
        is_paused=True,
    )


async def test_a_session_that_is_opened_again_has_in_force_what_it_had() -> None:
    before = await after_a_restart(ControlsTwin(), in_force(), NPCS)
    assert before == in_force()
    assert before.directions == {INNKEEPER: Direction("Be short.", 3)}


def test_waiting_for_storage_ends_when_stored_or_soon_after() -> None:
    async def evening() -> None:
        now_s = asyncio.get_running_loop().time
        store = ControlsTwin()
        kept = StoredControls(CAMPAIGN, SESSION, store)
        await kept.wait_until_kept()  # nothing is in force yet
        kept.on_changed(in_force())
        await kept.wait_until_kept()  # and nobody writes
        assert (now_s(), store.kept) == (1, {})
        running = asyncio.create_task(kept.run())
        await kept.wait_until_kept()
        assert now_s() == 1 and store.kept["is_paused"]
        running.cancel()

    run_in_virtual_time(evening())


async def test_npc_removed_from_the_campaign_is_forgotten() -> None:
    before = await after_a_restart(ControlsTwin(), in_force(), {SMITH})
    assert (before.muted, before.directions, before.puppets) == ({SMITH}, {}, {})


async def test_control_that_the_database_rejects_is_written_later() -> None:
    assert (await after_a_restart(ControlsTwin(n_failing=1), in_force(), NPCS)).muted == {SMITH}


async def test_session_without_database_opens_without_controls() -> None:
    assert await StoredControls(CAMPAIGN, SESSION, ControlsTwin(n_failing=1)).before(NPCS) == DmControls()
