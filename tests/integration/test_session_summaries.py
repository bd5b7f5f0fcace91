"""A session's summary reaches whom its scope lets know of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.ids import CampaignId, FactId, NpcId, SessionId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Claim, Provenance, RecalledSummary, Visibility, witnessed_by
from glyphoxa.transcript.sessions import EPISODE, episode_of
from glyphoxa.world.event_kinds import EntityAdded, FactScoped, FactStated
from glyphoxa.world.event_log import Cause, Event
from tests.support.builders import an_utterance

HERE = CampaignId("barrow")
SESSION = SessionId("evening-3")
GRIM, ELARA = NpcId("grim"), NpcId("elara")
TOLD = "They found the seal and lost the boat."


@pytest.fixture(autouse=True)
async def campaign(store: Store) -> None:
    async with store.database.use(HERE) as connection:
        await connection.execute("INSERT INTO campaigns (id, name, language) VALUES ($1, 'Barrow', 'en')", HERE)


async def summary(store: Store, npc: NpcId, session: SessionId = SESSION, campaign: CampaignId = HERE) -> str | None:
    return (await store.summaries(campaign))(npc, session)


async def latest(store: Store, npc: NpcId, campaign: CampaignId = HERE) -> list[RecalledSummary]:
    await store.read(campaign)
    return list(store.earlier_sessions(campaign, npc))


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


async def test_who_was_there_is_told_what_happened_and_nobody_else(store: Store) -> None:
    await commit(store, told(TOLD, witnessed_by([GRIM])))
    assert await summary(store, GRIM) == TOLD
    assert await summary(store, ELARA) is None
    assert await summary(store, GRIM, SessionId("evening-4")) is None
    assert await summary(store, GRIM, campaign=CampaignId("elsewhere")) is None


async def test_what_is_public_is_for_everybody_and_what_is_hidden_for_none(store: Store) -> None:
    await commit(store, told(TOLD, PUBLIC))
    assert await summary(store, ELARA) == TOLD
    fact: FactId = Claim.attribute(episode_of(SESSION), "summary", TOLD).fact_id
    await commit(store, [FactScoped(fact, HIDDEN)])
    assert await summary(store, ELARA) is None


async def test_a_summary_that_waits_for_the_dm_is_none(store: Store) -> None:
    await commit(store, told("It may have been so.", PUBLIC, confidence=0.4))
    assert await summary(store, GRIM) is None


async def test_an_event_of_another_kind_is_no_summary(store: Store) -> None:
    await commit(store, told("A wedding.", PUBLIC, kind="wedding"))
    assert await summary(store, GRIM) is None


async def test_the_latest_sessions_of_which_an_npc_may_know_come_first(store: Store) -> None:
    evenings = [SessionId(f"evening-{n}") for n in range(1, 5)]
    for n, evening in enumerate(evenings):
        began = replace(an_utterance("Good evening.", id=f"u{n}"), campaign_id=HERE, session_id=evening)
        await store.log.append([replace(began, at_ms=1_700_000_000_000 + 1_000 * n)])
    for n, scope in enumerate((PUBLIC, witnessed_by([GRIM]), witnessed_by([ELARA]), PUBLIC)):
        await commit(store, told(f"Evening {n + 1}.", scope, session=evenings[n]))
    _, second, first = await latest(store, GRIM)
    assert first == RecalledSummary(evenings[0], "Evening 1.", 1_700_000_000_000)
    assert second == RecalledSummary(evenings[1], "Evening 2.", 1_700_000_001_000)
    assert [one.text for one in await latest(store, ELARA)] == ["Evening 4.", "Evening 3.", "Evening 1."]
    assert await latest(store, GRIM, CampaignId("elsewhere")) == []


async def test_a_session_that_was_retracted_keeps_the_dms_summary(store: Store) -> None:
    said = replace(an_utterance("Good evening."), campaign_id=HERE, session_id=SESSION)
    await store.log.append([said])
    await commit(store, told(TOLD, PUBLIC))
    await store.world.retract(HERE, said.id, Cause("dm", 1_800_000_000_000))
    assert await latest(store, GRIM) == [RecalledSummary(SESSION, TOLD, said.at_ms)]
