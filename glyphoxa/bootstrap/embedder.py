"""The model that embeds talk, by itself: for verbs that need no other."""

from __future__ import annotations

import asyncio

from glyphoxa.adapters.weights.store import Store
from glyphoxa.bootstrap.local_models import MINILM, LocalModels
from glyphoxa.bootstrap.memory import embedder_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.memory.embedding import Embedder


async def load_embedder(settings: Settings) -> Embedder:
    """The one that the settings name, from weights that are here: nothing is fetched.

    Raises:
        InvalidInput: The settings want none, or the extra `local` is not installed.
        NotFound: Its weights are not here.
        Corrupt: They are not what they must be.
    """
    name = settings.providers.embeddings.name
    if name != "minilm":
        raise InvalidInput(f"providers.embeddings is {name}: there is nothing to embed a text with; minilm runs here")
    try:
        from glyphoxa.adapters.local.minilm import MiniLm

        path = await asyncio.to_thread(Store(settings.models.dir).path, MINILM)
        embedder = embedder_of(LocalModels(minilm=await asyncio.to_thread(MiniLm, path)))
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"embedding here needs {error.name!r}, which is not installed: pip install 'glyphoxa[local]'"
        ) from error
    assert embedder is not None  # noqa: S101 - of a model that is there
    return embedder
