"""A line worth remembering is one of three kinds, and is connected with the earlier lines it repeats or continues."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.chronicle.effects import effects_of
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.talk import KnownEntity
from glyphoxa.chronicle.utterance_nodes import AtomEdge, EarlierAtom, Grafter, StateAtom, edge_of, place_of
from glyphoxa.domain.ids import EntityId
from tests.support.builders import INNKEEPER, SMITH, a_campaign
from tests.support.talk import a_stretch

TOWN = a_campaign()
KNOWN = [KnownEntity(each.id, each.type, each.name, each.aliases) for each in TOWN.entities]
NPCS = {npc.id: npc.entity_id for npc in TOWN.npcs}


def grafted(*lines: str, language: str = "en") -> tuple[StateAtom, ...]:
    talk = a_stretch(*lines, language=language)
    extraction = RulesExtractor(language).find(talk, KNOWN)
    ids = effects_of(extraction, talk, KNOWN).ids
    kept = {each.utterance.id for each in talk.said}
    return Grafter(language, NPCS, TOWN.scenes).atoms_of(talk, extraction, ids, KNOWN, kept=kept)


@pytest.mark.parametrize(
    ("language", "line", "kind"),
    [
        ("en", "I promise to bring you six crowns by Friday.", "thread"),
        ("en", "We have decided to leave the bridge alone.", "thread"),
        ("en", "Who stole the crown from the chapel?", "thread"),
        ("en", "My sister Wenna Thistlebrook keeps bees.", "relationship_beat"),
        ("en", "Grimjaw, I trust you with my life.", "relationship_beat"),
        ("en", "I found out that the miller lies to all of us.", "world_discovery"),
        ("en", "You make your way down the long red stone stairs.", "world_discovery"),
        ("en", "Grimjaw and Mirelle are at odds.", "relationship_beat"),
        ("en", "The old well behind the Market Square is poisoned.", "world_discovery"),
        ("de", "Ich verspreche, dass ich dir sechs Kronen bringe.", "thread"),
        ("de", "Wer hat die Krone aus der Kapelle gestohlen?", "thread"),
        ("de", "Meine Schwester Wenna Thistlebrook hält Bienen.", "relationship_beat"),
        ("de", "Ich vertraue dir mein Leben an.", "relationship_beat"),
        ("de", "Der Brunnen hinter dem Markt ist vergiftet.", "world_discovery"),
    ],
)
def test_kind_follows_from_what_the_line_states(language: str, line: str, kind: str) -> None:
    [atom] = grafted(line, language=language)
    assert atom.kind == kind


def test_repeated_line_has_the_same_kind_and_another_key() -> None:
    first, second = grafted("I promise to bring you six crowns.", "I promise to bring you six crowns.")
    assert replace(first, utterance=second.utterance) == second
    assert first.stable_key != second.stable_key
    assert grafted("I promise to bring you six crowns.", "I promise to bring you six crowns.") == (first, second)


def test_atom_names_its_people_and_the_place_of_the_scene() -> None:
    [atom] = grafted("Mirelle told me that the bridge is closed.")
    assert atom.about == (EntityId("e-mirelle"),)
    assert (atom.speaker, atom.heard_by, atom.place) == (None, (NPCS[SMITH],), EntityId("e-forge"))
    at_market = place_of(TOWN.scenes, frozenset({SMITH, INNKEEPER}))
    assert at_market == EntityId("e-square")
    assert place_of(TOWN.scenes, frozenset()) is None


LANTERN = "Tamsin said: “I promise to bring you the silver lantern.”"


def earlier(summary: str = LANTERN, cosine: float | None = None, *, is_by_same: bool = True) -> EarlierAtom:
    return EarlierAtom("atom:u1", "thread", summary, cosine, is_by_same)


@pytest.mark.parametrize(
    ("summary", "before", "label"),
    [
        (LANTERN, earlier(), "same_as"),
        (LANTERN, earlier(is_by_same=False), "continues_thread"),
        (LANTERN.replace("promise", "don't promise"), earlier(), "continues_thread"),
        (LANTERN.replace("silver", "golden"), earlier(cosine=0.97), "continues_thread"),
        ("Tamsin said: “Here it is.”", earlier(cosine=0.8), "continues_thread"),
        ("Tamsin said: “Good bread.”", earlier(cosine=0.4), None),
    ],
)
def test_only_a_true_repetition_is_merged(summary: str, before: EarlierAtom, label: str | None) -> None:
    edge = edge_of("atom:u2", "thread", summary, [before], "en")
    assert (None if edge is None else edge.label) == label


def test_nearest_thread_is_continued() -> None:
    far, near = earlier(cosine=0.75), replace(earlier(cosine=0.9), key="atom:u0")
    edge = edge_of("atom:u2", "world_discovery", "Tamsin said: “Here it is.”", [far, near], "en")
    assert edge == AtomEdge("atom:u2", "atom:u0", "continues_thread", 0.9)
