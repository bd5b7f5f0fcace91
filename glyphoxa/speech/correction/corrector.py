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

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.utterance import Correction, HeardWord
from glyphoxa.speech.correction.matching import Matcher
from glyphoxa.speech.correction.scheduling import Match
from glyphoxa.speech.language.alignment import words_of_text
from glyphoxa.speech.language.spans import applied, composed
from glyphoxa.speech.language.words import Word, words
from glyphoxa.speech.names.gazetteer import Gazetteer

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
        caution: Log-odds asked for beyond an even chance (see `glyphoxa.speech.correction.evidence`).
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
