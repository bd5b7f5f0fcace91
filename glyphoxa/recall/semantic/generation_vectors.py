"""Vectors of questions, by whoever embedded the talk that they are compared with.

All talk may be embedded anew while it is asked. Also a model of the same name may be another one by then, so a question
is embedded once for each index generation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.recall.semantic.question_vectors import LeftOut, QuestionVectors
from glyphoxa.transcript.feed import IndexGeneration

_OTHER_MODEL: Final = LeftOut("off", "talk was embedded anew by another model")


class GenerationVectors:
    """
    Args:
        embedder: Of the first generation; None: there are no vectors, and that is said.
        latest: The embedder whose vectors the talk has now.

    Attributes:
        first: Of questions to the first generation.
    """

    def __init__(self, embedder: Embedder | None, *, latest: Callable[[], Embedder | None]) -> None:
        self.first = QuestionVectors(embedder)
        self._embedder = embedder
        self._latest = latest
        self._first_generation: IndexGeneration | None = None
        self._later: dict[IndexGeneration, QuestionVectors] = {}

    async def embed(
        self, generation: IndexGeneration | None, question: str, *, deadline_ms: int
    ) -> NDArray[float32] | LeftOut:
        """A vector that may be compared with those of a generation; else why there is none.

        Args:
            generation: None as long as the talk has no vectors.
        """
        vectors = self._of(generation)
        return _OTHER_MODEL if vectors is None else await vectors.embed_in_time(question, deadline_ms=deadline_ms)

    async def close(self) -> None:
        """Give up what is under way."""
        for vectors in (self.first, *self._later.values()):
            await vectors.close()

    def _of(self, generation: IndexGeneration | None) -> QuestionVectors | None:
        ours, latest = self._embedder, self._latest()
        if generation is None or ours is None or generation == self._first_generation:
            return self.first
        if self._first_generation is None and generation.is_of(ours.name, ours.dimensions):
            self._first_generation = generation
            return self.first
        if generation not in self._later:
            if latest is None or not generation.is_of(latest.name, latest.dimensions):
                return None
            self._later[generation] = QuestionVectors(latest)
        return self._later[generation]
