"""Words that a recogniser writes for sound without speech."""

from __future__ import annotations

import re
from typing import Final

_DESCRIBED: Final = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|[♪♫♬♩]+")
"""Sounds that a recogniser describes: "[laughter]", "(coughs)"."""


def without_described(text: str) -> str:
    """Return the text without the sounds described in it."""
    return _DESCRIBED.sub(" ", text)
