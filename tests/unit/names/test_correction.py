"""Names that were misheard are corrected, and what is something else is left alone."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.names import OWN
from glyphoxa.domain.heard import HeardWord
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import words
from glyphoxa.names.corrector import Corrected, Corrector
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry

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


def heard(text: str, **confidences: float) -> tuple[HeardWord, ...]:
    """Return a recogniser's report of a text: sure of all words but those named."""
    return tuple(HeardWord(word.start, word.end, confidences.get(word.folded, 0.98)) for word in words(text))


def _many_names() -> Corrector:
    rows = [line.split("\t") for line in (OWN / "spoken" / "N-test.tsv").read_text("utf-8").splitlines()]
    return Corrector(Gazetteer.build([Entry(name, EntityId(name), kind) for name, kind in rows]))


CORRECTOR = corrector(*NAMES)
MANY = _many_names()
FEW = corrector(
    "Vaelis", "Glabbagool", "Thornwall", "Grimjaw", "Tower of Whispers", "Hope", "Will", "Dawn Bringer", "Marek"
)
GERMAN = corrector("Greta", "Gott", "Bart", "Grimjaw", "Eldrinax", "Falkenrast", "Morwenna", language="de")


def undone(corrected: Corrected) -> str:
    text = corrected.text
    for correction in reversed(corrected.corrections):
        grown = sum(len(c.after) - len(c.before) for c in corrected.corrections if c.start < correction.start)
        start = correction.start + grown
        assert text[start : start + len(correction.after)] == correction.after
        text = text[:start] + correction.before + text[start + len(correction.after) :]
    return text


