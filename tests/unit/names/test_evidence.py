"""What is known beside the words decides whether they are a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.heard import HeardWord
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import words
from glyphoxa.names.corrector import Corrector
from glyphoxa.names.evidence import probability
from glyphoxa.names.gazetteer import Entry, Gazetteer

NAMES = ("Vaelis", "Glabbagool", "Thornwall", "Grimjaw", "Tower of Whispers", "Hope", "Will", "Dawn Bringer", "Marek")


def corrector(*names: str, learned: dict[str, tuple[str, ...]] | None = None, language: str = "en") -> Corrector:
    entries = [Entry(name, EntityId(name), "npc", learned=(learned or {}).get(name, ())) for name in names or NAMES]
    return Corrector(Gazetteer.build(entries, language=language))


def heard(text: str, **confidences: float) -> tuple[HeardWord, ...]:
    """What a recogniser knows of a text: sure of all words but those named."""
    return tuple(HeardWord(word.start, word.end, confidences.get(word.folded, 0.98)) for word in words(text))


CORRECTOR = corrector()


def test_a_word_that_the_recogniser_doubted_is_taken_for_a_name_sooner() -> None:
    text = "what does phalis look like"
    sure, unsure = heard(text), heard(text, phalis=0.15)
    assert CORRECTOR.correct(text, heard=unsure).text == "what does Vaelis look like"
    assert CORRECTOR.correct(text, heard=sure).text == text


def test_an_ordinary_word_within_a_sentence_is_left_alone_however_it_sounds() -> None:
    text = "the mark on the door is old"
    assert CORRECTOR.correct(text).text == text
    assert CORRECTOR.correct(text, heard=heard(text)).text == text


def test_the_same_words_are_a_name_sooner_when_nothing_stands_around_them() -> None:
    names = corrector("Phandalin")
    assert names.correct("Mandolin?").text == "Phandalin?"
    assert names.correct("she plays the mandolin in the evening").corrections == ()


def test_a_name_that_is_near_needs_less() -> None:
    doubtful = "we met glabagle there"
    near = frozenset({EntityId("Glabbagool")})
    scores = [
        [c.score for c in CORRECTOR.correct(doubtful, nearby=nearby).corrections] for nearby in (frozenset(), near)
    ]
    assert scores[1] > scores[0]


def test_between_two_names_that_are_equally_like_it_nothing_is_decided() -> None:
    twins = corrector("Kalamir", "Kalemar")
    assert twins.correct("where is kalomor now").corrections == ()


@pytest.mark.parametrize(
    "text",
    [
        "I hope you will come back.",
        "Will you help us? I hope so.",
        "the dawn bringer of news came late",
        "I walked along the wall and into the thorn bush.",
    ],
)
def test_names_that_are_ordinary_words_attract_nothing(text: str) -> None:
    assert CORRECTOR.correct(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "Gestern Abend sind wir durch den Wald zur alten Mühle gegangen.",
        "Der Schmied hat gerade keine Zeit, aber seine Tochter kann euch helfen.",
        "Wir brauchen noch Fackeln, Seile und ein paar Heiltränke aus der Stadt.",
        "Ich würfle auf Wahrnehmung und schaue mir die Tür genauer an.",
    ],
)
def test_german_sentences_are_left_alone_though_every_noun_has_a_capital(text: str) -> None:
    names = corrector("Greta", "Bart", "Grimjaw", "Eldrinax", "Falkenrast", "Morwenna", language="de")
    assert names.correct(text).text == text


def test_what_was_learned_counts_for_what_is_like_it() -> None:
    plain = corrector("Glabbagool")
    taught = corrector("Glabbagool", learned={"Glabbagool": ("Bubblegush",)})
    assert plain.correct("Bubblegosh, come here!").corrections == ()
    corrected = taught.correct("Bubblegosh, come here!")
    assert corrected.text == "Glabbagool, come here!"
    assert "Bubblegush" in corrected.corrections[0].reason


def test_a_common_word_that_was_learned_needs_a_sign() -> None:
    """A confirmed form must not rewrite ordinary speech."""
    taught = corrector("Uller", learned={"Uller": ("open", "don bringer")})
    assert taught.correct("leave the door open, please").text == "leave the door open, please"
    assert taught.correct("I met don bringer at the gate").text == "I met Uller at the gate"
    assert taught.correct("Open!").text == "Uller!"
    text = "I pray to open every night"
    assert taught.correct(text, heard=heard(text, open=0.2)).text == "I pray to Uller every night"


def test_a_wide_window_is_not_doubted_for_one_of_its_words() -> None:
    names = corrector("Velmari Consortium", "Hestia")
    text = "I leave a coin for Hastia"
    assert "Velmari" not in names.correct(text, heard=heard(text, hastia=0.1)).text


@given(
    st.lists(
        st.sampled_from(
            [
                "vailis",
                "veilies",
                "glabagool",
                "grimja",
                "marek",
                "hope",
                "the",
                "will",
                "don",
                "bringer",
                "of",
                "tower",
                "wispers",
            ]
        )
    ),
    st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=30, max_size=30),
    st.booleans(),
)
def test_whatever_the_recogniser_knows_the_raw_text_comes_back(
    spoken: list[str], confidences: list[float | None], is_near: bool
) -> None:
    text = " ".join(spoken)
    known = tuple(
        HeardWord(word.start, word.end, confidence) for word, confidence in zip(words(text), confidences, strict=False)
    )
    nearby = frozenset({EntityId("Vaelis"), EntityId("Marek")}) if is_near else frozenset()
    corrected = CORRECTOR.correct(text, heard=known, nearby=nearby)
    back = corrected.text
    for correction in corrected.corrections:
        start = correction.start
        assert back[start : start + len(correction.after)] == correction.after
        back = back[:start] + correction.before + back[start + len(correction.after) :]
    assert back == text
    assert [c.start for c in corrected.corrections] == sorted(c.start for c in corrected.corrections)
    assert CORRECTOR.correct(text, heard=known, nearby=nearby) == corrected


@given(st.floats(allow_nan=False))
def test_a_probability_is_one(log_odds: float) -> None:
    assert 0 <= probability(log_odds) <= 1


def test_very_long_transcripts_are_corrected_whole() -> None:
    text = "we walked to the tower of wispers and asked elder nacks about it, " * 160
    names = corrector("Eldrinax", "Tower of Whispers")
    corrected = names.correct(text)
    assert len(text) > 10_000
    assert corrected.text.count("Eldrinax") == corrected.text.count("Tower of Whispers") == 160


@pytest.mark.parametrize("text", ["", " ", "…", "🐉", "🐉 Vaelis 🐉", "\u202eVaelis\u202c", "a", "I", "\n\n"])
def test_odd_texts_come_back_as_they_are(text: str) -> None:
    assert CORRECTOR.correct(text).text == text
