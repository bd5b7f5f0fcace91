"""The graph of all that an NPC knows beside talk: entities, facts, summaries, threads; and what is recalled of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.chat.asker import ModelAsker
from glyphoxa.config.provider_sections import MemoryGraphSettings, RecallMethod
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import (
    HIDDEN,
    PUBLIC,
    Between,
    Claim,
    Fact,
    Provenance,
    Recalled,
    RecalledFact,
    RecalledSummary,
    RecalledUtterance,
    Validity,
    Visibility,
    secret_of,
    witnessed_by,
)
from glyphoxa.plugins.mcp.server import PATIENT
from glyphoxa.plugins.memory_graph.deep_recall import DeepRecall
from glyphoxa.plugins.memory_graph.graph import Link, TalkGraph
from glyphoxa.plugins.memory_graph.stages import CONDUCTANCE
from glyphoxa.recall.recall import Recall
from glyphoxa.recall.transcript_memory import Transcripts
from glyphoxa.recall.world import World, WorldSnapshot
from glyphoxa.transcript.ports import FeedUtterance, TalkQuery
from glyphoxa.transcript.sessions import node_name, node_of, summary_of
from glyphoxa.world.state import WorldEntity, WorldState
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH
from tests.support.memory_graph import GRAPH_STAGES, PickingLlm, RerankerTwin
from tests.support.proof import n_examples
from tests.support.talk_feed import FeedTwin, an_embedder_of_words, said

S1 = SessionId("s1")
ILVARA, CAPE, GUILD, CURFEW = EntityId("ilvara"), EntityId("cape"), EntityId("guild"), EntityId("curfew")
DRAGON = EntityId("zharothrix")
FIRST = node_of(S1, 1)
SUM = summary_of(FIRST, 1)
SUMMARY = "Tamsin said: “My sister sails.” Orla said: “She is off the cape.”"
ENTITIES = (
    WorldEntity(ILVARA, "npc", "Ilvara", ("the Grey Gull",)),
    WorldEntity(CAPE, "location", "Cape Sorrow"),
    WorldEntity(GUILD, "faction", "Rope Guild"),
    WorldEntity(CURFEW, "rule_constraint", "Curfew"),
    WorldEntity(FIRST, "event", node_name(1), (), PUBLIC, "talk"),
    WorldEntity(SUM, "event", node_name(2), (), PUBLIC, "talk"),
)
TALK = (
    said("u1", "My sister sails.", at_ms=1_000),
    said("u2", "She is off the cape.", ordinal=2, speaker="Orla", at_ms=2_000),
    said("u3", "It rains.", ordinal=3, at_ms=3_000),
    said("u4", "The Grey Gull shall pay me.", ordinal=4, at_ms=4_000),
    said("u5", "Ilvara has paid.", session="s2", ordinal=1, at_ms=9_000_000),
)


def fact(
    subject: EntityId, predicate: str, value: object, *, lines: Sequence[str] = (), session: SessionId | None = None,
    at_ms: int | None = None, seen: Visibility = PUBLIC, **more: Any,
) -> Fact:  # fmt: skip
    """A relation if the value is an entity's id."""
    is_relation = value in {each.id for each in ENTITIES} | {DRAGON}
    claim = Claim.relation(subject, predicate, EntityId(str(value))) if is_relation else None
    claim = claim or Claim.attribute(subject, predicate, value)
    source = Provenance(
        session_id=session, at_ms=at_ms, utterance_id=UtteranceId(lines[0]) if len(lines) == 1 else None
    )
    attributes = {"evidence": list(lines)} if len(lines) > 1 else {}
    return Fact(claim.fact_id, claim, 1, provenance=source, visibility=seen, attributes=attributes, **more)


OWED = fact(ILVARA, "owes", "six crowns", lines=["u4"], session=S1, at_ms=4_000)
LAW = fact(CURFEW, "rule", "Nobody sails by night.")
FACTS = (
    fact(ILVARA, "LOCATED_AT", CAPE),
    fact(ILVARA, "MEMBER_OF", GUILD),
    fact(ILVARA, "ship", "a brig with black rigging"),
    OWED,
    fact(ILVARA, "paid", "the debt", lines=["u5"], session=SessionId("s2"), at_ms=9_000_000, disputes=(OWED.id,)),
    LAW,
    fact(FIRST, "summary", SUMMARY, lines=["u1", "u2"], session=S1, at_ms=2_000, seen=witnessed_by([SMITH])),
    fact(FIRST, "floor", 2, session=S1, at_ms=2_000),
    fact(FIRST, "PART_OF", SUM),
    fact(ILVARA, "PARTICIPATED_IN", FIRST),
)
LINKS: tuple[Link, ...] = (
    ("involved_in", "u4", ILVARA),
    ("occurred_at", "u4", CAPE),
    ("advances", "u5", "u4"),
    ("updates", FACTS[4].id, "u4"),
    ("involved_in", "u4", "nobody"),
    ("advances", "u3", "u2"),  # no name in common
)


