"""The world is changed while somebody is still asking: what an NPC may not know any more is not in its answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.memory import TableMemory
from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Claim, secret_of
from glyphoxa.npc.table_state import TableState
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import HotContext
from glyphoxa.world.event_kinds import (
    EntitiesMerged,
    EntityAdded,
    EntityRemoved,
    EntityScoped,
    FactRejected,
    FactScoped,
    FactStated,
)
from glyphoxa.world.event_log import Cause, Event, Undone
from tests.support.builders import CAMPAIGN, INNKEEPER, SESSION, SMITH, TAMSIN, a_campaign
from tests.support.patience import DEADLINE_MS

NOW = 100
BY_DM = Cause("dm", NOW)
ELDRINAX, OTHER = EntityId("e-eldrinax"), EntityId("e-other")
RUMOUR = Claim.attribute(ELDRINAX, "rumour", "Eldrinax met the Salt Queen.")
FEARS = Claim.relation(ELDRINAX, "FEARS", EntityId("e-grimjaw"))
NOT_HIS = secret_of([INNKEEPER])
HIDDEN = [FactScoped(claim.fact_id, NOT_HIS) for claim in (RUMOUR, FEARS)]
ASKED = "What do you know of Eldrinax and the Salt Queen, and why"


def _says_it(hot: HotContext) -> bool:
    # That it has never heard of whom the question names is no knowledge.
    known = (line for line in hot.facts if line not in hot.not_known)
    everything = (*known, *hot.identity, *(one.recalled.text for one in hot.rejected))
    return any("Salt Queen" in line or "fears" in line for line in everything)


@pytest.mark.parametrize(
    "change",
    [
        HIDDEN,
        [FactRejected(claim.fact_id) for claim in (RUMOUR, FEARS)],
        [EntityScoped(ELDRINAX, NOT_HIS)],
        [EntityRemoved(ELDRINAX)],
        [EntityAdded(OTHER, "npc", "Xanthe", visibility=NOT_HIS), EntitiesMerged(OTHER, ELDRINAX)],
        [*(FactStated(Claim.attribute(OTHER, f"n{n}", n)) for n in range(70)), *HIDDEN],
        [],
    ],
    ids=["hidden", "rejected", "its entity hidden", "its entity removed", "merged", "behind much else", "undone"],
)
async def test_what_is_changed_while_they_speak_is_not_answered(
    store: Store, tmp_path: Path, change: Sequence[Event]
) -> None:
    campaign = a_campaign()
    memory = TableMemory(store, TableState(campaign, SESSION, campaign.scenes[0], {}), tmp_path / "spool")
    await memory.open()
    prefetch = Prefetch(
        KnownWorld(campaign, store.world_memory(campaign.id)),
        talk=store.past_talk,
        present=lambda: {SMITH: "Grimjaw"},
    )
    assembly = HotContexts(
        prefetch,
        budgets=Budgets(recall_deadline_ms=DEADLINE_MS),
    )
    await assembly.enter(campaign.scenes[0])
    if any(isinstance(one, FactStated) for one in change):
        await store.world.commit(CAMPAIGN, [EntityAdded(OTHER, "npc", "Xanthe")], BY_DM)
    told = await store.world.commit(CAMPAIGN, [FactStated(RUMOUR), FactStated(FEARS)], BY_DM)
    assert _says_it(await assembly.gather(SMITH, f"{ASKED}?"))

    prefetch.begin(TAMSIN)
    prefetch.on_partial(TAMSIN, ASKED)
    assembly.gather_nowait(SMITH, ASKED)
    await prefetch.world.refresh()
    if change:
        await store.world.commit(CAMPAIGN, change, BY_DM)
    for event in [] if change else told:
        [undone] = await store.world.undo(CAMPAIGN, [event.seq], BY_DM)
        assert isinstance(undone.event, Undone)
    assert not _says_it(await assembly.gather(SMITH, f"{ASKED}?"))
    await prefetch.close()
    await memory.close()
