"""Puts the campaign's names back where the recogniser wrote what it heard: "elder nacks" -> "Eldrinax".

How a name is found:

1. Every run of adjacent words (a window) that could be a name is compared, spaces removed, with whole names:
   first by spelling (`iron hold` = `Ironhold`), then by sound and by edit distance.
2. A window must earn it. Ordinary words in small letters need the very sound of a name; an odd word (in no
   dictionary) or a capital letter within a sentence needs less. Windows do not begin or end with "the", "of" ...
   A window takes no words that are something of their own: what follows a first name that was heard, a nickname.
3. From all windows that pass, the set without overlap that explains most is taken, not the longest one.

What is already right is left alone, and so is everything that stands around a replaced span. The same text
always gives the same result, and a corrected text is not corrected further: a partial, an eager and a final
transcript agree, or what was prepared on the first would be thrown away.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, Protocol

from glyphoxa.domain.heard import Correction, CorrectionStage, HeardWord
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.words import Word, applied, composed, words, words_of_text
from glyphoxa.names.evidence import (
    SPELLED,
    Look,
    Reader,
    Transcript,
    Window,
    WordContext,
    best_possible,
    log_odds_of,
    log_odds_of_similarity,
    probability,
    weight_of,
)
from glyphoxa.names.gazetteer import Gazetteer, Name
from glyphoxa.names.index import LEAST_LENGTH_RATIO, SHORTEST, Similarity, Spelling


@dataclass(frozen=True, slots=True)
class Match:
    """A guess that some adjacent words are a name.

    Attributes:
        first: Index of the first word.
        last: Index of the last word, inclusive.
        suffix: What is put after the name: a possessive or plural ending.
        score: Evidence, 0 to 1.
        weight: What the match is worth beside others that it cannot stand together with.
        keeps: The words are a name as they are and stay so; no other match may have them.
    """

    first: int
    last: int
    name: Name
    suffix: str
    score: float
    weight: float
    stage: CorrectionStage = "phonetic"
    reason: str = ""
    keeps: bool = False


def best_without_overlap(matches: Sequence[Match]) -> list[Match]:
    """The matches that together weigh most, in order (weighted interval scheduling); of equal ones the earlier."""
    ordered = sorted(matches, key=lambda match: (match.last, match.first))
    ends = [match.last for match in ordered]
    best = [0.0]
    takes: list[bool] = []
    for at, match in enumerate(ordered):
        with_it = match.weight + best[bisect_right(ends, match.first - 1, 0, at)]
        takes.append(with_it > best[at])
        best.append(max(best[at], with_it))
    chosen: list[Match] = []
    at = len(ordered)
    while at:
        if takes[at - 1]:
            chosen.append(ordered[at - 1])
            at = bisect_right(ends, ordered[at - 1].first - 1, 0, at - 1)
        else:
            at -= 1
    return chosen[::-1]


_KINDS_OF_THINGS = frozenset(
    ("class", "concept", "creature", "item", "language", "monster", "people", "species", "spell")
)
"""Types whose names are common nouns too: a small letter ("a duergar") is no mistake."""


def spelled(spoken: Sequence[Word], gazetteer: Gazetteer) -> Iterator[Match]:
    """Every run of words that spells a name, or a form that was learned for one, whatever its case and spaces."""
    for first in range(len(spoken)):
        for last, name in gazetteer.spelled_from(spoken, first):
            window = spoken[first : last + 1]
            suffix, weight = _suffix(window, name), weight_of(SPELLED, name)
            if name.kind == "learned":
                yield Match(first, last, name, suffix, 1.0, weight, "learned", "confirmed before")
            else:
                keeps = not _may_respell(window, name, gazetteer)
                yield Match(first, last, name, suffix, 1.0, weight, reason="spelling", keeps=keeps)


def is_certain(window: Sequence[Word], name: Name) -> bool:
    """Whether words that spell a name are meant as it: ordinary words are when they are written so."""
    if not name.is_ordinary:
        return True
    if len(window) == 1 and window[0].opens:
        return False
    written = "".join(f"{word.text}{word.tail} " for word in window[:-1]) + window[-1].text
    return written in (name.text, f"{name.text}s")


def _may_respell(window: Sequence[Word], name: Name, gazetteer: Gazetteer) -> bool:
    """Whether other case or spaces than the name's are a mistake, and not just other words."""
    if name.is_ordinary or len(name.joined) < 3:
        return False
    vocabulary = gazetteer.vocabulary
    if name.entity_type in _KINDS_OF_THINGS and _folded_case(window) == name.text.casefold():
        return False
    if len(window) == len(name.words):
        return vocabulary.is_known or window[0].is_capital or len(window) > 1
    if any(word.folded in vocabulary.stop for word in window):
        return any(not vocabulary.is_ordinary(word.folded) for word in window)
    return len(name.joined) >= 6