@dataclass
class Known:
    """Everything that is stored of a campaign but talk."""

    entities: Sequence[WorldEntity] = ENTITIES
    facts: Sequence[Fact] = FACTS
    all_links: Sequence[Link] = LINKS
    is_away: bool = False
    asked: list[NpcId] = field(default_factory=list)
    _world: World | None = None

    async def snapshot(self, campaign: CampaignId) -> WorldSnapshot:
        if self.is_away:
            raise Unavailable("the database is away")
        if self._world is None:
            state = WorldState()
            state.load(entities=self.entities, facts=self.facts)
            self._world = World(state, now_ms=lambda: 0)
        return self._world.snapshot()

    async def links(self, campaign: CampaignId, npc: NpcId) -> Sequence[Link]:
        self.asked.append(npc)
        return self.all_links

    def hide(self, *hidden: FactId) -> None:
        self.facts = [each.with_(visibility=HIDDEN) if each.id in hidden else each for each in self.facts]
        self._world = None


def deep_over(known: Known, talk: Sequence[FeedUtterance] = TALK, **options: Any) -> DeepRecall:
    feed = FeedTwin()
    feed.tell(*talk)
    recall = Recall(Transcripts(feed, embedder=an_embedder_of_words()), settings=PATIENT, now_ms=lambda: 20_000_000)
    chosen = options.pop("settings", None) or MemoryGraphSettings(**{"stages": (), **options.pop("chosen", {})})
    options["llm"] = ModelAsker(options.get("llm", PickingLlm()), retries=0)
    models = {"reranker": RerankerTwin(), "always_injected": ["rule_constraint"], **options}
    return DeepRecall(recall, knowledge=known, settings=chosen, **models)


async def recalled(
    question: str, known: Known | None = None, *, npc: NpcId = SMITH, deep: DeepRecall | None = None, **query: Any
) -> list[Recalled]:
    deep = deep or deep_over(known or Known())
    found = await deep.search(CAMPAIGN, npc, TalkQuery(question, **{"limit": 15, **query}))
    return [*found.items]


async def graph_of(deep: DeepRecall, npc: NpcId = SMITH) -> TalkGraph:
    await recalled("Ilvara?", npc=npc, deep=deep)
    return await deep._made[CAMPAIGN, npc].graph


def texts(found: Sequence[Recalled]) -> list[str]:
    return [one.text for one in found]


RIGGING = "Ilvara, ship: a brig with black rigging."


# -- what is in it


async def test_nodes_and_edges_are_of_the_documents_types() -> None:
    graph = await graph_of(deep_over(Known()))
    types = dict(zip(graph.ids, (graph.type_names[at] for at in graph.types), strict=True))
    assert types["u1"] == types[f"entity {FIRST}"] == types[f"fact {FACTS[6].id}"] == "event"
    assert types["entity ilvara"] == types[f"fact {OWED.id}"] == "character_sheet"
    assert (types["entity cape"], types["entity curfew"]) == ("location_state", "rule_constraint")
    assert types["entity guild"] == "other"
    assert f"fact {FACTS[7].id}" not in types
    edges = graph.edges(MemoryGraphSettings(temporal_edges=False))
    there = {(graph.ids[s], graph.ids[t]): w for s, t, w in zip(*edges, strict=True)}
    paid = f"fact {FACTS[4].id}"
    for source, target, kind in (
        ("entity ilvara", "entity cape", "occurred_at"),
        ("entity ilvara", "entity guild", "related"),
        (f"entity {FIRST}", "entity ilvara", "involved_in"),
        ("u4", "entity ilvara", "involved_in"),  # stronger than a mention by an alias
        ("u5", "entity ilvara", "mentions"),
        ("u4", "entity cape", "occurred_at"),
        ("u5", "u4", "advances"),
        (paid, "u4", "updates"),
        (paid, "u5", "evidence"),
        (f"fact {FACTS[6].id}", "u2", "evidence"),
        (paid, f"fact {OWED.id}", "contradicts"),
    ):
        assert there[source, target] == CONDUCTANCE[kind], (source, target)
    assert (f"entity {FIRST}", f"entity {SUM}") in there
    assert ("u3", "u2") not in there


