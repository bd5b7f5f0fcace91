from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.names import OWN
from glyphoxa.domain.ids import EntityId
from glyphoxa.names.corrector import Corrected, Corrector
from glyphoxa.names.documents import documents_corrector
from glyphoxa.names.gazetteer import Entry, Gazetteer

NAMES = (
    "Eldrinax", "Ironhold", "Grimjaw", "Tower of Whispers", "Bart", "Greta", "Glabbagool", "Vukradin", "Zhentarim",
    "Menzoberranzan", "Phandalin", "Velkynvelve", "House Drakenor", "Vex'ahlia", "Staff of Oshiran",
)  # fmt: skip


def corrector(*names: str, language: str = "en", learned: dict[str, str] | None = None) -> Corrector:
    wrong_forms = learned or {}
    entries = [
        Entry(name, EntityId(name), learned=tuple(wrong for wrong, right in wrong_forms.items() if right == name))
        for name in names
    ]
    return Corrector(Gazetteer.build(entries, language=language))


CORRECTOR = corrector(*NAMES)


def undone(corrected: Corrected) -> str:
    text = corrected.text
    for correction in reversed(corrected.corrections):
        grown = sum(len(c.after) - len(c.before) for c in corrected.corrections if c.start < correction.start)
        start = correction.start + grown
        assert text[start : start + len(correction.after)] == correction.after
        text = text[:start] + correction.before + text[start + len(correction.after) :]
    return text


@pytest.mark.parametrize(
    ("heard", "meant"),
    [
        ("elder nacks", "Eldrinax"),
        ("ELDRINAX", "Eldrinax"),
        ("eldrinaks", "Eldrinax"),
        ("iron hold", "Ironhold"),
        ("grim jaw", "Grimjaw"),
        ("tower of wispers is dangerous.", "Tower of Whispers is dangerous."),
        ("Glavagul", "Glabbagool"),
        ("Fukrudin", "Vukradin"),
        ("Zantarum", "Zhentarim"),
        ("Menzo Bronson", "Menzoberranzan"),
        ("Vulking Valve", "Velkynvelve"),
        ("so we walked out of the city and asked elder nacks about iron hold",
         "so we walked out of the city and asked Eldrinax about Ironhold"),
    ],
)  # fmt: skip
def test_misheard_names_are_put_right(heard: str, meant: str) -> None:
    assert CORRECTOR.correct(heard).text == meant


@pytest.mark.parametrize(
    "text",
    [
        "I would like a cup of tea please",
        "the elder of the village",
        "older men",
        "ate bread",
        "was liegt gerade auf dem Tisch",
        "bard, what's the special?",
        "smash the door, the ashes, vanish into",
        "Eldrinax walked out of Ironhold, past the Tower of Whispers.",
        "Vex'ahlia's bow belongs to Vex’ahlia.",
        "We hold iron and the jaw is grim",
        "Nooooo, hahaha, uhm, okay!",
    ],
)
def test_ordinary_speech_is_left_alone(text: str) -> None:
    assert CORRECTOR.correct(text) == Corrected(text, ())


def _many_names() -> Corrector:
    rows = [line.split("\t") for line in (OWN / "spoken" / "N-test.tsv").read_text("utf-8").splitlines()]
    return Corrector(Gazetteer.build([Entry(name, EntityId(name), kind) for name, kind in rows]))


MANY = _many_names()


@pytest.mark.parametrize(
    "heard",
    [
        # A first name that was misheard, and what is said next.
        "Siverina try to calm.",
        "Bagdan do i know.",
        "Crooket go and find.",
        "Xullroe burned for two.",
        "Immavable i run away.",
        # Nicknames that nobody listed.
        "Mad Brak!",
        "Red Joss!",
        "Gold Wren!",
        "Iron Joss!",
        # Phrases of everyday words.
        "Day insect.",
        "Lake customer.",
    ],
)
def test_words_that_are_their_own_are_not_swallowed_by_a_name(heard: str) -> None:
    assert MANY.correct(heard) == Corrected(heard, ())


@pytest.mark.parametrize(
    ("heard", "meant"),
    [
        ("Severina castle lane", "Severina Castellane"),
        ("Siverina kastellane", "Severina Castellane"),
        ("Bagdan var coff", "Bogdan Varkov"),
        ("crooked land turn", "Crooked Lantern"),
        ("moktrak", "Mogthrak"),
    ],
)
def test_what_sounds_like_the_whole_name_is_still_put_right(heard: str, meant: str) -> None:
    assert MANY.correct(heard).text == meant


def test_german_words_that_sound_like_a_name_are_left_alone() -> None:
    german = corrector("Greta", "Gott", "Bart", language="de")
    for text in ("was liegt gerade auf dem Tisch", "wie geht es dir", "er hat Brot gegessen"):
        assert german.correct(text).text == text


def test_german_names_are_found_by_their_german_sound() -> None:
    german = corrector("Glyphoxa", "Schattenwald", language="de")
    assert german.correct("So, Glyfoxa, wo ist der Schattenwalt?").text == "So, Glyphoxa, wo ist der Schattenwald?"


def test_everything_around_a_name_stays_as_it_is() -> None:
    heard = "  Well...  \t(elder-nacks), “GRIM JAW’S” forge?!\n"
    assert CORRECTOR.correct(heard).text == "  Well...  \t(Eldrinax), “Grimjaw’S” forge?!\n"


def test_a_possessive_or_plural_ending_is_kept() -> None:
    assert CORRECTOR.correct("Eldrinaks's sword and the Zentarims").text == "Eldrinax's sword and the Zhentarims"


