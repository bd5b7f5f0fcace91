"""What was said before word for word is not embedded again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.chunks.embedding_queue import QueuedUtterance, VectorCache, embed_batch
from glyphoxa.domain.errors import Unavailable
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.chunking import pieces_of
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


async def in_batches(
    model: Model, dues: Sequence[QueuedUtterance], remembered: VectorCache, size: int = 2
) -> list[QueuedUtterance]:
    found: list[QueuedUtterance] = []
    for at in range(0, len(dues), size):
        good, failed = await embed_batch(Embedder("m", 3, model.embed), CAMPAIGN, dues[at : at + size], remembered)
        assert good is not None
        assert not failed
        found += good
    return found


async def test_the_same_words_of_the_same_speaker_are_embedded_once_for_all_batches() -> None:
    model = Model()
    dues = [due(0, "Yes."), due(1, LONG), due(2, "Yes."), due(3, "Yes.", "Merle"), due(4, LONG), due(5, "")]
    found = await in_batches(model, dues, VectorCache())
    assert sorted(model.asked) == sorted({piece.content for each in dues for piece in each.pieces})
    apart = [one for each in dues for one in await in_batches(Model(), [each], VectorCache())]
    for one, alone in zip(found, apart, strict=True):
        assert one.utterance_id == alone.utterance_id
        assert np.array_equal(np.array(one.vectors), np.array(alone.vectors))


async def test_no_more_is_remembered_than_may_be_and_the_longest_unused_goes_first() -> None:
    model, remembered = Model(), VectorCache(most_bytes=2 * 3 * 4)
    await in_batches(model, [due(n, text) for n, text in enumerate("abaca")], remembered, size=1)
    assert model.asked == ["Tamsin: a", "Tamsin: b", "Tamsin: c"]
    await in_batches(model, [due(9, "b")], remembered)
    assert model.asked[3:] == ["Tamsin: b"]


async def test_a_model_that_can_do_nothing_any_more_is_not_thought_well_because_of_what_is_remembered() -> None:
    """Else all that is new would count as what it cannot bear."""
    model, remembered = Model(), VectorCache()
    await in_batches(model, [due(0, "Yes.")], remembered)
    model.bears = lambda text: False
    with pytest.raises(Unavailable, match="fails on every text"):
        await embed_batch(Embedder("m", 3, model.embed), CAMPAIGN, [due(1, "Yes."), due(2, "No.")], remembered)


async def test_what_it_cannot_bear_is_not_remembered() -> None:
    model, remembered = Model(), VectorCache()
    model.bears = lambda text: "x" not in text
    for _ in range(2):
        good, failed = await embed_batch(
            Embedder("m", 3, model.embed), CAMPAIGN, [due(0, "a"), due(1, "x")], remembered
        )
        assert good is not None
        assert ([one.utterance_id for one in good], [one.utterance_id for one in failed]) == (["u0"], ["u1"])
    assert model.asked.count("Tamsin: a") == 2  # with the other, and alone
