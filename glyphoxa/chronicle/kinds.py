"""Decides whether a statement holds now: the kind of a claim, from the words around it.

"Wenna was Odo's wife until last year" is past, "they say that Wenna owns the mill" is a rumour. Only a claim that holds
now becomes a fact of the world. One logistic regression for each kind reads the words of the claim's clause, of the
other clauses, and of the other sentences of the line. The weights are data, `kinds.json`, written by
`python -m benchmarks.statements`, and cost a claim that holds now rather than store one that does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.text import Weights, is_grammatical, log_odds, phrases, shipped


class Kind(StrEnum):
    """Relation of a statement to now.

    `RUMOUR` is what somebody else says or what may be. `UNREAL` is dreamt, sung, played, wished, feared or conditional.
    """

    NOW = "now"
    PAST = "past"
    DENIED = "denied"
    RUMOUR = "rumour"
    PLAN = "plan"
    UNREAL = "unreal"


STORED: Final = (Kind.PAST, Kind.DENIED, Kind.RUMOUR, Kind.PLAN)
"""Kinds of statements that are stored for the DM, each as a fact of this name that quotes the sentence."""
NOT_TOLD: Final = (Kind.RUMOUR, Kind.UNREAL)
"""Kinds of what the speaker does not state."""
LEAST: Final = 0.75
"""Score from which a claim holds now. `python -m benchmarks.statements` measures it."""
ANY: Final = -math.inf
"""The least score for what is kept verbatim. Any other kind needs better reasons: a score of `_SURE`."""
_SURE: Final = 0.5


_CLAIM: Final = "claim"
A_NAME: Final = "nn"
"""The word in place of each name."""
_ANOTHER: Final = "~"


def features(parts: Mapping[str, str]) -> frozenset[str]:
    """Return the phrases of a claim and of its surroundings, each with the name of its part.

    Marks stand for the words of one meaning, such as those for a lie. Around the claim, they alone count besides
    function words, because any other word may be there; in the claim, each word and each ending counts, too.

    Args:
        parts: Texts by the name of their part; see `MarkedSentence.parts`.
    """
    found = set[str]()
    for part, text in parts.items():
        general = phrases(text, _marked) if text.strip() else frozenset[str]()
        exact = phrases(text, str) | phrases(text, _ending) if part == _CLAIM else frozenset[str]()
        found.update(f"{part}:{phrase}" for phrase in general | exact)
        found.update(f"any:{phrase}" for phrase in general if phrase in _MARKS and part != _CLAIM)
    return frozenset(found)


_MARKS: Final = {
    f"*{mark}": re.compile("|".join(sorted(listed))) for mark, listed in lexicon("chronicle").table("marks").items()
}


@lru_cache(20_000)
def _marked(word: str) -> str:
    mark = next((mark for mark, words in _MARKS.items() if words.fullmatch(word)), None)
    return mark or (word if word == A_NAME or is_grammatical(word) else _ANOTHER)


def _ending(word: str) -> str:
    return f"-{word[-2:]}"


def kind_of(found: Collection[str], weights: Mapping[str, Weights] | None = None, *, least: float = LEAST) -> Kind:
    """Return the kind of a claim with these features: now only if its score is at least this, and the highest.

    Args:
        weights: Those of each kind; None: the shipped ones.
    """
    known = weights or shipped(__package__, "kinds")
    scores = {Kind(kind): log_odds(found, each) for kind, each in known.items()}
    if scores[Kind.NOW] < least:
        del scores[Kind.NOW]
    best = max(scores, key=scores.__getitem__)
    return best if least > ANY or scores[best] >= _SURE else Kind.NOW
