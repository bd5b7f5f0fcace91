"""Detects that a speaker repeats a misheard name, and finds the wrong form.

These count as a repetition:

- spelling: "E L D R I N A X", "E-L-D-R ..." (if it is the prefix of a single name), "Eldrinax, with an X";
- contrast with the wrong form: "Eldrinax, not elder nacks";
- correction: "No, Eldrinax.", "I mean Eldrinax", "you mean Eldrinax?".

The name must be correct in the raw transcript: one that a correction inserted proves nothing. The wrong form is
searched in the last few utterances: adjacent words that are not a name, were not corrected, sound like the name, and
are odd (in no dictionary, a capital, or the recogniser was unsure). Ordinary words ("elder nacks") must sound nearly
the same. The latest utterance with candidates decides, and in it the most similar words. No candidate, no proof.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from glyphoxa.domain.heard import UNSURE, Utterance
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.vocabulary import Vocabulary
from glyphoxa.language.words import Word, words
from glyphoxa.names.evidence import confidences_of
from glyphoxa.names.gazetteer import Gazetteer, Name
from glyphoxa.names.index import MIN_LENGTH_RATIO, likeness
from glyphoxa.names.naming import looks_like_a_name
from glyphoxa.names.wrong_forms import FormHeard, Witness, as_heard, form_of, objection

_FEWEST_SPELLED = 3
_SEARCHED = 3
"""Previous utterances that may hold a wrong form; they are at most `_WITHIN_MS` old."""
_WITHIN_MS = 60_000
_MIN_LIKENESS = {"odd": 0.58, "ordinary": 0.80}

_LEXICON: Final = lexicon("names")
_BEFORE_A_NAME: Final = _LEXICON.compile(
    r"(?:^|[.!?,;:…-]\s*)(?:{no}(?:[\s,.!-]+{it_is})*|{means})[\s,.:!-]*$", flags=re.IGNORECASE
)
_WITH_A_LETTER: Final = _LEXICON.compile(r"^[\s,.-]*{with_a_letter}", flags=re.IGNORECASE)
_NOT: Final = _LEXICON.compile(r"[\s,.;-]*{not}\s+", flags=re.IGNORECASE)
_LETTER_GAP = re.compile(r"[\s.,\-–·]{1,4}")


@dataclass(frozen=True, slots=True)
class _Again:
    """A repeated name. `instead` is the position of the contrasted words, if any."""

    name: Name
    by: Witness
    why: str
    start: int
    end: int
    instead: tuple[int, int] | None = None


@dataclass
class SpelledOut:
    """Processes all utterances of one table."""

    _lately: deque[Utterance] = field(default_factory=lambda: deque(maxlen=_SEARCHED))

    def heard(self, said: Utterance, names: Gazetteer) -> list[FormHeard]:
        """Process a player's utterance, in order; return what it proves about earlier ones."""
        if said.npc_id is not None:
            return []  # typed words are not misheard
        while self._lately and said.at_ms - self._lately[0].at_ms > _WITHIN_MS:
            self._lately.popleft()
        proofs = [proof for again in _said_again(said.raw_text, names) if (proof := self._proof(again, said, names))]
        self._lately.append(said)
        return proofs

    def _proof(self, again: _Again, said: Utterance, names: Gazetteer) -> FormHeard | None:
        places = [(said, again.instead)] if again.instead is not None else [(said, (0, again.start))]
        if again.instead is None:
            places += [(earlier, (0, len(earlier.raw_text))) for earlier in reversed(self._lately)]
        for where, (start, end) in places:
            best = max(_alike(where, start, end, again, names), default=None)
            if best is not None:
                return FormHeard(*form_of(best[1]), again.name.entity_id, "proved", again.by, again.why, where.id)
        return None


