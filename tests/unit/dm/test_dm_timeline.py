from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import pytest

from glyphoxa.dm.entities import EntityDesk, NewEntity
from glyphoxa.dm.facts import FactDesk, NewFact
from glyphoxa.dm.ports import CitedUtterance, Session
from glyphoxa.dm.timeline import Timeline
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId, FactId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Provenance
from glyphoxa.world.event_kinds import EntitiesMerged, FactStated, FactTold
from glyphoxa.world.event_log import Cause, difference
from tests.support.builders import CAMPAIGN
from tests.support.world_twin import WorldTwin, a_world

GRIMJAW, ELDRINAX, MIRELLE = (EntityId(f"e-{name}") for name in ("grimjaw", "eldrinax", "mirelle"))
FIRST, SECOND = SessionId("s1"), SessionId("s2")
DAY_MS = 86_400_000


@dataclass
class Table:
    """Two sessions of three utterances each, a day apart."""

    world: WorldTwin = field(default_factory=a_world)
    now: int = 10 * DAY_MS

    def __post_init__(self) -> None:
        self.world.held_sessions = [Session(FIRST, DAY_MS, 3), Session(SECOND, 2 * DAY_MS, 3)]
        self.world.talk = [
            CitedUtterance(UtteranceId(f"{session}-{ordinal}"), session, ordinal, "Tamsin", "...", DAY_MS)
            for session in (FIRST, SECOND)
            for ordinal in (1, 2, 3)
        ]

    @property
    def timeline(self) -> Timeline:
        self.now += 1
        return Timeline(CAMPAIGN, self.world, self.world, now_ms=lambda: self.now)

    @property
    def desk(self) -> FactDesk:
        self.now += 1
        return FactDesk(CAMPAIGN, self.world, self.world, self.world.resolver(), now_ms=lambda: self.now)

    @property
    def entities(self) -> EntityDesk:
        self.now += 1
        return EntityDesk(CAMPAIGN, self.world, self.world, self.world.resolver(), now_ms=lambda: self.now)

    def hears(self, session: SessionId, ordinal: int, value: str, *, confidence: float = 0.9) -> FactId:
        claim = Claim.attribute(ELDRINAX, "note", value)
        at_ms = (1 if session == FIRST else 2) * DAY_MS + ordinal
        provenance = Provenance(confidence, "inferred", session_id=session, ordinal=ordinal, at_ms=at_ms)
        return self.world.learn(FactStated(claim, provenance), Cause("talk", at_ms, session, ordinal))


@pytest.fixture
def table() -> Table:
    return Table()


async def test_the_last_decision_is_taken_back_and_then_the_one_before(table: Table) -> None:
    fact, other = table.hears(FIRST, 1, "a", confidence=0.5), table.hears(FIRST, 2, "b", confidence=0.5)
    await table.desk.confirm([fact])
    await table.desk.reject([other])
    table.hears(FIRST, 3, "c")
    [taken] = await table.timeline.undo()
    assert other in table.world.state.facts
    assert table.world.state.facts[fact].status == "accepted"
    await table.timeline.undo()
    assert table.world.state.facts[fact].status == "pending"
    with pytest.raises(NotFound, match="there is no decision to undo"):
        await table.timeline.undo()
    assert taken.cause.by == "dm"


async def test_a_decision_on_several_facts_is_taken_back_as_a_whole(table: Table) -> None:
    facts = [table.hears(FIRST, n, str(n), confidence=0.5) for n in (1, 2, 3)]
    await table.desk.confirm(facts)
    assert len(await table.timeline.undo()) == 3
    assert {fact.status for fact in table.world.state.facts.values()} == {"pending"}


