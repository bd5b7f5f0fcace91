"""In which of the detector's segments of speech a transcript of a streaming service ends."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_ROUNDING_S = 0.1
"""Services tell positions with few decimals."""

_KEPT = 16
"""Segments; a transcript is seldom one late."""


@dataclass(slots=True)
class _Segment:
    number: int
    began: int
    paused: int | None = None


class SegmentsHeard:
    """Counts the detector's reports that speech began, and keeps where in the sound they came.

    Services say what part of a connection's sound a transcript is of. Positions are in bytes.

    A server that only speaks the protocol may say that every transcript begins where the connection did. Such a
    position is seen by that the sound there has had its final transcript; what it is of is then not known.

    Args:
        bytes_per_s: Of sound.
    """

    def __init__(self, *, bytes_per_s: int) -> None:
        self._rounding = int(_ROUNDING_S * bytes_per_s)
        self._confirmed = 0
        """Up to here all sound has its final transcript."""
        self._heard = 0
        self._opened_at = 0
        """Where in all the sound the running connection's begins."""
        self._n_begun = 0
        self._segments: deque[_Segment] = deque(maxlen=_KEPT)

    def heard(self, n: int) -> None:
        """So much more sound."""
        self._heard += n

    def reopened(self, n_repeated: int) -> None:
        """A new connection listens, and is given the last `n_repeated` bytes first."""
        self._opened_at = self._heard - n_repeated

    def began(self) -> None:
        self._n_begun += 1
        self._segments.append(_Segment(self._n_begun, self._heard))

    def paused(self) -> None:
        if self._segments:
            self._segments[-1].paused = self._heard

    def confirmed(self, until: int) -> None:
        """A final transcript covers the sound of the running connection up to this position."""
        self._confirmed = max(self._confirmed, min(until + self._opened_at, self._heard))

    def at(self, begin: int, first: int, end: int) -> int | None:
        """The number of the segment, from 1.

        Args:
            begin: Where the transcribed sound begins, in the sound of the running connection.
            first: Where the first word begins.
            end: Where the transcribed sound ends.

        Returns:
            None when the words began behind the segment's pause: the detector did not hear them at all. None also
            when a later segment has begun and the sound has had its final transcript: the position is wrong.
        """
        last = next((s for s in reversed(self._segments) if s.began < end + self._opened_at), None)
        if last is None or (last.paused is not None and last.paused <= first + self._opened_at):
            return None
        is_told_again = begin + self._opened_at < self._confirmed - self._rounding
        return None if is_told_again and last.number < self._n_begun else last.number
