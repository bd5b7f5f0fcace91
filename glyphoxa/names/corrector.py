"""Corrects misheard names in transcripts: "elder nacks" -> "Eldrinax".

How a name is found:

1. Every run of adjacent words (a window) that could be a name is compared, without spaces, with whole names:
   first by spelling (`iron hold` = `Ironhold`), then by sound and by edit distance.
2. A window needs evidence. Ordinary lower-case words must sound exactly like a name; an odd word (in no
   dictionary) or a capital letter within a sentence needs less. Windows do not begin or end with "the", "of" ...
   A window does not include words with their own meaning: what follows a correctly heard first name, a nickname.
3. Of the windows that pass, the set without overlap that explains most is chosen, not the longest one.

Correct names and the text around a replaced span stay unchanged. The result is deterministic and idempotent: a partial,
an eager and a final transcript agree, so that an answer prepared on the first need not be discarded.
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
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.words import Word, applied, composed, words, words_of_text
from glyphoxa.names.evidence import (
    SPELLED,
    Look,
    Reader,
    Transcript,
    Window,
    WordContext,
    log_odds_of,
    log_odds_of_similarity,
    probability,
    weight_of,
)
from glyphoxa.names.gazetteer import MIN_LENGTH_RATIO, SHORTEST, Gazetteer, Similarity, Spelling
from glyphoxa.names.naming import Name


@dataclass(frozen=True, slots=True)
class Match:
    """A guess that some adjacent words are a name.

    Attributes:
        first: Index of the first word.
        last: Index of the last word, inclusive.
        suffix: Text after the name: a possessive or plural ending.
        score: Evidence, 0 to 1.
        weight: Value in the choice between overlapping matches.
        keeps: The words already are a name and stay unchanged; no other match may use them.
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
    """The matches with the largest total weight, in order (weighted interval scheduling); earlier ones win ties."""
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
"""Types whose names are also common nouns: a lower-case letter ("a duergar") is no mistake."""


def spelled(spoken: Sequence[Word], gazetteer: Gazetteer) -> Iterator[Match]:
    """Runs of words that spell a name or a learned form, whatever their case and spaces."""
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
    """Whether words that spell a name are meant as the name: ordinary words must be written like it."""
    if not name.is_ordinary:
        return True
    if len(window) == 1 and window[0].opens:
        return False
    written = "".join(f"{word.text}{word.tail} " for word in window[:-1]) + window[-1].text
    return written in (name.text, f"{name.text}s")


def _may_respell(window: Sequence[Word], name: Name, gazetteer: Gazetteer) -> bool:
    """Whether different case or spaces are a mistake, and not just other words."""
    if name.is_ordinary or len(name.joined) < 3:
        return False
    vocabulary = gazetteer.vocabulary
    written = " ".join(word.text + word.tail for word in window)
    if name.entity_type in _KINDS_OF_THINGS and written.casefold() == name.text.casefold():
        return False
    if len(window) == len(name.words):
        return vocabulary.is_known or window[0].is_capital or len(window) > 1
    if any(word.folded in vocabulary.stop for word in window):
        return any(not vocabulary.is_ordinary(word.folded) for word in window)
    return len(name.joined) >= 6


def _suffix(window: Sequence[Word], name: Name) -> str:
    """The possessive or plural ending of words that spell a name."""
    stem = "".join(word.full for word in window[:-1])
    last = window[-1]
    if stem + last.full == name.joined:
        return ""
    return last.tail or ("s" if stem + last.folded != name.joined else "")


_MIN_OVERALL = 0.45
_NEXT_OVERALL = 0.65
"""Assumed likeness of the second-best name if none was close enough to compare."""
_MIN_OF_A_PART = 0.45
_MIN_OF_A_PART_ALONE = 0.2
_MIN_OF_AN_END = 0.75
_MIN_OF_THE_REST = 0.55
_SHORT_WORD = 4
_MIN_SOUND_OF_SHORT_NAMES = 0.8
_PLAIN_WORD = 20
_MIN_SOUND_OF_A_PLAIN_PHRASE = 0.7
_BEST_POSSIBLE = log_odds_of_similarity(Similarity(1.0, 1.0, 1.0, same_sound=True), margin=1.0)
"""A window that needs more evidence need not be compared."""
_MAX_CANDIDATES = 4
_SHARED = ((13.0, 0.45), (11.0, 0.3), (-math.inf, 0.15))
"""Share of the heard features that a name must have (`glyphoxa.names.gazetteer`), by the log-odds it must contribute.

On the spoken names, names with a smaller share never had enough evidence."""
_REMEMBERED = 8192
_WITHOUT_WORDS = 1.5
_DERIVED: Final = lexicon("names").words("derived")