DECISIONS: dict[str, Callable[[Table, FactId], Awaitable[object]]] = {
    "confirm": lambda table, fact: table.desk.confirm([fact]),
    "reject": lambda table, fact: table.desk.reject([fact]),
    "retcon": lambda table, fact: table.desk.retcon(fact),
    "retcon to": lambda table, fact: table.desk.retcon(fact, value="other"),
    "edit": lambda table, fact: table.desk.edit(fact, value="other"),
    "close": lambda table, fact: table.desk.close(fact),
    "secret": lambda table, fact: table.desk.keep_secret(fact, ["Grimjaw"]),
    "hide": lambda table, fact: table.desk.hide(fact),
    "reveal": lambda table, fact: table.desk.reveal(fact),
    "tell": lambda table, fact: table.desk.tell(fact, ["Grimjaw"], by="Tamsin"),
    "add": lambda table, _: table.desk.state(NewFact(subject="Grimjaw", predicate="KNOWS", object="Eldrinax")),
    "add entity": lambda table, _: table.entities.add(
        NewEntity(name="Korvald", type="npc", attributes='{"age": 9, "location": "the forge"}')
    ),
    "change entity": lambda table, _: table.entities.change("Eldrinax", name="Eldrinax the Grey", type="concept"),
    "remove entity": lambda table, _: table.entities.remove("Eldrinax"),
    "alias": lambda table, _: table.entities.add_alias("Eldrinax", "old fool"),
    "unalias": lambda table, _: table.entities.remove_alias("Grimjaw", "the smith"),
    "merge": lambda table, _: table.entities.merge("Mirelle", "Eldrinax"),
    "secret entity": lambda table, _: table.entities.keep_secret("Eldrinax", ["Grimjaw"]),
    "hide entity": lambda table, _: table.entities.hide("Eldrinax"),
    "rollback": lambda table, _: table.timeline.rollback(FIRST, 0),
}


@pytest.mark.parametrize("decision", DECISIONS)
async def test_any_decision_is_undone_completely(table: Table, decision: str) -> None:
    fact = table.hears(FIRST, 1, "a", confidence=0.5)
    await table.desk.keep_secret(fact, ["Mirelle"])
    before = table.world.state
    await DECISIONS[decision](table, fact)
    assert not difference(before, table.world.state).is_empty
    await table.timeline.undo()
    assert difference(before, table.world.state).is_empty


async def test_a_decision_far_back_is_found(table: Table) -> None:
    fact = table.hears(FIRST, 1, "a", confidence=0.5)
    await table.desk.confirm([fact])
    for n in range(700):
        table.hears(SECOND, 1, str(n))
    [taken] = await table.timeline.undo()
    assert taken.seq == 7


async def test_a_given_event_is_undone_and_its_undoing_too(table: Table) -> None:
    fact = table.hears(FIRST, 1, "a")
    seq = len(table.world.log)
    await table.timeline.undo(seq)
    assert fact not in table.world.state.facts
    await table.timeline.undo(seq + 1)
    assert fact in table.world.state.facts
    with pytest.raises(NotFound, match="there is no event 99 in campaign 'town'"):
        await table.timeline.undo(99)
    with pytest.raises(NotFound, match="there is no event 0 "):
        await table.timeline.undo(0)


async def test_a_rollback_is_shown_before_it_is_done(table: Table) -> None:
    early, late, next_day = table.hears(FIRST, 1, "a"), table.hears(FIRST, 3, "b"), table.hears(SECOND, 1, "c")
    decided = (await table.desk.state(NewFact(subject="Eldrinax", predicate="hat", value="pointed"))).facts[0].id
    preview = await table.timeline.preview(FIRST, 2)
    assert {fact.id for fact in preview.facts["no longer known"]} == {late, next_day}
    assert (preview.n_utterances, len(preview.events), len(preview.facts)) == (4, 2, 1)
    assert {early, late, next_day, decided} <= table.world.state.facts.keys()
    await table.timeline.rollback(FIRST, 2)
    assert table.world.state.facts.keys() == {early, decided}
    assert await table.timeline.preview(FIRST, 2) == type(preview)(n_utterances=4)
    assert await table.timeline.rollback(FIRST, 2) is None


