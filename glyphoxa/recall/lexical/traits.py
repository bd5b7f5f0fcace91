"""What kind of utterance it is, as far as that tells whether it may answer a question."""

from __future__ import annotations

import re
from enum import IntFlag

from glyphoxa.recall.temporal.reader import tells_time

_ASKS = re.compile(r"[?？][\s\"'”’»)\]]*$")
_DIGITS = re.compile(r"\d")


class Trait(IntFlag):
    """
    Attributes:
        ASKS: It ends with a question.
        TELLS_TIME: It says when something was ("yesterday", "in June").
        TELLS_NUMBER: There is a number in it.
    """

    ASKS = 1
    TELLS_TIME = 2
    TELLS_NUMBER = 4


def traits_of(text: str, *, language: str) -> Trait:
    found = Trait(0)
    if _ASKS.search(text):
        found |= Trait.ASKS
    if tells_time(text, language=language):
        found |= Trait.TELLS_TIME
    if _DIGITS.search(text):
        found |= Trait.TELLS_NUMBER
    return found
