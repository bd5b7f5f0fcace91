"""Which words of a transcript are a name that was misheard."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.utterance import HeardWord
from glyphoxa.speech.evidence import Likeness, Look, Standing, Window, best_possible, log_odds_of, probability
from glyphoxa.speech.gazetteer import Gazetteer, Name
from glyphoxa.speech.scheduling import Match, best_without_overlap
from glyphoxa.speech.words import Word

_SHORTEST = 4
_LEAST_LENGTH_RATIO = 0.6
_LEAST_OVERALL = 0.45
_NEXT_OVERALL = 0.6
"""Of the next name when none was worth looking at."""
_LEAST_OF_A_PART = 0.45
_BEST_POSSIBLE = best_possible()
_SPELLED = 8.0
"""Log-odds of words that spell a name."""
_MOST_CANDIDATES = 6
_SHARED = ((13.0, 0.45), (11.0, 0.3), (-math.inf, 0.15))
"""How much of what was heard a name must share (`glyphoxa.speech.name_index`), by the log-odds it is to bring. Names
with less never had enough, on the spoken names."""
_REMEMBERED = 8192
_ORDINARY = 60
"""Larger dictionaries list words that nobody says."""
_DOUBTED = 0.5
_DERIVED = frozenset(("ed", "d", "ing", "er", "ers", "s", "es", "ian", "ians", "ish", "ly", "like", "an"))
_KINDS_OF_THINGS = frozenset(
    ("class", "concept", "creature", "item", "language", "monster", "people", "species", "spell")
)
"""Types whose names are common nouns too: a small letter ("a duergar") is no mistake."""


class _Traits(NamedTuple):
    """What is known of a word.

    Attributes:
        is_doubted: The recogniser was not sure of it.
        is_fixed: It is part of a name that is spelled right.
        begins: More than a space stands before it.
        rarity: See `Vocabulary.rarity`.
        confidence: The recogniser's; None when it tells none.
    """

    is_stop: bool
    is_odd: bool
    is_capital: bool
    is_doubted: bool
    is_fixed: bool
    begins: bool
    rarity: int
    confidence: float | None


class Matcher:
    """Finds names in words. Read-only once built, but for a memory of likenesses, which never changes an answer.

    Args:
        caution: Log-odds that are asked for beyond an even chance; above 0 fewer names are put right, and fewer words
            damaged.
    """

    def __init__(self, gazetteer: Gazetteer, *, caution: float = 0.0) -> None:
        self._gazetteer = gazetteer
        self._caution = caution
        self._longest_heard = int(gazetteer.longest / _LEAST_LENGTH_RATIO)
        # A partial transcript repeats the words of the one before it: their likenesses are remembered.
        self._similar = lru_cache(_REMEMBERED)(self._search)
        self._known_of = lru_cache(_REMEMBERED)(self._know)

    def choose(
        self, spoken: Sequence[Word], heard: Sequence[HeardWord] = (), nearby: Container[EntityId] = frozenset()
    ) -> list[Match]:
        """The best set of matches, in order, without overlap."""
        exact = list(self._exact(spoken))
        # A surname that stands there by chance ("Vash Curry") may be part of another name ("Vashkari").
        fixed = {
            at
            for match in exact
            if match.name.kind in ("name", "alias") and _is_certain(spoken[match.first : match.last + 1], match.name)
            for at in range(match.first, match.last + 1)
        }
        confidences = _confidences(spoken, heard)
        traits = [
            self._traits(word, confidence, at in fixed)
            for at, (word, confidence) in enumerate(zip(spoken, confidences, strict=True))
        ]
        search = _Search(spoken, traits, nearby)
        meant = [match for match in exact if match.stage != "learned" or self._is_meant(match, search)]
        return best_without_overlap([*meant, *self._alike(search)])

    def _is_meant(self, match: Match, search: _Search) -> bool:
        """Whether words that were once heard for a name stand for it here. A common word needs a sign of that."""
        if not match.name.is_ordinary or match.name.entity_id in search.nearby:
            return True
        inside = search.traits[match.first : match.last + 1]
        if sum(not word.is_stop for word in inside) > 1:
            return True
        window = search.window(match.first, match.last)
        return window is not None and (
            window.standing is not Standing.WITHIN or window.look is not Look.ORDINARY or window.is_doubted
        )

    def _exact(self, spoken: Sequence[Word]) -> Iterator[Match]:
        for first in range(len(spoken)):
            for last, name in self._gazetteer.spelled_from(spoken, first):
                window = spoken[first : last + 1]
                suffix, weight = _suffix(window, name), _weight(_SPELLED, name)
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

    def _alike(self, search: _Search) -> Iterator[Match]:
        for first, last, joined in self._worth_a_look(search):
            match = self._match(search, first, last, joined)
            if match is not None:
                yield match

    def _worth_a_look(self, search: _Search) -> Iterator[tuple[int, int, str]]:
        """The windows that may be a name, as first word, last word and letters.

        Most windows of a sentence are ordinary words within it: nearly all of the time goes into passing them over.
        """
        spoken, traits = search.spoken, search.traits
        n, widest, longest = len(spoken), self._gazetteer.widest, self._longest_heard
        begins = [its.begins for its in traits] + [True]
        stops = [its.is_stop for its in traits]
        loud_from = _next_of([its.is_odd or its.is_capital or its.is_doubted for its in traits])
        doubted_from = _next_of([its.is_doubted for its in traits])
        stop_from = _next_of(stops)
        for first in range(n):
            starts_clause, next_loud, next_stop = begins[first], loud_from[first], stop_from[first]
            end = min(first + widest, n)
            if not starts_clause and next_loud >= end and (stops[first] or next_stop == first + 1):
                continue
            next_doubted = doubted_from[first]
            stem = ""
            for last in range(first, end):
                if last > first and not spoken[last].joins:
                    break
                word = spoken[last]
                joined = stem + word.folded
                if len(joined) > longest:
                    break
                stem += word.full
                if len(joined) < _SHORTEST:
                    continue
                if (starts_clause and begins[last + 1]) or next_doubted <= last:
                    yield first, last, joined
                    continue
                is_loud, holds_stop_word = next_loud <= last, next_stop <= last
                if is_loud and not holds_stop_word:
                    yield first, last, joined
                    continue
                if (is_loud or (last > first and not holds_stop_word)) and self._sounds_like_a_name(joined):
                    yield first, last, joined

    def _match(self, search: _Search, first: int, last: int, joined: str) -> Match | None:
        window = search.window(first, last)
        if window is None or (window.only_same_sound and first == last):
            return None
        odds = window.log_odds(n_names=len(self._gazetteer.names)) - self._caution
        if odds + _BEST_POSSIBLE <= 0:
            return None
        least_shared = next(shared for needed, shared in _SHARED if -odds >= needed)
        best: Match | None = None
        for heard, suffix in _endings(joined, search.spoken[last]):
            for like in self._similar(heard, only_same_sound=window.only_same_sound, least_shared=least_shared):
                name = like.name
                its = odds + like.log_odds
                if its <= 0 and name.entity_id not in search.nearby:
                    continue
                its += log_odds_of(name, n_words=window.n_words, is_nearby=name.entity_id in search.nearby)
                if its <= 0 or (best is not None and probability(its) <= best.score):
                    continue
                if self._is_plausible(search, first, last, heard, name):
                    reason = f"like {name.text!r}, learned" if name.kind == "learned" else window.look.value
                    weight = _weight(its, name)
                    best = Match(first, last, name, suffix, probability(its), weight, reason=reason)
        return best

    def _sounds_like_a_name(self, heard: str) -> bool:
        by_code, coder = self._gazetteer.by_code, self._gazetteer.coder
        if coder is None:
            return False
        if any(code in by_code for code in coder(heard)):
            return True
        return heard.endswith("s") and any(code in by_code for code in coder(heard[:-1]))

    def _search(self, heard: str, *, only_same_sound: bool, least_shared: float) -> tuple[_Like, ...]:
        """The names that are most like it."""
        gazetteer = self._gazetteer
        codes = gazetteer.coder(heard) if gazetteer.coder else ()
        candidates: Sequence[Name] = (
            gazetteer.same_sound(codes)
            if only_same_sound
            else gazetteer.alike(heard, codes, limit=_MOST_CANDIDATES, least_shared=least_shared)
        )
        if not candidates:
            return ()
        sound = gazetteer.sounder(heard)
        likenesses = [
            (Likeness.of(heard, sound, codes, name.joined, name.sound, name.codes), name) for name in candidates
        ]
        return tuple(
            _Like(name, likeness.log_odds(margin=_margin(likeness, name, likenesses)))
            for likeness, name in likenesses
            if likeness.overall >= _LEAST_OVERALL
        )

    def _is_plausible(self, search: _Search, first: int, last: int, heard: str, name: Name) -> bool:
        if min(len(heard), len(name.joined)) < _LEAST_LENGTH_RATIO * max(len(heard), len(name.joined)):
            return False
        if first == last and _is_derived(heard, name.joined):
            return False
        window = search.spoken[first : last + 1]
        if len(window) < len(name.words) and all(word.folded in name.words for word in window):
            return False  # part of the name, and spelled right
        if len(window) > 1 and len(name.words) > 1 and not self._differs_alike(window, name):
            return False
        inside = search.traits[first : last + 1]
        return all(not word.is_fixed or window[at].folded in name.words for at, word in enumerate(inside))

    def _traits(self, word: Word, confidence: float | None, is_fixed: bool) -> _Traits:
        rarity, is_proper, is_odd = self._known_of(word.folded, word.full)
        is_capital = word.is_capital and len(word.folded) > 1
        is_free = not is_fixed and rarity > 0
        return _Traits(
            is_stop=rarity == 0,
            is_odd=is_free and is_odd and (is_capital or self._gazetteer.vocabulary.is_known),
            # "little" is a name too, but only in capitals.
            is_capital=is_free and ((is_proper and rarity > _ORDINARY) or (is_capital and not word.opens)),
            is_doubted=not is_fixed and confidence is not None and confidence < _DOUBTED,
            is_fixed=is_fixed,
            begins=not word.joins,
            rarity=rarity,
            confidence=confidence,
        )

    def _know(self, folded: str, full: str) -> tuple[int, bool, bool]:
        """Its rarity, whether it is a name that a dictionary lists, and whether no dictionary does."""
        vocabulary = self._gazetteer.vocabulary
        rarity = (
            min(vocabulary.rarity(folded), vocabulary.rarity(full)) if full != folded else vocabulary.rarity(folded)
        )
        is_proper = vocabulary.is_proper(folded)
        return rarity, is_proper, rarity > _ORDINARY and not is_proper and len(folded) > 1

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
        gazetteer = self._gazetteer
        sound = gazetteer.sounder
        return all(
            Likeness.of(one, sound(one), (), other, sound(other), ()).overall >= _LEAST_OF_A_PART
            for one, other in pairs
        )


@dataclass(frozen=True, slots=True)
class _Like:
    """A name, and what its likeness to what was heard speaks for it."""

    name: Name
    log_odds: float


@dataclass(frozen=True, slots=True)
class _Search:
    """The words of one transcript, and what is known of them."""

    spoken: Sequence[Word]
    traits: Sequence[_Traits]
    nearby: Container[EntityId]

    def window(self, first: int, last: int) -> Window | None:
        """None for words that are nobody's name, however they sound."""
        inside = self.traits[first : last + 1]
        if any(word.is_odd for word in inside):
            look = Look.ODD
        elif any(word.is_capital for word in inside):
            look = Look.CAPITAL
        elif all(word.is_fixed or word.is_stop for word in inside):
            return None
        else:
            look = Look.ORDINARY
        return Window(
            self._standing(first, last),
            look,
            n_words=last - first + 1,
            starts_or_ends_with_stop_word=inside[0].is_stop or inside[-1].is_stop,
            stop_words=sum(word.is_stop for word in inside),
            rarity=min(word.rarity for word in inside),
            confidence=self.confidence(first, last),
        )

    def confidence(self, first: int, last: int) -> float | None:
        """The recogniser's, a mean over the letters; None where it tells nothing."""
        if first == last:
            return self.traits[first].confidence
        told = [
            (len(word.folded), its.confidence)
            for word, its in zip(self.spoken[first : last + 1], self.traits[first : last + 1], strict=True)
            if its.confidence is not None
        ]
        return sum(letters * confidence for letters, confidence in told) / sum(n for n, _ in told) if told else None

    def _standing(self, first: int, last: int) -> Standing:
        spoken, after = self.spoken, last + 1
        if spoken[first].opens and (after == len(spoken) or spoken[after].opens):
            return Standing.ALONE
        is_set_off = self.traits[first].begins and (after == len(spoken) or self.traits[after].begins)
        return Standing.SET_OFF if is_set_off else Standing.WITHIN