async def test_a_preview_tells_what_comes_back(table: Table) -> None:
    def where(ordinal: int, place: str) -> FactId:
        claim = Claim.relation(GRIMJAW, "LOCATED_AT", EntityId(place))
        at = DAY_MS + ordinal
        return table.world.learn(
            FactStated(claim, Provenance(at_ms=at, session_id=FIRST, ordinal=ordinal)),
            Cause("talk", at, FIRST, ordinal),
        )

    first, second = where(1, "e-forge"), where(2, "e-square")
    preview = await table.timeline.preview(FIRST, 1)
    known = {title: [fact.id for fact in facts] for title, facts in preview.facts.items()}
    assert known == {"known again": [first], "no longer known": [second]}


@pytest.mark.parametrize(
    ("session", "ordinal", "told"),
    [
        ("s11", 1, r"no session 's11' in campaign 'town': did you mean 's1'\?"),
        ("s1", 4, "session 's1' has ordinals 0 to 3, not 4"),
        ("s1", -1, "session 's1' has ordinals 0 to 3, not -1"),
    ],
)
async def test_rollback_to_an_unknown_utterance_is_refused(table: Table, session: str, ordinal: int, told: str) -> None:
    for act in (table.timeline.preview, table.timeline.rollback):
        with pytest.raises(InvalidInput, match=told):
            await act(SessionId(session), ordinal)


async def test_why_a_fact_is_known_is_everything_that_happened_to_it(table: Table) -> None:
    fact = table.hears(FIRST, 1, "a", confidence=0.5)
    table.hears(FIRST, 2, "something else")
    table.hears(SECOND, 1, "a", confidence=0.6)
    await table.desk.confirm([fact])
    await table.desk.keep_secret(fact, ["Grimjaw"])
    await table.timeline.undo()
    world, resolver = table.world, table.world.resolver()
    history = await table.timeline.history_of(world.state.facts[fact])
    told = [(recorded.event.in_words(replace(resolver, facts={fact: "it"})), counts) for recorded, counts in history]
    assert told == [
        ("stated: Eldrinax, note: a (public)", True),
        ("stated: Eldrinax, note: a (public)", True),
        ("confirmed: it", True),
        ("secret: Grimjaw: it", False),
        ("undid event 10", True),
    ]


async def test_a_fact_of_an_entity_that_was_merged_has_its_whole_history(table: Table) -> None:
    fact = table.hears(FIRST, 1, "a")
    await table.world.commit(CAMPAIGN, [EntitiesMerged(MIRELLE, ELDRINAX)], Cause("dm", table.now))
    told = FactTold(fact, (), SpeakerId("dm"))
    await table.world.commit(CAMPAIGN, [told], Cause("dm", table.now))
    history = await table.timeline.history_of(table.world.state.facts[fact])
    kinds = [type(recorded.event).__name__ for recorded, _ in history]
    assert kinds == ["FactStated", "EntitiesMerged", "FactTold"]


async def test_the_latest_events_come_first_with_whether_they_count(table: Table) -> None:
    table.hears(FIRST, 1, "a")
    await table.timeline.undo(len(table.world.log))
    history = await table.timeline.history(limit=2)
    assert [(event.seq, counts) for event, counts in history] == [(7, True), (6, False)]


@pytest.mark.parametrize(
    ("when", "known"),
    [
        ("s1", {"a"}),
        ("s2", {"a", "b"}),
        ("1970-01-02", {"a"}),
        ("1970-01-02T00:00:00.001+00:00", {"a"}),
        ("1970-01-02 00:00", set()),
        ("#6", {"a"}),
        ("#5", set()),
    ],
)
async def test_facts_are_listed_as_of_a_time(table: Table, when: str, known: set[str]) -> None:
    table.hears(FIRST, 1, "a")
    table.hears(SECOND, 1, "b")
    state = await table.timeline.as_of(when)
    assert {fact.claim.content for fact in state.facts.values()} == known


async def test_a_time_that_is_none_is_named(table: Table) -> None:
    with pytest.raises(NotFound, match=r"'s3' is not a time such as 2026-11-22.*, or a session of campaign 'town'"):
        await table.timeline.as_of("s3")
