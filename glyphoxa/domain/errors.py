"""Error classes, by cause.

    GlyphoxaError
    ├── InvalidInput        the user's: a file, a value, a command
    │   ├── NotFound        a name matches nothing
    │   ├── NotInstalled    an extra of this package is missing (glyphoxa.providers.extras)
    │   └── Unstorable      no database can hold this value, now or later
    ├── Unavailable         the environment's: a server, a model, a device cannot be reached now
    └── Corrupt             invalid stored bytes (a model file, a spool record)

A message names the thing, the value, the place and the valid values. Entry points print it in one line; no traceback
reaches a user.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class GlyphoxaError(Exception):
    """Root of every error this project raises on purpose."""


class InvalidInput(GlyphoxaError):
    """A value that a user gave cannot be used."""


class NotFound(InvalidInput):
    """A name given by a user matches nothing."""


class Unstorable(InvalidInput):
    """No database can hold this value; sending it again cannot help."""


class Unavailable(GlyphoxaError):
    """Something outside this process cannot be reached now; a later attempt may work."""


class Corrupt(GlyphoxaError):
    """Stored bytes are invalid."""


def counted(n: int, what: str, plural: str = "") -> str:
    """Return a number of things in words.

    Args:
        plural: Default: `what` with an s.

    >>> counted(1, "NPC"), counted(1_200, "entity", "entities")
    ('1 NPC', '1,200 entities')
    """
    return f"{n:,} {what if n == 1 else plural or f'{what}s'}"


_SHOWN = 200


def shown(text: str) -> str:
    """Return the first 200 characters of what a server sent, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


MAX_LISTED = 40
_LONGEST_WORD = 300


def nearest(value: str, valid: Sequence[str]) -> str | None:
    """The valid value that `value` most likely misspells, or None."""
    # Longer values are not misspelt words, and comparing them takes seconds.
    near = get_close_matches(value, valid, n=1, cutoff=0.6) if len(value) <= _LONGEST_WORD else []
    return near[0] if near else None


def did_you_mean(value: str, valid: Iterable[str]) -> str:
    """A clause for an error message: the nearest valid value, or the list of valid values.

    >>> did_you_mean("nmae", ["name", "type"])
    "did you mean 'name'?"
    >>> did_you_mean("zzz", ["name", "type"])
    'valid: name, type'
    """
    known = sorted(set(valid))
    if near := nearest(value, known):
        return f"did you mean {near!r}?"
    if len(known) > MAX_LISTED:
        return f"valid: {', '.join(known[:MAX_LISTED])} and {len(known) - MAX_LISTED} more"
    return f"valid: {', '.join(known) or 'none'}"
