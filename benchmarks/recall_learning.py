"""Weights of a ranking, learnt from questions whose evidence is known.

As the shipped ones were learnt: a listwise softmax (Cao et al., 2007) over the turns of a campaign, with the squared
weights as its price. It is convex in the weights, and there are twenty of them: Newton's method is there in ten steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy import float32, float64
from numpy.typing import NDArray

from glyphoxa.domain.ids import CampaignId

_PRICE: Final = 0.03
"""Of the squared weights, in questions: enough to keep them apart. A higher one takes from signals whose numbers are
small, such as that of scenes: with 1 a conversation that is left out loses 0.9 points of R@10."""
_STEPS: Final = 30
_CLOSE: Final = 1e-5


@dataclass(frozen=True, slots=True)
class Example:
    """A question with what speaks for each turn.

    Attributes:
        signals: Shape (turns, signals).
        evidence: Places of turns.
        weight: What it counts, against 1 of others.
    """

    signals: NDArray[float32]
    evidence: NDArray[np.intp]
    weight: float = 1.0


def left_out_weights(
    examples: Mapping[CampaignId, Sequence[Example]], others: Sequence[Example] = ()
) -> dict[CampaignId, NDArray[float64]]:
    """For each campaign what is learnt from all others."""
    return {
        left_out: learnt(
            [*(one for campaign in examples if campaign != left_out for one in examples[campaign]), *others]
        )
        for left_out in examples
    }


def learnt(examples: Sequence[Example], *, price: float = _PRICE) -> NDArray[float64]:
    """Weights under which the evidence has the largest share of exp(score), in the mean of its logarithm."""
    usable = [one for one in examples if len(one.evidence)]
    if not usable:
        return np.zeros(0)
    weights = np.zeros(usable[0].signals.shape[1])
    value, slope, bend = _loss(usable, weights, price)
    for _ in range(_STEPS):
        step = np.linalg.solve(bend, slope)
        size = 1.0
        while (found := _loss(usable, weights - size * step, price))[0] > value and size > _CLOSE:
            size /= 2
        weights = weights - size * step
        gained, (value, slope, bend) = value - found[0], found
        if gained < _CLOSE * len(usable):
            break
    return weights


def _loss(
    examples: Sequence[Example], weights: NDArray[float64], price: float
) -> tuple[float, NDArray[float64], NDArray[float64]]:
    """With its first and second derivative."""
    n = len(weights)
    value, slope, bend = price * float(weights @ weights), 2 * price * weights, 2 * price * np.eye(n)
    for one in examples:
        scores = one.signals @ weights.astype(float32)
        shares = np.exp(scores - scores.max())
        total = float(shares.sum())
        shares /= total
        mean = shares @ one.signals
        value -= one.weight * (float(scores[one.evidence].mean()) - float(scores.max()) - float(np.log(total)))
        slope = slope + one.weight * (mean - one.signals[one.evidence].mean(axis=0))
        bend += one.weight * ((one.signals * shares[:, None]).T @ one.signals - np.outer(mean, mean))
    return value, slope, bend
