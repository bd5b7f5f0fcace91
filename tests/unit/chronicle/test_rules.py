"""The rules' findings in talk, in English and German, and what they leave."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.chronicle import rules_extractor
from glyphoxa.chronicle.rules_extractor import MOST_CHARS, RulesExtractor
from glyphoxa.chronicle.salience import Salience, SalienceJudge
from glyphoxa.chronicle.statements import MarkedSentence, sentences_of
from glyphoxa.chronicle.talk import Extraction, KnownEntity
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.calls import NamedPlace
from glyphoxa.language.sentences import MOST_READ
from tests.support.talk import a_stretch

TALK: dict[str, list[Any]] = tomllib.loads(Path(__file__).with_name("talk.toml").read_text("utf-8"))
KNOWN = (
    KnownEntity(EntityId("odo"), "npc", "Odo Fennimore", ("Odo",)),
    KnownEntity(EntityId("wenna"), "npc", "Wenna"),
    KnownEntity(EntityId("dunharrow"), "location", "Dunharrow"),
    KnownEntity(EntityId("lantern"), "faction", "the Lantern Guild"),
    KnownEntity(EntityId("tamsin"), "player", "Tamsin"),
    KnownEntity(EntityId("blade"), "item", "Emberblade"),
)


def found(*lines: str, language: str = "en", speaker: str = "Tamsin") -> Extraction:
    talk = a_stretch(*lines, language=language, speaker=speaker)
    return RulesExtractor(language, nobody=["The DM"]).find(talk, KNOWN)


def relations(text: str, language: str = "en") -> list[tuple[str, str, str]]:
    return [(one.source, one.type, one.target) for one in found(text, language=language).relations]


def facts(text: str, language: str = "en", speaker: str = "Tamsin") -> list[tuple[str, str]]:
    return [(one.subject, one.about) for one in found(text, language=language, speaker=speaker).facts]


def new_names(text: str, language: str = "en") -> list[tuple[str, str]]:
    return [(one.name, one.type) for one in found(text, language=language).entities if one.known is None]


def wrong_ones(kind: str, is_right: Callable[..., bool]) -> list[Any]:
    """Return the lines of `talk.toml` of which something else is found."""
    return [case for case in TALK[kind] if not is_right(*(case if isinstance(case, list) else [case]))]


def are_facts(language: str, text: str, expected: list[str]) -> bool:
    told = facts(text, language)
    return tuple(expected) in told if expected else told == []


def are_new(language: str, text: str, expected: list[list[str]]) -> bool:
    return [name for name in new_names(text, language) if name[0] != "Netflix"] == [tuple(one) for one in expected]


def test_relations_are_found_in_sentences_that_tell_them() -> None:
    def are_related(language: str, text: str, expected: list[str]) -> bool:
        return relations(text, language) == ([tuple(expected)] if expected else [])

    assert wrong_ones("relations", are_related) == []


def test_facts_are_found_in_sentences_that_tell_them() -> None:
    assert wrong_ones("facts", are_facts) == []


def test_statement_that_does_not_hold_now_is_stored_with_its_kind_only() -> None:
    def is_of_kind(language: str, text: str, kind: str) -> bool:
        seen = found(text, language=language)
        return not seen.relations and {fact.about for fact in seen.facts} == ({kind} if kind else set())

    assert wrong_ones("kinds", is_of_kind) == []


def test_rumour_is_stored_with_the_sentence_that_makes_it_one() -> None:
    [rumour] = found("Wenna works for Odo. So they say.").facts
    assert (rumour.about, rumour.value) == (
        "rumour",
        "Tamsin said: “Wenna works for Odo. So they say”",
    )


def test_gift_in_a_dream_is_not_kept() -> None:
    assert facts("In my dream I gave the letter to the ferryman.") == []
    assert facts("I gave the letter to the ferryman.") == [("tamsin", "gave")]


def test_new_names_are_found_by_how_they_are_written_and_introduced() -> None:
    assert wrong_ones("new_names", are_new) == []


def test_salient_lines_are_kept_with_a_reason() -> None:
    def judged(line: str) -> Salience:
        return SalienceJudge("en").judge(line)

    assert wrong_ones("kept", lambda line: judged(line).is_kept and bool(judged(line).why)) == []
    assert wrong_ones("not_kept", lambda line: not judged(line).is_kept) == []


def test_line_that_was_said_a_moment_ago_is_worth_less_for_twenty_lines() -> None:
    line = "I take the map and the wand out of the chest and put them into my bag."
    judge = SalienceJudge("en")
    first, again = judge.judge(line).score, judge.judge(line).score
    assert again < first
    for n in range(20):
        judge.judge(f"Somebody hums number {n}.")
    assert judge.judge(line).score == first


def test_line_that_is_to_be_forgotten_is_never_kept() -> None:
    def is_forgotten(line: str) -> bool:
        judged = SalienceJudge("en", threshold=0.0).judge(line)
        return judged.asks_to_forget and not judged.is_kept

    assert wrong_ones("asks_to_forget", is_forgotten) == []
    assert not SalienceJudge("en").judge("Don't forget that I told you of the map.").asks_to_forget


def test_who_tells_the_story_is_nobody_in_it() -> None:
    assert facts("I promise you the six crowns.", speaker="The DM") == []


def test_nothing_is_learned_of_a_speaker_whom_the_campaign_does_not_know() -> None:
    assert found("I promise you the six crowns.", speaker="Ysolde") == Extraction()


def test_whoever_is_spoken_to_takes_no_part_in_the_sentence() -> None:
    extraction = found("Odo, my brother Perrin is missing.", speaker="Tamsin")
    assert [
        (one.source, one.type, one.target) for one in extraction.relations if "odo" in (one.source, one.target)
    ] == []
    assert [one.subject for one in extraction.facts] == ["new:perrin"]


def test_the_campaign_and_its_words_are_nobody() -> None:
    talk = a_stretch("We sailed with Corva Vell, and Skyrill fell.")
    assert [one.name for one in RulesExtractor("en").find(talk, ()).entities] == ["Corva Vell", "Skyrill"]
    assert RulesExtractor("en", nobody=["Corva Vell", "Skyrill"]).find(talk, ()) == Extraction()


def test_whoever_asks_not_to_be_remembered_is_not() -> None:
    assert facts("Don't write that down, but I promise you the six crowns.") == []
    assert facts("I promise you the six crowns, don't forget that.") != []


def test_every_claim_rests_on_the_line_that_says_it() -> None:
    extraction = found("Fine weather.", "Odo is missing.", "Wenna is Odo's sister.")
    assert [one.evidence for one in extraction.facts] == [("u2",)]
    assert [one.evidence for one in extraction.relations] == [("u3",)]
    [odo] = [one for one in extraction.entities if one.known == "odo"]
    assert odo.evidence == ("u2", "u3")


def test_icons_in_a_line_are_no_names() -> None:
    assert facts("\ue100 is a miller. \uf8ff lives in Dunharrow.") == []
    assert facts("\ue101 Wenna is a miller.") == [("wenna", "occupation")]


# Several people of one name.

PIERS = KnownEntity(EntityId("piers"), "npc", "Piers", occupations=("miller",))
ANNA_OF_THE_GATE = KnownEntity(EntityId("gate"), "npc", "Anna Thal", occupations=("guard",))
ANNA_OF_THE_OVEN = KnownEntity(EntityId("oven"), "npc", "Anna Berg", occupations=("baker",))
WENNA, OTHER_WENNA = KnownEntity(EntityId("w1"), "player", "Wenna"), KnownEntity(EntityId("w2"), "npc", "Wenna")
MULLER = KnownEntity(EntityId("piers"), "npc", "Piers", occupations=("Müller",))


def read(text: str, *known: KnownEntity, language: str = "en", speaker: str = "Tamsin") -> Extraction:
    return RulesExtractor(language).find(a_stretch(text, language=language, speaker=speaker), known)


@pytest.mark.parametrize(
    ("text", "known", "of"),
    [
        ("Piers is dead.", [PIERS], ["piers"]),
        ("The miller Piers is dead.", [PIERS], ["piers"]),
        ("Old Piers is dead.", [PIERS], ["piers"]),
        ("Master Piers is dead.", [PIERS], ["piers"]),
        ("Guard Piers is dead.", [PIERS], ["new:guardpiers"]),
        ("The guard Piers is dead.", [PIERS], ["new:guardpiers"]),
        ("Brother Piers is dead.", [PIERS], ["new:brotherpiers"]),
        ("Piers the smith is dead.", [PIERS], ["new:piersthesmith"]),
        ("The other Piers is dead.", [PIERS], []),
        ("Sister Maren is dead.", [KnownEntity(EntityId("m"), "npc", "Maren the smith")], ["new:sistermaren"]),
        ("Young Odwin is dead.", [KnownEntity(EntityId("o"), "npc", "Old Odwin")], ["new:youngodwin"]),
        ("Captain Roth is dead.", [KnownEntity(EntityId("r"), "npc", "Roth", occupations=("guard",))], ["r"]),
        ("Anna is dead.", [ANNA_OF_THE_GATE, ANNA_OF_THE_OVEN], []),
        ("Guard Anna is dead.", [ANNA_OF_THE_GATE, ANNA_OF_THE_OVEN], ["gate"]),
        ("The baker Anna is dead.", [ANNA_OF_THE_GATE, ANNA_OF_THE_OVEN], ["oven"]),
        ("Wenna is dead.", [WENNA, OTHER_WENNA], []),
    ],
)
def test_title_or_trade_beside_a_name_tells_people_of_one_name_apart(
    text: str, known: list[KnownEntity], of: list[str]
) -> None:
    got = read(text, *known)
    assert [one.subject for one in got.facts if one.about == "status"] == of
    assert bool(got.refused) is not bool(of), "the worker reports what it could not decide"


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("Der Müller Piers ist tot.", ["piers"]),
        ("Mein Bruder Piers ist tot.", ["piers"]),
        ("Hauptmann Piers ist tot.", ["new:hauptmannpiers"]),
        ("Bruder Piers ist tot.", ["new:bruderpiers"]),
        ("Der andere Piers ist tot.", []),
    ],
)
def test_german_title_or_trade_beside_a_name_tells_people_apart(text: str, of: list[str]) -> None:
    assert [one.subject for one in read(text, MULLER, language="de").facts if one.about == "status"] == of


def test_relative_of_the_same_name_is_somebody_else() -> None:
    got = read("Piers' brother Piers is dead.", PIERS)
    assert (got.facts, got.relations) == ((), ())


def test_player_speaks_as_the_player_although_an_npc_has_the_same_name() -> None:
    got = read("I am a smith.", OTHER_WENNA, WENNA, speaker="Wenna")
    assert [one.subject for one in got.facts] == ["w1"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Let's go down to the cellar.", "en"),
        ("Let's go, come on.", "en"),
        ("I'll take the tall one.", "en"),
        ("I'm gonna take two steps back.", "en"),
        ("I take a few steps back.", "en"),
        ("Lasst uns weiter nach links gehen.", "de"),
        ("Ich nehme den großen Krug.", "de"),
    ],
)
def test_saying_about_the_next_moment_is_not_stored(text: str, language: str) -> None:
    assert facts(text, language) == []


@pytest.mark.parametrize("text", ["I am Ysolde Brand.", "I'm Tamsin."])
def test_speaker_who_gives_a_name_is_not_placed_there(text: str) -> None:
    assert [type_ for _, type_, _ in relations(text)] == []


@pytest.mark.parametrize("talk", ["We paid twenty for ", "Wir haben nie ", "a"])
def test_a_line_of_any_length_is_read_in_short_parts(talk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line, read = talk * (2 * MOST_CHARS // len(talk)), list[int]()

    def counted(text: str, names: Sequence[NamedPlace]) -> Iterator[MarkedSentence]:
        read.append(len(text))
        return sentences_of(text, names)

    monkeypatch.setattr(rules_extractor, "sentences_of", counted)
    refused = found(line).refused
    assert max(read, default=0) <= MOST_READ and sum(read) <= MOST_CHARS
    assert [each for each in refused if f"only {MOST_CHARS} of {len(line)} characters" in each]


def test_what_a_long_line_tells_at_its_end_is_found() -> None:
    told = found("We walked along the river for a while. " * 200 + "Wenna is Odo's sister.")
    assert [(one.source, one.type, one.target) for one in told.relations] == [("wenna", "SIBLING_OF", "odo")]
    assert told.refused == ()
