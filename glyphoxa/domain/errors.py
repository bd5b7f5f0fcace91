"""What can go wrong, and whose fault it is.

    GlyphoxaError
    ├── InvalidInput        the user's: a file, a value, a command
    │   ├── NotFound        something was named that is not there
    │   ├── NotInstalled    an extra of this package is missing (glyphoxa.providers.extras)
    │   └── Unstorable      no database can hold this value, now or later
    ├── Unavailable         the world's: a server, a model, a device cannot be reached now
    └── Corrupt             bytes that are not what they must be (a model file, a spool record)

A message names the thing, the value, the place and what would be valid. Entry points print it in one
line; no traceback reaches a user.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class GlyphoxaError(Exception):
    """Root of every error this project raises on purpose."""


class InvalidInput(GlyphoxaError):
    """A value that a user gave cannot be used."""


class NotFound(InvalidInput):
    """A name that a user gave belongs to nothing."""


class Unstorable(InvalidInput):
    """No database can hold this value, so that sending it again is no use."""


class Unavailable(GlyphoxaError):
    """Something outside this process cannot be reached now; trying later may work."""


class Corrupt(GlyphoxaError):
    """Stored bytes are not what they must be."""


MOST_LISTED = 40
_LONGEST_WORD = 300


def nearest(value: str, valid: Sequence[str]) -> str | None:
    """The valid value that it may be a misspelling of."""
    # What is longer is no word misspelt, and looking for it takes seconds.
    near = get_close_matches(value, valid, n=1, cutoff=0.6) if len(value) <= _LONGEST_WORD else []
    return near[0] if near else None


def did_you_mean(value: str, valid: Iterable[str]) -> str:
    """A clause for an error message: the nearest valid value, or all of them if they are not too many to be read.

    >>> did_you_mean("nmae", ["name", "type"])
    "did you mean 'name'?"
    >>> did_you_mean("zzz", ["name", "type"])
    'valid: name, type'
    """
    known = sorted(set(valid))
    if near := nearest(value, known):
        return f"did you mean {near!r}?"
    if len(known) > MOST_LISTED:
        return f"valid: {', '.join(known[:MOST_LISTED])} and {len(known) - MOST_LISTED} more"
    return f"valid: {', '.join(known) or 'none'}"