@pytest.mark.parametrize("asked", ["Where is ILVARA?", "What of the Grey Gull's debt?", "ilvara and the grey gull"])
async def test_question_is_anchored_at_entities_by_all_their_names(asked: str) -> None:
    graph = await graph_of(deep_over(Known()))
    assert [graph.ids[at] for at in graph.anchors(asked)] == ["entity ilvara"]


async def test_only_names_that_are_no_entitys_get_a_node_of_their_own() -> None:
    talk = (*TALK, said("u6", "They say Marek knew Ilvara.", session="s2", ordinal=2, at_ms=9_001_000))
    graph = await graph_of(deep_over(Known(), talk))
    assert [each for each in graph.ids if each.startswith("name ")] == ["name tamsin", "name orla", "name marek"]
    assert [graph.ids[at] for at in graph.anchors("Did Marek meet Orla?")] == ["name marek", "name orla"]


# -- what is recalled


@pytest.mark.parametrize("method", get_args(RecallMethod))
async def test_facts_and_summaries_are_recalled_with_reasons(method: RecallMethod) -> None:
    llm = PickingLlm([(("rigging", "sister sails.” Orla"), ())])
    deep = deep_over(Known(), chosen={"method": method}, llm=llm)
    asked = "Does my sister sail a brig with black rigging off the cape?"
    found = await recalled(asked, deep=deep, exclude=[UtteranceId("u1")])
    [rigging] = [one for one in found if isinstance(one, RecalledFact) and one.text == RIGGING]
    assert (rigging.reason, rigging.session_id) == ("public", None)
    assert rigging.path
    if method in ("llm", "hybrid_llm"):
        [summary] = [one for one in found if isinstance(one, RecalledSummary)]
        assert (summary.text, summary.evidence, summary.session_id) == (SUMMARY, ("u1", "u2"), "s1")
        assert summary.reason.startswith("summary of session s1; ")
        assert RIGGING in llm.shown[0]


async def test_summary_is_recalled_where_its_lines_are_not_and_not_beside_them() -> None:
    asked = "My sister sails off the cape"
    assert SUMMARY not in texts(await recalled(asked))
    of_two = SUMMARY in texts(await recalled(asked, exclude=[UtteranceId("u1")]))
    assert of_two
    assert SUMMARY not in texts(await recalled(asked, exclude=[UtteranceId("u1"), UtteranceId("u2")]))


async def test_node_that_is_summed_up_is_still_recalled() -> None:
    of_all = fact(SUM, "summary", "A voyage.", lines=["u1", "u2"], session=S1, seen=witnessed_by([SMITH]))
    known = Known(facts=[*FACTS, of_all])
    assert SUMMARY in texts(await recalled("My sister sails off the cape", known, exclude=[UtteranceId("u1")]))


async def test_relations_lead_from_what_is_named_to_what_is_not() -> None:
    stages = {"stages": ("diffusion",)}
    found = await recalled("Rope Guild?", deep=deep_over(Known(), chosen=stages))
    assert RIGGING not in texts(await recalled("Rope Guild?"))
    assert RIGGING in texts(found) or any("cape" in text.casefold() for text in texts(found))


async def test_what_is_in_each_prompt_is_not_recalled() -> None:
    ask = "Does nobody sail by night?"
    assert "Curfew" not in str(texts(await recalled(ask)))
    assert "Curfew" in str(texts(await recalled(ask, deep=deep_over(Known(), always_injected=()))))


@pytest.mark.parametrize(
    ("only", "are"),
    [
        ({"session": S1}, {"s1"}),
        ({"session": SessionId("s9")}, set()),
        ({"speaker": "orla"}, {"s1"}),
        ({"between": Between(after_ms=5_000)}, {"s2"}),
    ],
)
async def test_search_is_limited_for_facts_as_for_talk(only: dict[str, Any], are: set[str]) -> None:
    found = await recalled("What of Ilvara, my sister, off the cape: has she paid six crowns?", **only)
    assert {str(one.session_id) for one in found} == are
    said_by = {one.speaker_name for one in found if isinstance(one, RecalledUtterance)}
    assert "speaker" not in only or said_by == {"Orla"}


