"""What an NPC says where nothing of its reply may be said: a line in character, chosen without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from glyphoxa.context.wording import wording
from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.languages import language_of
from glyphoxa.speech.language.phonetics import primary_language

_WITH_LINES_OF_THEIR_OWN: Final = (Fault.SECRET, Fault.UNFOUNDED)
"""Where the NPC had something to say and keeps it to itself, and where it does not know."""


class StandIns:
    """The lines of one NPC, in turn: none comes twice running.

    Args:
        language: The campaign's, for a question that shows none.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._used: Counter[tuple[str, Fault | None]] = Counter()

    def line(self, question: str, fault: Fault | None, told: Sequence[str] = ()) -> str:
        """In the language of the question.

        Args:
            fault: Why there is no reply, if that is known.
            told: Answers from what the asker told; see `HotContext.told`.
        """
        if told and fault is not Fault.SECRET:
            return told[0]
        language = language_of(question) or self._language
        why = fault if fault in _WITH_LINES_OF_THEIR_OWN else None
        words = wording(language)
        of_fault: dict[Fault | None, tuple[str, ...]] = {
            Fault.SECRET: words.deflects,
            Fault.UNFOUNDED: words.knows_nothing,
        }
        lines = of_fault.get(why, words.at_a_loss)
        return self._next_of(lines, language, why)

    def shrug(self, question: str, lines: Sequence[str]) -> str:
        """One of what an NPC can say to what it knows nothing of, `lines` in the campaign's language. Empty for a
        question in another one.
        """
        language = language_of(question)
        if language and language != primary_language(self._language):
            return ""
        return self._next_of(lines, self._language, Fault.UNFOUNDED)

    def _next_of(self, lines: Sequence[str], language: str, why: Fault | None) -> str:
        n_used = self._used[language, why]
        self._used[language, why] += 1
        return lines[n_used % len(lines)]