def _folded_case(window: Sequence[Word]) -> str:
    return " ".join(word.text + word.tail for word in window).casefold()


def _suffix(window: Sequence[Word], name: Name) -> str:
    """The possessive or plural ending of words that spell a name."""
    stem = "".join(word.full for word in window[:-1])
    last = window[-1]
    if stem + last.full == name.joined:
        return ""
    return last.tail or ("s" if stem + last.folded != name.joined else "")


_LEAST_OVERALL = 0.45
_NEXT_OVERALL = 0.65
"""Of the next name when none was worth looking at."""
_LEAST_OF_A_PART = 0.45
_LEAST_OF_A_PART_ALONE = 0.2
_LEAST_OF_AN_END = 0.75
_LEAST_OF_THE_REST = 0.55
_SHORT_WORD = 4
_LEAST_SOUND_OF_SHORT_NAMES = 0.8
_PLAIN_WORD = 20
_LEAST_SOUND_OF_A_PLAIN_PHRASE = 0.7
_BEST_POSSIBLE = best_possible()
_MOST_CANDIDATES = 4
_SHARED = ((13.0, 0.45), (11.0, 0.3), (-math.inf, 0.15))
"""How much of what was heard a name must share (`glyphoxa.names.index`), by the log-odds it is to bring. Names
with less never had enough, on the spoken names."""
_REMEMBERED = 8192
_WITHOUT_WORDS = 1.5
_DERIVED: Final = lexicon("names").words("derived")


class Matcher:
    """Finds names in words. Read-only once built, but for a memory of likenesses, which never changes an answer.

    Args:
        caution: Log-odds that are asked for beyond an even chance; above 0 fewer names are put right, and fewer words
            damaged.
    """

    def __init__(self, gazetteer: Gazetteer, *, caution: float = 0.0) -> None:
        self._gazetteer = gazetteer
        # Without a word list nearly everything looks odd.
        self._caution = caution if gazetteer.vocabulary.is_known else caution + _WITHOUT_WORDS
        self._longest_heard = int(gazetteer.longest / LEAST_LENGTH_RATIO)
        # A partial transcript repeats the words of the one before it: their likenesses are remembered.
        # Not bound to this object: a circle would keep the names of a gone gazetteer until they are collected.
        self._similar = lru_cache(_REMEMBERED)(partial(_search, gazetteer))
        self._reader = Reader(gazetteer.vocabulary)

    def choose(
        self, spoken: Sequence[Word], heard: Sequence[HeardWord] = (), nearby: Container[EntityId] = frozenset()
    ) -> list[Match]:
        """The best set of matches, in order, without overlap."""
        exact = list(spelled(spoken, self._gazetteer))
        # A surname that stands there by chance ("Vash Curry") may be part of another name ("Vashkari").
        fixed = {
            at
            for match in exact
            if match.name.kind in ("name", "alias") and is_certain(spoken[match.first : match.last + 1], match.name)
            for at in range(match.first, match.last + 1)
        }
        transcript = self._reader.read(spoken, heard, fixed)
        meant = [match for match in exact if match.stage != "learned" or _is_meant(match, transcript, nearby)]
        return best_without_overlap([*meant, *self._alike(transcript, nearby)])

    def _alike(self, transcript: Transcript, nearby: Container[EntityId]) -> Iterator[Match]:
        windows = transcript.worth_a_look(
            widest=self._gazetteer.widest,
            longest=self._longest_heard,
            sounds_like_a_name=self._sounds_like_a_name,
        )
        for first, last, joined in windows:
            match = self._match(transcript, nearby, first, last, joined)
            if match is not None:
                yield match

    def _match(
        self, transcript: Transcript, nearby: Container[EntityId], first: int, last: int, joined: str
    ) -> Match | None:
        window = transcript.window(first, last)
        if window is None or (window.only_same_sound and first == last):
            return None
        odds = window.log_odds(n_names=len(self._gazetteer.names)) - self._caution
        if odds + _BEST_POSSIBLE <= 0:
            return None
        least_shared = next(shared for needed, shared in _SHARED if -odds >= needed)
        best: Match | None = None
        for heard, suffix in _endings(joined, transcript.spoken[last]):
            for like in self._similar(heard, only_same_sound=window.only_same_sound, least_shared=least_shared):
                name = like.name
                its = odds + like.log_odds
                if its <= 0 and name.entity_id not in nearby:
                    continue
                its += log_odds_of(name, n_words=window.n_words, is_nearby=name.entity_id in nearby)
                if its <= 0 or (best is not None and probability(its) <= best.score):
                    continue
                if self._is_plausible(transcript, window, heard, name):
                    reason = f"like {name.text!r}, learned" if name.kind == "learned" else window.look.value
                    weight = weight_of(its, name)
                    best = Match(first, last, name, suffix, probability(its), weight, reason=reason)
        return best

    def _sounds_like_a_name(self, heard: str) -> bool:
        by_code, coder = self._gazetteer.by_code, self._gazetteer.coder
        if coder is None:
            return False
        for code in coder(heard):
            if code in by_code:
                return True
        if heard[-1] != "s":
            return False
        return any(code in by_code for code in coder(heard[:-1]))

    def _is_plausible(self, transcript: Transcript, window: Window, heard: str, name: Name) -> bool:
        first, last = window.first, window.last
        if min(len(heard), len(name.joined)) < LEAST_LENGTH_RATIO * max(len(heard), len(name.joined)):
            return False
        if first == last and _is_derived(heard, name.joined):
            return False
        spoken = transcript.spoken[first : last + 1]
        if len(spoken) < len(name.words) and all(word.folded in name.words for word in spoken):
            return False  # part of the name, and spelled right
        # "Tower of" within a sentence may go on as it likes; alone, it is the tower that there is.
        is_open = window.placement is WordContext.WITHIN and not window.is_doubted
        least = _LEAST_OF_A_PART if is_open else _LEAST_OF_A_PART_ALONE
        if len(spoken) > 1 and len(name.words) > 1 and not self._differs_alike(spoken, name, least):
            return False
        if len(spoken) > len(name.words) > 1 and not self._rest_alike(spoken, name):
            return False
        least_sound = _least_sound(transcript, window)
        if least_sound and self._likeness(heard, name.joined).sound < least_sound:
            return False
        inside = transcript.traits[first : last + 1]
        return all(not word.is_fixed or spoken[at].folded in name.words for at, word in enumerate(inside))

    def _rest_alike(self, window: Sequence[Word], name: Name) -> bool:
        """Where one end of a name was plainly heard, the other words of the window must sound like its other end, and
        not only be about as long: "Siverina try to calm" is no Severina Castellane.
        """
        heard, wanted = [word.folded for word in window], name.words
        ends = (
            (heard[0], wanted[0], "".join(heard[1:]), "".join(wanted[1:])),
            (heard[-1], wanted[-1], "".join(heard[:-1]), "".join(wanted[:-1])),
        )
        return all(
            self._likeness(rest, its_rest).overall >= _LEAST_OF_THE_REST
            for end, its_end, rest, its_rest in ends
            if self._likeness(end, its_end).overall >= _LEAST_OF_AN_END
        )

    def _likeness(self, one: str, other: str) -> Similarity:
        sound = self._gazetteer.sounder
        return Similarity.of(Spelling(one, sound(one)), Spelling(other, sound(other)))

    def _differs_alike(self, window: Sequence[Word], name: Name, least: float) -> bool:
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
        return all(self._likeness(one, other).overall >= least for one, other in pairs)