class Matcher:
    """Finds names in words. Immutable, except for a cache of similarities that never changes a result.

    Args:
        caution: Log-odds required beyond an even chance; above 0, fewer names are corrected and fewer words damaged.
    """

    def __init__(self, gazetteer: Gazetteer, *, caution: float = 0.0) -> None:
        self._gazetteer = gazetteer
        # Without a word list, nearly every word looks odd.
        self._caution = caution if gazetteer.vocabulary.is_known else caution + _WITHOUT_WORDS
        self._longest_heard = int(gazetteer.longest / MIN_LENGTH_RATIO)
        # Cache similarities, because a partial transcript repeats the words of the previous one.
        # Not a method: a reference cycle would keep the names of a replaced gazetteer until collection.
        self._similar = lru_cache(_REMEMBERED)(partial(_search, gazetteer))
        self._reader = Reader(gazetteer.vocabulary)

    def choose(
        self, spoken: Sequence[Word], heard: Sequence[HeardWord] = (), nearby: Container[EntityId] = frozenset()
    ) -> list[Match]:
        """The best set of matches, in order, without overlap."""
        exact = list(spelled(spoken, self._gazetteer))
        # A coincidental surname ("Vash Curry") may be part of another name ("Vashkari").
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
            for name, log_odds in self._similar(
                heard, only_same_sound=window.only_same_sound, least_shared=least_shared
            ):
                its = odds + log_odds
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
        if any(code in by_code for code in coder(heard)):
            return True
        return heard[-1] == "s" and any(code in by_code for code in coder(heard[:-1]))

    def _is_plausible(self, transcript: Transcript, window: Window, heard: str, name: Name) -> bool:
        first, last = window.first, window.last
        if min(len(heard), len(name.joined)) < MIN_LENGTH_RATIO * max(len(heard), len(name.joined)):
            return False
        if first == last and heard.startswith(name.joined) and heard.removeprefix(name.joined) in _DERIVED:
            return False  # derived from the name ("polymorphed")
        spoken = transcript.spoken[first : last + 1]
        if len(spoken) < len(name.words) and all(word.folded in name.words for word in spoken):
            return False  # part of the name, and spelled correctly
        # "Tower of" within a sentence may continue with any word; alone, it is the known tower.
        is_open = window.placement is WordContext.WITHIN and not window.is_doubted
        least = _MIN_OF_A_PART if is_open else _MIN_OF_A_PART_ALONE
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
        """Whether the rest of the window sounds like the rest of a name of which one end was clearly heard.

        A similar length is not enough: "Siverina try to calm" is not Severina Castellane.
        """
        heard, wanted = [word.folded for word in window], name.words
        ends = (
            (heard[0], wanted[0], "".join(heard[1:]), "".join(wanted[1:])),
            (heard[-1], wanted[-1], "".join(heard[:-1]), "".join(wanted[:-1])),
        )
        return all(
            self._likeness(rest, its_rest).overall >= _MIN_OF_THE_REST
            for end, its_end, rest, its_rest in ends
            if self._likeness(end, its_end).overall >= _MIN_OF_AN_END
        )

    def _likeness(self, one: str, other: str) -> Similarity:
        sound = self._gazetteer.sounder
        return Similarity.of(Spelling(one, sound(one)), Spelling(other, sound(other)))

    def _differs_alike(self, window: Sequence[Word], name: Name, least: float) -> bool:
        """Whether the words that differ are alike where a name and a window share words ("Tower of")."""
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
            return True  # no common words: the whole has been compared already
        return all(self._likeness(one, other).overall >= least for one, other in pairs)


def _search(
    gazetteer: Gazetteer, heard: str, *, only_same_sound: bool, least_shared: float
) -> tuple[tuple[Name, float], ...]:
    """The names that are most similar to it, each with the log-odds of its similarity."""
    codes = gazetteer.coder(heard)
    candidates: Sequence[Name] = (
        gazetteer.same_sound(codes)
        if only_same_sound
        else gazetteer.alike(heard, codes, limit=_MAX_CANDIDATES, least_shared=least_shared)
    )
    if not candidates:
        return ()
    its = Spelling(heard, gazetteer.sounder(heard), codes)
    likenesses = [(Similarity.of(its, Spelling(name.joined, name.sound, name.codes)), name) for name in candidates]
    return tuple(
        (name, log_odds_of_similarity(likeness, margin=_margin(likeness, name, likenesses)))
        for likeness, name in likenesses
        if likeness.overall >= _MIN_OVERALL
    )


