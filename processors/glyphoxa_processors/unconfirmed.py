"""Sound that a streaming recogniser may not have heard: it is said again to the next connection."""

from __future__ import annotations


class Unconfirmed:
    """What was given to a connection and is not covered by a transcript that counts, and what there was no
    connection for.

    Positions are in bytes since the connection began to hear.

    Args:
        longest: Bytes kept at most; the oldest go first.
    """

    def __init__(self, *, longest: int) -> None:
        self._longest = longest
        self._sound = bytearray()
        self._at = 0
        """Position of the first byte of `_sound`."""

    def heard(self, pcm: bytes) -> None:
        self._sound += pcm
        self.keep_last(self._longest)

    def confirmed(self, until: int) -> None:
        """A transcript covers the sound up to this position."""
        self._drop(min(until - self._at, len(self._sound)))

    def keep_last(self, n: int) -> None:
        """No more than that is worth repeating."""
        self._drop(len(self._sound) - n)

    def reopened(self) -> bytes:
        """A new connection listens: what it is to be given first. Its positions begin there."""
        self._at = 0
        return bytes(self._sound)

    def _drop(self, n: int) -> None:
        n -= n % 2  # whole samples
        if n > 0:
            del self._sound[:n]
            self._at += n
