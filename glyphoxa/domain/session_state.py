"""The memory of a running session, one for each view: the DM's, and that of each NPC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NewType

from glyphoxa.domain.ids import UtteranceId

View = NewType("View", str)
"""The id of an NPC, or `DM_VIEW`."""
DM_VIEW: Final = View("dm")


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """A sentence of a summary.

    Attributes:
        evidence: The utterances that support it; never empty. If one is retracted, so is the sentence.
        is_own: The NPC said it itself. It keeps its word, but nothing else follows from it.
    """

    text: str
    evidence: tuple[UtteranceId, ...]
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class SessionState:
    """A view's memory of a session beside the most recent lines.

    Attributes:
        summary: In the order of the talk.
        flags: Named events that happened ("decision_made").
        last_ordinal: Number of the last utterance that the summary covers; 0 for none.
    """

    summary: tuple[SummarySentence, ...] = ()
    flags: Mapping[str, bool] = field(default_factory=dict)
    last_ordinal: int = 0

    @property
    def text(self) -> str:
        """Return the summary as one paragraph."""
        return " ".join(sentence.text for sentence in self.summary)
