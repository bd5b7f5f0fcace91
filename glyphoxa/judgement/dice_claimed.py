"""A result of dice in an NPC's mouth: the table plays by it, so nobody may make one up.

A sentence claims a result when it tells of a roll that is being made, with a number or as a success. What was rolled
long ago is a story, and who offers or asks for a roll claims nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character

_EN_NUMBER: Final = (
    r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty|(?:double )?(?:ones|sixes))"
)
_DE_NUMBER: Final = (
    r"(?:\d+|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|dreizehn|vierzehn|fünfzehn|sechzehn"
    r"|siebzehn|achtzehn|neunzehn|zwanzig)"
)
_ENDS: Final = r"(?=\s*(?:[.,;:!)…]|$|(?:for|to|on|with|so|and|which|that|plus|in|against)\b))"
"""What is counted is no barrels."""
_ROLLED: Final = re.compile(
    rf"\b(?:roll(?:s|ed)?|rolling)\b(?! of\b)(?: \w+){{0,4}}[ :]+(?:an? |the )?(?:natural |nat )?{_EN_NUMBER}{_ENDS}"
    rf"|\b(?:dice|die|d\d+)\b(?: \w+){{0,3}} (?:shows?|says?|reads?|lands? on|comes? up|gives?|landed on|came up)"
    rf"(?: \w+)? {_EN_NUMBER}\b"
    r"|\b(?:natural|nat) (?:1|20|one|twenty)\b"
    rf"|\broll (?:is|was|gives|makes)(?: \w+)? {_EN_NUMBER}\b"
    rf"|\b{_DE_NUMBER} gewürfelt\b"
    rf"|\b(?:würfle|würfele|würfelt)\b(?: \w+){{0,3}} {_DE_NUMBER}\b(?!\s*(?:würfel|mal|w\d+)\b)"
    rf"|\bwürfel\b(?: \w+)? (?:zeigt|zeigen|sagt|fällt auf|ergibt|ergeben)(?: \w+)? {_DE_NUMBER}\b"
    r"|\bnatürliche (?:1|20|eins|zwanzig)\b|\bwurf (?:ist|war|ergibt)(?: \w+)? "
    rf"{_DE_NUMBER}\b",
    re.IGNORECASE,
)
_LONG_AGO: Final = re.compile(
    r"\b(?:ago|once|yesterday|last (?:night|week|month|year|winter|summer)|years|used to|in those days"
    r"|as a (?:boy|girl)|gestern|früher|damals|einst|einmal|letzte[nsr]?"
    r"|vor \w+ (?:jahren|tagen|wochen|monaten)|als (?:kind|junge))\b",
    re.IGNORECASE,
)


def claims_a_roll(sentence: str) -> bool:
    """Whether it claims a result.

    >>> claims_a_roll("I roll a 17, so I see it."), claims_a_roll("Years ago I rolled a six and won a mule.")
    (True, False)
    """
    return not sentence.rstrip().endswith("?") and bool(_ROLLED.search(sentence)) and not _LONG_AGO.search(sentence)


def made_up_rolls(has_rolled: Callable[[], bool]) -> Callable[[str, Character, Asked], Fault | None]:
    """The rule of one reply.

    Args:
        has_rolled: Whether a tool has answered in this reply; asked when a sentence claims a result.
    """

    def rule(sentence: str, _character: Character, _asked: Asked) -> Fault | None:
        return Fault.DICE if claims_a_roll(sentence) and not has_rolled() else None

    return rule
