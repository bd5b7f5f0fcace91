"""The DM's view of a world is that of its twin in memory, whatever happened to it."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.dm.timeline import Timeline, events_about
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.knowledge import DM, Viewer
from glyphoxa.world.event_kinds import EntityAdded
from glyphoxa.world.event_log import Cause, RolledBack, replay
from tests.support.builders import an_utterance
from tests.support.proof import IS_PROOF
from tests.support.world_histories import ENTITIES, NPCS, an_event
from tests.support.world_tables import a_campaign_row
from tests.support.world_twin import WorldTwin

SESSIONS = tuple(SessionId(f"s{n}") for n in range(1, 4))
ORDINALS = 6
STEPS = 25
LIVES = 20 if IS_PROOF else 3


async def test_the_dm_is_shown_what_the_log_says(store: Store) -> None:
    for seed in range(LIVES):
        campaign = CampaignId(f"c{seed}")
        twin = await a_life(store, campaign, random.Random(seed))
        await shows_the_same(store, PostgresInspection(store.database), twin, campaign)


async def test_a_rollback_does_what_its_preview_said(store: Store) -> None:
    for seed in range(100, 100 + LIVES):
        campaign, chance = CampaignId(f"c{seed}"), random.Random(seed)
        await a_life(store, campaign, chance)
        inspection = PostgresInspection(store.database)
        timeline = Timeline(campaign, store.world, inspection, lambda: 10_000)
        session, ordinal = chance.choice(SESSIONS), chance.randrange(ORDINALS)

        before = replay(await store.world.events(campaign))
        preview = await timeline.preview(session, ordinal)
        rolled_back = await timeline.rollback(session, ordinal)
        if rolled_back is not None and isinstance(rolled_back.event, RolledBack):
            assert rolled_back.event.events == tuple(event.seq for event in preview.events)
        after = replay(await store.world.events(campaign))
        assert {
            fact.id for fact in preview.facts.get("no longer known", [])
        } == before.facts.keys() - after.facts.keys()
        assert {fact.id for fact in preview.facts.get("known again", [])} == after.facts.keys() - before.facts.keys()
        kept = before.facts.keys() & after.facts.keys()
        assert {fact.id: fact for fact in preview.facts.get("changed", [])} == {
            fact: after.facts[fact] for fact in kept if before.facts[fact] != after.facts[fact]
        }
        assert await inspection.talk_after(campaign, session, ordinal) == 0


async def shows_the_same(store: Store, inspection: PostgresInspection, twin: WorldTwin, campaign: CampaignId) -> None:
    state = twin.state
    assert await inspection.of_status(campaign, "pending", limit=9) == await twin.of_status(
        campaign, "pending", limit=9
    )
    assert await inspection.waiting(campaign) == await twin.waiting(campaign)
    for status in ("accepted", "pending", "conflict", "stale"):
        for session in (None, *sorted({f.provenance.session_id for f in state.facts.values()} - {None})):
            shown = await inspection.of_status(campaign, status, session=session, limit=5)
            assert shown == await twin.of_status(campaign, status, session=session, limit=5)
    viewers: tuple[Viewer, ...] = (DM, *NPCS)
    for viewer in viewers:
        for about in (None, *sorted(state.entities)[:2]):
            shown = await inspection.current(campaign, viewer, about=about, limit=7)
            assert shown == await twin.current(campaign, viewer, about=about, limit=7)
    ids = sorted(state.facts)[::-1]
    assert await inspection.facts(campaign, ids) == await twin.facts(campaign, ids)
    once = {fact for fact, _ in state.ended}
    shown_once = await inspection.once_held(campaign, sorted(once))
    assert shown_once == await twin.once_held(campaign, sorted(once))
    seqs = range(len(twin.log) + 1)
    assert await inspection.ended_by(campaign, seqs) == await twin.ended_by(campaign, seqs)
    for prefix in ("", "0", "a", *(fact[:3] for fact in ids[:3])):
        assert await inspection.beginning_with(campaign, prefix, limit=4) == await twin.beginning_with(
            campaign, prefix, limit=4
        )
        assert await inspection.ended(campaign, prefix, limit=4) == await twin.ended(campaign, prefix, limit=4)
        assert await inspection.like(campaign, prefix, limit=3) == await twin.like(campaign, prefix, limit=3)
    for fact in (*state.facts.values(), *(each.fact for each in state.ended.values())):
        assert await inspection.resting_on(campaign, fact.id) == await twin.resting_on(campaign, fact.id)
        assert events_about(fact, await inspection.events_about(campaign, fact)) == events_about(fact, twin.log)


async def a_life(store: Store, campaign: CampaignId, chance: random.Random) -> WorldTwin:
    """A campaign to which much has happened, and its twin."""
    await a_campaign_row(store, campaign)
    said = [
        replace(
            an_utterance("Well.", id=f"{session}-{ordinal}"),
            campaign_id=campaign,
            session_id=session,
            at_ms=1_000 * n + ordinal,
        )
        for n, session in enumerate(SESSIONS, start=1)
        for ordinal in range(1, ORDINALS + 1)
    ]
    await store.log.append(said)
    people = [EntityAdded(entity, "npc", entity.title()) for entity in chance.sample(ENTITIES, 5)]
    await store.world.commit(campaign, people, Cause("dm", 0))
    state = replay(await store.world.events(campaign))
    for step in range(STEPS):
        session, ordinal = chance.choice(SESSIONS), chance.randint(1, ORDINALS)
        cause = chance.choice((Cause("dm", step), Cause("talk", step, session, ordinal)))
        with suppress(InvalidInput):  # an entity that is needed may have gone
            await store.world.commit(campaign, [an_event(chance, state)], cause)
        if step % 8 == 7:
            events = await store.world.events(campaign, limit=1, latest_first=True)
            await store.world.undo(campaign, [events[0].seq], Cause("dm", step))
        state = replay(await store.world.events(campaign))
    return WorldTwin(await store.world.events(campaign))
