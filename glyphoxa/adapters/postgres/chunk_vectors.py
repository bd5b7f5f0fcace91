"""Vectors for talk, of which the model may be unable to bear some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.memory.chunking import Piece, pieces_of
from glyphoxa.memory.embedding import Embedder, WrongDimensions, is_usable

_HARMLESS = [piece.content for piece in pieces_of("Good morning.", speaker="Somebody")]


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
    """Those with their vectors, and those with which the model can do nothing. What says the same is embedded once.

    Raises:
        Unavailable: The model is away, or can do nothing with any text: that is no text's fault.
        WrongDimensions: Its vectors are not of the dimensions it says.
    """
    good, failed = await _embedded(embedder, campaign, wanted)
    if good is not None and failed and not any(due.pieces for due in good):
        await _try_something_harmless(embedder)
    for due in failed:
        logger.warning("{} of {} is not embedded: the model can do nothing with it", due.utterance_id, campaign)
    return good, failed


async def _embedded(
    embedder: Embedder, campaign: CampaignId, wanted: Sequence[Due]
) -> tuple[list[Due] | None, list[Due]]:
    places: dict[str, int] = {}
    for due in wanted:
        for piece in due.pieces:
            places.setdefault(piece.content, len(places))
    if not places:
        return list(wanted), []
    try:
        vectors = await embedder.embed(list(places))
    except (Unavailable, WrongDimensions):
        raise
    except Exception as error:  # a model of any make: what it cannot bear is one text, not the evening
        logger.debug("of {} texts the model can bear not all: {}", len(places), type(error).__name__)
        if len(wanted) == 1:
            return [], list(wanted)
        return await _one_by_one(embedder, campaign, wanted)
    if vectors is None:
        return None, []
    _check_shape(vectors, embedder, len(places))
    good: list[Due] = []
    failed: list[Due] = []
    for due in wanted:
        of_this = vectors[[places[piece.content] for piece in due.pieces]]
        if is_usable(of_this):
            good.append(replace(due, vectors=list(of_this)))
        else:
            failed.append(due)
    return good, failed


async def _one_by_one(
    embedder: Embedder, campaign: CampaignId, wanted: Sequence[Due]
) -> tuple[list[Due] | None, list[Due]]:
    done: list[Due] = []
    failed: list[Due] = []
    for due in wanted:
        good, bad = await _embedded(embedder, campaign, [due])
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
