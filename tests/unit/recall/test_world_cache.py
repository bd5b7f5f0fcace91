"""A world in memory: read once, kept true by events, there while the database is away."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import Claim, Visibility, secret_of
from glyphoxa.recall.world import WorldMemory
from glyphoxa.transcript.delivery import MemoryWatch
from glyphoxa.world.event_kinds import AliasAdded, EntityAdded, EntityRemoved, EntityScoped, FactClosed, FactStated
from glyphoxa.world.event_log import Event, RolledBack, Undone, WorldEvent
from glyphoxa.world.graph import WorldRead
from tests.support.world_feed import WorldFeedTwin

TOWN, NPC, OTHER = CampaignId("town"), NpcId("tamsin"), NpcId("bran")
MAREK, INN = EntityId("marek"), EntityId("inn")
QUESTION = "Who owns the Drowned Bell, is it Marek?"
OWNS = Claim.relation(MAREK, "OWNS", INN)


def a_town() -> WorldFeedTwin:
    return WorldFeedTwin(
        EntityAdded(MAREK, "npc", "Marek"), EntityAdded(INN, "location", "The Drowned Bell"), FactStated(OWNS)
    )


def held_of(feed: WorldFeedTwin) -> WorldMemory:
    return WorldMemory(feed, TOWN, now_ms=lambda: 1_000)


async def a_read_town() -> tuple[WorldFeedTwin, WorldMemory]:
    feed = a_town()
    held = held_of(feed)
    await held.refresh()
    return feed, held


def named(held: WorldMemory, npc: NpcId = NPC, question: str = QUESTION) -> dict[str, int] | None:
    """Whom the question names, with how many facts are known of them."""
    world = held.world
    if world is None:
        return None
    return {one.known.entity.id: len(one.known.relations) for one in world.by_name(npc, question)}


async def test_nobody_is_named_before_the_world_was_read() -> None:
    held = held_of(a_town())
    assert named(held) is None
    world = await held.refresh()
    assert (identity := world.identity(NPC, MAREK)) is not None
    assert [fact.claim for fact, _ in identity.known.relations] == [OWNS]
    assert named(held) == {INN: 1, MAREK: 1}


async def test_what_is_new_is_taken_without_reading_all_again() -> None:
    feed, held = await a_read_town()
    for event, expected in (
        (AliasAdded(MAREK, "the brewer"), {INN: 1, MAREK: 1}),
        (FactClosed(OWNS.fact_id), {INN: 0, MAREK: 0}),
        (FactStated(OWNS, visibility=secret_of([OTHER])), {INN: 0, MAREK: 0}),
        (EntityScoped(INN, secret_of([OTHER])), {MAREK: 0}),
        (EntityAdded(EntityId("bell"), "item", "Bell"), {EntityId("bell"): 0, MAREK: 0}),
    ):
        feed.happens(event)
        await held.refresh()
        assert named(held) == expected
    assert named(held, question="the brewer") == {MAREK: 0}
    assert named(held, OTHER) == {INN: 1, MAREK: 1}
    assert feed.n_read == 1


async def test_emptied_world_is_no_campaign_that_is_still_to_be_stored() -> None:
    """The campaign's file must not tell again what the DM removed."""
    feed = WorldFeedTwin()
    held = held_of(feed)
    assert (await held.refresh()).is_empty
    for event in (EntityAdded(MAREK, "npc", "Marek"), EntityRemoved(MAREK)):
        feed.happens(event)
        assert not (await held.refresh()).is_empty
    assert not (await held_of(feed).refresh()).is_empty


@pytest.mark.parametrize("taking_back", [Undone(4), RolledBack(SessionId("s1"), 3, (4,))])
async def test_what_is_taken_back_is_known_no_more(taking_back: Event) -> None:
    feed = a_town()
    held = held_of(feed)
    feed.happens(FactStated(Claim.relation(MAREK, "FEARS", INN)))
    await held.refresh()
    assert named(held) == {INN: 2, MAREK: 2}
    feed.happens(taking_back)
    await held.refresh()
    assert named(held) == {INN: 1, MAREK: 1}


