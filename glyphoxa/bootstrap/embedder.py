"""The model that embeds talk: of a table, or by itself for verbs that need no other. Here or at a provider."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.weights.progress import progress_to
from glyphoxa.adapters.weights.store import Store as Weights
from glyphoxa.bootstrap.local_models import MINILM, LocalModels
from glyphoxa.config.check import PROVIDERS
from glyphoxa.config.provider_keys import key_of
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.recall.semantic.embedder import Embedder

if TYPE_CHECKING:
    from glyphoxa.adapters.embeddings.google import GoogleEmbeddings
    from glyphoxa.adapters.embeddings.openai import OpenAiEmbeddings
    from glyphoxa.adapters.local.minilm import MiniLm

WARM_UP_MS = 3_000
"""A table opens without a provider that takes longer, and remembers by words until it answers."""

_WITHOUT_DIMENSIONS = ("text-embedding-ada-002",)
"""OpenAI's model from before its vectors could be cut; it refuses to be asked."""


def embedder_of(local: LocalModels) -> Embedder | None:
    """What a table's talk is embedded with by a model that runs here; None when none does."""
    return None if local.minilm is None else _embedder(local.minilm)


async def open_embedder(
    settings: Settings, local: LocalModels, stack: AsyncExitStack, *, environ: Mapping[str, str] = os.environ
) -> Embedder | None:
    """What a table's talk is embedded with, ready for its first question; None when the settings want none. Closed by
    `stack`.

    A provider that is away is no reason not to play: words alone decide until it is there.

    Raises:
        InvalidInput: Its key is not set, its package is not installed, or it does not take what the settings ask for.
    """
    if settings.providers.embeddings.name in ("none", "minilm"):
        return embedder_of(local)
    embedder = await _far_away(settings, environ)
    stack.push_async_callback(embedder.aclose)
    try:
        async with asyncio.timeout(WARM_UP_MS / 1_000):
            await embedder.embed_questions(["Good morning."])
    except TimeoutError:
        logger.warning(
            "the model {} has not answered within {} ms: words alone decide until it does", embedder.name, WARM_UP_MS
        )
    except Unavailable as error:
        logger.warning("talk is not embedded yet, and words alone decide what is recalled: {}", error)
    return embedder


async def load_embedder(settings: Settings, *, environ: Mapping[str, str] = os.environ) -> Embedder:
    """The one that the settings name; one that runs here from weights that are here: nothing is fetched. To be closed
    with `aclose`.

    Raises:
        InvalidInput: The settings want none, its package is not installed, or its key is not set.
        NotFound: Its weights are not here.
        Corrupt: They are not what they must be.
    """
    _require(settings)
    if settings.providers.embeddings.name != "minilm":
        return await _far_away(settings, environ)
    try:
        from glyphoxa.adapters.local.minilm import MiniLm

        path = await asyncio.to_thread(Weights(settings.models.dir).path, MINILM)
        return _embedder(await asyncio.to_thread(MiniLm, path))
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"embedding here needs {error.name!r}, which is not installed: pip install 'glyphoxa[local]'"
        ) from error


class LaterEmbedders:
    """What talk is embedded with when `glyphoxa reindex` has changed that under an open table: what the settings name
    by then.

    Args:
        file: Of the settings; None where they are the defaults, which do not change.
    """

    def __init__(self, file: Path | None, *, environ: Mapping[str, str] = os.environ) -> None:
        self._file = file
        self._environ = environ
        self._opened: list[Embedder] = []

    async def embedder(self, name: str, dimensions: int) -> Embedder | None:
        """None if the settings name another one.

        Raises:
            GlyphoxaError: The settings cannot be read now; or as `load_embedder`.
        """
        if self._file is None:
            return None
        settings = await asyncio.to_thread(read_settings, self._file)
        if (_name_of(settings), settings.memory.embedding_dimensions) != (name, dimensions):
            return None
        embedder = await load_embedder(settings, environ=self._environ)
        self._opened.append(embedder)
        return embedder

    async def close(self) -> None:
        for embedder in self._opened:
            await embedder.aclose()


async def fetch_embedder(settings: Settings) -> Embedder:
    """As `load_embedder`; weights that are not here are fetched first.

    Raises:
        Unavailable: They cannot be fetched.
    """
    _require(settings)
    if settings.providers.embeddings.name == "minilm":
        with progress_to() as progress:
            await asyncio.to_thread(Weights(settings.models.dir).ensure, [MINILM], progress)
    return await load_embedder(settings)


def _require(settings: Settings) -> None:
    if settings.providers.embeddings.name == "none":
        raise InvalidInput("providers.embeddings is none: there is nothing to embed a text with; minilm runs here")


def _name_of(settings: Settings) -> str:
    """By which the vectors of different models are told from each other."""
    chosen = settings.providers.embeddings
    return MINILM if chosen.name == "minilm" else f"{chosen.name}/{chosen.model_name}"


def _embedder(minilm: MiniLm) -> Embedder:
    from glyphoxa.adapters.local.minilm import DIMENSIONS

    async def embed(texts: list[str]) -> NDArray[float32]:
        return await asyncio.to_thread(minilm.embed, texts)

    return Embedder(MINILM, DIMENSIONS, embed)


async def _far_away(settings: Settings, environ: Mapping[str, str]) -> Embedder:
    chosen = settings.providers.embeddings
    key = key_of(chosen, kind="embeddings", environ=environ)
    module = "google" if chosen.name == "google" else "openai"
    try:
        # A second of work, and the loop may be carrying sound.
        await asyncio.to_thread(import_module, f"glyphoxa.adapters.embeddings.{module}")
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"providers.embeddings {chosen.name!r} needs {error.name!r}, which is not installed: "
            f"pip install 'glyphoxa[{PROVIDERS['embeddings', chosen.name].extra}]'"
        ) from error
    model, dimensions = chosen.model_name, settings.memory.embedding_dimensions
    client: GoogleEmbeddings | OpenAiEmbeddings
    if chosen.name == "google":
        from glyphoxa.adapters.embeddings.google import MOST_TEXTS, GoogleEmbeddings

        client = GoogleEmbeddings(model=model, dimensions=dimensions, api_key=key, base_url=chosen.base_url)
    else:
        from glyphoxa.adapters.embeddings.openai import MOST_TEXTS, OpenAiEmbeddings

        client = OpenAiEmbeddings(
            model=model,
            dimensions=dimensions,
            api_key=key,
            base_url=chosen.base_url,
            # Few other servers know how; what they give is checked all the same.
            asks_for_dimensions=chosen.name == "openai" and model not in _WITHOUT_DIMENSIONS,
        )
    return Embedder(
        _name_of(settings),
        dimensions,
        client.embed,
        embed_otherwise=client.embed_questions,
        batch=MOST_TEXTS,
        aclose=client.close,
    )