def test_a_stop_word_may_be_the_beginning_of_a_name_that_sounds_the_same() -> None:
    morwenna = corrector("Morwenna")
    assert morwenna.correct("More Wenna gave me this ring").text == "Morwenna gave me this ring"
    assert morwenna.correct("give me more when you can").text == "give me more when you can"


def test_a_correction_says_where_what_and_why() -> None:
    (correction,) = CORRECTOR.correct("I asked elder nacks.").corrections
    assert (correction.start, correction.end) == (8, 19)
    assert (correction.before, correction.after, correction.stage) == ("elder nacks", "Eldrinax", "phonetic")
    assert 0.5 < correction.score <= 1
    assert correction.reason


def test_a_form_that_the_dm_confirmed_is_exact() -> None:
    taught = corrector("Phandalin", "Vukradin", learned={"Finland": "Phandalin", "blue crabin": "Vukradin"})
    corrected = taught.correct("In Finland we met Blue Crabin, a finlander.")
    assert corrected.text == "In Phandalin we met Vukradin, a finlander."
    assert [correction.stage for correction in corrected.corrections] == ["learned", "learned"]


def test_a_confirmed_form_of_stop_words_only_is_not_used() -> None:
    assert corrector("Theodan", learned={"the": "Theodan"}).correct("the end").text == "the end"


def test_a_name_that_is_an_ordinary_word_attracts_nothing() -> None:
    plain = corrector("Ash", "Bear", "Whisper", "Stone", "Rose")
    text = "the ashes, a beer, he whispers, don't bare the stove, she rows the boat"
    assert plain.correct(text).text == text


def test_words_shared_with_a_name_do_not_make_the_rest_alike() -> None:
    assert CORRECTOR.correct("House Valdrik and the Staff of Merlin").text == "House Valdrik and the Staff of Merlin"


def test_a_form_of_a_name_is_not_taken_for_a_garble() -> None:
    assert corrector("Polymorph").correct("he was polymorphed").text == "he was polymorphed"


@pytest.mark.parametrize("names", [(), ("",), ("a",), ("the",), ("Bo",), ("😀",), ("שלום",), ("李",), ("of the",)])
@pytest.mark.parametrize(
    "text", ["", " ", "a", "the of a", "😀 👍🏽", "שלום עולם", "李 说", "x" * 10_000, "a " * 5_000]
)
def test_odd_names_and_odd_texts_change_nothing(names: tuple[str, ...], text: str) -> None:
    assert corrector(*names).correct(text).text == text


def test_the_documents_algorithm_rewrites_ordinary_speech() -> None:
    """why it is not shipped."""
    plain = documents_corrector(CORRECTOR.gazetteer)
    heard = "so we walked out of the city and asked elder nacks about iron hold"
    assert "so we Tower of Whispers the city" in plain.correct(heard).text


def test_the_documents_algorithm_finds_names_by_any_shared_code() -> None:
    plain = documents_corrector(corrector("Grimjaw", "Ironhold").gazetteer)
    assert plain.correct("Grimja went").text == "Grimjaw went"


def test_caution_is_an_option() -> None:
    strict = Corrector(CORRECTOR.gazetteer, caution=8.0)
    assert strict.correct("elder nacks").text == "elder nacks"


def test_a_replaced_word_may_complete_a_longer_name() -> None:
    corrected = corrector("Silverthorn", "Silverthorn Companee").correct("the silver thorn companee")
    assert corrected.text == "the Silverthorn Companee"
    assert undone(corrected) == "the silver thorn companee"


HEARD = st.sampled_from(
    (
        "elder", "nacks", "Nacks", "iron", "hold", "Hold", "grim", "jaw", "tower", "of", "wispers", "whispers", "the",
        "and", "bart", "Bert", "greta", "Glavagul", "Fukrudin", "Zantarum's", "Menzo", "Bronson", "Vulking", "Valve",
        "house", "Dracanor", "staff", "Oshiron's", "a", "eldrinaks", "ELDRINAX", ",", ".", "-", "'", "\n", "😀", "É",
    )
)  # fmt: skip
SPEECH = st.lists(HEARD, max_size=12).map(" ".join) | st.text(max_size=80)
FEW_NAMES = st.lists(st.sampled_from(NAMES) | st.text("abdeiklnorstvx' ", min_size=1, max_size=12), max_size=8)


@given(SPEECH)
@example("tower of wispers Grim-jaw's")
def test_correcting_twice_changes_nothing_more(text: str) -> None:
    once = CORRECTOR.correct(text)
    assert CORRECTOR.correct(once.text) == Corrected(once.text, ())


@given(FEW_NAMES, st.lists(st.text("abdeiklnorstvx'", min_size=1, max_size=9), max_size=8).map(" ".join))
def test_correcting_twice_changes_nothing_more_whatever_the_names(names: list[str], text: str) -> None:
    of_these = corrector(*names)
    once = of_these.correct(text)
    assert of_these.correct(once.text).text == once.text
    assert undone(once) == text


@given(SPEECH)
def test_the_raw_text_comes_back_from_the_corrections(text: str) -> None:
    corrected = CORRECTOR.correct(text)
    assert undone(corrected) == text
    for correction in corrected.corrections:
        assert text[correction.start : correction.end] == correction.before != correction.after


@given(SPEECH)
def test_corrections_are_in_order_and_apart(text: str) -> None:
    spans = [(correction.start, correction.end) for correction in CORRECTOR.correct(text).corrections]
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@given(st.text())
def test_without_names_every_text_comes_back_as_it_is(text: str) -> None:
    assert corrector().correct(text) == Corrected(text, ())
