"""The sound of an ear, as a streaming recogniser hears it over several connections."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_ROUNDING_S = 0.1
"""Services round positions."""

_KEPT = 16
"""Segments kept. A transcript is rarely more than one segment late."""


@dataclass(slots=True)
class _Segment:
    number: int
    began: int
    paused: int | None = None


class SoundBuffer:
    """Keeps the sound that has no final transcript yet, and assigns transcripts to the detector's speech segments.

    Services report which part of a connection's sound a transcript covers. Positions are in bytes. A compatible server
    may report that every transcript begins at the start of the connection. Such a position is recognised, because that
    sound already has its final transcript; the segment is then unknown.

    Args:
        longest_s: Maximum sound kept; the oldest is dropped first.
    """

    def __init__(self, *, bytes_per_s: int, longest_s: int) -> None:
        self._rounding = int(_ROUNDING_S * bytes_per_s)
        self._longest = longest_s * bytes_per_s
        self._sound = bytearray()
        # Positions since the first sound.
        self._heard = 0
        self._confirmed = 0
        """All sound up to here has its final transcript."""
        self._opened_at = 0
        """Start of the current connection's sound."""
        self._n_begun = 0
        self._segments: deque[_Segment] = deque(maxlen=_KEPT)

    def __len__(self) -> int:
        return len(self._sound)

    def heard(self, pcm: bytes) -> None:
        self._sound += pcm
        self._heard += len(pcm)
        self.keep_last(self._longest)

    def keep_last(self, n: int) -> None:
        """Keep only the last `n` bytes."""
        if n < len(self._sound):
            n += n % 2  # whole samples
            del self._sound[: len(self._sound) - n]

    def reopened(self) -> bytes:
        """Start a new connection. Returns the sound to repeat, which is the first that it gets."""
        self._opened_at = self._heard - len(self._sound)
        return bytes(self._sound)

    def began(self) -> None:
        """Note that the detector reported speech."""
        self._n_begun += 1
        self._segments.append(_Segment(self._n_begun, self._heard))

    def paused(self) -> None:
        if self._segments:
            self._segments[-1].paused = self._heard

    def confirmed(self, until: int) -> None:
        """Note that a final transcript covers the current connection's sound up to this position."""
        self._confirmed = max(self._confirmed, min(until + self._opened_at, self._heard))
        self.keep_last(self._heard - self._confirmed)

    def segment_at(self, begin: int, first: int, end: int) -> int | None:
        """Return the number of a transcript's segment, from 1. Positions are in the current connection's sound.

        Args:
            begin: Start of the transcribed sound.
            first: Start of the first word.
            end: End of the transcribed sound.

        Returns:
            None if the words began after the segment's pause, so that the detector missed them. Also None if a later
            segment has begun and the sound has its final transcript, so that the position is wrong.
        """
        last = next((s for s in reversed(self._segments) if s.began < end + self._opened_at), None)
        if last is None or (last.paused is not None and last.paused <= first + self._opened_at):
            return None
        is_told_again = begin + self._opened_at < self._confirmed - self._rounding
        return None if is_told_again and last.number < self._n_begun else last.number
