"""The timeline of a campaign: a node for each stretch of talk, and nodes that sum up older ones."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from glyphoxa.adapters.postgres.chronicle_nodes import PostgresEpisodes
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.erasure import Meant, PostgresErasure
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker, timeline_writer
from glyphoxa.app.memory import StoredSessions
from glyphoxa.chronicle.timeline_writer import EventNode, StoredTimeline
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM, HIDDEN, Claim
from glyphoxa.prompt.scene import Past
from glyphoxa.prompt.wording import SaidWhen
from glyphoxa.transcript.sessions import SummarySentence, episode_of
from glyphoxa.world.event_kinds import (
    EntitiesMerged,
    EntityAdded,
    EntityRemoved,
    EntityScoped,
    FactRejected,
    FactReplaced,
    FactScoped,
)
from glyphoxa.world.event_log import Cause, Event
from glyphoxa.world.graph import ConsentChange
from tests.support.builders import INNKEEPER, SMITH, a_campaign, an_utterance
from tests.support.proof import IS_PROOF

CAMPAIGN = a_campaign().id
_NAMES = ("Orrin", "Wenna", "Tobb", "Maelis", "Gerrit", "Ysolde", "Perrin", "Hobb", "Alis", "Kettil")
_BREAK_MS = 11 * 60_000
LATER = Cause("dm", 2_000_000_000)
SESSIONS = 40 if IS_PROOF else 20


async def play(
    store: Store, session: str, scenes: int, *, hidden_from_smith: int | None = None, begin: int = 0
) -> None:
    """Store a session of short scenes, in each of which somebody promises something of its own."""
    said = []
    for n in range(scenes):
        name, number = _NAMES[(begin + n) % len(_NAMES)], begin + n
        heard = {INNKEEPER} if n == hidden_from_smith else {SMITH, INNKEEPER}
        for at, text in enumerate(
            ("Hm.", f"I promise to bring {name} the {number + 2} silver keys of house {number}.")
        ):
            one = an_utterance(text, id=f"{session}-{n}-{at}")
            at_ms = 1_000_000_000 + number * _BREAK_MS + at
            said.append(replace(one, session_id=SessionId(session), at_ms=at_ms, witnesses=frozenset(heard)))
    await store.log.append(said)


async def timeline(store: Store) -> StoredTimeline:
    return await PostgresEpisodes(store.database, store.world).read(CAMPAIGN)


def told(node: EventNode, npc: NpcId) -> str:
    fact = node.of(npc)
    return "" if fact is None else str(fact.claim.content)


@pytest.fixture
async def table(store: Store) -> Store:
    await store.campaigns.load(a_campaign())
    return store


async def test_each_stretch_is_a_node_and_old_ones_are_summed_up(table: Store) -> None:
    await play(table, "one", 8)
    writer = await timeline_writer(table, CAMPAIGN)
    assert await writer.write(SessionId("one"), is_over=True) > 8
    found = await timeline(table)
    leaves = [node for node in found.nodes if node.tier == 0]
    assert len(leaves) == 8 and len({node.id for node in found.nodes}) == len(found.nodes)
    free = [node for node in found.nodes if node.parent is None]
    assert [node.tier for node in free].count(0) == 5, "the threshold is five nodes of a tier"
    parent = next(node for node in free if node.tier == 1)
    children = [node for node in leaves if node.parent == parent.id]
    assert children == leaves[:3], "the oldest three"
    assert all(told(child, SMITH) for child in children)
    assert "silver keys of house 0" in told(parent, SMITH) or "silver keys of house 1" in told(parent, SMITH)
    assert await writer.write(SessionId("one"), is_over=True) == 0, "nothing is told twice"


async def test_a_long_campaign_is_summed_up_recursively(table: Store) -> None:
    for n in range(6):
        await play(table, f"s{n}", 8, begin=8 * n)
        await (await timeline_writer(table, CAMPAIGN)).write(SessionId(f"s{n}"), is_over=True)
    found = await timeline(table)
    free = [node for node in found.nodes if node.parent is None]
    assert max(node.tier for node in free) >= 2
    assert all([node.tier for node in free].count(tier) <= 5 for tier in range(4))
    assert sum(len(told(node, SMITH)) for node in free) < 4 * 50 * 15


async def test_an_npc_is_told_only_what_it_heard(table: Store) -> None:
    await play(table, "one", 8, hidden_from_smith=1)
    await (await timeline_writer(table, CAMPAIGN)).write(SessionId("one"), is_over=True)
    found = await timeline(table)
    assert any("house 1." in told(node, INNKEEPER) for node in found.nodes)
    assert not any("house 1." in told(node, SMITH) for node in found.nodes)
    hidden = next(node for node in found.nodes if node.tier == 0 and "house 1." in told(node, INNKEEPER))
    assert hidden.parent is not None and told(hidden, SMITH) == ""


async def test_a_running_session_is_told_up_to_its_last_complete_stretch(table: Store) -> None:
    await play(table, "one", 3)
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.write(SessionId("one"))
    assert len((await timeline(table)).nodes) == 2
    await play(table, "one", 5)
    await writer.write(SessionId("one"), is_over=True)
    assert len((await timeline(table)).nodes) == 5


async def test_a_summary_of_chosen_nodes_reaches_those_who_heard_its_lines(table: Store) -> None:
    await play(table, "one", 4, hidden_from_smith=1)
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.write(SessionId("one"), is_over=True)
    first, second, third, _ = (await timeline(table)).nodes
    said = [SummarySentence("Two houses were promised keys.", (UtteranceId("one-0-1"), UtteranceId("one-1-1")))]
    made = await writer.compact([first.id, second.id], said)
    node = (await timeline(table)).node(made)
    assert node is not None and told(node, INNKEEPER) == "Two houses were promised keys."
    assert "house 0." in told(node, SMITH) and "houses" not in told(node, SMITH)
    for wrong, why in (
        ([first.id, third.id], "is summed up already"),
        ([third.id], "at least two event nodes"),
        ([third.id, node.id], "of different tiers"),
        ([third.id, EntityId("forge")], "no event node 'forge'"),
    ):
        with pytest.raises(InvalidInput, match=why):
            await writer.compact(wrong)


async def test_model_is_not_asked_for_npcs_that_a_given_summary_tells(table: Store) -> None:
    await play(table, "one", 2, hidden_from_smith=1)
    writer, asked = await timeline_writer(table, CAMPAIGN), Meanwhile()
    await writer.write(SessionId("one"), is_over=True)
    said = [SummarySentence("Two houses were promised keys.", (UtteranceId("one-0-1"), UtteranceId("one-1-1")))]
    nodes = [node.id for node in (await timeline(table)).nodes]
    made = await replace(writer, summariser=asked).compact(nodes, said)
    node = (await timeline(table)).node(made)
    assert node is not None and told(node, INNKEEPER) == "Two houses were promised keys."
    assert "house 0." in told(node, SMITH)
    assert [[one.id for one in lines] for lines in asked.read] == [["one-0-1"]], "the smith heard no other line of them"


async def test_a_sum_of_sums_is_made_from_all_their_sessions(table: Store) -> None:
    said = ("I promise to mend it.", "We decided to sell the boat.", "I lost my ring.", "I sold the mule.")
    for n, text in enumerate(said):
        one = replace(an_utterance(text, id=f"s{n}-0"), session_id=SessionId(f"s{n}"))
        await table.log.append([replace(one, at_ms=1_000_000_000 + n * _BREAK_MS)])
        await (await timeline_writer(table, CAMPAIGN)).write(SessionId(f"s{n}"), is_over=True)
    nodes, writer = (await timeline(table)).nodes, await timeline_writer(table, CAMPAIGN)
    sums = [await writer.compact([node.id for node in pair]) for pair in (nodes[:2], nodes[2:])]
    of_all = await writer.compact(sums)
    found = (await timeline(table)).node(of_all)
    assert found is not None and found.lines == {f"s{n}-0" for n in range(4)}


async def test_a_dms_sum_of_sums_is_only_for_those_who_heard_all_their_sessions(table: Store) -> None:
    for n in range(4):
        await play(table, f"s{n}", 1, begin=n)
        heard = {INNKEEPER} if n == 0 else {SMITH, INNKEEPER}
        murmur = replace(an_utterance("Hm, hm.", id=f"s{n}-x"), at_ms=1_000_000_000 + n * _BREAK_MS + 9)
        await table.log.append([replace(murmur, session_id=SessionId(f"s{n}"), witnesses=frozenset(heard))])
        await (await timeline_writer(table, CAMPAIGN)).write(SessionId(f"s{n}"), is_over=True)
    nodes, writer = (await timeline(table)).nodes, await timeline_writer(table, CAMPAIGN)
    sums = [await writer.compact([node.id for node in pair]) for pair in (nodes[:2], nodes[2:])]
    of_all = await writer.compact(sums, [SummarySentence("Four houses were promised keys.", ())])
    found = (await timeline(table)).node(of_all)
    assert found is not None and told(found, INNKEEPER) == "Four houses were promised keys."
    assert "house 2." in told(found, SMITH) and "Four houses" not in told(found, SMITH)


async def test_what_happened_names_its_place_and_people_to_those_who_heard_them(table: Store) -> None:
    line = an_utterance("I promise to bring Grimjaw the silver keys of the mill.", id="k1")
    one = replace(line, session_id=SessionId("one"), at_ms=1_000_000_000, witnesses=frozenset({INNKEEPER}))
    await table.log.append([one])
    await (await timeline_writer(table, CAMPAIGN)).write(SessionId("one"), is_over=True)
    [node] = (await timeline(table)).nodes
    facts = await PostgresInspection(table.database).current(CAMPAIGN, INNKEEPER, about=node.id, limit=50)
    assert {"INVOLVED_IN", "OCCURRED_AT", "summary", "floor"} <= {fact.claim.predicate for fact in facts}
    assert not await PostgresInspection(table.database).current(CAMPAIGN, SMITH, about=node.id, limit=50)
    await table.world.retract(CAMPAIGN, UtteranceId("k1"), Cause("dm", 2_000_000_000))
    assert not await PostgresInspection(table.database).current(CAMPAIGN, DM, about=node.id, limit=50)


async def test_a_node_whose_last_line_is_retracted_is_told_again_under_the_same_sum(table: Store) -> None:
    await play(table, "one", 8)
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.write(SessionId("one"), is_over=True)
    before = next(node for node in (await timeline(table)).nodes if node.tier == 1)
    await table.world.retract(CAMPAIGN, UtteranceId("one-1-1"), Cause("dm", 2_000_000_000))
    await table.world.correct(CAMPAIGN, UtteranceId("one-0-1"), "I promise Odo the eel.", Cause("dm", 2_000_000_001))
    for _ in range(3):
        await writer.write(SessionId("one"), is_over=True)
    found = await timeline(table)
    assert len([node for node in found.nodes if node.tier == 0 and node.parent is None]) <= 5
    assert any("eel" in told(node, SMITH) for node in found.nodes if node.parent == before.id)


async def test_two_writers_at_once_tell_each_node_once(table: Store) -> None:
    await play(table, "one", 8)
    one, other = await timeline_writer(table, CAMPAIGN), await timeline_writer(table, CAMPAIGN)
    await asyncio.gather(one.write(SessionId("one"), is_over=True), other.write(SessionId("one"), is_over=True))
    await one.write(SessionId("one"), is_over=True)
    found = await timeline(table)
    assert len([node for node in found.nodes if node.tier == 0]) == 8
    assert all(len(node.summaries) == 1 for node in found.nodes)


def past_at(store: Store, name: str) -> Past:
    session = SessionId(name)
    when, memory = SaidWhen(a_campaign(), session, None), store.world_memory(CAMPAIGN)
    return Past(when, StoredSessions(store, CAMPAIGN, session), tokens=600, world=lambda: memory.world)


async def past_of(store: Store, npc: NpcId, name: str = "next") -> str:
    await store.read(CAMPAIGN)
    past = past_at(store, name)
    await past.read(npc)
    return past.of(npc)


async def test_an_npc_begins_the_next_session_with_the_arc_of_all_before(table: Store) -> None:
    """All sessions fit into 600 tokens: the oldest as a part of what sums them up, the last evening in full."""
    for n in range(SESSIONS):
        await play(table, f"s{n:02}", 3, begin=3 * n)
        await (await timeline_writer(table, CAMPAIGN)).sum_up(SessionId(f"s{n:02}"))
    told = await past_of(table, SMITH)
    assert len(told) <= 4 * 600
    n_houses = 3 * SESSIONS
    assert all(f"house {n}." in told for n in range(n_houses - 3, n_houses)), "the last evening"
    houses = [int(found) for found in re.findall(r"house (\d+)\.", told)]
    assert min(houses) < n_houses // 4 and len([house for house in houses if house < n_houses - 20]) >= 8
    assert houses == sorted(houses), "in the order of the talk"


async def retracted(store: Store, line: Utterance) -> None:
    await store.world.retract(CAMPAIGN, line.id, LATER)


async def corrected(store: Store, line: Utterance) -> None:
    await store.world.correct(CAMPAIGN, line.id, "I promise Odo the eel.", LATER)


async def withheld(store: Store, line: Utterance) -> None:
    await store.world.consent(CAMPAIGN, ConsentChange(line.speaker_id, "withheld", (line.id,)), Cause("player", 1))


async def revised(store: Store, line: Utterance) -> None:
    worker = chronicle_worker(store)
    await worker.read_new(CAMPAIGN)
    await store.log.revise(replace(line, text=line.text.replace("house", "mill")), was=line)
    await worker.read_new(CAMPAIGN)


async def erased(store: Store, line: Utterance) -> None:
    await PostgresErasure(store.database).erase(CAMPAIGN, Meant(session=line.session_id), at_ms=1)


@pytest.mark.parametrize("take_back", [retracted, corrected, withheld, revised, erased])
async def test_what_is_taken_back_leaves_the_sums_of_later_sessions(
    table: Store, take_back: Callable[[Store, Utterance], Awaitable[None]]
) -> None:
    for n in range(5):
        await play(table, f"s{n}", 2, begin=2 * n)
        await (await timeline_writer(table, CAMPAIGN)).sum_up(SessionId(f"s{n}"))
    told_of = [(node, line) for node in (await timeline(table)).nodes for line in node.lines if node.tier]
    id_ = next(line for node, line in told_of if not line.startswith(f"{node.end.session_id}-"))
    found = await table.log.recent(CAMPAIGN, SessionId(id_.partition("-")[0]), since_ms=0, limit=100)
    line = next(one for one in found if one.id == id_)
    await take_back(table, line)
    assert not any(line.text in told(node, SMITH) for node in (await timeline(table)).nodes)


async def arc(store: Store, npc: NpcId) -> str:
    return " ".join(one.text for one in await store.episodes.arc(CAMPAIGN, npc, but=SessionId("next")))


@pytest.mark.parametrize("hidden_first", [True, False])
async def test_a_node_that_the_dm_hides_is_told_neither_by_itself_nor_in_a_sum(
    table: Store, hidden_first: bool
) -> None:
    await play(table, "one", 4)
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.write(SessionId("one"), is_over=True)
    hidden = (await timeline(table)).nodes[0]
    if hidden_first:
        await table.world.commit(CAMPAIGN, [EntityScoped(hidden.id, HIDDEN)], LATER)
    await play(table, "two", 8, begin=4)
    await writer.write(SessionId("two"), is_over=True)
    if not hidden_first:
        await table.world.commit(CAMPAIGN, [EntityScoped(hidden.id, HIDDEN)], LATER)
    assert any(node.tier and hidden.id.startswith(node.id[:-2]) for node in (await timeline(table)).nodes)
    told_now = await arc(table, SMITH)
    assert "house 0." not in told_now and "house 1." in told_now


async def test_what_the_dm_writes_of_a_node_is_told_in_its_sum_and_the_lines_are_not(table: Store) -> None:
    await play(table, "one", 4)
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.write(SessionId("one"), is_over=True)
    first = (await timeline(table)).nodes[0]
    in_words = Claim.attribute(first.id, "summary", "They talked of the feast.")
    await table.world.commit(CAMPAIGN, [FactReplaced(first.summaries[0].id, in_words)], LATER)
    await play(table, "two", 8, begin=4)
    await writer.write(SessionId("two"), is_over=True)
    told_now = [told(node, SMITH) for node in (await timeline(table)).nodes]
    assert not any("house 0." in text for text in told_now)
    assert len([text for text in told_now if "They talked of the feast." in text]) == 2


async def test_the_same_words_are_known_to_each_npc_by_the_line_that_it_heard(table: Store) -> None:
    words = "I promise to bring Orrin the silver keys of the mill."
    said = [("k1", words, SMITH), ("k2", "Hm.", INNKEEPER), ("k3", words, INNKEEPER)]
    lines = [replace(an_utterance(text, id=id_), witnesses=frozenset({npc})) for id_, text, npc in said]
    await table.log.append([replace(one, session_id=SessionId("one"), at_ms=1_000_000_000) for one in lines])
    await (await timeline_writer(table, CAMPAIGN)).sum_up(SessionId("one"))
    summaries = await table.summaries(CAMPAIGN)
    assert all(words in str(summaries(npc, SessionId("one"))) for npc in (SMITH, INNKEEPER))
    await table.world.retract(CAMPAIGN, UtteranceId("k3"), LATER)
    for told_by in ("what is stored", "what is told again"):
        known = [told(node, INNKEEPER) for node in (await timeline(table)).nodes]
        summaries = await table.summaries(CAMPAIGN)
        assert not any(words in text for text in [*known, str(summaries(INNKEEPER, SessionId("one")))]), told_by
        await (await timeline_writer(table, CAMPAIGN)).sum_up(SessionId("one"))
    assert any(words in told(node, SMITH) for node in (await timeline(table)).nodes)
    assert words in str(summaries(SMITH, SessionId("one")))


async def test_a_session_without_a_summary_is_told_by_its_nodes(table: Store) -> None:
    await play(table, "one", 2)
    await (await timeline_writer(table, CAMPAIGN)).sum_up(SessionId("one"))
    await play(table, "two", 2, begin=2)
    await (await timeline_writer(table, CAMPAIGN)).write(SessionId("two"), is_over=True)
    told_now = await past_of(table, SMITH)
    assert all(told_now.count(f"house {n}.") == 1 for n in range(4)), told_now


async def test_a_session_that_goes_on_takes_nothing_of_earlier_ones_along(table: Store) -> None:
    """A sum may rest on it and on earlier ones."""
    for n in range(8):
        await play(table, f"s{n}", 1, begin=n)
        await (await timeline_writer(table, CAMPAIGN)).sum_up(SessionId(f"s{n}"))
    assert "house 6." in await past_of(table, SMITH, "now")
    await play(table, "now", 9, begin=8)
    await (await timeline_writer(table, CAMPAIGN)).write(SessionId("now"))
    summed_up = {node.id: node.parent for node in (await timeline(table)).nodes}
    assert summed_up[EntityId("episode-s6#1")] == EntityId("episode-s6#1+1")
    told_now = await past_of(table, SMITH, "now")
    assert "house 6." in told_now and "house 7." in told_now and "house 8." not in told_now


@pytest.mark.parametrize("is_merged", [True, False])
async def test_a_node_that_the_dm_removed_or_merged_is_not_told_again(table: Store, is_merged: bool) -> None:
    feast = EntityAdded(EntityId("feast"), "event", "The Feast of Owls")
    await table.world.commit(CAMPAIGN, [feast], Cause("dm", 1))
    line = an_utterance("I promise to bring Orrin the silver keys to the Feast of Owls.", id="k1")
    await table.log.append([replace(line, session_id=SessionId("one"), witnesses=frozenset({SMITH}))])
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.write(SessionId("one"), is_over=True)
    [node] = (await timeline(table)).nodes
    gone = EntitiesMerged(feast.entity, node.id) if is_merged else EntityRemoved(node.id)
    await table.world.commit(CAMPAIGN, [gone], LATER)
    await play(table, "one", 9)
    assert await writer.write(SessionId("one"), is_over=True) >= 9
    found = await timeline(table)
    assert not any("Feast of Owls" in told(each, SMITH) for each in found.nodes)
    assert any("house 8." in told(each, SMITH) for each in found.nodes)
    assert await writer.write(SessionId("one"), is_over=True) == 0


async def test_the_dms_words_for_nodes_reach_only_those_who_heard_all_that_was_said_then(table: Store) -> None:
    open_line = (
        "I promise to bring Orrin of the old mill by the northern river the seventeen silver keys of the granary."
    )
    own_line = "It is on his head, you know."
    said = []
    for n in range(2):
        for at, (text, heard) in enumerate([(open_line, {SMITH, INNKEEPER}), (own_line, {SMITH})]):
            one = an_utterance(text.replace("Orrin", _NAMES[n]), id=f"k{n}{at}")
            at_ms = 1_000_000_000 + n * _BREAK_MS + at
            said.append(replace(one, session_id=SessionId("one"), at_ms=at_ms, witnesses=frozenset(heard)))
    await table.log.append(said)
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.write(SessionId("one"), is_over=True)
    found = await timeline(table)
    assert all(told(node, INNKEEPER) for node in found.nodes)
    made = await writer.compact([node.id for node in found.nodes], [SummarySentence("The lich has the crown.", ())])
    node = (await timeline(table)).node(made)
    assert node is not None and told(node, SMITH) == "The lich has the crown."
    assert "lich" not in told(node, INNKEEPER)


@pytest.mark.parametrize("take_back", [retracted, corrected])
@pytest.mark.parametrize("decision", [EntityRemoved, EntityScoped, FactScoped])
async def test_decision_of_the_dm_stays_when_a_line_is_taken_back(
    table: Store,
    decision: type[EntityRemoved | EntityScoped | FactScoped],
    take_back: Callable[[Store, Utterance], Awaitable[None]],
) -> None:
    lines = [an_utterance(f"I promise to bring {_NAMES[n]} the {n + 2} silver keys.", id=f"k{n}") for n in range(2)]
    heard, session = frozenset({SMITH}), SessionId("one")
    said = [replace(line, session_id=session, at_ms=1_000_000_000, witnesses=heard) for line in lines]
    await table.log.append(said)
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.sum_up(session)
    assert "Wenna" in await past_of(table, SMITH)
    stored = await timeline(table)
    whole = [(node, facts[0]) for node, facts in stored.sessions.items()]
    decided = []
    for node, fact in ((stored.nodes[0].id, stored.nodes[0].summaries[0]), *whole):
        event = EntityRemoved(node) if decision is EntityRemoved else EntityScoped(node, HIDDEN)
        event = FactScoped(fact.id, HIDDEN) if decision is FactScoped else event
        decided += await table.world.commit(CAMPAIGN, [event], LATER)
    await take_back(table, said[0])
    for _ in range(2):
        await writer.sum_up(session)
    assert await past_of(table, SMITH) == ""
    await table.world.undo(CAMPAIGN, [each.seq for each in decided], LATER)
    await writer.sum_up(session)
    assert "Wenna" in await past_of(table, SMITH) and "Orrin" not in await past_of(table, SMITH)


@pytest.mark.parametrize("decision", [EntityRemoved, FactRejected, FactReplaced, FactScoped])
async def test_sum_tells_nothing_more_of_a_node_on_which_the_dm_decides_later(
    table: Store, decision: type[EntityRemoved | FactRejected | FactReplaced | FactScoped]
) -> None:
    await play(table, "one", 8)
    writer, session = await timeline_writer(table, CAMPAIGN), SessionId("one")
    await writer.write(session, is_over=True)
    before = await past_of(table, SMITH)
    node = next(node for node in (await timeline(table)).nodes if node.tier == 0 and "house 1." in told(node, SMITH))
    [fact] = node.summaries
    in_words = Claim.attribute(node.id, "summary", "They talked of the feast.")
    events: dict[type, Event] = {
        EntityRemoved: EntityRemoved(node.id),
        FactRejected: FactRejected(fact.id),
        FactReplaced: FactReplaced(fact.id, in_words),
        FactScoped: FactScoped(fact.id, HIDDEN),
    }
    [decided] = await table.world.commit(CAMPAIGN, [events[decision]], LATER)
    assert "house 1." in before and "house 1." not in await past_of(table, SMITH)
    await table.world.undo(CAMPAIGN, [decided.seq], LATER)
    assert await past_of(table, SMITH) == before
    await table.world.commit(CAMPAIGN, [events[decision]], LATER)
    await writer.write(session, is_over=True)
    told_now = await past_of(table, SMITH)
    assert "house 1." not in told_now and "house 2." in told_now
    assert ("They talked of the feast." in told_now) == (decision is FactReplaced)
    facts = (await table.world.now(CAMPAIGN)).facts.values()
    texts = [str(each.claim.content) for each in facts if each.claim.subject.endswith("+1") and not each.claim.object]
    assert texts and not any("house 1." in text for text in texts)
    assert await writer.write(session, is_over=True) == 0, "nothing is told twice"


@pytest.mark.parametrize("decision", [EntityRemoved, FactRejected])
async def test_later_nodes_are_summed_up_after_the_dm_has_rejected_a_sum(
    table: Store, decision: type[EntityRemoved | FactRejected]
) -> None:
    await play(table, "one", 8)
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.write(SessionId("one"), is_over=True)
    made = next(node for node in (await timeline(table)).nodes if node.tier)
    event = EntityRemoved(made.id) if decision is EntityRemoved else FactRejected(made.summaries[0].id)
    await table.world.commit(CAMPAIGN, [event], LATER)
    for n in range(2):
        await play(table, f"s{n}", 8, begin=8 + 8 * n)
        await writer.write(SessionId(f"s{n}"), is_over=True)
    nodes = (await timeline(table)).nodes
    assert made.id not in {node.id for node in nodes}
    assert len([node for node in nodes if node.tier == 0 and node.parent is None]) <= 6


@pytest.mark.parametrize("is_whole", [True, False])
async def test_summary_that_the_dm_rejects_is_not_told_again(table: Store, is_whole: bool) -> None:
    await play(table, "one", 1)
    writer, session = await timeline_writer(table, CAMPAIGN), SessionId("one")
    await writer.sum_up(session)
    stored = await timeline(table)
    [fact] = stored.sessions[episode_of(session)] if is_whole else stored.nodes[0].summaries
    [rejected] = await table.world.commit(CAMPAIGN, [FactRejected(fact.id)], LATER)
    events = await table.world.events(CAMPAIGN)
    for _ in range(2):
        await writer.sum_up(session)
    assert await table.world.events(CAMPAIGN) == events
    known = await PostgresInspection(table.database).current(CAMPAIGN, DM, about=fact.claim.subject, limit=50)
    assert not [each for each in known if each.claim.predicate == "summary"]
    await table.world.undo(CAMPAIGN, [rejected.seq], LATER)
    assert await timeline(table) == stored
    await writer.sum_up(session)
    assert len(await table.world.events(CAMPAIGN)) == len(events) + 1


class Meanwhile:
    """A summariser that lets something happen before it answers with the lines themselves."""

    def __init__(self, happens: Callable[[], Awaitable[object]] | None = None) -> None:
        self.happens = happens
        self.read: list[Sequence[Utterance]] = []

    async def summarise(self, said: Sequence[Utterance]) -> list[SummarySentence]:
        self.read.append(said)
        happens, self.happens = self.happens, None
        if happens is not None:
            await happens()
        return [SummarySentence(f"Tamsin: {each.text}", (each.id,)) for each in said]


async def test_entity_removed_meanwhile_costs_only_what_is_about_it(table: Store) -> None:
    owl = EntityAdded(EntityId("owl"), "faction", "The Order of Owls")
    await table.world.commit(CAMPAIGN, [owl], Cause("dm", 1))
    line = an_utterance("I promise to bring the silver keys to the Order of Owls and Grimjaw.", id="k1")
    await table.log.append([replace(line, session_id=SessionId("one"), witnesses=frozenset({SMITH}))])

    async def remove() -> None:
        await table.world.commit(CAMPAIGN, [EntityRemoved(owl.entity)], LATER)

    writer = replace(await timeline_writer(table, CAMPAIGN), summariser=Meanwhile(remove))
    assert await writer.write(SessionId("one"), is_over=True) == 1
    [node] = (await timeline(table)).nodes
    facts = await PostgresInspection(table.database).current(CAMPAIGN, DM, about=node.id, limit=50)
    named = {fact.claim.subject for fact in facts if fact.claim.predicate == "INVOLVED_IN"}
    assert "silver keys" in told(node, SMITH) and named == {a_campaign().npc(SMITH).entity_id}


@pytest.mark.parametrize("of_session", [True, False])
async def test_words_corrected_meanwhile_are_not_stored(table: Store, of_session: bool) -> None:
    await play(table, "one", 1)
    writer, session = await timeline_writer(table, CAMPAIGN), SessionId("one")

    async def correct() -> None:
        await table.world.correct(CAMPAIGN, UtteranceId("one-0-1"), "I promise Odo the eel.", LATER)

    asked = replace(writer, summariser=Meanwhile(correct))
    await (asked.sum_up(session) if of_session else asked.write(session, is_over=True))
    stored = await timeline(table)
    facts = [fact for node in stored.nodes for fact in node.summaries]
    facts += stored.sessions.get(episode_of(session), ())
    assert not any("silver keys" in str(fact.claim.content) for fact in facts)
    await writer.sum_up(session)
    stored = await timeline(table)
    assert "eel" in told(stored.nodes[0], SMITH)
    assert "eel" in str(stored.sessions[episode_of(session)][0].claim.content)


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("is_hidden", [True, False])
async def test_open_table_follows_what_the_dm_decides_on_the_past(
    table: Store, is_whole: bool, is_hidden: bool
) -> None:
    for n in range(3):
        await play(table, f"s{n}", 1, begin=n)
        await (await timeline_writer(table, CAMPAIGN)).sum_up(SessionId(f"s{n}"))
    await table.read(CAMPAIGN)
    past = past_at(table, "next")
    await past.read(SMITH)
    assert all(f"house {n}." in past.of(SMITH) for n in range(3))
    stored = await timeline(table)
    number, node = (2, episode_of(SessionId("s2"))) if is_whole else (0, stored.nodes[0].id)
    [fact] = stored.sessions[node] if is_whole else stored.nodes[0].summaries
    reworded = FactReplaced(fact.id, Claim.attribute(node, "summary", "They talked of the feast."))
    await table.world.commit(CAMPAIGN, [EntityScoped(node, HIDDEN) if is_hidden else reworded], LATER)
    await table.read(CAMPAIGN)
    assert past.of(SMITH) == "", "nothing that may be out of date"
    await past.read(SMITH)
    assert ("They talked of the feast." in past.of(SMITH)) != is_hidden
    assert (is_hidden and is_whole) or f"house {number}." not in past.of(SMITH)


@pytest.mark.parametrize("of_session", [True, False])
async def test_session_and_stretch_are_told_though_another_writer_tells_others(table: Store, of_session: bool) -> None:
    await play(table, "one", 1)
    await play(table, "two", 1, begin=3)
    writer = await timeline_writer(table, CAMPAIGN)
    asked = replace(writer, summariser=Meanwhile(partial(writer.write, SessionId("two"), is_over=True)))
    await (asked.sum_up(SessionId("one")) if of_session else asked.write(SessionId("one"), is_over=True))
    stored = await timeline(table)
    assert [node.end.session_id for node in stored.nodes] == ["one", "two"]
    assert (episode_of(SessionId("one")) in stored.sessions) == of_session
