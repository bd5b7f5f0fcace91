"""An NPC that speaks of itself by name, put into the first person.

Only what can be put there word by word: "from Brunhild" is "from me", "Brunhild's" is "my", "Brunhild has" is "I have".
A sentence that says I already is left alone: "I am Brunhild", "they call me Brunhild".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_SAYS_I: Final = re.compile(r"\b(?:I|I['’]\w+|me|my|mine|myself|ich|mich|mir|mein\w*)\b", re.IGNORECASE)
_REGULAR: Final = (
    "know keep sell live work make want like love think believe tend sail own need sleep care see hear remember trust "
    "charge run serve take say ask set look"
)
_THE_SAME: Final = "was had will would can could must should did may might"
_ENGLISH: Final[Mapping[str, str]] = {
    **{f"{verb}s": verb for verb in _REGULAR.split()},
    **{verb: verb for verb in _THE_SAME.split()},
    "is": "am",
    "has": "have",
    "does": "do",
    "goes": "go",
}
_GERMAN: Final[Mapping[str, str]] = {
    **{verb: verb for verb in ("war", "kann", "weiß", "will", "muss")},
    "ist": "bin",
    "hat": "habe",
    "wird": "werde",
    "kennt": "kenne",
    "lebt": "lebe",
    "arbeitet": "arbeite",
}
_ONLY_ENGLISH: Final = re.compile(r"\b(?:the|a|an|of|to|in|not|this|that|you|and|for)\b", re.IGNORECASE)
_ONLY_GERMAN: Final = re.compile(
    r"\b(?:das|der|dem|nicht|nichts|nur|auch|es|dir|dich|mir|mich|euch|kein\w*|einen?|zu|mit|hier)\b|[äöüß]",
    re.IGNORECASE,
)
_OF_BOTH: Final = frozenset({"will"})
"""Verbs that are English unless something else is German."""
_BEFORE_ME: Final = r"(?:from|to|for|with|by|about|than|ask|tell|told|see|behind|beside)"

_NOT_FIRST: Final = (
    (r"^{own} never\b", "I never"),
    (r"\bhat {own} (nie|nicht)\b", r"habe ich \1"),
    (r"\bhat {own} etwas\b", "hat mir etwas"),
    (r"\bweiß {own}\b", "weiß ich"),
)
"""Where the verb stands in front, or behind another word: what a prompt says of an NPC that knows nothing has these."""


def in_first_person(sentence: str, names: Sequence[str]) -> str:
    """The sentence as the NPC would say it.

    Args:
        names: What it is called by, the longest first.

    >>> in_first_person("A healing draught from Brunhild costs nine silver pieces.", ["Brunhild"])
    'A healing draught from me costs nine silver pieces.'
    """
    if not names or _SAYS_I.search(sentence):
        return sentence
    own = "|".join(map(re.escape, names))
    is_not_longer = r"(?! [A-ZÄÖÜ])"
    sentence = re.sub(rf"^(?:{own})['’]s\b", "My", sentence)
    sentence = re.sub(rf"\b(?:{own})['’]s\b", "my", sentence)
    sentence = re.sub(rf"\b({_BEFORE_ME}) (?:{own})\b(?!['’]){is_not_longer}", r"\1 me", sentence)
    sentence = re.sub(rf"\b(?:{own}) (?:herself|himself)\b", "I myself", sentence)
    for pattern, instead in _NOT_FIRST:
        sentence = re.sub(pattern.format(own=f"(?:{own})"), instead, sentence)
    found = re.match(rf"(?:{own}) (\w+)\b", sentence)
    if found is None:
        return sentence
    verb, rest = found.group(1), sentence[found.end() :]
    is_german = _ONLY_GERMAN.search(sentence) if verb in _OF_BOTH else not _ONLY_ENGLISH.search(sentence)
    if verb in _GERMAN and is_german:
        return f"Ich {_GERMAN[verb]}{rest}"
    return f"I {_ENGLISH[verb]}{rest}" if verb in _ENGLISH else sentence
