"""Vectors for talk, of which the model may be unable to bear some."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.semantic.embedder import Embedder, WrongDimensions, is_usable
from glyphoxa.transcript.chunking import Piece, pieces_of

_HARMLESS = [piece.content for piece in pieces_of("Good morning.", speaker="Somebody")]


@dataclass(frozen=True, slots=True)
class QueuedUtterance:
    """An utterance that is to be embedded.

    Attributes:
        place: On the list of what is due; another one after a revision.
        says: Its speaker's name and its text, as they were read.
        vectors: Of its pieces, as soon as they are there.
    """

    utterance_id: str
    place: int
    says: tuple[str, str]
    pieces: Sequence[Piece]
    vectors: Sequence[NDArray[float32]] = ()


class VectorCache:
    """Vectors of what was embedded last, by the hash of what they were made of: who is there says "Yes." many times an
    evening. Of three evenings' 7,900 turns 6.0 % (3.9 % of their words) need not be embedded that way; to ask the
    database, which knows them all, would bring 6.3 %, for an index that every chunk would have to be written to.

    Args:
        most_bytes: The longest unused goes first. 5,400 vectors of 384 dimensions, 1,400 of 1,536.
    """

    def __init__(self, most_bytes: int = 1 << 23) -> None:
        self._most_bytes = most_bytes
        self._vectors: OrderedDict[str, NDArray[float32]] = OrderedDict()

    def get(self, content_hash: str) -> NDArray[float32] | None:
        """Shape (dimensions,)."""
        vector = self._vectors.get(content_hash)
        if vector is not None:
            self._vectors.move_to_end(content_hash)
        return vector

    def put(self, content_hash: str, vector: NDArray[float32]) -> None:
        self._vectors[content_hash] = vector.copy()  # not all of its batch
        self._vectors.move_to_end(content_hash)
        while len(self._vectors) * vector.nbytes > self._most_bytes:
            self._vectors.popitem(last=False)

    def forget(self) -> None:
        self._vectors.clear()


async def embed_batch(
    embedder: Embedder, campaign: CampaignId, wanted: Sequence[QueuedUtterance], remembered: VectorCache
) -> tuple[list[QueuedUtterance] | None, list[QueuedUtterance]]:
    """Those with their vectors, and those with which the model can do nothing. What says the same is embedded once.

    Args:
        remembered: Of this model.

    Raises:
        Unavailable: The model is away, or can do nothing with any text: that is no text's fault.
        WrongDimensions: Its vectors are not of the dimensions it says.
    """
    known = {
        piece.content_hash: vector
        for due in wanted
        for piece in due.pieces
        if (vector := remembered.get(piece.content_hash)) is not None
    }
    good, failed = await _embed_batch(embedder, campaign, wanted, known)
    made = {
        piece.content_hash: vector
        for due in good or ()
        for piece, vector in zip(due.pieces, due.vectors, strict=True)
        if piece.content_hash not in known
    }
    for content_hash, vector in made.items():
        remembered.put(content_hash, vector)
    if good is not None and failed and not made:
        await _try_something_harmless(embedder)
    for due in failed:
        logger.warning("{} of {} is not embedded: the model can do nothing with it", due.utterance_id, campaign)
    return good, failed


async def _embed_batch(
    embedder: Embedder, campaign: CampaignId, wanted: Sequence[QueuedUtterance], known: Mapping[str, NDArray[float32]]
) -> tuple[list[QueuedUtterance] | None, list[QueuedUtterance]]:
    places: dict[str, int] = {}
    for due in wanted:
        for piece in due.pieces:
            if piece.content_hash not in known:
                places.setdefault(piece.content, len(places))
    vectors: NDArray[float32] | None = np.zeros((0, embedder.dimensions), float32)
    if places:
        try:
            vectors = await embedder.embed(list(places))
        except (Unavailable, WrongDimensions):
            raise
        except Exception as error:  # a model of any make: what it cannot bear is one text, not the evening
            logger.debug("of {} texts the model can bear not all: {}", len(places), type(error).__name__)
            if len(wanted) == 1:
                return [], list(wanted)
            return await _one_by_one(embedder, campaign, wanted, known)
    if vectors is None:
        return None, []
    _check_shape(vectors, embedder, len(places))
    good: list[QueuedUtterance] = []
    failed: list[QueuedUtterance] = []
    for due in wanted:
        of_this = [known[p.content_hash] if p.content_hash in known else vectors[places[p.content]] for p in due.pieces]
        if all(is_usable(vector[None]) for vector in of_this):
            good.append(replace(due, vectors=of_this))
        else:
            failed.append(due)
    return good, failed


async def _one_by_one(
    embedder: Embedder, campaign: CampaignId, wanted: Sequence[QueuedUtterance], known: Mapping[str, NDArray[float32]]
) -> tuple[list[QueuedUtterance] | None, list[QueuedUtterance]]:
    done: list[QueuedUtterance] = []
    failed: list[QueuedUtterance] = []
    for due in wanted:
        good, bad = await _embed_batch(embedder, campaign, [due], known)
        if good is None:
            return None, []
        done += good
        failed += bad
    return done, failed


async def _try_something_harmless(embedder: Embedder) -> None:
    """Raises if the model can do nothing even with that: a setting it does not take would else count as a failure of
    all talk there is.
    """
    try:
        vectors = await embedder.embed(_HARMLESS)
    except (Unavailable, WrongDimensions):
        raise
    except Exception as error:  # nothing that anybody said is in it
        raise Unavailable(f"the model {embedder.name} embeds nothing at all: {error}") from error
    if vectors is not None and not is_usable(vectors):
        raise Unavailable(f"the model {embedder.name} embeds nothing at all: its vectors point nowhere")


def _check_shape(vectors: NDArray[float32], embedder: Embedder, n: int) -> None:
    if vectors.ndim == 2 and len(vectors) == n and vectors.shape[1] != embedder.dimensions:
        raise WrongDimensions(model=embedder.name, wanted=embedder.dimensions, given=vectors.shape[1])
    if vectors.shape != (n, embedder.dimensions):
        expected = (n, embedder.dimensions)
        raise InvalidInput(f"the model {embedder.name} gave vectors of shape {vectors.shape}, not {expected}")
