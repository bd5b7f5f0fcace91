"""Which names a query looks at, measured against looking at all of them."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import JaroWinkler, Levenshtein

from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import fold
from glyphoxa.names.gazetteer import LONGEST, SHORTEST, Gazetteer, NameIndex
from glyphoxa.names.naming import Entry, Name
from tests.support.proof import n_examples

OWN = Path(__file__).parents[3] / "benchmarks" / "data" / "names"
_SYLLABLES = ("ka", "dor", "el", "bri", "thal", "gor", "mun", "ix", "va", "shae", "lin", "wick", "rok", "nar", "ost")


def gazetteer(*names: str, language: str = "en") -> Gazetteer:
    return Gazetteer.build([Entry(name, EntityId(name), "npc") for name in names], language=language)


def alike(heard: str, names: Gazetteer, *, limit: int = 6) -> list[str]:
    folded = fold(heard)
    codes = names.coder(folded)
    return [name.text for name in names.alike(folded, codes, limit=limit)]


def invented(count: int) -> list[str]:
    chance = random.Random(7)
    return ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 5))).capitalize() for _ in range(count)]


@pytest.mark.parametrize(
    ("heard", "name"),
    [
        ("McCraden", "Vukradin"),
        ("Fukrudin", "Vukradin"),
        ("Zantarum", "Zhentarim"),
        ("Baba Gul", "Glabbagool"),
        ("Gobblegool", "Glabbagool"),
        ("Menzo Bronson", "Menzoberranzan"),
        ("Finland", "Phandalin"),
        ("Vulking Valve", "Velkynvelve"),
    ],
)
def test_a_name_is_found_whatever_its_first_sound_became(heard: str, name: str) -> None:
    """Codes need not be equal: it is enough that they are alike."""
    names = gazetteer(
        "Vukradin", "Zhentarim", "Glabbagool", "Menzoberranzan", "Phandalin", "Velkynvelve", *invented(2000)
    )
    assert name in alike(heard, names)


def test_a_query_finds_what_a_look_at_every_name_would_find() -> None:
    rows = [line.split("\t") for line in (OWN / "P.tsv").read_text(encoding="utf-8").splitlines() if line]
    names = gazetteer(*dict.fromkeys(name for _, name in rows), *invented(3000))
    missed = []
    for heard, name in rows:
        sound, joined = names.sounder(fold(heard)), fold(heard)

        def worth(other: Name, sound: str = sound, joined: str = joined) -> float:
            return (
                0.5 * Levenshtein.normalized_similarity(sound, other.sound)
                + 0.3 * Levenshtein.normalized_similarity(joined, other.joined)
                + 0.2 * JaroWinkler.similarity(joined, other.joined)
            )

        everywhere = [other.text for other in sorted(names.names, key=worth, reverse=True)[:6]]
        if name in everywhere and name not in alike(heard, names):
            missed.append((heard, name))
    assert len(missed) <= len(rows) // 100, missed


def test_a_language_without_a_coder_is_searched_by_letters() -> None:
    names = gazetteer("Élodie Vauquelin", "Grimjaw", *invented(500), language="fr")
    assert "Vauquelin" in alike("Vaukelin", names)


def test_other_scripts_are_searched_by_letters() -> None:
    assert alike("Владимар", gazetteer("Владимир", "Гримджо"))[0] == "Владимир"


def test_short_and_very_long_names_are_not_searched() -> None:
    names = Gazetteer.build([Entry("Bo", EntityId("bo")), Entry("B" * (LONGEST + 1), EntityId("b"))])
    assert (names.longest, alike("bobbobb", names), alike("B" * LONGEST, names)) == (0, [], [])
    assert len("Bo") < SHORTEST


def test_a_learned_form_is_searched_too_unless_it_is_made_of_ordinary_words() -> None:
    """A misheard form of a name is heard again a little differently."""
    names = Gazetteer.build([Entry("Glabbagool", EntityId("g"), learned=("Bubblegush", "open door"))])
    assert alike("bubblegosh", names)[0] == "Bubblegush"
    assert "open door" not in alike("opendoors", names)


def test_an_empty_index_finds_nothing() -> None:
    assert NameIndex([]).alike("grimjaw", ("KRMJ",), str, limit=3) == []


def test_names_that_are_all_alike_do_not_widen_the_search() -> None:
    names = gazetteer(*(f"Goblin {number:04}" for number in range(1500)))
    assert len(alike("goblin 0007", names, limit=1000)) <= 200
    assert alike("goblin 0007", names)[0] == "Goblin 0007"


@given(st.lists(st.text("abkrz", min_size=3, max_size=9), unique=True, max_size=60), st.data())
@settings(max_examples=n_examples(40), deadline=None)
def test_the_answer_does_not_depend_on_the_order_in_which_names_came(spellings: list[str], data: st.DataObject) -> None:
    names = gazetteer(*spellings).names
    heard = data.draw(st.text("abkrz", min_size=4, max_size=9))
    other = NameIndex(data.draw(st.permutations(names)))
    assert other.alike(heard, (), str, limit=5) == NameIndex(names).alike(heard, (), str, limit=5)
