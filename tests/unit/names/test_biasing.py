"""Which names a recogniser is told to expect."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.events import SceneChanged, UtteranceKept
from glyphoxa.domain.ids import EntityId, SceneId
from glyphoxa.language.language_data import vocabulary_of
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.keyterms import MAX_TERMS, MAX_TOKENS, Hints, estimated_tokens, oddness, pack
from glyphoxa.names.naming import Entry
from glyphoxa.names.wrong_forms import LearnedName, PairStatus
from tests.support.builders import a_campaign, an_utterance

MINUTE = 60_000


def entry(name: str, *, aliases: tuple[str, ...] = (), learned: tuple[str, ...] = ()) -> Entry:
    return Entry(name, EntityId(name.lower()), "thing", aliases, learned)


class Expectation:
    """Hints of a campaign with these names. Entities are called by their ids."""

    def __init__(self, *names: str | Entry, max_terms: int = 100, glossary_names: int = 40) -> None:
        self._now_ms = 0
        self._hints = Hints(
            a_campaign(),
            gazetteer(*names),
            now_ms=lambda: self._now_ms,
            max_terms=max_terms,
            glossary_names=glossary_names,
        )
        self.names_are = self._hints.names_are

    def said(self, entity: EntityId, at_ms: int) -> None:
        self._hints.on(UtteranceKept(an_utterance(entity, at_ms=at_ms)))

    def garbled(self, entity: EntityId, times: int = 1) -> None:
        self._hints.garbled_before([LearnedName("x", entity, None, PairStatus("active", times, ()))])

    def scene_is(self, place: EntityId, *, at_ms: int = 0) -> None:
        self._now_ms = max(at_ms, self._now_ms)
        self._hints.on(SceneChanged(Scene(SceneId("s"), place, ()), self._now_ms))

    def keyterms(self, now_ms: int) -> tuple[str, ...]:
        self._now_ms = now_ms
        return self._hints.keyterms()

    def glossary(self, now_ms: int) -> str:
        self._now_ms = now_ms
        return self._hints.glossary()


def expecting(*names: str | Entry, max_terms: int = 100, glossary_names: int = 40) -> Expectation:
    return Expectation(*names, max_terms=max_terms, glossary_names=glossary_names)


def gazetteer(*names: str | Entry) -> Gazetteer:
    return Gazetteer.build(entry(name) if isinstance(name, str) else name for name in names)


def test_before_anything_is_known_the_odd_names_come_first() -> None:
    assert expecting("The Old Mill", "Eldrinax", "Vaelith").keyterms(0) == ("Eldrinax", "Vaelith", "The Old Mill")


def test_the_scene_comes_first_then_what_was_garbled_then_what_was_said() -> None:
    expectation = expecting("Eldrinax", "Vaelith", "Skarn", "The Old Mill", "Thrandamar", max_terms=4)
    expectation.said(EntityId("skarn"), at_ms=0)
    expectation.garbled(EntityId("thrandamar"), times=2)
    expectation.scene_is(EntityId("the old mill"), at_ms=20 * MINUTE)
    assert expectation.keyterms(20 * MINUTE) == ("The Old Mill", "Thrandamar", "Skarn", "Eldrinax")


def test_a_wrong_form_that_was_learned_counts_as_garbled_and_is_not_itself_expected() -> None:
    names = ("Eldrinax", entry("Phandalin", learned=("Finland", "Mandolin")))
    assert expecting(*names).keyterms(0) == ("Phandalin", "Eldrinax")


def test_another_name_is_expected_behind_its_owners_unless_it_is_made_of_ordinary_words() -> None:
    expectation = expecting(entry("Grimjaw", aliases=("the smith", "Grimmax")), "Eldrinax")
    assert expectation.keyterms(0) == ("Grimjaw", "Eldrinax", "Grimmax")


def test_the_glossary_is_a_prompt_and_nothing_without_names() -> None:
    assert expecting("Grimjaw", "Ironhold", "Skarn", glossary_names=2).glossary(0) == "Names: Grimjaw, Ironhold."
    assert expecting().glossary(0) == ""
    assert expecting().keyterms(0) == ()


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
                expectation.scene_is(entity)
            case _:
                expectation.garbled(entity)
        keyterms = expectation.keyterms(at_ms * MINUTE)
        assert len(set(keyterms)) == len(keyterms) <= MAX_TERMS
        assert sum(map(estimated_tokens, keyterms)) <= MAX_TOKENS
        assert set(keyterms) <= set(names)
        if step.what == "scene":
            assert names[step.entity] in keyterms


# What fits, and what it is worth


@given(st.lists(st.text("abc'é -", max_size=40)))
def test_a_packed_list_never_breaks_the_limits_of_the_recogniser(names: list[str]) -> None:
    """Over the limit, the recogniser refuses the whole request."""
    packed = pack(names)
    assert len(packed) <= MAX_TERMS
    assert sum(map(estimated_tokens, packed)) <= MAX_TOKENS
    assert all(packed)


def test_a_name_that_does_not_fit_is_skipped_whole_and_a_shorter_one_still_goes_in() -> None:
    assert pack(["Tower of Whispers", "Bo"], max_tokens=3) == ("Bo",)


def test_nobody_looks_through_thousands_of_names_when_hardly_a_token_is_left() -> None:
    looked_at: list[str] = []

    def tokens(name: str) -> int:
        looked_at.append(name)
        return 5

    assert pack((f"Name{n}" for n in range(10_000)), max_tokens=8, count_tokens=tokens) == ("Name0",)
    assert len(looked_at) < 50


def test_invented_words_are_odd_and_those_of_a_dictionary_are_not() -> None:
    english = vocabulary_of("en")
    assert oddness(("tower", "of", "whispers"), english) == 0
    assert oddness(("eldrinax",), english) == 1
    assert 0 < oddness(("thomas",), english) < 1
    assert 0 < oddness(("old", "grimjaw"), english) < 1
    assert oddness((), english) == 0


def test_marks_within_a_name_and_letters_beyond_ascii_cost_more() -> None:
    assert estimated_tokens("Vel'zeth") > estimated_tokens("Velzeth")
    assert estimated_tokens("אלדרינקס") > estimated_tokens("Eldrinax")
    assert estimated_tokens("Tower of Whispers") == sum(map(estimated_tokens, ("Tower", "of", "Whispers")))
    assert estimated_tokens("\ud800") >= 1
