"""Questions that want several things ("Which cities has Joren seen?"): their answers lie in several sessions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy import float32, int32
from numpy.typing import NDArray

from glyphoxa.speech.language.phonetics import primary_language

APART: Final = 0.5
"""What each turn that is told already takes from the others of its session, in the scale of the ranking."""
POOL: Final = 50
"""So many of the best are put in another order."""

_ENGLISH: Final = (
    # "Which of her friends are ...", "What kinds of swords does ...": a plural before the verb.
    r"^\W*(?:\w+\s){0,3}?(?:what|which)\s+(?:[\w'’-]+\s){0,3}?[\w'’-]{3,}(?<!s)s\s+"
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|would|will|might|should)\b",
    r"^\W*(?:\w+\s){0,3}?(?:what|which|who|where|how many)\b.*\b(?:has|have)\b",
    r"\b(?:both|all|each|every|in common|things|ways|types|kinds)\b",
)
_GERMAN: Final = (
    r"^\W*(?:\w+\s){0,3}?welche\s+[\w-]+(?:en|er|e|s)\b",
    r"^\W*(?:\w+\s){0,3}?(?:was|wen|wo|wie viele)\b.*\b(?:alles|schon|bisher)\b",
    r"\b(?:beide|alle|jede[nrs]?|gemeinsam|dinge|arten)\b",
)
_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile("|".join(_ENGLISH), re.IGNORECASE),
    "de": re.compile("|".join(_GERMAN), re.IGNORECASE),
}


def wants_several(question: str, *, language: str) -> bool:
    """False for a language whose questions are not known here.

    >>> wants_several("Which cities has Joren seen?", language="en")
    True
    """
    pattern = _PATTERNS.get(primary_language(language))
    return pattern is not None and pattern.search(question) is not None


def apart(best: Sequence[int], scores: NDArray[float32], sessions: NDArray[int32], *, cost: float = APART) -> list[int]:
    """Places in an order in which each takes something from the others of its session, so that no session has all of
    the first ones. Greedy, as maximal marginal relevance is (Carbonell & Goldstein, 1998).

    Args:
        best: Places, best first; those behind the first fifty stay where they are.
        scores: Of all turns.
        sessions: Of all turns.
        cost: What each takes.
    """
    pool = np.array(best[:POOL], np.int64)
    left = scores[pool].astype(np.float64)
    of = sessions[pool]
    order: list[int] = []
    for _ in range(len(pool)):
        at = int(np.argmax(left))
        order.append(int(pool[at]))
        left[at] = -np.inf
        left[of == of[at]] -= cost
    return [*order, *best[POOL:]]
