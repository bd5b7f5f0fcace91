"""Whatever happens to a world, its tables say what a replay of its log says."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.commits import PostgresWorld
from glyphoxa.adapters.postgres.world.tables import WorldTables
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from glyphoxa.world.event_kinds import AliasAdded, EntityAdded
from glyphoxa.world.event_log import Cause, RolledBack, WorldEvent, difference, dropped
from tests.support.builders import an_utterance
from tests.support.proof import n_examples
from tests.support.world_histories import ENTITIES, an_event
from tests.support.world_tables import a_campaign_row, everything, stands_as_replayed

SESSIONS = tuple(SessionId(f"s{n}") for n in range(1, 4))
ORDINALS = 8
STEPS = 13


@pytest.mark.parametrize("first", range(0, n_examples(150), 5))
async def test_tables_say_what_a_replay_of_the_log_says(store: Store, first: int) -> None:
    for seed in range(first, first + 5):
        campaign = CampaignId(f"c{seed}")
        await a_campaign_row(store, campaign)
        await _live(store, campaign, random.Random(seed))


@pytest.mark.parametrize("first", range(0, n_examples(60), 3))
async def test_world_held_by_a_writer_equals_the_tables(store: Store, first: int) -> None:
    """Whatever transactions failed, and whoever else wrote."""
    for seed in range(first, first + 3):
        campaign, chance = CampaignId(f"held{seed}"), random.Random(seed)
        await a_campaign_row(store, campaign)
        people = [EntityAdded(entity, "npc", entity.title()) for entity in chance.sample(ENTITIES, 4)]
        await store.world.commit(campaign, people, Cause("dm", 0))
        for step in range(STEPS):
            with suppress(InvalidInput, NotFound, _Failed, asyncio.CancelledError):
                await _write(store, campaign, chance, 10 * step + 10)
            if chance.random() < 0.5:
                await _is_held_as_stored(store, campaign)
        await _is_held_as_stored(store, campaign)
        await stands_as_replayed(store, campaign)


async def test_world_stays_in_memory_between_commits(store: Store) -> None:
    campaign, other = CampaignId("town"), PostgresWorld(store.database)
    await a_campaign_row(store, campaign)
    await store.world.commit(campaign, [EntityAdded(ENTITIES[0], "npc", "Mira")], Cause("dm", 0))
    states = []
    for n in range(3):
        await other.commit(campaign, [AliasAdded(ENTITIES[0], f"alias {n}")], Cause("dm", n, SessionId("s1"), n + 1))
        await store.world.commit(campaign, [AliasAdded(ENTITIES[0], f"name {n}")], Cause("talk", n))
        async with store.world.writing(campaign, amount=0) as writing:
            states.append((await writing.current()).state)
    assert states[0] is states[1] is states[2]
    assert len(states[0].entities[ENTITIES[0]].aliases) == 6


class _Failed(Exception):
    """A transaction fails after its commits."""


async def _write(store: Store, campaign: CampaignId, chance: random.Random, at_ms: int) -> None:
    """Change the world in one of the ways in which it is changed; some fail."""
    world = chance.choice((store.world, store.world, PostgresWorld(store.database)))
    state, cause = await everything(store, campaign), Cause("dm", at_ms)
    log = await store.world.events(campaign)
    match chance.choice(("commit", "commit", "several", "undo and commit", "cancelled", "undo", "many")):
        case "commit":
            await world.commit(campaign, [an_event(chance, state) for _ in range(chance.choice((1, 1, 3)))], cause)
        case "several":
            async with world.writing(campaign, amount=3) as writing:
                for _ in range(3):
                    await writing.commit([an_event(chance, (await writing.current()).state)], cause)
                    if chance.random() < 0.2:
                        raise _Failed
        case "undo and commit":
            async with world.writing(campaign, amount=1) as writing:
                await writing.undo([chance.choice(_left(log))], cause)
                with suppress(InvalidInput):
                    await writing.commit([an_event(chance, state), AliasAdded(EntityId("nobody"), "x")], cause)
                await writing.commit([an_event(chance, (await writing.current()).state)], cause)
                if chance.random() < 0.3:
                    raise _Failed
        case "cancelled":
            committing = asyncio.create_task(world.commit(campaign, [an_event(chance, state)], cause))
            await asyncio.sleep(chance.random() * 0.01)
            committing.cancel()
            await committing
        case "undo":
            await world.undo(campaign, [chance.choice(_left(log))], cause)
        case _:
            await asyncio.gather(
                *(by.commit(campaign, [an_event(chance, state)], cause) for by in (world, store.world, world)),
                return_exceptions=True,
            )


async def _is_held_as_stored(store: Store, campaign: CampaignId) -> None:
    # A commit may still end after its task was cancelled, but not while the campaign is locked.
    async with store.world.writing(campaign, amount=0) as writing:
        held = (await writing.current()).state
        stored = await WorldTables(writing.connection, campaign).read(with_ended=True)
    changes = difference(stored, held)
    assert replace(changes, ended_gone=()).is_empty
    refused = {fact for fact, _ in stored.ended if stored.was_refused(fact)}
    assert refused == {fact for fact, _ in stored.ended if held.was_refused(fact)}


async def _live(store: Store, campaign: CampaignId, chance: random.Random) -> None:
    await _talk(store, campaign)
    people = [EntityAdded(entity, "npc", entity.title()) for entity in chance.sample(ENTITIES, 4)]
    await store.world.commit(campaign, people, Cause("dm", 0))
    state = await stands_as_replayed(store, campaign)
    for step in range(STEPS):
        cause = _cause(chance, 10 * step + 10)
        match chance.choices(("commit", "undo", "rollback"), (10, 2, 1))[0]:
            case "commit":
                events = [an_event(chance, state) for _ in range(chance.choice((1, 1, 1, 3)))]
                with suppress(InvalidInput):  # one of them may take from another what it is about
                    await store.world.commit(campaign, events, cause)
            case "undo":
                log = await store.world.events(campaign)
                await store.world.undo(campaign, [chance.choice(_left(log))], replace(cause, by="dm"))
            case _:
                await store.world.rollback(campaign, chance.choice(SESSIONS), chance.randrange(ORDINALS), cause)
        state = await stands_as_replayed(store, campaign)
        await _talk_is_retracted_as_the_log_says(store, campaign)


def _left(events: list[WorldEvent]) -> list[int]:
    return sorted({event.seq for event in events} - dropped(events))


def _cause(chance: random.Random, at_ms: int) -> Cause:
    if chance.random() < 0.4:
        return Cause("dm", at_ms)
    return Cause("talk", at_ms, chance.choice(SESSIONS), ordinal=chance.randrange(1, ORDINALS))


async def _talk(store: Store, campaign: CampaignId) -> None:
    said = [
        replace(
            an_utterance(f"words {ordinal}", id=f"{session}-{ordinal}"),
            campaign_id=campaign,
            session_id=session,
            at_ms=1_000 * index + ordinal,
        )
        for index, session in enumerate(SESSIONS, start=1)
        for ordinal in range(1, ORDINALS + 1)
    ]
    await store.log.append(said)


async def _talk_is_retracted_as_the_log_says(store: Store, campaign: CampaignId) -> None:
    events = await store.world.events(campaign)
    left = set(_left(events))
    kept = dict.fromkeys(SESSIONS, ORDINALS)
    for recorded in events:
        if recorded.seq in left and isinstance(recorded.event, RolledBack):
            session, ordinal = recorded.event.session, recorded.event.ordinal
            kept[session] = min(kept[session], ordinal)
            kept |= dict.fromkeys(SESSIONS[SESSIONS.index(session) + 1 :], 0)
    async with store.database.use(campaign) as connection:
        rows = await connection.fetch(
            "SELECT session_id, ordinal, retracted FROM session_entries WHERE campaign_id = $1", campaign
        )
    assert {(row["session_id"], row["ordinal"]): row["retracted"] for row in rows} == {
        (session, ordinal): ordinal > kept[session] for session in SESSIONS for ordinal in range(1, ORDINALS + 1)
    }
