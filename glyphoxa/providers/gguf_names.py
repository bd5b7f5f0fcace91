"""How a user names a chat model that runs here and is none of the shipped ones: a GGUF file, by its path or as the hub
has it.
"""

from __future__ import annotations

import re
from typing import Final

_PART: Final = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_ON_THE_HUB: Final = re.compile(rf"({_PART}/{_PART})/((?:{_PART}/)*{_PART}\.gguf)", re.IGNORECASE)
_IN_PIECES: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)


def hub_name(model: str) -> tuple[str, str] | None:
    """Repository and file of `OWNER/REPO/FILE.gguf`; None for a path. A path of three parts or more that is meant
    to begin where one stands begins with a dot.

    >>> hub_name("bartowski/gemma-3-4b-it-GGUF/gemma-3-4b-it-Q4_K_M.gguf")
    ('bartowski/gemma-3-4b-it-GGUF', 'gemma-3-4b-it-Q4_K_M.gguf')
    >>> hub_name("./models/chat/mine.gguf"), hub_name("models/mine.gguf")
    (None, None)
    """
    named = _ON_THE_HUB.fullmatch(model)
    return (named[1], named[2]) if named else None


def is_a_path(weights: str) -> bool:
    """Whether these weights are a file of the user's; all others can be fetched by their name."""
    return weights.lower().endswith(".gguf") and hub_name(weights) is None


def wrong_gguf_name(model: str) -> str:
    """Why it names no model that can be loaded; "" if it does.

    >>> wrong_gguf_name("./mine.bin")
    "'./mine.bin' is no GGUF file; valid: a path, ./FILE.gguf, or a file of the hub, OWNER/REPO/FILE.gguf"
    """
    if not model.lower().endswith(".gguf"):
        return f"{model!r} is no GGUF file; valid: a path, ./FILE.gguf, or a file of the hub, OWNER/REPO/FILE.gguf"
    if _IN_PIECES.search(model):
        return f"{model!r} is one piece of a model that is cut in several; valid: one that is a single file"
    return ""
