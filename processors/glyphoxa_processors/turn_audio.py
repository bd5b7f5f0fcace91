"""The sound of one human's turn, for a recogniser that takes whole recordings.

Short segments are transcribed badly: without what was said around them, names come out wrong, words are said twice,
and every pause becomes a full stop. So every transcript is of the whole turn so far, pauses included, as it was heard.
A recogniser's cost and its window are bounded, so a long turn is cut into *stretches*; a transcript takes the place
of the earlier one of its stretch, and that of a stretch before it stays as it is.

Where a long turn is cut, best first: at a pause, once the stretch is `settle_after_ms` long; at the last pause in it,
when it has become `longest_ms` long; in the middle of speech.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class StretchAudio:
    """What a transcript is made of.

    Attributes:
        at: Bytes heard before it.
        stretch: Transcripts of one stretch take each other's place.
        segment: The speech it ends in, counted from 1 by the detector's reports that speech began.
    """

    pcm: bytes
    at: int
    stretch: int
    segment: int

    @property
    def end(self) -> int:
        """Bytes heard when it ended."""
        return self.at + len(self.pcm)


class TurnAudio:
    """Keeps what was heard since the turn began, or the little that may belong to the next one.

    Positions are in bytes since the first sound; times in milliseconds.

    Args:
        pre_roll_ms: Sound kept from before speech began: detectors miss soft onsets.
        longest_ms: Of a stretch.
        settle_after_ms: A stretch as long as this ends at the next pause.
    """

    def __init__(self, *, bytes_per_ms: int, pre_roll_ms: int, longest_ms: int, settle_after_ms: int) -> None:
        self._bytes_per_ms = bytes_per_ms
        self._pre_roll_ms = pre_roll_ms
        self._longest = longest_ms * bytes_per_ms
        self._settle_after = settle_after_ms * bytes_per_ms
        self._idle = (pre_roll_ms + 400) * bytes_per_ms
        self._sound = bytearray()
        self._at = 0
        """The position of the first byte of `_sound`."""
        self._paused_at = 0
        """Where the last segment ended; the next one's pre-roll begins no earlier."""
        self._begins: dict[int, int] = {}
        """Position at which each segment of this stretch begins; empty between stretches."""
        self._over: tuple[int, int] = (0, 0)
        """The last segment of the turn that is over, and where the one after it begins."""
        self.segment = 0
        self.stretch = 0
        self.is_speaking = False

    @property
    def position(self) -> int:
        """Bytes heard so far."""
        return self._at + len(self._sound)

    def hear(self, pcm: bytes) -> StretchAudio | None:
        """Take sound. Returns a stretch that must end in the middle of speech; what follows is another."""
        self._sound += pcm
        if not self._begins:
            self._drop_until(self.position - self._idle)
            return None
        if len(self._sound) < self._longest:
            return None
        if not self.is_speaking:
            self._settle(self._paused_at)
            return None
        begins = self._begins[self.segment]
        if begins > self._at:
            # What is before the last pause was transcribed there.
            self._settle(begins)
            self._open(begins)
            return None
        whole = self.so_far()
        self._settle(self.position)
        self._open(self.position)
        return whole

    def begin(self, detected_after_ms: int) -> None:
        """Speech began so long ago."""
        self.segment += 1
        self.is_speaking = True
        pre_roll = (self._pre_roll_ms + detected_after_ms) * self._bytes_per_ms
        begins = max(self._at, self._paused_at, self.position - pre_roll)
        if self._begins:
            self._begins[self.segment] = begins
        else:
            self._drop_until(begins)
            self._open(begins)

    def so_far(self) -> StretchAudio:
        return StretchAudio(bytes(self._sound), self._at, self.stretch, self.segment)

    def pause(self) -> StretchAudio:
        """The speech has ended. Returns the stretch so far."""
        whole = self.so_far()
        self.is_speaking = False
        self._paused_at = self.position
        if len(self._sound) > self._settle_after:
            self._settle(self.position)
        return whole

    def turn_over(self, segment: int) -> None:
        """The turn is over; this segment was its last. What was said since belongs to the next one."""
        if segment < self._over[0]:
            return
        later = [begins for number, begins in self._begins.items() if number > segment]
        if not later:
            self._over = (segment, 0)
            self._settle(self._paused_at)
            return
        self._over = (segment, later[0])
        kept = {number: begins for number, begins in self._begins.items() if number > segment}
        if later[0] > self._at:
            self._drop_until(later[0])
            self.stretch += 1
        self._begins = kept

    def without_what_is_over(self, recording: StretchAudio) -> StretchAudio | None:
        """The recording without the turn that has ended since it was made; None when it holds nothing of that."""
        last, begins = self._over
        if recording.segment <= last or begins <= recording.at:
            return None
        return replace(recording, pcm=recording.pcm[begins - recording.at :], at=begins)

    def _open(self, begins: int) -> None:
        self.stretch += 1
        self._begins = {self.segment: begins}

    def _settle(self, until: int) -> None:
        self._begins = {}
        self._drop_until(until)

    def _drop_until(self, position: int) -> None:
        n = position - self._at
        if n > 0:
            del self._sound[:n]
            self._at = position
