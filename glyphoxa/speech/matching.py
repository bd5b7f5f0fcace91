"""Whether some adjacent words are a name that was misheard, and how sure that is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler, Levenshtein

from glyphoxa.speech.gazetteer import Gazetteer, Name
from glyphoxa.speech.scheduling import Match, best_without_overlap
from glyphoxa.speech.words import Word

_SHORTEST = 4
_LEAST_LENGTH_RATIO = 0.6
_MOST_CANDIDATES = 6
_REMEMBERED = 8192
_LEAST_OF_A_PART = 0.6
_DERIVED = frozenset(("ed", "d", "ing", "er", "ers", "s", "es", "ian", "ians", "ish", "ly", "like", "an"))
_KINDS_OF_THINGS = frozenset(
    ("class", "concept", "creature", "item", "language", "monster", "people", "species", "spell")
)
"""Types whose names are common nouns too: a small letter ("a duergar") is no mistake."""

# First sounds that recognisers exchange, as groups of Double Metaphone letters or of Kölner digits.
_SOUND_GROUPS = ("PF", "TSXJ0", "MN", "LR", "K", "A", "123", "48", "57", "6")

Suspicion = Literal["odd", "capital", "ordinary", "edge"]
"""Why words may be a name: in no dictionary; written large within a sentence; not at all; one is odd, but a
stop word stands at the edge ("More Wenna")."""


@dataclass(frozen=True, slots=True)
class _Traits:
    """What the vocabulary says of a word. `is_fixed`: it is part of a name that is spelled right."""

    is_stop: bool
    is_odd: bool
    is_capital: bool
    is_fixed: bool


@dataclass(frozen=True, slots=True)
class _Likeness:
    """How alike two spellings are, each figure 0 to 1.

    Attributes:
        spelling: Jaro-Winkler.
        edits: Levenshtein.
        sound: Levenshtein of the most alike codes; None where one of them has no code.
    """

    spelling: float
    edits: float
    sound: float | None

    @classmethod
    def of(cls, one: str, its_codes: tuple[str, ...], other: str, other_codes: tuple[str, ...]) -> _Likeness:
        pairs = [(left, right) for left in its_codes for right in other_codes]
        return cls(
            JaroWinkler.similarity(one, other),
            Levenshtein.normalized_similarity(one, other),
            max(Levenshtein.normalized_similarity(*pair) for pair in pairs) if pairs else None,
        )

    @property
    def is_alike(self) -> bool:
        """They sound alike as a whole; a common beginning does not do ("Kraghammer", "Kragmoor")."""
        return self.sound is not None and (self.sound > 0.95 or (self.sound >= 0.5 and self.edits > 0.5))

    @property
    def evidence(self) -> float:
        if self.sound is None:
            return (self.spelling + self.edits) / 2
        return 0.3 * self.spelling + 0.3 * self.edits + 0.4 * self.sound


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Names that begin with related sounds, shorter ones first."""

    lengths: list[int] = field(default_factory=list)
    spellings: list[str] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)

    def add(self, name: Name) -> None:
        self.lengths.append(len(name.joined))
        self.spellings.append(name.joined)
        self.names.append(name)

    def near(self, heard: str, least: float) -> Iterator[Name]:
        """The names most alike by Jaro-Winkler, of a length that is not too different."""
        low = bisect_left(self.lengths, len(heard) * _LEAST_LENGTH_RATIO)
        high = bisect_right(self.lengths, len(heard) / _LEAST_LENGTH_RATIO)
        near = process.extract(
            heard,
            self.spellings[low:high],
            scorer=JaroWinkler.similarity,
            score_cutoff=least,
            limit=_MOST_CANDIDATES,
        )
        return (self.names[low + at] for _, _, at in near)


