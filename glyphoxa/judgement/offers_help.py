"""An NPC that offers its help in the middle of a talk, as assistants do at the end of an answer.

Who has just been greeted, or is spoken to for the first time, may well ask what it can do.
"""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.languages import GREETINGS
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.wordlists import words

_OFFERS: Final = re.compile(
    r"\bhow (?:can|may|could) i (?:help|assist|serve)\b|\bwie (?:kann|darf|könnte) ich (?:\w+ )?(?:helfen|dienen)\b"
    r"|\bi (?:can|could|will|'d be \w+ to) (?:help|assist)(?: you)? with (?:that|this)\b"
    r"|\b(?:dabei|damit) (?:kann|könnte) ich (?:dir |ihnen |euch )?(?:gern\w* )?(?:helfen|behilflich sein)\b",
    re.IGNORECASE,
)


def offers_help(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if not asked.before or not _OFFERS.search(sentence):
        return None
    greets = any(not known.isdisjoint(words(asked.question)) for known in GREETINGS.values())
    return None if greets else Fault.ASSISTANT
