"""The DM's word on what was said: what was learned from it alone is left out, as if it had not been said so."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.world.events.undo import Undoing
from glyphoxa.world.wording import Words


@dataclass(frozen=True, slots=True)
class UtteranceRetracted(Undoing):
    """As if it had not been said, and nothing learned from it.

    Attributes:
        events: As of `RolledBack`.
    """

    utterance: UtteranceId
    session: SessionId
    ordinal: int
    events: tuple[int, ...]

    def dropped(self) -> tuple[int, ...]:
        return self.events

    def in_words(self, words: Words) -> str:
        said = f"what was said at ordinal {self.ordinal} of session {self.session}"
        return f"retracted {said}: {len(self.events)} events dropped"


@dataclass(frozen=True, slots=True)
class UtteranceCorrected(Undoing):
    """As if other words had been said, and nothing learned from the old ones.

    Attributes:
        was: What stood there.
        events: As of `RolledBack`.
    """

    utterance: UtteranceId
    session: SessionId
    ordinal: int
    was: str
    text: str
    events: tuple[int, ...]

    def dropped(self) -> tuple[int, ...]:
        return self.events

    def in_words(self, words: Words) -> str:
        dropped = f": {len(self.events)} events dropped" if self.events else ""
        said = f"ordinal {self.ordinal} of session {self.session}"
        return f"corrected {said} from {self.was!r} to {self.text!r}{dropped}"
