"""Lines of text for a DM, wherever they are shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Of a terminal, and those that turn round or hold apart what stands behind them, to the end of the line: it would read
otherwise than it was said.
"""


@dataclass(frozen=True, slots=True)
class IndentedLine:
    """
    Attributes:
        depth: How deep it stands below the first.
    """

    text: str
    depth: int = 0


def plain(text: str) -> str:
    """A text in one line, without what a terminal takes for a command: somebody at the table may have typed it."""
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """The same in as many lines as it has."""
    return _COMMANDS.sub(" ", text)
