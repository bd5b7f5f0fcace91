"""Where YAML takes something away from a text, or tears it, without a word: what to tell its author."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_COMMENT = re.compile(r"[ \t]+(#[^\s#][^\n]{0,40})")
_MOST_WORDS: Final = 6
_SENTENCE_ENDS: Final = (".", "!", "?")


def lost_in_commas(key: str) -> str:
    """Of a key without a value between braces, as `{description: Seven drowned, ten years ago.}` has one."""
    return (
        f"{short(key)!r} has no value: between braces a comma ends the text before it; "
        "put the text in quotes or on a line of its own"
    )


def torn_by_commas(items: Sequence[tuple[object, bool]]) -> str:
    """What to tell of a list between brackets whose items look like one text.

    Args:
        items: Each, and whether it stands there without quotes.
    """
    for (before, _), (item, is_plain) in pairwise(items):
        if is_plain and isinstance(item, str) and item[:1].islower() and item.endswith(_SENTENCE_ENDS):
            two = f"{short(before)!r} and {short(item)!r}"
            return f"between brackets a comma separates: {two} are two; text with a comma goes in quotes"
    return ""


def lost_behind(text: str, end: int) -> str:
    """What to tell of a text without quotes that ends at `end`, if what follows looks like more of it (`Room #3`)."""
    if end >= len(text) or text[end] not in " \t":
        return ""
    found = _COMMENT.match(text, end)
    if found is None:
        return ""
    return (
        f"{short(found[1].rstrip())!r} is a comment, and no part of the text before it; put the text in quotes if it is"
    )


def not_a_key(name: str) -> str:
    """Why a name looks like a part of a text that YAML took for a key; "" if it does not."""
    if len(name.split()) > _MOST_WORDS or (name.endswith(_SENTENCE_ENDS) and " " in name.strip()):
        return f"{short(name)!r} looks like text, and not like the name of an attribute; {_REMEDY}"
    return ""


def no_value(name: str) -> str:
    return f"{short(name)!r} has no value: write one, or leave it out; {_REMEDY}"


_REMEDY: Final = "text with a comma or a colon goes in quotes, or on a line of its own"


def short(value: object) -> object:
    """What a message shows of something that may be long, or a piece of an address with a password in it."""
    if isinstance(value, str) and ("://" in value or "@" in value):
        return "..."
    return value[:60] + "..." if isinstance(value, str) and len(value) > 60 else value
