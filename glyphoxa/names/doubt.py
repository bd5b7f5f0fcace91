"""Which words of a transcript may be a misheard name, and so are worth a second look.

Where a recogniser tells how sure it was of a word, those it was unsure of and that no earlier stage has put right
are doubtful. Where it tells nothing, everything that looks like a name and is none that is known: in no
dictionary, or with a capital letter within a sentence. Nothing doubtful: nobody need be asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from glyphoxa.domain.heard import UNSURE, Correction, HeardWord
from glyphoxa.language.words import Places, Word, words
from glyphoxa.names.gazetteer import Gazetteer

_WITHIN_NAMES = frozenset(("de", "der", "la", "of", "the", "van", "von"))
"""What stands between the capitals of one name: "Tower of Wispers"."""


@dataclass(frozen=True, slots=True)
class Span:
    """Adjacent doubtful words: places in the text, possessive ending of the last one included."""

    start: int
    end: int


def doubtful_spans(
    text: str,
    *,
    gazetteer: Gazetteer,
    corrections: Sequence[Correction] = (),
    heard: Sequence[HeardWord] = (),
    low_confidence: float = UNSURE,
) -> tuple[Span, ...]:
    """The doubtful spans of a transcript, in order, without overlap. Words too common for a name are none alone.

    Args:
        corrections: What led from the raw text to `text`; their spans are places in the raw text, in order.
        heard: What the recogniser knows of the words of the raw text.
    """
    spoken = words(text)
    places = Places(corrections)
    settled = _settled(text, spoken, places, gazetteer)
    confidences = _confidences(spoken, places, heard)
    if any(confidence is not None for confidence in confidences):
        is_doubtful = [known is not None and known < low_confidence for known in confidences]
        bridges = [False] * len(spoken)
    else:
        is_doubtful = [_looks_like_a_name(word, gazetteer) for word in spoken]
        bridges = [word.folded in _WITHIN_NAMES for word in spoken]
    for at in settled:
        is_doubtful[at] = bridges[at] = False
    return tuple(
        Span(spoken[first].start, spoken[last].end)
        for first, last in _runs(spoken, is_doubtful, bridges)
        if any(word.folded not in gazetteer.vocabulary.stop for word in spoken[first : last + 1])
    )


def _looks_like_a_name(word: Word, gazetteer: Gazetteer) -> bool:
    vocabulary = gazetteer.vocabulary
    if len(word.folded) < 2 or word.folded in vocabulary.stop or word.folded.isdigit():
        return False
    if word.is_capital and not word.opens:
        return True
    is_odd = vocabulary.is_known and not vocabulary.is_ordinary(word.folded) and not vocabulary.is_ordinary(word.full)
    return is_odd and "'" not in word.text and "’" not in word.text


def _settled(text: str, spoken: Sequence[Word], places: Places, gazetteer: Gazetteer) -> set[int]:
    """Indices of words that an earlier stage has put right, or that spell a name no dictionary word could be."""
    found: set[int] = set()
    for start, end in places.replaced:
        found.update(at for at, word in enumerate(spoken) if word.start < end and start < word.end)
    for mention in gazetteer.mentions(text):
        if not mention.name.is_ordinary or any(spoken[at].is_capital for at in range(mention.first, mention.last + 1)):
            found.update(range(mention.first, mention.last + 1))
    return found


def _confidences(spoken: Sequence[Word], places: Places, heard: Sequence[HeardWord]) -> list[float | None]:
    """The least confidence of what each word was heard as; None where nothing is known."""
    known = [(each.start, each.end, each.confidence) for each in heard if each.confidence is not None]
    if not known:
        return [None] * len(spoken)
    confidences: list[float | None] = []
    for word in spoken:
        start, end = places.in_raw(word.start, word.end)
        confidences.append(min((sure for from_, to, sure in known if from_ < end and start < to), default=None))
    return confidences


def _runs(spoken: Sequence[Word], is_doubtful: Sequence[bool], bridges: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """First and last index of each run of doubtful words; up to two words that may stand within a name join runs."""
    first = last = -1
    for at, word in enumerate(spoken):
        if first >= 0 and not (word.joins and (is_doubtful[at] or (bridges[at] and at - last <= 2))):
            yield first, last
            first = -1
        if is_doubtful[at]:
            first, last = (at if first < 0 else first), at
    if first >= 0:
        yield first, last
