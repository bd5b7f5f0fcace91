"""Patterns from lists of words, so that who adds a word need not read a pattern."""

from __future__ import annotations

import re


def words(*listed: str) -> str:
    """The words, which stand between commas, as alternatives of a pattern. A word may be a pattern itself."""
    return "|".join(word for some in listed for word in some.split(", "))


def one_of(*listed: str) -> str:
    """Likewise, as a group: `one_of("oh, excuse me", "ach")` is `(?:oh|excuse me|ach)`."""
    return f"(?:{words(*listed)})"


def any_of(*patterns: str) -> re.Pattern[str]:
    """Matches what one of the patterns matches, the first of them first."""
    return re.compile("|".join(patterns))
