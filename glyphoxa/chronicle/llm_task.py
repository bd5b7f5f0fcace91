"""Shows a language model lines of the transcript, and checks its answer against them.

The model sees only numbered lines with their speakers: no other names and no campaign knowledge. It therefore cannot
repeat a secret, and can cite utterances only by their numbers. The curator's model sees more: see
`glyphoxa.chronicle.curator`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from pydantic import Field

from glyphoxa.chat.questions import Unparseable
from glyphoxa.chronicle.consent_requests import asks_to_forget
from glyphoxa.chronicle.effects import folded
from glyphoxa.chronicle.statements import LEAST, sentences_of, stands_in
from glyphoxa.chronicle.talk import NOT_TOLD, Kind, NumberedUtterance
from glyphoxa.language.calls import NamedPlace
from glyphoxa.language.language_data import capitalises_nouns, lexicon, vocabulary_of
from glyphoxa.language.table_talk import is_out_of_character
from glyphoxa.language.text import Text
from glyphoxa.language.words import Word, words

MAX_LINE_CHARS: Final = 800
"""Characters shown to the model; the rules read the rest of a longer line."""
LineNumber: TypeAlias = Annotated[int, Field(json_schema_extra={"minimum": 1})]
"""A line that a model cites. Without a minimum, a small model writes negative numbers."""


# The lines that a model sees.


Lines: TypeAlias = Sequence[NumberedUtterance]


def visible_lines(said: Lines) -> tuple[NumberedUtterance, ...]:
    """Return the utterances that a model may see: none that is an aside, out of character or off the record."""
    return tuple(
        each
        for each in said
        if each.utterance.aside is None
        and each.utterance.text.strip()
        and not is_out_of_character(each.utterance.text)
        and not asks_to_forget(each.utterance.text)
    )


def numbered_line(number: int, said: NumberedUtterance) -> str:
    """Return the utterance in one line, whatever it contains, so that it cannot pretend to be several."""
    spoken = said.utterance
    return f"{number} {' '.join(spoken.speaker_name.split())[:80]}: {' '.join(spoken.text.split())[:MAX_LINE_CHARS]}"


def numbered(lines: Lines) -> str:
    """Return the lines of a prompt; the first is number 1."""
    return "\n".join(numbered_line(number, each) for number, each in enumerate(lines, start=1))


# Checks whether the lines contain a model's words.


_NUMBERS: Final = lexicon("chronicle").words("number")
_BEGINNING: Final = 4
"""First letters by which a word is taken from a line that others did not hear: "gift" of "gifted" too."""


class ClaimRejected(Unparseable):
    """A part of an answer is rejected, for this reason."""


@dataclass(frozen=True, slots=True)
class VisibleLines:
    """The lines that a model was shown, in order.

    Args:
        language: BCP 47 tag.
        is_exact: All words of a claim must be in its evidence, because the model was shown more than the lines.
    """

    lines: Lines
    language: str
    is_exact: bool = False

    def naming(self, *names: str) -> list[NumberedUtterance]:
        """Return the lines that contain one of the names or have such a speaker."""
        spelled = [Text.of(folded(name)).folded for name in names]
        of_speakers = {folded(name) for name in names}
        return [
            line
            for line in self.lines
            if folded(line.utterance.speaker_name) in of_speakers
            or any(stands_in(each, Text.of(line.utterance.text).folded) for each in spelled)
        ]

    def writes(self, name: str) -> bool:
        """Return whether a line writes this as a name: with a capital that an ordinary word would not have there."""
        wanted = Text.of(folded(name)).folded
        for line in self.lines:
            spoken = Text.of(line.utterance.text).words
            for at in range(len(spoken) - len(wanted) + 1):
                part = spoken[at : at + len(wanted)]
                if tuple(word.folded for word in part) == wanted and any(map(self._is_written_as_a_name, part)):
                    return True
        return False

    def _telling(self, *texts: str) -> frozenset[str]:
        return frozenset[str]().union(*(Text.of(text).telling(self.language) for text in texts))

    def _is_written_as_a_name(self, word: Word) -> bool:
        is_sign = not word.opens and not capitalises_nouns(self.language)
        return word.is_capital and (is_sign or not vocabulary_of(self.language).is_ordinary(word.folded))

    def cited(self, numbers: Sequence[int]) -> list[NumberedUtterance]:
        """Return the lines that a model cites, in order.

        Raises:
            ClaimRejected: There is none, or one does not exist.
        """
        if not numbers:
            raise ClaimRejected("it has no evidence")
        if not all(1 <= each <= len(self.lines) for each in numbers):
            raise ClaimRejected("its evidence includes a line that does not exist")
        return [self.lines[each - 1] for each in sorted(set(numbers))]

    def supporting(self, text: str, numbers: Sequence[int]) -> list[NumberedUtterance]:
        """Return the cited lines, in order, if they say this.

        Raises:
            ClaimRejected: See `cited` and `check`.
        """
        evidence = self.cited(numbers)
        self.check(text, evidence)
        return evidence

    def check(self, text: str, evidence: Lines) -> None:
        """Check that players' lines say what a model makes of them.

        They contain most of its words and all of its names and numbers. One of their statements affirms or denies it,
        as it does. No word of it comes from a line with fewer listeners, because that would reveal their knowledge to
        others.

        Raises:
            ClaimRejected: They do not.
        """
        if len(text) > MAX_LINE_CHARS:
            raise ClaimRejected("it is longer than a line")
        players = [each.utterance for each in evidence if each.utterance.is_evidence]
        telling = self._telling(text)
        foreign = telling.difference(*(self._telling(said.text, said.speaker_name) for said in players))
        if not telling or len(foreign) > (0.0 if self.is_exact else 0.5) * len(telling):
            raise ClaimRejected("its words are not in its evidence")
        exact = (word.text for word in words(text) if self._is_written_as_a_name(word) or word.folded.isdigit())
        if not foreign.isdisjoint(self._telling(*exact, *_NUMBERS)):
            raise ClaimRejected("a name or number is not in its evidence")
        said = [sentence for each in players for sentence in sentences_of(each.text, ())]
        clauses = [each for sentence in said for each in sentence.clauses() if each[1] not in NOT_TOLD]
        shared = [(len(telling & self._telling(clause)), kind is Kind.DENIED) for clause, kind in clauses]
        most = max((n for n, _ in shared), default=0)
        if not most:
            raise ClaimRejected("its evidence is a question or a guess")
        denials = {is_denied for n, is_denied in shared if 2 * n > most}
        if any(sentence.told is Kind.DENIED for sentence in sentences_of(text, ())) not in denials:
            raise ClaimRejected("its evidence denies what it says")
        witnesses = frozenset.intersection(*(each.utterance.witnesses for each in evidence))
        for line in self.lines:
            is_heard = witnesses <= line.utterance.witnesses
            if not is_heard and not _beginnings(foreign).isdisjoint(_beginnings(self._telling(line.utterance.text))):
                raise ClaimRejected("its words come from a line that not all listeners of its evidence heard")

    def kind_of(
        self, evidence: Lines, named: Sequence[Sequence[str]], value: str = "", *, least: float = LEAST
    ) -> tuple[Kind, str]:
        """Return the kind of a claim, and the line that says it.

        Of the players' sentences, those count that share the most with the claim. All of them must say that it holds.

        Args:
            named: The names of each entity of the claim.
        """
        telling = self._telling(value)
        found: list[tuple[int, Kind, str]] = []
        for text in (each.utterance.text for each in evidence if each.utterance.is_evidence):
            for sentence in sentences_of(text, _spans(text, named)):
                shared = len(sentence.keys) + len(telling & self._telling(sentence.text))
                if not sentence.is_question:
                    found.append((shared, sentence.kind(*sentence.extent, least=least), sentence.line))
        most = max((shared for shared, _, _ in found), default=0)
        best = [(kind, text) for shared, kind, text in found if shared == most]
        return min(best, key=lambda one: one[0] is Kind.NOW, default=(Kind.UNREAL, ""))


def _beginnings(stems: Iterable[str]) -> set[str]:
    return {stem[:_BEGINNING] for stem in stems}


def _spans(text: str, named: Sequence[Sequence[str]]) -> list[NamedPlace]:
    """Return where a text has the longest name of each entity."""
    there = [max((name for name in names if name in text), key=len, default="") for names in named]
    spans = [NamedPlace(name, text.index(name), text.index(name) + len(name)) for name in there if name]
    return sorted(spans, key=lambda one: one.start)
