"""A hidden entity turns out to be another one: its old name stays unreadable for players until the DM reveals it."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.bundle import export_for_players
from glyphoxa.adapters.postgres.world.learned_names import PostgresLearnedNames
from glyphoxa.app.desk import SessionRecaps
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Visibility, secret_of, witnessed_by
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.world.event_kinds import AliasAdded, EntitiesMerged, EntityAdded, EntityScoped
from glyphoxa.world.event_log import Cause
from tests.support.builders import SESSION, SMITH, a_campaign, an_utterance

CAMPAIGN = a_campaign().id
WIZARD, SHADE = EntityId("e-eldrinax"), EntityId("shade")
DM = Cause("dm", 1_000)
LINES = ("I promise that Zharothrix will pay for the old mill.", "I saw Vashkari at the gate of the old mill.")


@pytest.fixture
async def town(store: Store) -> Store:
    await store.campaigns.load(a_campaign())
    said = [replace(an_utterance(line, id=f"u{n}"), at_ms=1_000 * n) for n, line in enumerate(LINES, 1)]
    await store.log.append(said)
    return store


async def added(town: Store, visibility: Visibility, *, origin: str = "dm") -> None:
    await town.world.commit(
        CAMPAIGN,
        [EntityAdded(SHADE, "npc", "Zharothrix", ("Vashkari",), visibility, origin)],
        DM,  # type: ignore[arg-type]
    )


async def merged(town: Store, visibility: Visibility, *, kept: Visibility = PUBLIC) -> int:
    await added(town, visibility)
    scoped = [EntityScoped(WIZARD, kept)] if kept != PUBLIC else []
    return (await town.world.commit(CAMPAIGN, [*scoped, EntitiesMerged(WIZARD, SHADE)], DM))[-1].seq


async def readable(town: Store) -> set[str]:
    """Return which of the names players may read: in a recap, in what may be shown on a page, and in a bundle."""
    recaps = await SessionRecaps.of(town, CAMPAIGN)
    told = " ".join(await recaps.told(await recaps.said(SESSION), "players"))
    names = Gazetteer.build(await PostgresLearnedNames(town.database).entries(CAMPAIGN), language="en")
    found = [{name for name in ("Zharothrix", "Vashkari") if name in told}]
    found.append({name for name in ("Zharothrix", "Vashkari") if names.is_all_public(f"I saw {name}.")})
    bundle = BytesIO()
    await export_for_players(town.database, CAMPAIGN, bundle)
    found.append({name for name in ("Zharothrix", "Vashkari") if name.encode() in bundle.getvalue()})
    assert found[0] == found[1] == found[2]
    return found[0]


@pytest.mark.parametrize("visibility", [HIDDEN, secret_of([SMITH])])
@pytest.mark.parametrize("kept", [PUBLIC, HIDDEN])
async def test_name_of_a_merged_hidden_entity_is_read_by_no_player(
    town: Store, visibility: Visibility, kept: Visibility
) -> None:
    await merged(town, visibility, kept=kept)
    assert await readable(town) == set()


async def test_name_of_a_merged_public_entity_is_read_unless_the_other_is_hidden(town: Store) -> None:
    await merged(town, PUBLIC)
    assert await readable(town) == {"Zharothrix", "Vashkari"}
    await town.world.commit(CAMPAIGN, [EntityScoped(WIZARD, HIDDEN)], DM)
    assert await readable(town) == set()


async def test_name_is_readable_once_the_dm_reveals_it(town: Store) -> None:
    await merged(town, HIDDEN)
    await town.world.commit(CAMPAIGN, [AliasAdded(WIZARD, "Zharothrix")], DM)
    assert await readable(town) == {"Zharothrix"}


async def test_undone_merge_leaves_the_hidden_entity_as_it_was(town: Store) -> None:
    seq = await merged(town, HIDDEN)
    await town.world.undo(CAMPAIGN, [seq], DM)
    assert await readable(town) == set()
    await town.world.commit(CAMPAIGN, [EntityScoped(SHADE, PUBLIC)], DM)
    assert await readable(town) == {"Zharothrix", "Vashkari"}


async def test_name_that_players_coined_stays_readable_after_a_merge(town: Store) -> None:
    await added(town, witnessed_by([SMITH]), origin="talk")
    await town.world.commit(CAMPAIGN, [EntitiesMerged(WIZARD, SHADE)], DM)
    recaps = await SessionRecaps.of(town, CAMPAIGN)
    assert len(await recaps.told(await recaps.said(SESSION), "players")) == len(LINES)
