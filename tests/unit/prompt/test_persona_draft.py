"""The drafted persona of a person: public and certain attributes, in the second person."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.budgets import PERSONA_TOKENS
from glyphoxa.domain.campaign import Entity, Safety
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Fact, Provenance, Visibility, secret_of
from glyphoxa.prompt.identity import persona_draft
from glyphoxa.world.graph import Known
from tests.support.builders import a_campaign

BERTA = Entity(EntityId("berta"), "npc", "Berta Moor")


def a_fact(name: str, value: object, visibility: Visibility = PUBLIC, *, confidence: float = 1.0) -> Fact:
    claim = Claim.attribute(BERTA.id, name, value)
    return Fact(claim.fact_id, claim, 1, provenance=Provenance(confidence), visibility=visibility)


def drafted(*facts: Fact, language: str = "en", secret_names: tuple[str, ...] = (), lines: tuple[str, ...] = ()) -> str:
    campaign = replace(a_campaign(), language=language, safety=Safety(lines))
    return persona_draft(campaign, Known(BERTA, facts), secret_names=secret_names)


def test_draft_names_occupation_description_and_other_attributes() -> None:
    facts = a_fact("race", "dwarf"), a_fact("occupation", "miller"), a_fact("description", "Berta grinds salt")
    assert drafted(*facts) == "You are Berta Moor, miller. This is known of you: Berta grinds salt. Race: dwarf."


def test_german_campaign_gets_a_german_draft() -> None:
    facts = a_fact("occupation", "Müllerin"), a_fact("description", "Berta mahlt Salz.")
    assert (
        drafted(*facts, language="de") == "Du bist Berta Moor, Müllerin. Das ist über dich bekannt: Berta mahlt Salz."
    )


def test_draft_leaves_out_facts_that_are_not_public_or_not_certain() -> None:
    own = secret_of([NpcId(BERTA.id)])
    facts = (
        a_fact("debt", "forty crowns", own),
        a_fact("occupation", "spy", own),
        a_fact("hoard", "below the mill", Visibility("hidden")),
        a_fact("mood", "bitter", confidence=0.8),
        a_fact("statistics", {"hp": 11}),
    )
    assert drafted(*facts) == "You are Berta Moor."


def test_draft_leaves_out_sentences_with_secret_names_or_forbidden_topics() -> None:
    said = (
        a_fact("description", "Berta sings. She pays the Veiled Duke's men. She keeps spiders."),
        a_fact("pet", "spider"),
        a_fact("debt_to_the_veiled_duke", "ten crowns"),
    )
    draft = drafted(*said, secret_names=("Veiled Duke",), lines=("spiders",))
    assert draft == "You are Berta Moor. This is known of you: Berta sings."


def test_draft_leaves_room_for_the_dms_own_words() -> None:
    draft = drafted(*(a_fact(f"note {n}", "a long tale of the sea " * 10) for n in range(20)))
    assert len(draft) < PERSONA_TOKENS * 4
