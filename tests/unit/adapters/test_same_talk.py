"""Equal texts of one batch are embedded once, and texts that the model fails on stop no others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.chunks import QueuedUtterance, embed_batch
from glyphoxa.domain.errors import Unavailable
from glyphoxa.recall.vectors import Embedder, pieces_of
from tests.support.builders import CAMPAIGN

LONG = "We walked on. " * 100


class Model:
    """
    Attributes:
        asked: All texts, in order.
        bears: Which it can embed; others make it fall.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.bears = lambda text: True

    async def embed(self, texts: list[str]) -> NDArray[float32]:
        self.asked += texts
        if not all(map(self.bears, texts)):
            raise ValueError("no")
        rows = np.array([[len(text), sum(text.encode()), 1] for text in texts], float32)
        unit: NDArray[float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


def due(n: int, text: str, speaker: str = "Tamsin") -> QueuedUtterance:
    return QueuedUtterance(f"u{n}", n, (speaker, text), pieces_of(text, speaker=speaker))


async def in_one_batch(model: Model, dues: Sequence[QueuedUtterance]) -> list[QueuedUtterance]:
    good, failed = await embed_batch(Embedder("m", 3, model.embed), CAMPAIGN, dues)
    assert good is not None
    assert not failed
    return good


async def test_repeated_words_of_a_speaker_in_one_batch_are_embedded_once() -> None:
    model = Model()
    dues = [due(0, "Yes."), due(1, LONG), due(2, "Yes."), due(3, "Yes.", "Merle"), due(4, LONG), due(5, "")]
    found = await in_one_batch(model, dues)
    assert sorted(model.asked) == sorted({piece.content for each in dues for piece in each.pieces})
    apart = [one for each in dues for one in await in_one_batch(Model(), [each])]
    for one, alone in zip(found, apart, strict=True):
        assert one.utterance_id == alone.utterance_id
        assert np.array_equal(np.array(one.vectors), np.array(alone.vectors))


async def test_model_that_fails_on_all_texts_is_unavailable_despite_silent_lines() -> None:
    """Otherwise the failure would count as the fault of each text."""
    model = Model()
    model.bears = lambda text: False
    with pytest.raises(Unavailable, match="fails on every text"):
        await embed_batch(Embedder("m", 3, model.embed), CAMPAIGN, [due(1, ""), due(2, "No.")])


async def test_text_that_the_model_fails_on_leaves_the_others_embedded() -> None:
    model = Model()
    model.bears = lambda text: "x" not in text
    good, failed = await embed_batch(Embedder("m", 3, model.embed), CAMPAIGN, [due(0, "a"), due(1, "x")])
    assert good is not None
    assert ([one.utterance_id for one in good], [one.utterance_id for one in failed]) == (["u0"], ["u1"])
    assert model.asked.count("Tamsin: a") == 2  # with the other, and alone
