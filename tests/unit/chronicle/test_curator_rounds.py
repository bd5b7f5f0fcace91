"""The curator looks things up before it notes something, and memory reaches nobody who does not know it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.actors.limits import CircuitBreaker
from glyphoxa.chat.asker import ModelAsker, QuestionLimits
from glyphoxa.chat.questions import Unparseable
from glyphoxa.chronicle.curator import MAX_ROUNDS, Curating, Curator
from glyphoxa.chronicle.effects import effects_of
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.talk import Extraction, KnownEntity, SceneTalk
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import EntityId, NpcId, SessionId
from glyphoxa.language.text import Text
from glyphoxa.world.event_kinds import FactStated
from tests.support.builders import INNKEEPER, SMITH
from tests.support.model_twin import ModelTwin
from tests.support.talk import a_stretch
from tests.unit.chronicle.test_llm_extraction import ODO, TAMSIN, fact, relation

COUNTESS = KnownEntity(EntityId("countess"), "npc", "Countess Vexley", ("Marrin",))
KNOWN = [ODO, COUNTESS, TAMSIN]
TALK = a_stretch("Odo used to tend the lighthouse.", "Countess Vexley sat with Odo at the old mill.")
PAST = fact("Odo", "tend the lighthouse", 1, about="past")
FACTS, ENTITIES = "memory_search_facts", "memory_query_entities"
TOOLS = {FACTS: "Find facts.", ENTITIES: "Look up somebody."}


def step(tool: str = "done", query: str = "", **found: Any) -> dict[str, Any]:
    return {"tool": tool, "query": query, "entities": [], "relationships": [], "facts": [], **found}


@dataclass
class Memory:
    """Gives each NPC the same results for any query."""

    found: Mapping[NpcId, Sequence[dict[str, object]]] = field(default_factory=dict)
    asked: list[tuple[NpcId, str, str]] = field(default_factory=list)

    async def look_up(self, npc: NpcId, tool: str, query: str) -> dict[str, object]:
        self.asked.append((npc, tool, query))
        return {"found": list(self.found.get(npc, ()))}


def curating(llm: ModelTwin, *, max_rounds: int = 900, deadline_ms: int = 60_000, is_alone: bool = False) -> Curating:
    asking = ModelAsker(llm, breaker=CircuitBreaker(lambda: 0), retries=0, limits=QuestionLimits(6_000))
    return Curating(asking, deadline_ms, max_rounds, is_alone)


async def curated(
    *answers: dict[str, Any] | Exception, talk: SceneTalk = TALK, memory: Memory | None = None, **limits: Any
) -> tuple[Extraction, ModelTwin]:
    llm = ModelTwin(*answers)
    curator = Curator(RulesExtractor("en"), curating(llm, **limits), TOOLS, (memory or Memory()).look_up)
    return await curator.extract(talk, KNOWN), llm


async def test_curator_looks_up_then_adds_what_the_rules_missed() -> None:
    memory = Memory({SMITH: [{"fact": "Odo Fennimore brews ale."}]})
    got, llm = await curated(step(FACTS, "Odo"), step(facts=[PAST]), memory=memory)
    assert [(one.about, one.value, one.evidence) for one in got.facts] == [("past", "tend the lighthouse", ("u1",))]
    assert memory.asked == [(SMITH, FACTS, "Odo")]
    assert "brews ale" not in llm.asked[0] and "brews ale" in llm.asked[1]
    assert llm.schema["properties"]["tool"]["enum"] == [FACTS, ENTITIES, "done"]
    assert llm.schema["required"] == [*llm.schema["properties"]] and got.refused == ()


async def test_tools_show_only_what_all_listeners_know() -> None:
    both = a_stretch(("Odo used to tend the lighthouse.", {SMITH, INNKEEPER}))
    shared = {"fact": "Odo Fennimore brews ale."}
    memory = Memory(
        {
            SMITH: [shared | {"why": "told"}, {"fact": "Odo owes me."}],
            INNKEEPER: [shared | {"why": "saw it"}, {"fact": "Odo drowned."}],
        }
    )
    _, llm = await curated(step(FACTS, "Odo"), step(), talk=both, memory=memory)
    assert "brews ale" in llm.asked[1] and "drowned" not in llm.asked[1] and "Wenna" not in llm.asked[1]


async def test_claim_with_a_word_that_only_memory_has_is_refused() -> None:
    memory = Memory({SMITH: [{"fact": "Odo Fennimore drowned Wenna."}]})
    claim = fact("Odo", "tend the lighthouse and drowned", 1, about="past")
    got, llm = await curated(step(FACTS, "Odo"), step(ENTITIES, "Odo", facts=[claim]), step(), memory=memory)
    assert got.facts == () and got.refused == ("the model's facts, number 1: its words are not in its evidence",)
    assert "its words are not in its evidence" in llm.asked[2], "the model is told why"


async def test_claim_that_memory_contains_already_is_not_stored_again() -> None:
    memory = Memory({SMITH: [{"name": "Odo Fennimore", "relations": ["Odo Fennimore serves Countess Vexley"]}]})
    got, _ = await curated(
        step(ENTITIES, "Odo"), step(relationships=[relation("Odo", "Countess Vexley", 2)]), memory=memory
    )
    assert got.relations == ()
    got, _ = await curated(step(relationships=[relation("Odo", "Countess Vexley", 2)]), memory=memory)
    assert len(got.relations) == 1, "without the look-up"


@pytest.mark.parametrize("tool", ["memory_drop_everything", "memory_compact_nodes", "x" * 5_000, ""])
async def test_unknown_tool_is_reported_to_the_model_once(tool: str) -> None:
    got, llm = await curated(step(tool, "Odo"), step(tool, "Odo"), step(facts=[PAST]))
    assert len(llm.asked) == 2 and "there is no tool" in llm.asked[1] and len(llm.asked[1]) < 3_000
    assert got.refused == ("curator: the model repeats a call",)


async def test_curator_stops_after_its_rounds_and_keeps_its_findings() -> None:
    many = [step(FACTS, f"query {n}", facts=[PAST]) for n in range(50)]
    got, llm = await curated(*many)
    assert len(llm.asked) == MAX_ROUNDS and len(got.facts) == 1
    assert got.refused == (f"curator: the model was not done after {MAX_ROUNDS} rounds",)


async def test_rounds_of_a_session_are_limited() -> None:
    llm = ModelTwin(*(step(FACTS, f"query {n}") for n in range(50)))
    curator = Curator(None, curating(llm, max_rounds=MAX_ROUNDS + 3), TOOLS, Memory().look_up)
    for _ in range(3):
        got = await curator.extract(TALK, [ODO])
    assert len(llm.asked) == MAX_ROUNDS + 3
    assert got.refused == (f"curator: the {MAX_ROUNDS + 3} rounds for a session are used up",)
    await curator.extract(replace(TALK, session=SessionId("next")), [ODO])
    assert len(llm.asked) == 2 * MAX_ROUNDS + 3


@pytest.mark.parametrize("error", [Unavailable("the model is away"), Unparseable("the model's answer is not JSON")])
async def test_failing_model_leaves_the_other_findings(error: Exception) -> None:
    talk = a_stretch("I promise to bring you six crowns.")
    got, _ = await curated(error, talk=talk)
    rules = await RulesExtractor("en").extract(talk, KNOWN)
    assert rules.facts and got.facts == rules.facts and got.refused == (f"curator: {error}",)


@pytest.mark.parametrize(
    "answer",
    [{}, {"tool": 1}, step() | {"query": None}, step() | {"facts": "none"}, {"x" * 1_000_000: "y"}],
)
async def test_answer_of_another_form_leaves_the_other_findings(answer: dict[str, Any]) -> None:
    got, _ = await curated(answer)
    assert got.facts == () and len(got.refused) == 1 and got.refused[0].startswith("curator: the model's answer is of")
    assert len(got.refused[0]) < 200


async def test_slow_model_ends_at_the_deadline() -> None:
    class Hanging(ModelTwin):
        async def complete(self, *args: Any, **options: Any) -> dict[str, Any]:
            if self.asked:
                await asyncio.Event().wait()
            return await super().complete(*args, **options)

    llm = Hanging(step(FACTS, "Odo", facts=[PAST]))
    got = await Curator(None, curating(llm, deadline_ms=500), TOOLS, Memory().look_up).extract(TALK, [ODO, COUNTESS])
    assert len(got.facts) == 1 and got.refused == ("curator: the model was not done within 500 ms",)


async def test_talk_without_an_npc_is_read_without_tools_answers() -> None:
    alone = a_stretch(("Odo used to tend the lighthouse.", set()))
    got, llm = await curated(
        step(FACTS, "Odo"), step(facts=[PAST]), talk=alone, memory=Memory({SMITH: [{"fact": "x"}]})
    )
    assert len(got.facts) == 1 and '{"found": []}' in llm.asked[1]


SECRET = ("murdered", "argent", "Nightingale", "betrays", "treasury")
LINES = ("Odo used to tend the lighthouse.", "Countess Vexley sat with Odo at the old mill.", "He owes Odo six crowns.")
words = st.lists(st.sampled_from((*SECRET, *" ".join(LINES).replace(".", "").split())), min_size=1, max_size=6)
claims = st.builds(
    lambda value, subject, about, line, sure: fact(subject, " ".join(value), line, about=about, sure=sure),
    words,
    st.sampled_from(("Odo", "Countess Vexley", "Nightingale", "Marrin")),
    st.sampled_from(("past", "occupation", "status", "promise", "secret")),
    st.integers(0, 4),
    st.sampled_from(("certain", "unsure")),
)
relations = st.builds(
    lambda source, target, line, type_: relation(source, target, line, type_=type_),
    st.sampled_from(("Odo", "Countess Vexley", "Nightingale")),
    st.sampled_from(("Odo", "Countess Vexley", "Nightingale")),
    st.integers(0, 4),
    st.sampled_from(("SERVES", "HOSTILE_TO", "LOVES")),
)


@given(st.lists(claims, max_size=4), st.lists(relations, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3))
def test_nothing_that_a_tool_showed_reaches_a_claim(
    facts: list[dict[str, Any]], related: list[dict[str, Any]], heard: list[bool]
) -> None:
    talk = a_stretch(
        *((line, {SMITH, INNKEEPER} if both else {SMITH}) for line, both in zip(LINES, heard, strict=True))
    )
    secret: dict[str, object] = {"keep secret": f"Odo Fennimore and Countess Vexley {' '.join(SECRET)} SERVES LOVES"}
    memory = Memory({SMITH: [secret], INNKEEPER: [secret] if not any(heard) else []})
    found = step("done", entities=[{"name": "Nightingale", "type": "npc"}], facts=facts, relationships=related)
    llm = ModelTwin(step(FACTS, "Odo"), found)
    curator = Curator(None, curating(llm), TOOLS, memory.look_up)
    extraction = asyncio.run(curator.extract(talk, [ODO, COUNTESS]))
    assert any(heard) != any("Nightingale" in asked for asked in llm.asked)
    effects = effects_of(extraction, talk, [ODO, COUNTESS])
    hidden = Text.of(" ".join(SECRET)).telling("en")
    lines = {each.utterance.id: each.utterance for each in talk.said}
    for event in (event for effect in effects.of for event in effect.events):
        assert hidden.isdisjoint(Text.of(str(event)).telling("en"))
        if isinstance(event, FactStated):
            assert event.claim.object is None or any(heard), "the relation is what the tool has shown"
            evidence = [lines[each] for each in event.attributes.get("evidence", [event.provenance.utterance_id])]  # type: ignore[union-attr, index]
            for knower in event.visibility.knowers:
                assert all(knower.npc in line.witnesses for line in evidence)