def _search(gazetteer: Gazetteer, heard: str, *, only_same_sound: bool, least_shared: float) -> tuple[_Like, ...]:
    """The names that are most like it."""
    codes = gazetteer.coder(heard) if gazetteer.coder else ()
    candidates: Sequence[Name] = (
        gazetteer.same_sound(codes)
        if only_same_sound
        else gazetteer.alike(heard, codes, limit=_MOST_CANDIDATES, least_shared=least_shared)
    )
    if not candidates:
        return ()
    its = Spelling(heard, gazetteer.sounder(heard), codes)
    likenesses = [(Similarity.of(its, Spelling(name.joined, name.sound, name.codes)), name) for name in candidates]
    return tuple(
        _Like(name, log_odds_of_similarity(likeness, margin=_margin(likeness, name, likenesses)))
        for likeness, name in likenesses
        if likeness.overall >= _LEAST_OVERALL
    )


@dataclass(frozen=True, slots=True)
class _Like:
    """A name, and what its likeness to what was heard speaks for it."""

    name: Name
    log_odds: float


def _margin(likeness: Similarity, name: Name, others: Sequence[tuple[Similarity, Name]]) -> float:
    """How much less alike the next name is; below 0 when it is more alike."""
    overall = likeness.overall
    return min(
        (overall - other.overall for other, its in others if its.entity_id != name.entity_id),
        default=overall - _NEXT_OVERALL,
    )


def _least_sound(transcript: Transcript, window: Window) -> float:
    """How much like a name words must sound that may well be something of their own, if the recogniser did not doubt
    them: two short words written as a name ("Mad Meg"), which nobody may have listed, and phrases of the commonest
    words ("day insect").
    """
    if window.n_words == 1 or window.is_doubted:
        return 0.0
    inside = slice(window.first, window.last + 1)
    spoken = transcript.spoken[inside]
    if len(spoken) == 2 and all(word.is_capital and len(word.folded) <= _SHORT_WORD for word in spoken):
        return _LEAST_SOUND_OF_SHORT_NAMES
    if window.look is Look.ORDINARY and all(its.rarity <= _PLAIN_WORD for its in transcript.traits[inside]):
        return _LEAST_SOUND_OF_A_PLAIN_PHRASE
    return 0.0


