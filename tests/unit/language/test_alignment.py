from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.heard import Correction, HeardWord
from glyphoxa.language.words import SpokenWord, placed, words_of_text


def heard(text: str, *confidences: float) -> tuple[HeardWord, ...]:
    """The words of a text, 100 ms each."""
    spans = list(re.finditer(r"\S+", text))
    given_or_sure = [*confidences, *[0.9] * (len(spans) - len(confidences))]
    return tuple(
        HeardWord(span.start(), span.end(), confidence, 100 * n, 100 * n + 100)
        for n, (span, confidence) in enumerate(zip(spans, given_or_sure, strict=True))
    )


def put(text: str, before: str, after: str) -> Correction:
    start = text.index(before)
    return Correction(start, start + len(before), before, after, 0.9, "phonetic", "test")


def corrected(text: str, corrections: list[Correction]) -> str:
    for each in reversed(corrections):
        text = text[: each.start] + each.after + text[each.end :]
    return text


def told(text: str, *corrections: Correction, words: tuple[HeardWord, ...] | None = None) -> list[tuple[object, ...]]:
    found = words_of_text(heard(text) if words is None else words, corrections)
    after = corrected(text, list(corrections))
    return [(after[w.start : w.end], w.confidence, w.from_ms, w.to_ms) for w in found]


def test_two_words_that_were_one_name_share_the_doubt_and_the_time_of_both() -> None:
    text = "we asked elder nacks, again"
    assert told(text, put(text, "elder nacks", "Eldrinax"), words=heard(text, 0.9, 0.9, 0.8, 0.3, 0.7)) == [
        ("we", 0.9, 0, 100),
        ("asked", 0.9, 100, 200),
        ("Eldrinax,", 0.3, 200, 400),
        ("again", 0.7, 400, 500),
    ]


def test_one_word_that_was_a_name_of_three_gives_three_words_of_the_same_time() -> None:
    text = "to Towerwispers!"
    assert told(text, put(text, "Towerwispers", "Tower of Whispers"), words=heard(text, 0.9, 0.2)) == [
        ("to", 0.9, 0, 100),
        ("Tower", 0.2, 100, 200),
        ("of", 0.2, 100, 200),
        ("Whispers!", 0.2, 100, 200),
    ]


def test_what_sticks_to_a_replaced_part_of_a_word_stays_with_it() -> None:
    text = 'the "half-grimja (so to say)'
    assert [word for word, *_ in told(text, put(text, "grimja", "Grimjaw"))] == [
        "the",
        '"half-Grimjaw',
        "(so",
        "to",
        "say)",
    ]


def test_two_replacements_in_one_word_are_one_run() -> None:
    text = "grimja-eldrinaks went"
    corrections = put(text, "grimja", "Old Grimjaw"), put(text, "eldrinaks", "Eldrinax")
    assert [word for word, *_ in told(text, *corrections)] == ["Old", "Grimjaw-Eldrinax", "went"]


def test_what_the_recogniser_did_not_tell_is_not_made_up() -> None:
    text = "ask grimja now"
    some = (HeardWord(0, 3, 0.9), HeardWord(11, 14))
    assert told(text, put(text, "grimja", "Grimjaw"), words=some) == [
        ("ask", 0.9, None, None),
        ("now", None, None, None),
    ]
    assert words_of_text((), [put(text, "grimja", "Grimjaw")]) == ()
    unsure = (HeardWord(4, 10),)
    assert told(text, put(text, "grimja", "Grimjaw"), words=unsure) == [("Grimjaw", None, None, None)]


def test_words_are_found_in_their_transcript_whatever_their_case_and_punctuation() -> None:
    text = "Well... who is GRIMJAW, then?"
    spoken = [SpokenWord(w, 0.5, n, n + 1) for n, w in enumerate(["well", "who", "is", "missing", "grimjaw", "then"])]
    found = placed(text, spoken)
    assert [text[w.start : w.end] for w in found] == ["Well...", "who", "is", "GRIMJAW,", "then?"]
    assert [w.from_ms for w in found] == [0, 1, 2, 4, 5]


def test_a_word_that_is_nowhere_or_empty_costs_no_other_its_place() -> None:
    assert placed("", [SpokenWord("a")]) == ()
    assert [w.start for w in placed("a b", [SpokenWord(""), SpokenWord(" a"), SpokenWord("x("), SpokenWord("b")])] == [
        0,
        2,
    ]


def test_times_are_dropped_when_it_is_unknown_how_they_move() -> None:
    assert HeardWord(0, 2, 0.5, 10, 20).moved(places=5, ms=100) == HeardWord(5, 7, 0.5, 110, 120)
    assert HeardWord(0, 2, 0.5, 10, 20).moved(places=5, ms=None) == HeardWord(5, 7, 0.5)


LETTERS = st.text(alphabet="abCÄ'-,.é🐉", min_size=1, max_size=6)


@st.composite
def transcripts(draw: st.DrawFn) -> tuple[str, tuple[HeardWord, ...], list[Correction]]:
    """Some of the words told, with or without times; replacements anywhere between two characters of words."""
    text = draw(st.sampled_from(["", " "])) + " ".join(draw(st.lists(LETTERS, max_size=8)))
    words: list[HeardWord] = []
    now_ms = 0
    for span in re.finditer(r"\S+", text):
        if not draw(st.booleans()) and words:
            continue
        begins = now_ms + draw(st.integers(0, 50))
        now_ms = begins + draw(st.integers(0, 300))
        times = draw(st.sampled_from([(begins, now_ms), (None, None)]))
        words.append(HeardWord(*span.span(), draw(st.none() | st.floats(0, 1)), *times))
    corrections: list[Correction] = []
    ends = [n for n in range(len(text) + 1) if draw(st.booleans())]
    for start, end in list(pairwise(ends))[::2]:
        # Windows of a corrector begin and end in words.
        if text[start:end] and not text[start].isspace() and not text[end - 1].isspace():
            after = " ".join(draw(st.lists(LETTERS, min_size=1, max_size=3)))
            corrections.append(Correction(start, end, text[start:end], after, 1.0, "phonetic", ""))
    return text, tuple(words), corrections


@given(transcripts())
def test_words_of_a_corrected_text_are_in_order_and_keep_what_is_known(
    case: tuple[str, tuple[HeardWord, ...], list[Correction]],
) -> None:
    text, words, corrections = case
    after = corrected(text, corrections)
    found = words_of_text(words, corrections)
    assert all(0 <= w.start < w.end <= len(after) for w in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert not any(re.search(r"\s", after[w.start : w.end]) for w in found)
    timed = [(w.from_ms, w.to_ms) for w in found if w.from_ms is not None]
    assert timed == sorted(timed)
    assert all(begins <= ends for begins, ends in timed if begins is not None and ends is not None)
    # A word that was not replaced is the same and knows the same; the doubt of a replaced one is not lost.
    known = [(after[w.start : w.end], w.confidence, w.from_ms, w.to_ms) for w in found]
    for word in words:
        if not any(c.start < word.end and word.start < c.end for c in corrections):
            assert (text[word.start : word.end], word.confidence, word.from_ms, word.to_ms) in known
    lowest = min((w.confidence for w in words if w.confidence is not None), default=None)
    assert min((w.confidence for w in found if w.confidence is not None), default=None) == lowest
    assert words_of_text(words, ()) == words