def _margin(likeness: Similarity, name: Name, others: Sequence[tuple[Similarity, Name]]) -> float:
    """How much less similar the second-best name is; negative if it is more similar."""
    overall = likeness.overall
    return min(
        (overall - other.overall for other, its in others if its.entity_id != name.entity_id),
        default=overall - _NEXT_OVERALL,
    )


def _least_sound(transcript: Transcript, window: Window) -> float:
    """Minimum sound similarity for words that may have their own meaning, if the recogniser was sure of them.

    These are two short words written as a name ("Mad Meg"), which may be missing from the campaign, and phrases of very
    common words ("day insect").
    """
    if window.n_words == 1 or window.is_doubted:
        return 0.0
    inside = slice(window.first, window.last + 1)
    spoken = transcript.spoken[inside]
    if len(spoken) == 2 and all(word.is_capital and len(word.folded) <= _SHORT_WORD for word in spoken):
        return _MIN_SOUND_OF_SHORT_NAMES
    if window.look is Look.ORDINARY and all(its.rarity <= _PLAIN_WORD for its in transcript.traits[inside]):
        return _MIN_SOUND_OF_A_PLAIN_PHRASE
    return 0.0


def _endings(joined: str, last: Word) -> Iterator[tuple[str, str]]:
    """Letters to compare and the suffix to put after the name: unchanged, and as a plural."""
    yield joined, last.tail
    if joined.endswith("s") and not last.tail and len(joined) > SHORTEST:
        yield joined[:-1], "s"


def _is_meant(match: Match, transcript: Transcript, nearby: Container[EntityId]) -> bool:
    """Whether a learned form stands for its name here. A common word needs a sign of that."""
    if not match.name.is_ordinary or match.name.entity_id in nearby:
        return True
    inside = transcript.traits[match.first : match.last + 1]
    if sum(not word.is_stop for word in inside) > 1:
        return True
    window = transcript.window(match.first, match.last)
    return window is not None and (
        window.placement is not WordContext.WITHIN or window.look is not Look.ORDINARY or window.is_doubted
    )


MAX_PASSES: Final = 4
"""A corrected word can complete a longer name ("tower of wispers" when "Whispers" is a name too)."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A transcript with corrected names. Undoing `corrections` restores the raw text.

    Attributes:
        corrections: In order, without overlap; their spans are positions in the raw text.
    """

    text: str
    corrections: tuple[Correction, ...]


class Correct(Protocol):
    """Corrects names. `heard`: the recogniser's data for the words of `text`; may be empty."""

    def __call__(self, text: str, /, *, heard: Sequence[HeardWord] = ()) -> Corrected: ...


class NameMatcher(Protocol):
    def choose(
        self, spoken: Sequence[Word], heard: Sequence[HeardWord] = (), nearby: Container[EntityId] = frozenset()
    ) -> list[Match]:
        """The misheard names, in order and without overlap. Arguments as for `Corrector.correct`."""
        ...


class Corrector:
    """Corrects transcripts. Stateless: one object may serve every ear at once.

    Args:
        caution: Log-odds required beyond an even chance (see `glyphoxa.names.evidence`).
        matcher: Finds the names; by default `Matcher`.
        most_passes: Maximum number of passes over a text.
    """

    def __init__(
        self,
        gazetteer: Gazetteer,
        *,
        caution: float = 0.0,
        matcher: NameMatcher | None = None,
        most_passes: int = MAX_PASSES,
    ) -> None:
        self.gazetteer = gazetteer
        self._matcher = Matcher(gazetteer, caution=caution) if matcher is None else matcher
        self._passes = most_passes

    def correct(
        self, text: str, *, heard: Sequence[HeardWord] = (), nearby: Container[EntityId] = frozenset()
    ) -> Corrected:
        """Correct the names in a transcript.

        Args:
            heard: Recogniser details for the words of `text`; words it was sure of need more evidence.
            nearby: Entities of the scene and recently named ones: they need less evidence.
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
        # It does not converge: names of this campaign turn into each other. Leave the text unchanged.
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