class Matcher:
    """Finds names in words. Read-only once built, but for a memory of scores, which never changes an answer.

    Args:
        phonetic_threshold: Least Jaro-Winkler similarity of a window and a name that sound alike.
        fuzzy_threshold: The same where they do not.
    """

    def __init__(self, gazetteer: Gazetteer, phonetic_threshold: float, fuzzy_threshold: float) -> None:
        self._gazetteer = gazetteer
        self._phonetic_threshold = phonetic_threshold
        self._fuzzy_threshold = fuzzy_threshold
        wanted = [name for name in gazetteer.names if name.kind != "learned" and len(name.joined) >= _SHORTEST]
        self._longest_heard = int(max((len(name.joined) for name in wanted), default=0) / _LEAST_LENGTH_RATIO)
        # Windows do not begin or end with a stop word, unless a name does ("The Gilded Eel").
        self._first_words = frozenset(name.words[0] for name in wanted)
        self._last_words = frozenset(name.words[-1] for name in wanted)
        self._buckets: dict[str, _Bucket] = {}
        for name in sorted(wanted, key=lambda name: len(name.joined)):
            for key in self._bucket_keys(name.joined, name.codes):
                self._buckets.setdefault(key, _Bucket()).add(name)
        # A partial transcript repeats the words of the one before it: their scores are remembered.
        self._scored = lru_cache(_REMEMBERED)(self._score)

    def choose(self, spoken: Sequence[Word]) -> list[Match]:
        """The best set of matches, in order, without overlap."""
        exact = list(self._exact(spoken))
        fixed = {at for match in exact if not match.name.is_ordinary for at in range(match.first, match.last + 1)}
        traits = [self._traits(word, at in fixed) for at, word in enumerate(spoken)]
        return best_without_overlap([*exact, *self._alike(spoken, traits)])

    def _exact(self, spoken: Sequence[Word]) -> Iterator[Match]:
        for first in range(len(spoken)):
            for last, name in self._gazetteer.spelled_from(spoken, first):
                window = spoken[first : last + 1]
                suffix, weight = _suffix(window, name), _weight(1.0, name)
                if name.kind == "learned":
                    yield Match(first, last, name, suffix, 1.0, weight, "learned", "confirmed before")
                else:
                    keeps = not self._may_respell(window, name)
                    yield Match(first, last, name, suffix, 1.0, weight, reason="spelling", keeps=keeps)

    def _may_respell(self, window: Sequence[Word], name: Name) -> bool:
        """Whether other case or spaces than the name's are a mistake, and not just other words."""
        if name.is_ordinary or len(name.joined) < 3:
            return False
        vocabulary = self._gazetteer.vocabulary
        if name.entity_type in _KINDS_OF_THINGS and _folded_case(window) == name.text.casefold():
            return False
        if len(window) == len(name.words):
            return vocabulary.is_known or window[0].is_capital or len(window) > 1
        if any(word.folded in vocabulary.stop for word in window):
            return any(not vocabulary.is_ordinary(word.folded) for word in window)
        return len(name.joined) >= 6

    def _alike(self, spoken: Sequence[Word], traits: Sequence[_Traits]) -> Iterator[Match]:
        for first in range(len(spoken)):
            is_edge_stop = traits[first].is_stop and spoken[first].folded not in self._first_words
            stem = ""
            for last in range(first, min(first + self._gazetteer.widest, len(spoken))):
                word = spoken[last]
                if last > first and not word.joins:
                    break
                joined = stem + word.folded
                if len(joined) > self._longest_heard:
                    break
                stem += word.full
                if len(joined) < _SHORTEST:
                    continue
                is_loose = is_edge_stop or (traits[last].is_stop and word.folded not in self._last_words)
                match = self._match(spoken, traits, first, last, joined, is_loose=is_loose)
                if match is not None:
                    yield match

    def _match(
        self,
        spoken: Sequence[Word],
        traits: Sequence[_Traits],
        first: int,
        last: int,
        joined: str,
        *,
        is_loose: bool,
    ) -> Match | None:
        inside = traits[first : last + 1]
        suspicion = _suspicion(inside)
        if suspicion is None:
            return None
        if is_loose:
            if suspicion != "odd":
                return None
            suspicion = "edge"
        window = spoken[first : last + 1]
        best: Match | None = None
        for heard, suffix in _endings(joined, window[-1]):
            for name, score in self._scored(heard, suspicion, is_single=first == last):
                if best is not None and score <= best.score:
                    continue
                if self._is_plausible(window, inside, heard, name):
                    best = Match(
                        first, last, name, suffix, score, _weight(score, name), reason=f"sounds like it ({suspicion})"
                    )
        return best

    def _score(self, heard: str, suspicion: Suspicion, *, is_single: bool) -> tuple[tuple[Name, float], ...]:
        """The names that this may be, each with its evidence."""
        codes = self._gazetteer.coder(heard) if self._gazetteer.coder else ()
        found: list[tuple[Name, float]] = []
        for name in self._candidates(heard, codes, only_same_sound=suspicion in ("ordinary", "edge")):
            likeness = _Likeness.of(heard, codes, name.joined, name.codes)
            spelling = self._phonetic_threshold if likeness.is_alike else self._fuzzy_threshold
            score = likeness.evidence
            if likeness.spelling >= spelling and score >= self._least(suspicion, name, is_single=is_single):
                found.append((name, score))
        return tuple(found)

    def _candidates(self, heard: str, codes: tuple[str, ...], *, only_same_sound: bool) -> list[Name]:
        by_code = self._gazetteer.by_code
        found = {name.joined: name for code in codes for name in by_code.get(code, ())}
        if not only_same_sound:
            for key in self._bucket_keys(heard, codes):
                bucket = self._buckets.get(key)
                if bucket is not None:
                    found.update((name.joined, name) for name in bucket.near(heard, self._phonetic_threshold))
        return list(found.values())

    def _least(self, suspicion: Suspicion, name: Name, *, is_single: bool) -> float:
        if suspicion == "capital" and is_single:
            least = 0.90  # "Mark" is somebody, not Marek
        else:
            least = {"odd": 0.72, "capital": 0.80, "ordinary": 0.93, "edge": 0.90}[suspicion]
            if suspicion == "ordinary" and len(name.words) == 1 and len(name.codes[0]) >= 5:
                least = 0.76  # so long a sound does not come about by chance in two ordinary words
        if name.is_ordinary:
            least += 0.08
        if len(name.joined) < 6:
            least += 0.06
        if not self._gazetteer.vocabulary.is_known:
            least += 0.10
        return least

    def _is_plausible(self, window: Sequence[Word], inside: Sequence[_Traits], heard: str, name: Name) -> bool:
        if min(len(heard), len(name.joined)) < _LEAST_LENGTH_RATIO * max(len(heard), len(name.joined)):
            return False
        if len(window) == 1 and _is_derived(heard, name.joined):
            return False
        if len(window) > 1 and len(name.words) > 1 and not self._differs_alike(window, name):
            return False
        return all(not word.is_fixed or window[at].folded in name.words for at, word in enumerate(inside))

    def _traits(self, word: Word, is_fixed: bool) -> _Traits:
        vocabulary = self._gazetteer.vocabulary
        is_stop = word.folded in vocabulary.stop or word.full in vocabulary.stop
        is_odd = (
            not is_stop
            and len(word.folded) > 1
            and (vocabulary.is_known or word.is_capital)
            and not vocabulary.is_proper(word.folded)
            and not vocabulary.is_ordinary(word.folded)
            and not vocabulary.is_ordinary(word.full)
        )
        is_capital = not is_stop and (
            vocabulary.is_proper(word.folded) or (word.is_capital and not word.opens and len(word.folded) > 1)
        )
        return _Traits(
            is_stop=is_stop, is_odd=is_odd and not is_fixed, is_capital=is_capital and not is_fixed, is_fixed=is_fixed
        )

    def _differs_alike(self, window: Sequence[Word], name: Name) -> bool:
        """Where a name and a window share words ("Tower of"), the rest alone must be alike."""
        heard, wanted = [word.folded for word in window], list(name.words)
        while heard and wanted and heard[0] == wanted[0]:
            del heard[0], wanted[0]
        while heard and wanted and heard[-1] == wanted[-1]:
            del heard[-1], wanted[-1]
        if len(heard) == len(wanted):
            pairs = list(zip(heard, wanted, strict=True))
        elif len(heard) < len(window):
            pairs = [("".join(heard), "".join(wanted))]
        else:
            return True  # nothing in common word by word: the whole was compared already
        coder = self._gazetteer.coder
        for one, other in pairs:
            codes = (coder(one), coder(other)) if coder else ((), ())
            if _Likeness.of(one, codes[0], other, codes[1]).evidence < _LEAST_OF_A_PART:
                return False
        return True

    @staticmethod
    def _bucket_keys(joined: str, codes: tuple[str, ...]) -> set[str]:
        firsts = {code[0] for code in codes} or {joined[0]}
        return {next((group for group in _SOUND_GROUPS if first in group), first) for first in firsts}


