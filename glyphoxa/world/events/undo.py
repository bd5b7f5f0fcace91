"""Events that speak of other events: what they name is left out of a replay, as if it had not been."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.world.change import Change
from glyphoxa.world.state import Key, WorldState
from glyphoxa.world.wording import Words


class Undoing:
    """An event that leaves out others. It has no effect of its own: see `glyphoxa.world.replay`."""

    __slots__ = ()

    def dropped(self) -> tuple[int, ...]:
        """Numbers of the events that it leaves out."""
        raise NotImplementedError

    def read_set(self) -> Iterator[Key]:
        yield from ()

    def failed_precondition(self, state: WorldState) -> str | None:
        return "undoing is not stated: ask for it"

    def effect(self, change: Change) -> None:
        raise ValueError(f"event {change.seq} speaks of other events: replay what remains")


@dataclass(frozen=True, slots=True)
class Undone(Undoing):
    """As if that event had not been. Undoing this one brings it back."""

    event: int

    def dropped(self) -> tuple[int, ...]:
        return (self.event,)

    def in_words(self, words: Words) -> str:
        return f"undid event {self.event}"


@dataclass(frozen=True, slots=True)
class RolledBack(Undoing):
    """As if nothing had been learned from what was said behind that ordinal.

    Attributes:
        events: All that are left out, as they were found at that time.
    """

    session: SessionId
    ordinal: int
    events: tuple[int, ...]

    def dropped(self) -> tuple[int, ...]:
        return self.events

    def in_words(self, words: Words) -> str:
        return f"rolled back to ordinal {self.ordinal} of session {self.session}: {len(self.events)} events dropped"


@dataclass(frozen=True, slots=True)
class TalkErased(Undoing):
    """Talk was erased for good, and what was learned from it. It stands at the end of the log once, and in the place
    of each event whose words were erased, with no events of its own: those change nothing any more, and bringing this
    one back brings nothing back.

    Attributes:
        events: As of `RolledBack`.
    """

    events: tuple[int, ...] = ()

    def dropped(self) -> tuple[int, ...]:
        return self.events

    def in_words(self, words: Words) -> str:
        return f"talk was erased, and {len(self.events)} events with it" if self.events else "erased with what was said"


# The DM's word on what was said: what was learned from it alone is left out, as if it had not been said so.


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
