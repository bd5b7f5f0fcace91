"""How patterns of the rules are put together from lists of words."""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.chronicle.rules.sentences import NAMED, MarkedSentence

SPEAKER: Final = "I"
"""In place of a key: whoever says it."""


def either(*lists: str) -> str:
    """A pattern of any of the words; `_` stands for a space, `*` behind a word for any ending."""
    alternatives = sorted({each for words in lists for each in words.split()}, key=lambda each: (-len(each), each))
    return "(?:" + "|".join(each.replace("_", " ").replace("*", r"\w*") for each in alternatives) + ")"


def word_set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


def pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


SUBJECT: Final = rf"(?P<s>{NAMED}|\bI\b|\bich\b)"
OBJECT: Final = rf"(?P<o>{NAMED})"
IS: Final = r"(?: is| was| are| were|'s|'m| am|'re| ist| war| sind| waren| bin)"
A: Final = (
    either("the a an our my his her their your that this der die das dem den ein eine einem unser unsere") + "? ?"
)
FEW: Final = r"(?:[\w'-]+ ){0,3}?"
"""Up to three words that do not matter."""


def key_of(sentence: MarkedSentence, sign: str) -> str:
    """Whose a sign of `MarkedSentence.marked` is; the speaker's for a word such as "I" or "my"."""
    return sentence.key_of(sign) if re.fullmatch(NAMED, sign) else SPEAKER