@pytest.mark.parametrize(
    ("names", "heard", "meant"),
    [
        (CORRECTOR, "elder nacks", "Eldrinax"),
        (CORRECTOR, "ELDRINAX", "Eldrinax"),
        (CORRECTOR, "eldrinaks", "Eldrinax"),
        (CORRECTOR, "iron hold", "Ironhold"),
        (CORRECTOR, "grim jaw", "Grimjaw"),
        (CORRECTOR, "tower of wispers is dangerous.", "Tower of Whispers is dangerous."),
        (CORRECTOR, "Glavagul", "Glabbagool"),
        (CORRECTOR, "Fukrudin", "Vukradin"),
        (CORRECTOR, "Zantarum", "Zhentarim"),
        (CORRECTOR, "Menzo Bronson", "Menzoberranzan"),
        (CORRECTOR, "Vulking Valve", "Velkynvelve"),
        (CORRECTOR, "so we walked out of the city and asked elder nacks about iron hold",
         "so we walked out of the city and asked Eldrinax about Ironhold"),
        # Everything around a name stays; a possessive or plural ending is kept.
        (CORRECTOR, "  Well...  \t(elder-nacks), “GRIM JAW’S” forge?!\n",
         "  Well...  \t(Eldrinax), “Grimjaw’S” forge?!\n"),
        (CORRECTOR, "Eldrinaks's sword and the Zentarims", "Eldrinax's sword and the Zhentarims"),
        (MANY, "Severina castle lane", "Severina Castellane"),
        (MANY, "Siverina kastellane", "Severina Castellane"),
        (MANY, "Bagdan var coff", "Bogdan Varkov"),
        (MANY, "crooked land turn", "Crooked Lantern"),
        (MANY, "moktrak", "Mogthrak"),
        (corrector("Morwenna"), "More Wenna gave me this ring", "Morwenna gave me this ring"),
        # The same words are a name sooner when nothing stands around them.
        (corrector("Phandalin"), "Mandolin?", "Phandalin?"),
        (corrector("Glyphoxa", "Schattenwald", language="de"), "So, Glyfoxa, wo ist der Schattenwalt?",
         "So, Glyphoxa, wo ist der Schattenwald?"),
    ],
)  # fmt: skip
def test_misheard_names_are_corrected(names: Corrector, heard: str, meant: str) -> None:
    assert names.correct(heard).text == meant


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (CORRECTOR, "I would like a cup of tea please"),
        (CORRECTOR, "the elder of the village"),
        (CORRECTOR, "older men"),
        (CORRECTOR, "ate bread"),
        (CORRECTOR, "was liegt gerade auf dem Tisch"),
        (CORRECTOR, "bard, what's the special?"),
        (CORRECTOR, "smash the door, the ashes, vanish into"),
        (CORRECTOR, "Eldrinax walked out of Ironhold, past the Tower of Whispers."),
        (CORRECTOR, "Vex'ahlia's bow belongs to Vex’ahlia."),
        (CORRECTOR, "We hold iron and the jaw is grim"),
        (CORRECTOR, "Nooooo, hahaha, uhm, okay!"),
        # Words shared with a name do not make the rest alike.
        (CORRECTOR, "House Valdrik and the Staff of Merlin"),
        # A first name that was misheard, and what is said next.
        (MANY, "Siverina try to calm."),
        (MANY, "Bagdan do i know."),
        (MANY, "Crooket go and find."),
        (MANY, "Xullroe burned for two."),
        (MANY, "Immavable i run away."),
        # A last name that was misheard, and what was said before.
        (MANY, "Tower of kastellane."),
        # Nicknames that nobody listed.
        (MANY, "Mad Brak!"),
        (MANY, "Red Joss!"),
        (MANY, "Gold Wren!"),
        (MANY, "Iron Joss!"),
        # Phrases of everyday words.
        (MANY, "Day insect."),
        (MANY, "Lake customer."),
        # Names that are ordinary words attract nothing.
        (FEW, "I hope you will come back."),
        (FEW, "Will you help us? I hope so."),
        (FEW, "the dawn bringer of news came late"),
        (FEW, "I walked along the wall and into the thorn bush."),
        (FEW, "the mark on the door is old"),
        (corrector("Ash", "Bear", "Whisper", "Stone", "Rose"),
         "the ashes, a beer, he whispers, don't bare the stove, she rows the boat"),
        (corrector("Morwenna"), "give me more when you can"),
        (corrector("Phandalin"), "she plays the mandolin in the evening"),
        (corrector("Polymorph"), "he was polymorphed"),
        # Between two names that are equally like it nothing is decided.
        (corrector("Kalamir", "Kalemar"), "where is kalomor now"),
        # A confirmed form of stop words is not used.
        (corrector("Theodan", learned={"the": "Theodan"}), "the end"),
        (GERMAN, "was liegt gerade auf dem Tisch"),
        (GERMAN, "wie geht es dir"),
        (GERMAN, "er hat Brot gegessen"),
        (GERMAN, "Gestern Abend sind wir durch den Wald zur alten Mühle gegangen."),
        (GERMAN, "Der Schmied hat gerade keine Zeit, aber seine Tochter kann euch helfen."),
        (GERMAN, "Wir brauchen noch Fackeln, Seile und ein paar Heiltränke aus der Stadt."),
        (GERMAN, "Ich würfle auf Wahrnehmung und schaue mir die Tür genauer an."),
        *((FEW, text) for text in ("…", "🐉", "🐉 Vaelis 🐉", "\u202eVaelis\u202c", "I", "\n\n")),
    ],
)  # fmt: skip
def test_other_speech_is_left_alone(names: Corrector, text: str) -> None:
    assert names.correct(text) == Corrected(text, ())


@pytest.mark.parametrize(
    ("names", "text", "unsure", "meant"),
    [
        (FEW, "what does phalis look like", {}, "what does phalis look like"),
        (FEW, "what does phalis look like", {"phalis": 0.15}, "what does Vaelis look like"),
        (FEW, "the mark on the door is old", {}, "the mark on the door is old"),
        (corrector("Uller", learned={"open": "Uller"}), "I pray to open every night", {"open": 0.2},
         "I pray to Uller every night"),
    ],
)  # fmt: skip
def test_doubt_of_the_recogniser_decides(names: Corrector, text: str, unsure: dict[str, float], meant: str) -> None:
    assert names.correct(text, heard=heard(text, **unsure)).text == meant


