"""Places in a raw text and in the one that was made of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.heard import Correction
from glyphoxa.language.words import Places, applied, composed, leads_to

RAW = st.text("ab é🐉", max_size=14)


@st.composite
def replacements(draw: st.DrawFn, text: str, *, stage: str = "phonetic") -> tuple[Correction, ...]:
    """Any replacements of a text, insertions and deletions too, also such that change nothing."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=10)))
    found: list[Correction] = []
    for start, end in zip(places[::2], places[1::2], strict=False):
        after = draw(st.text("aXY", max_size=4) | st.just(text[start:end]))
        if (start, end) != (found[-1].start, found[-1].end) if found else True:
            found.append(Correction(start, end, text[start:end], after, 0.5, stage, ""))  # type: ignore[arg-type]
    return tuple(found)


@st.composite
def twice(draw: st.DrawFn) -> tuple[str, tuple[Correction, ...], tuple[Correction, ...]]:
    """A raw text, what was replaced in it, and what was replaced in what that made of it."""
    raw = draw(RAW)
    earlier = draw(replacements(raw))
    return raw, earlier, draw(replacements(applied(raw, earlier), stage="llm"))


def undone(text: str, corrections: tuple[Correction, ...]) -> str:
    """The raw text, from the corrected one and the corrections alone."""
    spans = Places(corrections).replaced
    back = [replace(c, start=s, end=e, after=c.before) for c, (s, e) in zip(corrections, spans, strict=True)]
    return applied(text, back)


@given(twice())
def test_one_list_does_what_two_do_one_after_the_other(
    case: tuple[str, tuple[Correction, ...], tuple[Correction, ...]],
) -> None:
    raw, earlier, later = case
    once = composed(raw, earlier, later)
    text = applied(applied(raw, earlier), later)
    assert applied(raw, once) == text
    assert leads_to(raw, once, text)
    assert undone(text, once) == raw
    assert all(a.end <= b.start for a, b in pairwise(once))
    assert all(raw[c.start : c.end] == c.before != c.after for c in once)
    # What neither touched is in no span.
    assert sum(c.end - c.start for c in once) <= sum(c.end - c.start for c in (*earlier, *later))


@given(st.data())
def test_a_span_is_found_in_the_other_text_with_all_that_was_replaced_in_it(data: st.DataObject) -> None:
    raw = data.draw(RAW)
    corrections = data.draw(replacements(raw))
    text, places = applied(raw, corrections), Places(corrections)
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(raw)), st.integers(0, len(raw)))))
    from_, to = places.in_text(start, end)
    assert 0 <= from_ <= to <= len(text)
    touched = [c for c in corrections if c.start < end and start < c.end]
    if not touched:
        assert text[from_:to] == raw[start:end]
    for each in touched:
        at, stop = places.replaced[corrections.index(each)]
        assert from_ <= at <= stop <= to
    back_from, back_to = places.in_raw(from_, to)
    if start < end and all(each.after for each in touched):  # what was taken out has no place to come back from
        assert back_from <= start < end <= back_to


def test_a_later_correction_takes_the_place_of_the_earlier_ones_it_overlaps() -> None:
    raw = "the silver thorn companee rode"
    earlier = (Correction(4, 16, "silver thorn", "Silverthorn", 0.8, "phonetic", "sound"),)
    later = (Correction(4, 24, "Silverthorn companee", "Silverthorn Company", 0.9, "llm", "a company"),)
    assert composed(raw, earlier, later) == (
        Correction(4, 25, "silver thorn companee", "Silverthorn Company", 0.9, "llm", "a company"),
    )


def test_corrections_of_another_text_do_not_lead_to_this_one() -> None:
    raw = "ask grimja now"
    right = Correction(4, 10, "grimja", "Grimjaw", 1.0, "phonetic", "")
    assert leads_to(raw, (right,), "ask Grimjaw now")
    assert leads_to(raw, (), raw)
    assert not leads_to(raw, (), "ask Grimjaw now")
    assert not leads_to(raw, (right,), raw)
    assert not leads_to(raw, (replace(right, before="gremja"),), "ask Grimjaw now")
    assert not leads_to(raw, (right, replace(right, start=2, end=3)), "ask Grimjaw now")
