"""Whatever happens to a world, its tables say what a replay of its log says."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import Cause, RolledBack, WorldEvent, dropped
from tests.support.builders import an_utterance
from tests.support.proof import n_examples
from tests.support.world_histories import ENTITIES, an_event
from tests.support.world_tables import a_campaign_row, stands_as_replayed

SESSIONS = tuple(SessionId(f"s{n}") for n in range(1, 4))
ORDINALS = 8
STEPS = 13


@pytest.mark.parametrize("first", range(0, n_examples(150), 5))
async def test_tables_say_what_a_replay_of_the_log_says(store: Store, first: int) -> None:
    for seed in range(first, first + 5):
        campaign = CampaignId(f"c{seed}")
        await a_campaign_row(store, campaign)
        await _live(store, campaign, random.Random(seed))


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
                await store.world.undo(campaign, chance.choice(_left(log)), replace(cause, by="dm"))
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