def test_one_doubted_word_does_not_make_a_wide_window_doubtful() -> None:
    names = corrector("Velmari Consortium", "Hestia")
    text = "I leave a coin for Hastia"
    assert "Velmari" not in names.correct(text, heard=heard(text, hastia=0.1)).text


def test_a_name_that_is_near_needs_less() -> None:
    far, near = (
        FEW.correct("we met glabagle there", nearby=nearby).corrections
        for nearby in (frozenset(), frozenset({EntityId("Glabbagool")}))
    )
    assert [each.score for each in near] > [each.score for each in far]


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


@pytest.mark.parametrize("names", [(), ("",), ("a",), ("the",), ("Bo",), ("😀",), ("שלום",), ("李",), ("of the",)])
@pytest.mark.parametrize(
    "text", ["", " ", "a", "the of a", "😀 👍🏽", "שלום עולם", "李 说", "x" * 10_000, "a " * 5_000]
)
def test_odd_names_and_odd_texts_change_nothing(names: tuple[str, ...], text: str) -> None:
    assert corrector(*names).correct(text).text == text


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


@given(
    SPEECH,
    st.lists(st.none() | st.floats(0, 1), min_size=40, max_size=40),
    st.sets(st.sampled_from([EntityId(name) for name in NAMES])),
)
@example("tower of wispers Grim-jaw's", [None] * 40, set())
def test_whatever_is_known_the_raw_text_comes_back_and_correcting_twice_changes_nothing(
    text: str, confidences: list[float | None], nearby: set[EntityId]
) -> None:
    known = tuple(
        HeardWord(word.start, word.end, confidence) for word, confidence in zip(words(text), confidences, strict=False)
    )
    corrected = CORRECTOR.correct(text, heard=known, nearby=nearby)
    assert undone(corrected) == text
    for correction in corrected.corrections:
        assert text[correction.start : correction.end] == correction.before != correction.after
    assert all(before.end <= after.start for before, after in pairwise(corrected.corrections))
    assert CORRECTOR.correct(text, heard=known, nearby=nearby) == corrected
    once = CORRECTOR.correct(text)
    assert CORRECTOR.correct(once.text) == Corrected(once.text, ())


@given(FEW_NAMES, st.lists(st.text("abdeiklnorstvx'", min_size=1, max_size=9), max_size=8).map(" ".join))
def test_whatever_the_names_correcting_twice_changes_nothing(names: list[str], text: str) -> None:
    of_these = corrector(*names)
    once = of_these.correct(text)
    assert of_these.correct(once.text).text == once.text
    assert undone(once) == text
    assert corrector().correct(text) == Corrected(text, ())


def test_learned_forms_count_for_what_is_like_them() -> None:
    taught = corrector("Glabbagool", learned={"Bubblegush": "Glabbagool"})
    assert corrector("Glabbagool").correct("Bubblegosh, come here!").corrections == ()
    corrected = taught.correct("Bubblegosh, come here!")
    assert corrected.text == "Glabbagool, come here!"
    assert "Bubblegush" in corrected.corrections[0].reason


def test_a_common_word_that_was_learned_needs_a_sign() -> None:
    """A confirmed form must not rewrite ordinary speech."""
    taught = corrector("Uller", learned={"open": "Uller", "don bringer": "Uller"})
    assert taught.correct("leave the door open, please").text == "leave the door open, please"
    assert taught.correct("I met don bringer at the gate").text == "I met Uller at the gate"
    assert taught.correct("Open!").text == "Uller!"


def test_very_long_transcripts_are_corrected_whole() -> None:
    text = "we walked to the tower of wispers and asked elder nacks about it, " * 160
    corrected = CORRECTOR.correct(text)
    assert corrected.text.count("Eldrinax") == corrected.text.count("Tower of Whispers") == 160
