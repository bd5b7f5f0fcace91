"""Which of the things an NPC recalls get a place in its prompt, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

from glyphoxa.context.tokens import tokens_of
from glyphoxa.context.wording import recalled_line
from glyphoxa.domain.recalled import Recalled, RecalledFact

_STEEP = 12
"""How fast the worth of a line falls with its score, which is no chance by itself: at 1 short lines that tell nothing
win, and 24 % of LoCoMo's questions find evidence in 90 tokens and 81 in 1,500; at 12 it is 59 and 96.
"""
_LEAST_TOKENS = 12
"""What a line costs at the least: who says it, and the attention of who reads it. A shorter one is worth no more."""


def chosen(candidates: Sequence[Recalled], *, tokens: int, most: int, already: Sequence[str] = ()) -> list[Recalled]:
    """What fits the budget: first what was shown `already` in that order, then greedily what is worth most for its
    length (the usual approximation of a knapsack: Dantzig, 1957).

    What is chosen stands in the order in which it was said; what has no time (a fact of the world) stands where its
    kind first stood among the candidates, kind by kind.

    Args:
        candidates: By their line each once; kinds in the order in which they are to be read.
        tokens: Of all together.
        most: Lines.
        already: Lines of a former choice for the same speech: a prompt cache has read them.
    """
    by_line: dict[str, Recalled] = {}
    for one in candidates:
        by_line.setdefault(recalled_line(one), one)
    kept = [by_line[line] for line in dict.fromkeys(already) if line in by_line]
    left = tokens - sum(_tokens_of(one) for one in kept)
    new: list[Recalled] = []
    position = {line: at for at, line in enumerate(by_line)}
    rest = [(one, at) for at, one in enumerate(by_line.values()) if one not in kept]
    for one, _ in sorted(rest, key=lambda each: (-_worth_per_token(each[0]), each[1])):
        cost = _tokens_of(one)
        if len(kept) + len(new) < most and cost <= left:
            new.append(one)
            left -= cost
    kinds = {source: at for at, source in reversed(list(enumerate(one.source for one in candidates)))}
    new.sort(
        key=lambda one: (
            kinds[one.source],
            position[recalled_line(one)] if isinstance(one, RecalledFact) else one.at_ms or 0,
        )
    )
    return [*kept[:most], *new]


def _tokens_of(one: Recalled) -> int:
    return tokens_of(recalled_line(one))


def _worth_per_token(one: Recalled) -> float:
    return float(one.score**_STEEP) / max(_LEAST_TOKENS, _tokens_of(one))