def _confidences(spoken: Sequence[Word], heard: Sequence[HeardWord]) -> list[float | None]:
    """Of each spoken word, the recogniser's in the least certain piece of it. Both in the order of the text."""
    if not heard:
        return [None] * len(spoken)
    found: list[float | None] = []
    at = 0
    for word in spoken:
        while at < len(heard) and heard[at].end <= word.start:
            at += 1
        told: list[float] = []
        piece = at
        while piece < len(heard) and heard[piece].start < word.end:
            confidence = heard[piece].confidence
            if confidence is not None:
                told.append(confidence)
            piece += 1
        found.append(min(told, default=None))
    return found


def _next_of(marked: Sequence[bool]) -> list[int]:
    """For each place, the first marked one from there on; the number of places where there is none."""
    n = len(marked)
    following = [n] * n
    found = n
    for at in range(n - 1, -1, -1):
        if marked[at]:
            found = at
        following[at] = found
    return following


def _margin(likeness: Likeness, name: Name, others: Sequence[tuple[Likeness, Name]]) -> float:
    """How much less alike the next name is; below 0 when it is more alike."""
    overall = likeness.overall
    return min(
        (overall - other.overall for other, its in others if its.entity_id != name.entity_id),
        default=overall - _NEXT_OVERALL,
    )


def _is_certain(window: Sequence[Word], name: Name) -> bool:
    """Whether words that spell a name are meant as it: ordinary words are when they are written so."""
    if not name.is_ordinary:
        return True
    return (len(window) > 1 or not window[0].opens) and name.text.startswith(" ".join(word.text for word in window))


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


def _weight(log_odds: float, name: Name) -> float:
    # By letters explained: a long name, rather than a short one inside it.
    return (log_odds + 1) * len(name.joined)
