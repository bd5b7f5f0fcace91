"""An NPC that recites what the DM directed it to do: a small model reads an instruction out as if it were a line."""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character

_LABEL: Final = re.compile(r"\bfor this answer\b", re.IGNORECASE)
_LEAST_RECITED: Final = 3
"""Words. What is shorter may well be a sentence of its own."""


def recites_direction(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module. What the DM wants said in the NPC's own words passes."""
    if not asked.direction:
        return None
    direction = _plain(asked.direction)
    is_recited = direction.count(" ") + 1 >= _LEAST_RECITED and f" {direction} " in f" {_plain(sentence)} "
    return Fault.OF_THE_PROMPT if is_recited or _LABEL.search(sentence) else None


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))
