"""Which words of a transcript are a name that was misheard."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.utterance import HeardWord
from glyphoxa.speech.evidence import Kind, Likeness, Standing, Suspicion, least_likeness
from glyphoxa.speech.gazetteer import Gazetteer, Name
from glyphoxa.speech.scheduling import Match, best_without_overlap
from glyphoxa.speech.words import Word

_SHORTEST = 4
_LEAST_LENGTH_RATIO = 0.6
_LEAST_OF_ALL = 0.5
_LEAST_OF_A_PART = 0.5
_TOO_CLOSE = 0.02
_MOST_CANDIDATES = 6
_REMEMBERED = 8192
_DERIVED = frozenset(("ed", "d", "ing", "er", "ers", "s", "es", "ian", "ians", "ish", "ly", "like", "an"))
_KINDS_OF_THINGS = frozenset(
    ("class", "concept", "creature", "item", "language", "monster", "people", "species", "spell")
)
"""Types whose names are common nouns too: a small letter ("a duergar") is no mistake."""


@dataclass(frozen=True, slots=True)
class _Traits:
    """What is known of a word.

    Attributes:
        is_fixed: It is part of a name that is spelled right.
        begins: More than a space stands before it.
        rarity: See `Vocabulary.rarity`.
    """

    is_stop: bool
    is_odd: bool
    is_capital: bool
    is_fixed: bool
    begins: bool
    rarity: int


class Matcher:
    """Finds names in words. Read-only once built, but for a memory of likenesses, which never changes an answer.

    Args:
        caution: Added to every least likeness; above 0 fewer names are put right, and fewer words damaged.
    """

    def __init__(self, gazetteer: Gazetteer, *, caution: float = 0.0) -> None:
        self._gazetteer = gazetteer
        self._caution = caution
        self._longest_heard = int(gazetteer.longest / _LEAST_LENGTH_RATIO)
        # A partial transcript repeats the words of the one before it: their likenesses are remembered.
        self._similar = lru_cache(_REMEMBERED)(self._search)

    def choose(
        self, spoken: Sequence[Word], heard: Sequence[HeardWord] = (), nearby: Container[EntityId] = frozenset()
    ) -> list[Match]:
        """The best set of matches, in order, without overlap."""
        exact = list(self._exact(spoken))
        fixed = {at for match in exact if not match.name.is_ordinary for at in range(match.first, match.last + 1)}
        search = _Search(spoken, [self._traits(word, at in fixed) for at, word in enumerate(spoken)], heard, nearby)
        return best_without_overlap([*exact, *self._alike(search)])

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

    def _alike(self, search: _Search) -> Iterator[Match]:
        spoken, traits = search.spoken, search.traits
        widest, longest, n = self._gazetteer.widest, self._longest_heard, len(spoken)
        for first, opening in enumerate(traits):
            stem = ""
            is_loud = holds_stop_word = False
            for last in range(first, min(first + widest, n)):
                word, its = spoken[last], traits[last]
                if last > first and not word.joins:
                    break
                joined = stem + word.folded
                if len(joined) > longest:
                    break
                stem += word.full
                is_loud = is_loud or its.is_odd or its.is_capital
                holds_stop_word = holds_stop_word or its.is_stop
                # Most windows of a sentence are ordinary words within it: those are not worth another thought.
                if not (
                    is_loud
                    or (last > first and not holds_stop_word)
                    or (opening.begins and (last + 1 == n or traits[last + 1].begins))
                ):
                    continue
                if len(joined) >= _SHORTEST and (match := self._match(search, first, last, joined)) is not None:
                    yield match

    def _match(self, search: _Search, first: int, last: int, joined: str) -> Match | None:
        kind = search.kind(first, last)
        if kind is None or (kind.only_same_sound and kind.is_single):
            return None
        window = search.spoken[first : last + 1]
        confidence = search.confidence(first, last)
        best: Match | None = None
        for heard, suffix in _endings(joined, window[-1]):
            similar = self._similar(heard, only_same_sound=kind.only_same_sound)
            for name, likeness in similar:
                if best is not None and likeness <= best.score:
                    break
                least = self._caution + least_likeness(
                    kind, name, is_nearby=name.entity_id in search.nearby, confidence=confidence
                )
                if likeness < least or not self._is_plausible(search, first, last, heard, name):
                    continue
                if _is_close_call(likeness, name, similar, search.nearby):
                    continue
                best = Match(first, last, name, suffix, likeness, _weight(likeness, name), reason=kind.suspicion.value)
        return best

    def _search(self, heard: str, *, only_same_sound: bool) -> tuple[tuple[Name, float], ...]:
        """The names that are most like it, most alike first."""
        gazetteer = self._gazetteer
        codes = gazetteer.coder(heard) if gazetteer.coder else ()
        if only_same_sound:
            candidates: Sequence[Name] = gazetteer.same_sound(codes)
            sound = gazetteer.sounder(heard) if candidates else ""
        else:
            sound = gazetteer.sounder(heard)
            candidates = gazetteer.alike(heard, codes, sound, limit=_MOST_CANDIDATES)
        found = [(name, Likeness.of(heard, sound, name.joined, name.sound).overall) for name in candidates]
        return tuple(sorted((each for each in found if each[1] >= _LEAST_OF_ALL), key=lambda each: -each[1]))

    def _is_plausible(self, search: _Search, first: int, last: int, heard: str, name: Name) -> bool:
        if min(len(heard), len(name.joined)) < _LEAST_LENGTH_RATIO * max(len(heard), len(name.joined)):
            return False
        if first == last and _is_derived(heard, name.joined):
            return False
        window = search.spoken[first : last + 1]
        if len(window) > 1 and len(name.words) > 1 and not self._differs_alike(window, name):
            return False
        inside = search.traits[first : last + 1]
        return all(not word.is_fixed or window[at].folded in name.words for at, word in enumerate(inside))

    def _traits(self, word: Word, is_fixed: bool) -> _Traits:
        vocabulary = self._gazetteer.vocabulary
        rarity = (
            min(vocabulary.rarity(word.folded), vocabulary.rarity(word.full))
            if word.tail
            else vocabulary.rarity(word.folded)
        )
        is_stop = rarity == 0
        is_proper = not is_stop and vocabulary.is_proper(word.folded)
        is_odd = (
            not is_stop
            and len(word.folded) > 1
            and (vocabulary.is_known or word.is_capital)
            and not is_proper
            and rarity > 60
        )
        # "little" is a name too, but only in capitals.
        is_capital = not is_stop and (
            (is_proper and rarity > 60) or (word.is_capital and not word.opens and len(word.folded) > 1)
        )
        return _Traits(
            is_stop=is_stop,
            is_odd=is_odd and not is_fixed,
            is_capital=is_capital and not is_fixed,
            is_fixed=is_fixed,
            begins=not word.joins,
            rarity=rarity,
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
        sound = self._gazetteer.sounder
        return all(
            Likeness.of(one, sound(one), other, sound(other)).overall >= _LEAST_OF_A_PART for one, other in pairs
        )


@dataclass(frozen=True, slots=True)
class _Search:
    """The words of one transcript, and what is known of them."""

    spoken: Sequence[Word]
    traits: Sequence[_Traits]
    heard: Sequence[HeardWord]
    nearby: Container[EntityId]

    def kind(self, first: int, last: int) -> Kind | None:
        """None for words that are nobody's name, however they sound."""
        inside = self.traits[first : last + 1]
        if any(word.is_odd for word in inside):
            suspicion = Suspicion.ODD
        elif any(word.is_capital for word in inside):
            suspicion = Suspicion.CAPITAL
        elif all(word.is_fixed or word.is_stop for word in inside):
            return None
        else:
            suspicion = Suspicion.ORDINARY
        return Kind(
            self._standing(first, last),
            suspicion,
            is_single=first == last,
            holds_stop_word=any(word.is_stop for word in inside),
            rarity=min(word.rarity for word in inside),
        )

    def confidence(self, first: int, last: int) -> float | None:
        """Of the word that the recogniser was least sure of; None where it tells nothing."""
        if not self.heard:
            return None
        start, end = self.spoken[first].start, self.spoken[last].end
        told = [
            word.confidence
            for word in self.heard
            if word.start < end and word.end > start and word.confidence is not None
        ]
        return min(told, default=None)

    def _standing(self, first: int, last: int) -> Standing:
        spoken, after = self.spoken, last + 1
        if spoken[first].opens and (after == len(spoken) or spoken[after].opens):
            return Standing.ALONE
        is_set_off = self.traits[first].begins and (after == len(spoken) or self.traits[after].begins)
        return Standing.SET_OFF if is_set_off else Standing.WITHIN


def _is_close_call(
    likeness: float, name: Name, similar: Sequence[tuple[Name, float]], nearby: Container[EntityId]
) -> bool:
    """Whether another name is as alike: then nobody can tell, unless only one of them is near."""
    return any(
        other.entity_id != name.entity_id
        and its_likeness >= likeness - _TOO_CLOSE
        and (other.entity_id in nearby or name.entity_id not in nearby)
        for other, its_likeness in similar
        if likeness < 0.9 or its_likeness >= likeness
    )


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
    return (score - 0.5) * len(name.joined)
