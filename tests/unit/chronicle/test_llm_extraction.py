"""A model's answer adds to the findings of the rules, and parts of it do not count."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from glyphoxa.actors.limits import CircuitBreaker, RateLimit
from glyphoxa.chat.asker import ModelAsker, QuestionLimits
from glyphoxa.chat.questions import Unparseable, parsed
from glyphoxa.chronicle.effects import effects_of
from glyphoxa.chronicle.llm_extractor import LlmExtractor, question_about
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.talk import Extraction, KnownEntity, SceneTalk
from glyphoxa.domain.campaign import DEFAULT_SCHEMA, NodeType, Schema
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from tests.support.builders import INNKEEPER, SMITH
from tests.support.model_twin import ModelTwin
from tests.support.talk import a_stretch
from tests.support.virtual_time import run_in_virtual_time

ODO = KnownEntity(EntityId("odo"), "npc", "Odo Fennimore", ("Odo", "Wexmere"))
TAMSIN = KnownEntity(EntityId("tamsin"), "player", "Tamsin")


def an_extractor(
    llm: ModelTwin, *, per_minute: int = 600, max_chars: int = 10_000, schema: Schema = DEFAULT_SCHEMA
) -> LlmExtractor:
    asking = ModelAsker(
        llm,
        1_000,
        pace=RateLimit(1, 60_000 // per_minute),
        breaker=CircuitBreaker(lambda: 0),
        retries=0,
        limits=QuestionLimits(max_chars),
    )
    return LlmExtractor(RulesExtractor("en"), asking, nobody=["Game Master"], schema=schema)


async def found(talk: SceneTalk, *, known: Sequence[KnownEntity] = (), **answer: Any) -> Extraction:
    told = {"entities": [], "relationships": [], "facts": [], **answer}
    return await an_extractor(ModelTwin(told)).extract(talk, known)


def entity(name: str, type_: str = "npc") -> dict[str, Any]:
    return {"name": name, "type": type_}


def fact(subject: str, value: str, *lines: int, about: str = "occupation", sure: str = "certain") -> dict[str, Any]:
    return {"subject": subject, "about": about, "value": value, "lines": list(lines), "confidence": sure}


def relation(source: str, target: str, *lines: int, type_: str = "SERVES") -> dict[str, Any]:
    return {"source": source, "type": type_, "target": target, "lines": list(lines), "confidence": "likely"}


PRONOUN = a_stretch("Who knows Odo around here?", "He used to tend the lighthouse, before the flood.")


async def test_what_the_rules_miss_is_added_with_the_line_that_says_who_is_meant() -> None:
    got = await found(PRONOUN, known=[ODO], facts=[fact("Odo", "tend the lighthouse", 2, about="past")])
    [one] = got.facts
    assert (one.subject, one.value, one.evidence) == ("odo", "tend the lighthouse", ("u1", "u2"))
    assert one.confidence < AUTO_ACCEPT, "the DM looks at it first"
    assert one.is_inferred, "a model found it"
    assert got.refused == ()


async def test_model_claim_about_then_is_stored_as_past_with_its_sentence() -> None:
    talk = a_stretch("Years ago Wenna worked for Odo.", "In my dream Odo lives in Dunharrow.", "Wenna is Odo's sister.")
    known = [
        ODO,
        TAMSIN,
        KnownEntity(EntityId("wenna"), "npc", "Wenna"),
        KnownEntity(EntityId("d"), "location", "Dunharrow"),
    ]
    got = await found(
        talk,
        known=known,
        relationships=[
            relation("Wenna", "Odo", 1, type_="EMPLOYED_BY"),
            relation("Odo", "Dunharrow", 2, type_="LOCATED_AT"),
        ],
    )
    assert [(one.source, one.type) for one in got.relations] == [("wenna", "SIBLING_OF")]
    assert [(one.subject, one.about, one.value, one.is_inferred) for one in got.facts] == [
        ("wenna", "past", "Tamsin said: “Years ago Wenna worked for Odo”", False)
    ]
    assert got.refused == ("the model's relationships, number 2: its evidence does not say that it is so",)


async def test_what_the_rules_find_is_kept_and_said_once() -> None:
    talk = a_stretch("My sister Wenna Thistlebrook lives in Dunharrow.", "I promise to bring you six crowns by Friday.")
    rules = await RulesExtractor("en").extract(talk, [TAMSIN])
    got = await found(
        talk,
        known=[TAMSIN],
        entities=[
            entity("Wenna Thistlebrook"),
            entity("wenna thistlebrook", "player"),
            entity("Dunharrow", "location"),
        ],
        relationships=[relation("Wenna Thistlebrook", "Dunharrow", 1, type_="LOCATED_AT")] * 2,
        facts=[fact("Tamsin", "bring you six crowns", 2, about="promise")] * 3,
    )
    assert got == rules


async def test_a_promise_is_of_whoever_makes_it_and_of_nobody_else() -> None:
    talk = a_stretch("Odo, I promise to bring you six crowns by Friday.")
    got = await found(talk, known=[ODO, TAMSIN], facts=[fact("Odo", "bring you six crowns", 1, about="promise")])
    assert [each.about for each in got.facts] == ["promise"]
    assert got.facts[0].subject != "odo"
    assert got.refused == ("the model's facts, number 1: the same words say it about somebody else",)


@pytest.mark.parametrize("name", ["Odo", "odo fennimore", "weksmere"])
async def test_a_name_is_looked_up_by_its_spellings_and_its_sound_before_one_is_new(name: str) -> None:
    talk = a_stretch(f"So {name} had a wooden leg.")
    got = await found(talk, known=[ODO], entities=[entity(name)], facts=[fact(name, "wooden leg", 1, about="past")])
    assert [each.known for each in got.entities] == ["odo"]
    effects = effects_of(got, talk, [ODO])
    events = [event for effect in effects.of for event in effect.events]
    assert [event.claim.subject for event in events if isinstance(event, FactStated)] == ["odo"]
    assert not [event for event in events if isinstance(event, EntityAdded)]


async def test_a_new_name_is_one_that_was_said_and_written_as_a_name() -> None:
    talk = a_stretch("We asked for Brynhild Askew at the old mill.", "Maybe the miller knows.")
    got = await found(talk, entities=[entity(name) for name in ("Brynhild Askew", "miller", "Gandalf")])
    assert [each.name for each in got.entities] == ["Brynhild Askew"]
    assert [why.rpartition(": ")[2] for why in got.refused] == [
        "these words are not used as a name",
        "nobody said this name",
    ]


@pytest.mark.parametrize(
    "bad",
    [
        fact("Odo", "tend the lighthouse"),
        fact("Odo", "tend the lighthouse", 99),
        fact("Odo", "tend the lighthouse", 0),
        fact("Odo", "tend the lighthouse", 2) | {"lines": ["u2"]},
        fact("Odo", "tend the lighthouse", 2) | {"lines": ["other-campaign/u2"]},
        fact("Odo", "tend the lighthouse", 2) | {"lines": [True]},
        fact("Odo", "tend the lighthouse", 2) | {"lines": 2},
        fact("Odo", "tend the lighthouse", 2, about="horoscope"),
        fact("Odo", "tend the lighthouse", 2, sure="absolutely"),
        fact("Odo", "the heir of the crown", 2),
        fact("Odo", "x" * 1_000_000, 2),
        fact("Odo", "tend the\x00lighthouse", 2),
        fact("Odo", "", 2),
        fact("Gandalf", "tend the lighthouse", 2),
        fact("Game Master", "tend the lighthouse", 2),
        {"subject": {"name": "Odo"}, "about": [], "value": None},
        {},
        "Odo tends the lighthouse",
        None,
    ],
)
async def test_a_bad_claim_is_left_out_with_the_reason_and_the_good_one_beside_it_stays(bad: Any) -> None:
    good = fact("Odo", "tend the lighthouse", 2, about="past")
    got = await found(PRONOUN, known=[ODO], facts=[bad, good])
    assert [each.value for each in got.facts] == ["tend the lighthouse"]
    assert len(got.refused) == 1
    assert "facts, number 1" in got.refused[0]
    assert "lighthouse" not in got.refused[0], "a reason quotes nothing that was said"


@pytest.mark.parametrize(
    "bad",
    [
        relation("Odo", "Odo Fennimore", 1),
        relation("Odo", "Gandalf", 1),
        relation("Odo", "Tamsin", 1, type_="IS_SECRETLY"),
        relation("Odo", "Tamsin", 7),
        relation("Odo", "Tamsin", 1, type_="PARENT_OF"),
    ],
)
async def test_a_bad_relation_is_left_out_with_the_reason(bad: dict[str, Any]) -> None:
    got = await found(PRONOUN, known=[ODO], relationships=[bad])
    assert got.relations == ()
    assert [each.known for each in got.entities] == ["odo"], "who is the end of no relation is not found"
    assert len(got.refused) == 1


async def test_of_an_answer_without_end_no_more_is_looked_at_than_was_asked_for() -> None:
    got = await found(PRONOUN, known=[ODO], facts=[fact("Gandalf", "wizard", 2)] * 100_000)
    assert len(got.refused) == 12 + 1
    assert got.refused[-1] == "the model's facts: 99988 more than requested"


async def test_what_fewer_heard_does_not_reach_others_in_the_words_of_a_line_they_heard() -> None:
    talk = a_stretch(
        ("Odo is hiding the silver crown.", {SMITH}),
        ("Odo came by with bread.", {SMITH, INNKEEPER}),
    )
    crown = fact("Odo", "came with the crown", 2, about="past")
    got = await found(talk, known=[ODO], facts=[crown])
    assert got.facts == ()
    assert "not all listeners" in got.refused[0]
    both = await found(talk, known=[ODO], facts=[crown | {"lines": [1, 2]}])
    [effect] = effects_of(both, talk, [ODO]).of
    [stated] = [event for event in effect.events if isinstance(event, FactStated)]
    assert [knower.npc for knower in stated.visibility.knowers] == [SMITH]


def test_a_model_is_shown_what_was_said_and_no_name_that_was_not() -> None:
    talk = a_stretch(
        "Marrin sold us a map.",
        "Don't write that down: the map is forged.",
        "((OOC: pizza is here))",
        "Let me roll for persuasion.",
        before=["We met at the mill."],
    )
    question = question_about(talk, QuestionLimits(10_000))
    assert question is not None
    assert question.prompt.user.splitlines()[1:] == ["1 Tamsin: We met at the mill.", "2 Tamsin: Marrin sold us a map."]
    assert [line.utterance.id for line in question.lines] == ["u1", "u2"]
    assert question_about(a_stretch("Don't write that down."), QuestionLimits(10_000)) is None


def test_model_is_asked_in_the_language_of_the_campaign() -> None:
    question = question_about(
        a_stretch("Odo schuldet mir sechs Kronen.", before=["Hm."], language="de"), QuestionLimits(10_000)
    )
    assert question is not None
    assert question.prompt.system.startswith("Du liest das Gespräch")
    assert question.prompt.user.startswith("Diese Zeilen dienen nur dazu, die anderen zu verstehen: 1.")


ARCANE = Schema(
    {
        "magic_system": NodeType(("source", "cost"), instructions="One for each school."),
        "faction": NodeType(("leader",), every=4),
        "spell": NodeType(("school",), active=False),
    }
)


def test_a_model_is_asked_for_the_fields_of_the_types_that_take_part() -> None:
    """The stretch has the numbers 1 and 2: no multiple of 4."""
    asked = question_about(a_stretch("Emberlore costs blood.", "Odo knows Emberlore."), QuestionLimits(10_000), ARCANE)
    assert asked is not None
    assert asked.prompt.user.splitlines()[-1] == (
        'A type of entity is "magic_system"; facts about one: source, cost. One for each school.'
    )
    found = asked.prompt.schema["properties"]
    types = found["entities"]["items"]["properties"]["type"]["enum"]
    about = found["facts"]["items"]["properties"]["about"]["enum"]
    assert "magic_system" in types and "cost" in about and "goal" in about
    assert not {"faction", "spell"} & {*types} and not {"leader", "school", "aliases", "summary"} & {*about}


def test_a_type_takes_part_in_the_stretch_that_reaches_its_number() -> None:
    talk = a_stretch("Odo knows Emberlore.", before=["Hm.", "Well.", "So."])
    asked = question_about(talk, QuestionLimits(10_000), ARCANE)
    assert asked is not None and "faction" in asked.types


async def test_what_a_model_finds_of_a_type_that_was_not_requested_is_refused() -> None:
    told = {"entities": [entity("Emberlore", "spell")], "facts": [fact("Odo", "blood", 1, about="school")]}
    extractor = an_extractor(ModelTwin({"relationships": [], **told}), schema=ARCANE)
    got = await extractor.extract(a_stretch("Odo paid for Emberlore with blood."), [ODO])
    assert "the model's entities, number 1: its type is not requested" in got.refused
    assert "the model's facts, number 1: what it is about is not requested" in got.refused


async def test_a_field_of_an_own_type_is_filled() -> None:
    told = {
        "entities": [entity("Emberlore", "magic_system")],
        "facts": [fact("Emberlore", "blood", 1, about="cost")],
    }
    extractor = an_extractor(ModelTwin({"relationships": [], **told}), schema=ARCANE)
    got = await extractor.extract(a_stretch("The magic of Emberlore costs blood."), [ODO])
    assert [(each.name, each.type) for each in got.entities] == [("Emberlore", "magic_system")]
    assert [(each.about, each.value) for each in got.facts] == [("cost", "blood")]


async def test_lines_without_end_are_cut_and_left_to_the_rules() -> None:
    llm = ModelTwin({"entities": [], "relationships": [], "facts": []})
    talk = a_stretch("I promise to bring you six crowns by Friday.", "bla " * 10_000, "bla " * 1_000)
    got = await an_extractor(llm, max_chars=1_000).extract(talk, [TAMSIN])
    assert len(llm.asked[0]) < 1_000
    assert [each.about for each in got.facts] == ["promise"]
    assert got.refused == ("1 lines of the stretch did not fit into the prompt",)


@pytest.mark.parametrize(("n_bad", "n_asked", "refused"), [(0, 1, ()), (2, 3, ()), (3, 3, ("cut off",))])
async def test_an_answer_of_another_form_is_asked_for_again(n_bad: int, n_asked: int, refused: Sequence[str]) -> None:
    told = {"entities": [], "relationships": [], "facts": []}
    llm, extractor = ModelTwin(*[Unparseable("cut off")] * n_bad, told), an_extractor(ModelTwin({}))
    extractor = replace(extractor, asking=replace(extractor.asking, llm=llm, retries=2))
    got = await extractor.extract(a_stretch("Odo knows the way."), [ODO])
    assert len(llm.asked) == n_asked
    assert all(llm.temperatures[1:]), "the same question at 0 gets the same answer"
    assert got.refused == tuple(f"read by rules only: {why}" for why in refused)


@pytest.mark.parametrize("failure", [Unavailable("no model answers at port 9"), Unparseable("cut off")])
async def test_a_model_that_fails_costs_what_it_would_have_found_and_nothing_else(failure: Exception) -> None:
    talk = a_stretch("I promise to bring you six crowns by Friday.")
    got = await an_extractor(ModelTwin(failure)).extract(talk, [TAMSIN])
    rules = await RulesExtractor("en").extract(talk, [TAMSIN])
    assert (got.entities, got.facts) == (rules.entities, rules.facts)
    assert got.refused == (f"read by rules only: {failure}",)


def test_a_model_is_asked_no_more_often_than_is_set() -> None:
    async def times() -> list[float]:
        talk, extractor = a_stretch("Odo brews ale."), an_extractor(ModelTwin(Unparseable("cut off")), per_minute=20)
        loop, at = asyncio.get_running_loop(), list[float]()

        async def ask() -> None:
            await extractor.extract(talk, [ODO])
            at.append(loop.time())

        await asyncio.gather(ask(), ask(), ask())
        await asyncio.sleep(60)
        await ask()
        return at

    assert run_in_virtual_time(times()) == pytest.approx([0, 3, 6, 66])


@pytest.mark.parametrize("text", ["[" * 1_000_000, '{"facts": ' + "9" * 10_000 + "}", "x" * 1_000_000, ""])
def test_what_no_json_can_be_read_from_is_unparseable(text: str) -> None:
    with pytest.raises(Unparseable) as refused:
        parsed(text)
    assert len(str(refused.value)) < 200


async def test_claim_about_somebody_else_of_a_known_name_is_refused() -> None:
    piers = KnownEntity(EntityId("piers"), "npc", "Piers", occupations=("miller",))
    talk = a_stretch("Piers was here.", "Guard Piers has taken the bribe.")
    claim = fact("Piers", "has taken the bribe", 2, about="status")
    got = await found(a_stretch("Guard Piers has taken the bribe."), known=[piers], facts=[{**claim, "lines": [1]}])
    assert (got.facts, "somebody else of this name" in got.refused[-1]) == ((), True)
    got = await found(talk, known=[piers], facts=[claim])
    assert all("u2" not in one.evidence or one.subject != "piers" for one in got.facts)
