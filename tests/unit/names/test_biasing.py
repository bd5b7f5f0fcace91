from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.ids import EntityId
from glyphoxa.names.gazetteer import Entry, Gazetteer
from glyphoxa.names.hints import MAX_TERMS, MAX_TOKENS, ContextualBiasing, estimated_tokens

MINUTE = 60_000


def entry(name: str, *, aliases: tuple[str, ...] = (), learned: tuple[str, ...] = ()) -> Entry:
    return Entry(name, EntityId(name.lower()), "thing", aliases, learned)


def expecting(*names: str | Entry, max_terms: int = 100, glossary_names: int = 40) -> ContextualBiasing:
    expectation = ContextualBiasing(max_terms=max_terms, glossary_names=glossary_names)
    expectation.names_are(gazetteer(*names))
    return expectation


def gazetteer(*names: str | Entry) -> Gazetteer:
    return Gazetteer.build(entry(name) if isinstance(name, str) else name for name in names)


def test_before_anything_is_known_the_odd_names_come_first() -> None:
    assert expecting("The Old Mill", "Eldrinax", "Vaelith").keyterms(0) == ("Eldrinax", "Vaelith", "The Old Mill")


def test_every_name_of_a_small_campaign_is_expected() -> None:
    names = ("Grimjaw", "Ironhold", "Blade of Dawn", "The Wardens")
    assert set(expecting(*names).keyterms(0)) == set(names)


def test_the_scene_comes_first_then_what_was_garbled_then_what_was_said() -> None:
    expectation = expecting("Eldrinax", "Vaelith", "Skarn", "The Old Mill", "Thrandamar", max_terms=4)
    expectation.said(EntityId("skarn"), at_ms=0)
    expectation.garbled(EntityId("thrandamar"), times=4)
    expectation.scene_is([EntityId("the old mill")])
    assert expectation.keyterms(20 * MINUTE) == ("The Old Mill", "Thrandamar", "Skarn", "Eldrinax")


def test_a_wrong_form_that_was_learned_counts_as_garbled_and_is_not_itself_expected() -> None:
    names = ("Eldrinax", entry("Phandalin", learned=("Finland", "Mandolin")))
    assert expecting(*names).keyterms(0) == ("Phandalin", "Eldrinax")


def test_another_name_is_expected_behind_its_owners_unless_it_is_made_of_ordinary_words() -> None:
    expectation = expecting(entry("Grimjaw", aliases=("the smith", "Grimmax")), "Eldrinax")
    assert expectation.keyterms(0) == ("Grimjaw", "Eldrinax", "Grimmax")


def test_names_of_several_words_are_sent_whole() -> None:
    assert expecting("Keep of Vaelith Karn").glossary(0) == "Names: Keep of Vaelith Karn."


def test_the_glossary_is_a_prompt_and_nothing_without_names() -> None:
    assert expecting("Grimjaw", "Ironhold", "Skarn", glossary_names=2).glossary(0) == "Names: Grimjaw, Ironhold."
    assert ContextualBiasing().glossary(0) == ""
    assert ContextualBiasing().keyterms(0) == ()


def test_what_only_changes_the_order_changes_nothing() -> None:
    expectation = expecting("Eldrinax", "Vaelith", "Skarn")
    before, prompt = expectation.keyterms(0), expectation.glossary(0)
    expectation.said(EntityId("skarn"), at_ms=0)
    expectation.scene_is([EntityId("vaelith")])
    assert expectation.keyterms(1) is before
    assert expectation.glossary(1) == prompt


def test_two_names_about_as_likely_do_not_push_each_other_out_in_turn() -> None:
    expectation = expecting("Eldrinax", "Vaelith", "Skarn", max_terms=2)
    for name in ("eldrinax", "vaelith", "skarn"):
        expectation.said(EntityId(name), at_ms=0)
    before = expectation.keyterms(0)
    for minute in range(30):
        expectation.said(EntityId(("skarn", "eldrinax", "vaelith")[minute % 3]), at_ms=minute * MINUTE)
        assert expectation.keyterms(minute * MINUTE) is before


def test_a_name_that_was_silent_for_long_makes_room_for_one_that_is_said_now() -> None:
    expectation = expecting("Eldrinax", "Vaelith", max_terms=1)
    expectation.said(EntityId("eldrinax"), at_ms=0)
    assert expectation.keyterms(0) == ("Eldrinax",)
    expectation.said(EntityId("vaelith"), at_ms=60 * MINUTE)
    assert expectation.keyterms(60 * MINUTE) == ("Vaelith",)


def test_a_name_of_the_new_scene_comes_in_and_that_of_the_old_one_goes() -> None:
    expectation = expecting("Eldrinax", "Vaelith", max_terms=1)
    expectation.scene_is([EntityId("vaelith")])
    assert expectation.keyterms(0) == ("Vaelith",)
    expectation.scene_is([EntityId("eldrinax")])
    assert expectation.keyterms(1) == ("Eldrinax",)


def test_a_name_that_the_campaign_no_longer_has_is_no_longer_expected() -> None:
    expectation = expecting("Eldrinax", "Vaelith")
    expectation.keyterms(0)
    expectation.names_are(gazetteer("Vaelith", "Skarn"))
    assert expectation.keyterms(1) == ("Vaelith", "Skarn")


def test_whoever_is_nobody_s_name_is_ignored() -> None:
    expectation = expecting("Eldrinax")
    expectation.scene_is([EntityId("nobody")])
    expectation.said(EntityId("nobody"), at_ms=0)
    expectation.garbled(EntityId("nobody"))
    assert expectation.keyterms(0) == ("Eldrinax",)


@pytest.mark.parametrize("name", ["🐉", "אלדרינקס", "I", "The", "x" * 10_000, "Zo\u0308e\u00a0Ånn"])
def test_odd_input_is_left_out_or_sent_whole(name: str) -> None:
    expectation = expecting(name, "Grimjaw")
    assert "Grimjaw" in expectation.keyterms(0)
    assert set(expectation.keyterms(0)) <= {"Grimjaw", " ".join(name.split())}


@dataclass(frozen=True)
class Step:
    what: str
    entity: int


@given(st.lists(st.builds(Step, st.sampled_from(["said", "scene", "garbled"]), st.integers(0, 299)), max_size=40))
def test_whatever_happens_the_limits_hold(steps: list[Step]) -> None:
    names = [f"Tha{n:03}lor Ven{n:03}" for n in range(300)]
    expectation = expecting(*names)
    for at_ms, step in enumerate(steps):
        entity = EntityId(names[step.entity].lower())
        match step.what:
            case "said":
                expectation.said(entity, at_ms * MINUTE)
            case "scene":
                expectation.scene_is([entity])
            case _:
                expectation.garbled(entity)
        keyterms = expectation.keyterms(at_ms * MINUTE)
        assert len(set(keyterms)) == len(keyterms) <= MAX_TERMS
        assert sum(map(estimated_tokens, keyterms)) <= MAX_TOKENS
        assert set(keyterms) <= set(names)
        if step.what == "scene":
            assert names[step.entity] in keyterms
