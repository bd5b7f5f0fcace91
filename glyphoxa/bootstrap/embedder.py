"""The model that embeds talk: of a table, or by itself for verbs that need no other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.weights.progress import progress_to
from glyphoxa.adapters.weights.store import Store as Weights
from glyphoxa.bootstrap.local_models import MINILM, LocalModels
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.memory.embedding import Embedder

if TYPE_CHECKING:
    from glyphoxa.adapters.local.minilm import MiniLm


def embedder_of(local: LocalModels) -> Embedder | None:
    """What a table's talk is embedded with; None when it is not."""
    return None if local.minilm is None else _embedder(local.minilm)


async def load_embedder(settings: Settings) -> Embedder:
    """The one that the settings name, from weights that are here: nothing is fetched.

    Raises:
        InvalidInput: The settings want none, or the extra `local` is not installed.
        NotFound: Its weights are not here.
        Corrupt: They are not what they must be.
    """
    _require(settings)
    try:
        from glyphoxa.adapters.local.minilm import MiniLm

        path = await asyncio.to_thread(Weights(settings.models.dir).path, MINILM)
        return _embedder(await asyncio.to_thread(MiniLm, path))
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"embedding here needs {error.name!r}, which is not installed: pip install 'glyphoxa[local]'"
        ) from error


async def fetch_embedder(settings: Settings) -> Embedder:
    """As `load_embedder`; weights that are not here are fetched first.

    Raises:
        Unavailable: They cannot be fetched.
    """
    _require(settings)
    with progress_to() as progress:
        await asyncio.to_thread(Weights(settings.models.dir).ensure, [MINILM], progress)
    return await load_embedder(settings)


def _require(settings: Settings) -> None:
    name = settings.providers.embeddings.name
    if name != "minilm":
        raise InvalidInput(f"providers.embeddings is {name}: there is nothing to embed a text with; minilm runs here")


def _embedder(minilm: MiniLm) -> Embedder:
    from glyphoxa.adapters.local.minilm import DIMENSIONS

    async def embed(texts: list[str]) -> NDArray[float32]:
        return await asyncio.to_thread(minilm.embed, texts)

    return Embedder(MINILM, DIMENSIONS, embed)