def _is_derived(heard: str, name: str) -> bool:
    """Whether it is a form of the name ("polymorphed"), and not another way to hear it."""
    return heard.startswith(name) and heard.removeprefix(name) in _DERIVED


def _endings(joined: str, last: Word) -> Iterator[tuple[str, str]]:
    """What to compare, and what to put behind the name: as it is, and as a plural."""
    yield joined, last.tail
    if joined.endswith("s") and not last.tail and len(joined) > SHORTEST:
        yield joined[:-1], "s"


def _is_meant(match: Match, transcript: Transcript, nearby: Container[EntityId]) -> bool:
    """Whether words that were once heard for a name stand for it here. A common word needs a sign of that."""
    if not match.name.is_ordinary or match.name.entity_id in nearby:
        return True
    inside = transcript.traits[match.first : match.last + 1]
    if sum(not word.is_stop for word in inside) > 1:
        return True
    window = transcript.window(match.first, match.last)
    return window is not None and (
        window.placement is not WordContext.WITHIN or window.look is not Look.ORDINARY or window.is_doubted
    )


MOST_PASSES: Final = 4
"""A replaced word can complete a longer name ("tower of wispers" when "Whispers" is a name too)."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A transcript with its names put right. Undoing `corrections` gives the raw text back.

    Attributes:
        corrections: In order, without overlap; their spans are places in the raw text.
    """

    text: str
    corrections: tuple[Correction, ...]


class NameMatcher(Protocol):
    def choose(
        self, spoken: Sequence[Word], heard: Sequence[HeardWord] = (), nearby: Container[EntityId] = frozenset()
    ) -> list[Match]:
        """The words that are a misheard name, in order and without overlap. Arguments as of `Corrector.correct`."""
        ...


class Corrector:
    """Corrects transcripts. One object may serve every ear at once: what it answers depends on the text alone.

    Args:
        caution: Log-odds asked for beyond an even chance (see `glyphoxa.names.evidence`).
        matcher: Finds the names; left out, `Matcher` does.
        most_passes: How often a corrected text is looked at again.
    """

    def __init__(
        self,
        gazetteer: Gazetteer,
        *,
        caution: float = 0.0,
        matcher: NameMatcher | None = None,
        most_passes: int = MOST_PASSES,
    ) -> None:
        self.gazetteer = gazetteer
        self._matcher = Matcher(gazetteer, caution=caution) if matcher is None else matcher
        self._passes = most_passes

    def correct(
        self, text: str, *, heard: Sequence[HeardWord] = (), nearby: Container[EntityId] = frozenset()
    ) -> Corrected:
        """Put the names in a transcript right.

        Args:
            heard: What the recogniser knows of the words of `text`; words it was sure of need more evidence.
            nearby: Entities of the scene and those named lately: they need less.
        """
        now = Corrected(text, ())
        for _ in range(self._passes):
            replacements = self._replacements(now, heard, nearby)
            if not replacements:
                return now
            corrections = composed(text, now.corrections, replacements)
            now = Corrected(applied(text, corrections), corrections)
        if self._passes == 1 or not self._replacements(now, heard, nearby):
            return now
        # It does not settle: names of this campaign turn into each other. Nothing is certain, so nothing changes.
        return Corrected(text, ())

    def _replacements(
        self, now: Corrected, heard: Sequence[HeardWord], nearby: Container[EntityId]
    ) -> tuple[Correction, ...]:
        text = now.text
        spoken = words(text)
        if not spoken or not self.gazetteer.names:
            return ()
        if heard and now.corrections:
            heard = words_of_text(heard, now.corrections)
        chosen = self._matcher.choose(spoken, heard, nearby)
        listed = (_correction(text, spoken, match) for match in chosen)
        return tuple(correction for correction in listed if correction is not None)


def _correction(text: str, spoken: Sequence[Word], match: Match) -> Correction | None:
    start, end = spoken[match.first].start, spoken[match.last].end
    before = text[start:end]
    wanted = match.name.canonical if match.name.kind == "learned" else match.name.text
    if before[0].isupper() and wanted[0].islower():
        wanted = wanted[0].upper() + wanted[1:]
    after = wanted + match.suffix
    if match.keeps or before.replace("’", "'") == after.replace("’", "'"):
        return None
    return Correction(start, end, before, after, round(match.score, 3), match.stage, match.reason)
