"""Whether words of a model were said, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glyphoxa.chronicle.effects import folded
from glyphoxa.chronicle.talk import NumberedUtterance
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.speech.language.phonetics import primary_language
from glyphoxa.speech.language.vocabulary import vocabulary_of
from glyphoxa.speech.language.words import Word, words

_STEM = 4
"""Letters: words that begin with the same ones count as forms of one word, as "promise" and "promised" do."""


@dataclass(frozen=True, slots=True)
class ShownLine:
    said: NumberedUtterance
    words: tuple[str, ...]
    telling: frozenset[str]

    @property
    def id(self) -> UtteranceId:
        return self.said.utterance.id


class ShownLines:
    """The lines that a model was shown, in order.

    Args:
        language: BCP 47 tag.
    """

    def __init__(self, lines: Sequence[NumberedUtterance], language: str) -> None:
        self._vocabulary = vocabulary_of(language)
        self._stop = self._vocabulary.stop
        self._is_capital_a_sign = primary_language(language) != "de"
        self.lines = tuple(
            ShownLine(each, spoken, frozenset(spoken) - self._stop)
            for each in lines
            for spoken in [tuple(word.folded for word in words(each.utterance.text))]
        )

    def naming(self, *names: str) -> list[ShownLine]:
        """Lines in which one of them stands, or whose speaker is called so."""
        spelled = [tuple(word.folded for word in words(folded(name))) for name in names]
        of_speakers = {folded(name) for name in names}
        return [
            line
            for line in self.lines
            if folded(line.said.utterance.speaker_name) in of_speakers
            or any(_stands_in(each, line.words) for each in spelled)
        ]

    def writes(self, name: str) -> bool:
        """Whether one of them has it as a name is written: with a capital that no ordinary word would have there."""
        wanted = tuple(word.folded for word in words(folded(name)))
        for line in self.lines:
            spoken = words(line.said.utterance.text)
            for at in range(len(spoken) - len(wanted) + 1):
                part = spoken[at : at + len(wanted)]
                if tuple(word.folded for word in part) == wanted and any(map(self._is_written_as_a_name, part)):
                    return True
        return False

    def _is_written_as_a_name(self, word: Word) -> bool:
        is_sign = self._is_capital_a_sign and not word.opens
        return word.is_capital and (is_sign or not self._vocabulary.is_ordinary(word.folded))

    def tells(self, value: str, evidence: Sequence[ShownLine]) -> str | None:
        """Why a value is not what these lines say; None: it is.

        Most of what it tells must stand in them. None of it may come from a line that was heard by fewer: what some
        know must not reach others in the words of a line that they heard.
        """
        telling = frozenset(word.folded for word in words(value)) - self._stop
        there = frozenset[str]().union(*(line.telling for line in evidence))
        foreign = frozenset(each for each in telling if not _is_among(each, there))
        if not telling or 2 * len(foreign) > len(telling):
            return "its words do not stand in the lines it rests on"
        witnesses = frozenset.intersection(*(line.said.utterance.witnesses for line in evidence))
        for line in self.lines:
            if not witnesses <= line.said.utterance.witnesses and any(
                _is_among(each, line.telling) for each in foreign
            ):
                return "its words come from a line that not everybody heard who heard the lines it rests on"
        return None


def _is_among(word: str, others: frozenset[str]) -> bool:
    return word in others or (
        len(word) >= _STEM and any(other[:_STEM] == word[:_STEM] for other in others if len(other) >= _STEM)
    )


def _stands_in(name: Sequence[str], line: Sequence[str]) -> bool:
    n = len(name)
    return n > 0 and any(tuple(line[at : at + n]) == tuple(name) for at in range(len(line) - n + 1))
