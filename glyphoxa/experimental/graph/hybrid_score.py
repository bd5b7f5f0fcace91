"""One score of all signals, with a weight for each by the type of node. The numbers are the memory graph
document's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy import float64, intp
from numpy.typing import NDArray

from glyphoxa.experimental.graph.diffusion import MOST_ENERGY


@dataclass(frozen=True, slots=True)
class SignalWeights:
    vector: float
    diffusion: float
    lexical: float
    anchor: float
    recency: float


WEIGHTS: Final[Mapping[str, SignalWeights]] = MappingProxyType(
    {
        "event": SignalWeights(0.35, 0.30, 0.15, 0.05, 0.15),
        "character_sheet": SignalWeights(0.25, 0.20, 0.35, 0.10, 0.10),
        "location_state": SignalWeights(0.30, 0.25, 0.30, 0.05, 0.10),
        "rule_constraint": SignalWeights(0.25, 0.10, 0.35, 0.05, 0.0),
    }
)
OTHER: Final = SignalWeights(0.30, 0.25, 0.25, 0.05, 0.15)


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """What speaks for each of m candidates, each of shape (m,).

    Attributes:
        vector: Cosine, at least 0.
        energy: See `glyphoxa.experimental.graph.diffusion.spread`.
        lexical: Share of the question's words that the node has.
        anchor: 1 for what the question names and what is linked to it, else 0.
        recency: 0 to 1, see `glyphoxa.experimental.graph.diffusion.fading`.
        co_occurrence: Sum over pairs of an entity that is asked about and another that the node is, or is linked to:
            .1 ln(1 + how many nodes both are linked to). Added as it is; the document sets no bound.
    """

    vector: NDArray[float64]
    energy: NDArray[float64]
    lexical: NDArray[float64]
    anchor: NDArray[float64]
    recency: NDArray[float64]
    co_occurrence: NDArray[float64]


def hybrid_scores(
    signals: Signals, types: NDArray[intp], type_names: Sequence[str], weights: Mapping[str, SignalWeights] = WEIGHTS
) -> dict[str, NDArray[float64]]:
    """What each signal adds to the score, by its name, each of shape (m,); the score is their sum.

    Args:
        types: Shape (m,), places in `type_names`.
    """
    table = np.array([astuple(weights.get(name, OTHER)) for name in type_names], float64).reshape(-1, 5)
    of_vector, of_diffusion, of_lexical, of_anchor, of_recency = table[types].T
    return {
        "vector": of_vector * signals.vector,
        "diffusion": of_diffusion * signals.energy / MOST_ENERGY,
        "lexical": of_lexical * signals.lexical,
        "anchor": of_anchor * signals.anchor,
        "recency": of_recency * signals.recency,
        "co_occurrence": signals.co_occurrence,
    }