async def test_fact_that_does_not_hold_any_more_is_not_recalled(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [500]
    monkeypatch.setattr("glyphoxa.plugins.memory_graph.deep_recall.now_ms", lambda: now[0])
    facts = [each.with_(validity=Validity(100, 1_000)) if "ship" in each.claim.predicate else each for each in FACTS]
    deep = deep_over(Known(facts=facts))
    assert RIGGING in texts(await recalled("A brig with black rigging?", deep=deep))
    now[0] = 1_000
    assert RIGGING not in texts(await recalled("A brig with black rigging?", deep=deep))


async def test_what_is_hidden_while_a_model_is_asked_is_not_told() -> None:
    known = Known()

    class Hides(PickingLlm):
        async def complete(self, *args: Any, **kwargs: Any) -> Any:
            known.hide(FACTS[2].id)
            return await super().complete(*args, **kwargs)

    llm = Hides([(("rigging",), ())])
    deep = deep_over(known, chosen={"method": "hybrid_llm"}, llm=llm)
    assert RIGGING not in texts(await recalled("A brig with black rigging?", deep=deep))
    assert any(RIGGING in lines for lines in llm.shown)


async def test_without_the_database_recall_is_that_of_talk() -> None:
    deep = deep_over(Known(is_away=True))
    found = await deep.search(CAMPAIGN, SMITH, TalkQuery("Has Ilvara paid?"))
    assert found.left_out == ("memory graph: the database is away",)
    assert all(isinstance(one, RecalledUtterance) for one in found.items)
    assert [*await deep.recall(CAMPAIGN, SMITH, TalkQuery("Has Ilvara paid?"))] == [*found.items]


# -- and nothing else

SCOPES = (HIDDEN, secret_of([INNKEEPER]), witnessed_by([INNKEEPER]))
NAMES = ("Zharothrix", "Ilvara", "Cape Sorrow", "the Grey Gull", "sister", "rain")
QUESTIONS = ("What of Ilvara?", "Where is Zharothrix off the cape?", "Does my sister sail in the rain?")
of_others = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(("ship", "LOCATED_AT", "summary")), st.sampled_from(SCOPES)),
    min_size=1,
    max_size=6,
)


@settings(derandomize=True, deadline=None, max_examples=n_examples(40))
@given(
    others=of_others,
    lines=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(" ".join), max_size=4),
    question=st.sampled_from(QUESTIONS),
    method=st.sampled_from(get_args(RecallMethod)),
)
def test_what_an_npc_may_not_know_changes_no_graph_and_no_result(
    others: list[tuple[str, str, Visibility]], lines: list[str], question: str, method: RecallMethod
) -> None:
    hidden = [WorldEntity(EntityId(f"x{n}"), "npc", name, (), seen) for n, (name, _, seen) in enumerate(others)]
    facts = [
        fact(CAPE, kind, DRAGON if kind == "LOCATED_AT" else f"{name} {n}", lines=["u3"], seen=seen)
        for n, (name, kind, seen) in enumerate(others)
    ]
    facts += [fact(EntityId(f"x{n}"), "note", f"Ilvara's {kind}") for n, (_, kind, _) in enumerate(others)]
    dragon = WorldEntity(DRAGON, "npc", "Zharothrix", ("sister",), HIDDEN)
    unheard = [
        said(f"h{n}", text, ordinal=50 + n, at_ms=3_500, witnesses=frozenset({INNKEEPER}))
        for n, text in enumerate(lines)
    ]
    links: list[Link] = [("advances", "u5", "h0"), ("involved_in", "u3", DRAGON), ("related", "u1", "x0")]
    whole = Known([*hidden, dragon, *ENTITIES], [*facts, *FACTS], [*links, *LINKS])

    async def told(known: Known, talk: Sequence[FeedUtterance]) -> Any:
        llm = PickingLlm([(("sister", "Ilvara"), ("rain",))])
        stages = GRAPH_STAGES if method == "hybrid" else ()
        deep = deep_over(known, talk, chosen={"method": method, "stages": stages}, llm=llm)
        found = await recalled(question, deep=deep)
        graph = await deep._made[CAMPAIGN, SMITH].graph
        edges = graph.edges(MemoryGraphSettings())
        named = sorted((graph.ids[s], graph.ids[t], round(w, 6)) for s, t, w in zip(*edges, strict=True))
        return graph.ids, named, [(one.text, round(one.score, 3), one.reason) for one in found], llm.shown

    assert asyncio.run(told(whole, [*unheard, *TALK])) == asyncio.run(told(Known(), TALK))


async def test_each_npc_has_its_own_summary_of_the_same_stretch() -> None:
    other = fact(FIRST, "summary", "Only Orla spoke.", lines=["u2"], session=S1, seen=witnessed_by([INNKEEPER]))
    known = Known(facts=[*FACTS, other])
    deep = deep_over(known)
    assert "Only Orla spoke." not in [each.text for each in (await graph_of(deep)).facts.values()]
    assert SUMMARY not in [each.text for each in (await graph_of(deep, INNKEEPER)).facts.values()]
    assert known.asked == [SMITH, INNKEEPER]