async def test_undone_fact_stays_undone_during_a_reload() -> None:
    feed, held = await a_read_town()
    feed.happens(Undone(3))
    looked = feed.events

    async def then_away(campaign: CampaignId, *, after: int, limit: int) -> list[WorldEvent]:
        found = await looked(campaign, after=after, limit=limit)
        feed.weather.away = True
        return found

    feed.events = then_away  # type: ignore[method-assign] # the network breaks between two questions
    with pytest.raises(Unavailable):
        await held.refresh()
    assert named(held) is None
    feed.weather.away = False
    await held.refresh()
    assert named(held) == {INN: 0, MAREK: 0}


async def test_while_the_database_is_away_what_was_read_is_known() -> None:
    feed, held = await a_read_town()
    feed.weather.away = True
    feed.happens(FactClosed(OWNS.fact_id))
    with pytest.raises(Unavailable):
        await held.refresh()
    assert named(held) == {INN: 1, MAREK: 1}
    feed.weather.away = False
    await held.refresh()
    assert named(held) == {INN: 0, MAREK: 0}


async def test_who_is_late_and_goes_leaves_the_reading_to_those_who_come_next() -> None:
    feed = a_town()
    held = held_of(feed)
    feed.weather.late = True
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await held.refresh()
    await held.reading.close()
    assert named(held) is None


async def test_deeply_hidden_fact_stays_hidden_during_a_reload() -> None:
    feed, held = await a_read_town()
    feed.happens(*(FactStated(Claim.relation(MAREK, f"SAW_{n}", INN)) for n in range(300)))
    feed.happens(EntityScoped(MAREK, secret_of([OTHER])))
    feed.was_read.clear()
    read, go_on = feed.read, asyncio.Event()

    async def slowly(campaign: CampaignId) -> WorldRead:
        found = await read(campaign)
        await go_on.wait()
        return found

    feed.read = slowly  # type: ignore[method-assign] # there is much to be read
    refreshing = asyncio.create_task(held.refresh())
    await feed.was_read.wait()
    assert named(held) is None
    go_on.set()
    await refreshing
    assert named(held) == {INN: 0}


async def test_log_restored_from_an_earlier_day_is_reloaded() -> None:
    feed, held = await a_read_town()
    feed.log.pop()
    await held.refresh()
    assert named(held) == {INN: 0, MAREK: 0}
    feed.log[-1] = replace(feed.log[-1], event=EntityAdded(INN, "location", "The Salt Cellar"))
    await held.refresh()
    assert named(held) == {MAREK: 0}


async def test_unreadable_event_reloads_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    feed, held = await a_read_town()
    world = held.world
    assert world is not None

    def broken(events: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(world, "take", broken)  # a bug
    feed.happens(FactClosed(OWNS.fact_id))
    await held.refresh()
    assert named(held) == {INN: 0, MAREK: 0}


async def test_a_campaign_without_a_world_has_nobody_and_is_looked_for_again() -> None:
    feed = WorldFeedTwin()
    held = held_of(feed)
    await held.refresh()
    assert named(held) == {}
    feed.happens(EntityAdded(MAREK, "npc", "Marek", visibility=Visibility("hidden")), EntityAdded(INN, "npc", "Marek"))
    await held.refresh()
    assert named(held) == {INN: 0}


async def test_watched_world_is_not_read_while_the_database_is_known_to_be_away() -> None:
    async def nothing() -> None: ...

    feed, held = await a_read_town()
    watch = MemoryWatch(ping=nothing, make_good=nothing, changed=lambda: None, now_ms=lambda: 0)
    held.reading.guarded = watch.guarded
    watch.is_away = True
    n_looks = feed.n_looks
    with pytest.raises(Unavailable, match="long-term memory is unavailable"):
        await held.refresh()
    assert (feed.n_looks, named(held)) == (n_looks, {INN: 1, MAREK: 1})
    watch.is_away = False
    await held.refresh()
    assert feed.n_looks == n_looks + 1