def _suspicion(inside: Sequence[_Traits]) -> Suspicion | None:
    """Why these words may be a name; None if there is no reason to look."""
    if any(word.is_odd for word in inside):
        return "odd"
    if any(word.is_capital for word in inside):
        return "capital"
    if len(inside) == 1 or any(word.is_stop for word in inside) or all(word.is_fixed for word in inside):
        return None
    return "ordinary"


def _is_derived(heard: str, name: str) -> bool:
    """Whether it is a form of the name ("polymorphed"), and not another way to hear it."""
    return heard.startswith(name) and heard.removeprefix(name) in _DERIVED


def _folded_case(window: Sequence[Word]) -> str:
    return " ".join(word.text + word.tail for word in window).casefold()


def _endings(joined: str, last: Word) -> Iterator[tuple[str, str]]:
    """What to compare, and what to put behind the name: as it is, and as a plural."""
    yield joined, last.tail
    if joined.endswith("s") and not last.tail and len(joined) > _SHORTEST:
        yield joined[:-1], "s"


def _suffix(window: Sequence[Word], name: Name) -> str:
    """The possessive or plural ending of words that spell a name."""
    stem = "".join(word.full for word in window[:-1])
    last = window[-1]
    if stem + last.full == name.joined:
        return ""
    return last.tail or ("s" if stem + last.folded != name.joined else "")


def _weight(score: float, name: Name) -> float:
    # Evidence above what chance gives, by letters explained: a long name, rather than a short one inside it.
    return (score - 0.55) * len(name.joined)
