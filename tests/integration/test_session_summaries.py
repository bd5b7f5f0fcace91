"""A session's summary reaches whom its scope lets know of it."""

from __future__ import annotations

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.log import PostgresSessionSummaries
from glyphoxa.domain.ids import CampaignId, FactId, NpcId, SessionId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Claim, Provenance, RecalledSummary, Visibility, witnessed_by
from glyphoxa.transcript.sessions import EPISODE, episode_of
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import Cause, Event
from glyphoxa.world.fact_events import FactScoped, FactStated

HERE = CampaignId("barrow")
SESSION = SessionId("evening-3")
GRIM, ELARA = NpcId("grim"), NpcId("elara")
TOLD = "They found the seal and lost the boat."


@pytest.fixture
async def summaries(store: Store) -> PostgresSessionSummaries:
    async with store.database.use(HERE) as connection:
        await connection.execute("INSERT INTO campaigns (id, name, language) VALUES ($1, 'Barrow', 'en')", HERE)
    return PostgresSessionSummaries(store.database)


def told(
    text: str, scope: Visibility, *, kind: str = EPISODE, confidence: float = 1.0, session: SessionId = SESSION
) -> list[Event]:
    entity = episode_of(session)
    return [
        EntityAdded(entity, "event", "The third evening", (), scope),
        FactStated(Claim.attribute(entity, "kind", kind), Provenance(), scope),
        FactStated(Claim.attribute(entity, "summary", text), Provenance(confidence=confidence), scope),
    ]


async def commit(store: Store, events: list[Event]) -> None:
    await store.world.commit(HERE, events, Cause("talk", at_ms=1_700_000_000_000, session_id=SESSION))


async def test_who_was_there_is_told_what_happened_and_nobody_else(
    store: Store, summaries: PostgresSessionSummaries
) -> None:
    await commit(store, told(TOLD, witnessed_by([GRIM])))
    assert await summaries.summary(HERE, GRIM, SESSION) == TOLD
    assert await summaries.summary(HERE, ELARA, SESSION) is None
    assert await summaries.summary(HERE, GRIM, SessionId("evening-4")) is None
    assert await summaries.summary(CampaignId("elsewhere"), GRIM, SESSION) is None


async def test_what_is_public_is_for_everybody_and_what_is_hidden_for_none(
    store: Store, summaries: PostgresSessionSummaries
) -> None:
    await commit(store, told(TOLD, PUBLIC))
    assert await summaries.summary(HERE, ELARA, SESSION) == TOLD
    fact: FactId = Claim.attribute(episode_of(SESSION), "summary", TOLD).fact_id
    await commit(store, [FactScoped(fact, HIDDEN)])
    assert await summaries.summary(HERE, ELARA, SESSION) is None


async def test_a_summary_that_waits_for_the_dm_is_none(store: Store, summaries: PostgresSessionSummaries) -> None:
    await commit(store, told("It may have been so.", PUBLIC, confidence=0.4))
    assert await summaries.summary(HERE, GRIM, SESSION) is None


async def test_an_event_of_another_kind_is_no_summary(store: Store, summaries: PostgresSessionSummaries) -> None:
    await commit(store, told("A wedding.", PUBLIC, kind="wedding"))
    assert await summaries.summary(HERE, GRIM, SESSION) is None


async def test_an_empty_name_is_nobody_and_not_the_dm(summaries: PostgresSessionSummaries) -> None:
    with pytest.raises(ValueError, match="must be DM or an NPC"):
        await summaries.summary(HERE, NpcId(""), SESSION)


async def test_the_latest_are_those_that_the_npc_may_know_of_but_for_the_session_that_is_played(
    store: Store, summaries: PostgresSessionSummaries
) -> None:
    evenings = [SessionId(f"evening-{n}") for n in range(1, 5)]
    async with store.database.use(HERE) as connection:
        for n, evening in enumerate(evenings):
            await connection.execute(
                "INSERT INTO sessions (campaign_id, id, started_at) VALUES ($1, $2, to_timestamp($3::int))",
                HERE,
                evening,
                1_700_000_000 + n,
            )
    for n, scope in enumerate((PUBLIC, witnessed_by([GRIM]), witnessed_by([ELARA]), PUBLIC)):
        await commit(store, told(f"Evening {n + 1}.", scope, session=evenings[n]))
    second, first = await summaries.latest(HERE, GRIM, but=evenings[3], limit=5)
    assert first == RecalledSummary(evenings[0], "Evening 1.", 1_700_000_000_000)
    assert second == RecalledSummary(evenings[1], "Evening 2.", 1_700_000_001_000)
    of_elara = await summaries.latest(HERE, ELARA, but=evenings[0], limit=5)
    assert [one.text for one in of_elara] == ["Evening 4.", "Evening 3."]
    [one] = await summaries.latest(HERE, GRIM, but=SessionId("evening-9"), limit=1)
    assert one.text == "Evening 4."
    assert await summaries.latest(CampaignId("elsewhere"), GRIM, but=evenings[0], limit=5) == []
