"""Error classes, by cause.

    GlyphoxaError
    ├── InvalidInput        the user's: a file, a value, a command
    │   ├── NotFound        a name matches nothing
    │   ├── NotInstalled    an extra of this package is missing (glyphoxa.providers.extras)
    │   └── Unstorable      no database can hold this value, now or later
    ├── Unavailable         the environment's: a server, a model, a device cannot be reached now
    └── Corrupt             invalid stored bytes (a model file, a stored event)

A message names the thing, the value, the place and the valid values. Entry points print it in one line; no traceback
reaches a user.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence


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


def listed(texts: Sequence[str], most: int = MAX_LISTED, *, between: str = ", ") -> str:
    """Return the first texts and the number of the others; "none" for no text.

    >>> listed(["salt", "iron", "rope"], 2)
    'salt, iron and 1 more'
    """
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return f"{between.join(texts[:most]) or 'none'}{more}"


_LONGEST_WORD = 300
"""Longer values are not misspelt words."""
_WORD = re.compile(r"[^\W_]+")
_NEAR, _NEAR_A_PART = 0.8, 0.92


def nearest(value: str, valid: Collection[str], *, least: float = _NEAR) -> str | None:
    """Return the valid value that `value` most likely misspells or is a part of, in any case; None if none is near.

    Args:
        least: Minimum Jaro-Winkler similarity, 0 to 1. Above 0.8, a word or the end of a value does not count.
    """
    # Help pages load none of the dependencies.
    from jellyfish import damerau_levenshtein_distance, jaro_winkler_similarity

    if len(value) > _LONGEST_WORD or not valid:
        return None
    wanted = value.encode(errors="replace").decode().casefold()  # a broken character is like nothing

    def likeness(other: str) -> float:
        alike = jaro_winkler_similarity(wanted, other.casefold())
        # Of three letters, it compares only those at the same place.
        is_short = max(len(wanted), len(other)) == 3
        is_one_edit = is_short and damerau_levenshtein_distance(wanted, other.casefold()) == 1
        return max(alike, _NEAR) if is_one_edit else alike

    near = max(valid, key=likeness)
    if likeness(near) >= least:
        return near
    parts = {
        part: each
        for each in valid
        if least <= _NEAR
        for word in _WORD.finditer(each)
        for part in (word.group(), each[word.start() :])
    }
    part = max(parts, key=likeness, default="")
    return parts[part] if likeness(part) >= _NEAR_A_PART else None


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
    return f"valid: {listed(known)}"