def _said_again(raw: str, names: Gazetteer) -> Iterator[_Again]:
    spoken = words(raw)
    yield from _spelled_by_letters(raw, spoken, names)
    for mention in names.mentions_in(spoken):
        name, start, end = mention.name, mention.start, mention.end
        if name.is_ordinary and len(name.words) == 1:
            continue  # "No, hope is all we have."
        if denied := _NOT.match(raw, end):
            clause = re.search(r"[.!?,;]|$", raw[denied.end() :])
            stop = denied.end() + (clause.start() if clause else 0)
            yield _Again(name, "spelled", "contrasted with it", start, end, (denied.end(), stop))
        elif _WITH_A_LETTER.search(raw[end:]):
            yield _Again(name, "spelled", "spelled out", start, end)
        elif _BEFORE_A_NAME.search(raw[:start]) and re.match(r"\s*(?:[.!?,;…-]|$)", raw[end:]):
            yield _Again(name, "said", "said again", start, end)


def _spelled_by_letters(raw: str, spoken: Sequence[Word], names: Gazetteer) -> Iterator[_Again]:
    at = 0
    while at < len(spoken):
        last, letters = at, ""
        while last < len(spoken) and _is_letter(spoken[last], raw, spoken[last - 1] if last > at else None):
            letters += spoken[last].folded
            last += 1
        if len(letters) >= _FEWEST_SPELLED and (name := _begun_by(letters, names)) is not None:
            yield _Again(name, "spelled", "spelled out", spoken[at].start, spoken[last - 1].end)
        at = max(last, at + 1)


def _is_letter(word: Word, raw: str, before: Word | None) -> bool:
    if len(word.folded) != 1 or not word.folded.isalpha() or word.tail:
        return False
    return before is None or _LETTER_GAP.fullmatch(raw[before.end : word.start]) is not None


def _begun_by(letters: str, names: Gazetteer) -> Name | None:
    """The name that these letters spell, or the only one that begins with them."""
    whole = names.by_joined.get(letters)
    if whole is not None and whole.kind != "learned":
        return whole
    begun = [name for name in names.names if name.kind != "learned" and name.joined.startswith(letters)]
    entities = {name.entity_id for name in begun}
    return begun[0] if len(entities) == 1 else None


def _alike(where: Utterance, start: int, end: int, again: _Again, names: Gazetteer) -> Iterator[tuple[float, str]]:
    """Runs of words in this part of the raw text that may be the misheard name, with their likeness, 0 to 1."""
    raw, wanted = where.raw_text, again.name
    inside = [word for word in words(raw) if word.start >= start and word.end <= end]
    confidences = dict(zip(inside, confidences_of(inside, where.words), strict=True))
    explained = [(c.start, c.end) for c in where.corrections if c.after]
    explained += [(mention.start, mention.end) for mention in names.mentions(raw)]
    for first in range(len(inside)):
        joined = ""
        for last in range(first, min(first + names.widest, len(inside))):
            word = inside[last]
            if last > first and not word.joins:
                break
            joined += word.folded
            if any(word.start < stop and begin < word.end for begin, stop in explained):
                break
            window = inside[first : last + 1]
            if not _fits(window, joined, wanted, names):
                continue
            alike = likeness(joined, names.sounder(joined), wanted)
            is_odd = any(_is_odd(word, confidences[word], names.vocabulary) for word in window)
            if alike < _MIN_LIKENESS["odd" if is_odd else "ordinary"]:
                continue
            heard = as_heard(raw[window[0].start : window[-1].end])
            if objection(heard, wanted.entity_id, names) is None:
                yield alike, heard


def _fits(window: Sequence[Word], joined: str, wanted: Name, names: Gazetteer) -> bool:
    if min(len(joined), len(wanted.joined)) < MIN_LENGTH_RATIO * max(len(joined), len(wanted.joined)):
        return False
    stop = names.vocabulary.stop
    edges = ((window[0].folded, wanted.words[0]), (window[-1].folded, wanted.words[-1]))
    return all(word not in stop or word == edge for word, edge in edges)


def _is_odd(word: Word, confidence: float | None, vocabulary: Vocabulary) -> bool:
    is_doubted = confidence is not None and confidence < UNSURE
    return word.folded not in vocabulary.stop and (is_doubted or looks_like_a_name(word, vocabulary))
