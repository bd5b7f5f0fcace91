"""Vectors for talk, of which the model may be unable to bear some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.memory.chunking import Piece
from glyphoxa.memory.embedding import Embedder


@dataclass(frozen=True, slots=True)
class Due:
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


async def embedded(
    embedder: Embedder, campaign: CampaignId, wanted: Sequence[Due]
) -> tuple[list[Due] | None, list[Due]]:
    """Those with their vectors, and those with which the model can do nothing."""
    contents = [piece.content for due in wanted for piece in due.pieces]
    if not contents:
        return list(wanted), []
    try:
        vectors = await embedder.embed(contents)
    except Unavailable:
        raise
    except Exception as error:  # a model of any make: what it cannot bear is one text, not the evening
        if len(wanted) == 1:
            logger.warning("{} of {} is not embedded: {}", wanted[0].utterance_id, campaign, type(error).__name__)
            return [], list(wanted)
        return await _one_by_one(embedder, campaign, wanted)
    if vectors is None:
        return None, []
    if vectors.shape != (len(contents), embedder.dimensions):
        expected = (len(contents), embedder.dimensions)
        raise InvalidInput(f"the model {embedder.name} gave vectors of shape {vectors.shape}, not {expected}")
    good: list[Due] = []
    failed: list[Due] = []
    at = 0
    for due in wanted:
        of_this = vectors[at : at + len(due.pieces)]
        at += len(due.pieces)
        if np.isfinite(of_this).all() and (not len(of_this) or np.abs(of_this).max(axis=1).min() > 0):
            good.append(Due(due.utterance_id, due.place, due.says, due.pieces, list(of_this)))
        else:
            logger.warning("{} of {} is not embedded: its vector points nowhere", due.utterance_id, campaign)
            failed.append(due)
    return good, failed


async def _one_by_one(
    embedder: Embedder, campaign: CampaignId, wanted: Sequence[Due]
) -> tuple[list[Due] | None, list[Due]]:
    done: list[Due] = []
    failed: list[Due] = []
    for due in wanted:
        good, bad = await embedded(embedder, campaign, [due])
        if good is None:
            return None, []
        done += good
        failed += bad
    return done, failed
