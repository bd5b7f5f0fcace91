"""The model that embeds talk: of a table, or by itself for verbs that need no other. Here or at a provider."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.weights.download import ShownProgress
from glyphoxa.adapters.weights.store import WeightStore as Weights
from glyphoxa.bootstrap.local_models import LocalModels, load_minilm, need_packages
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.providers.building import build, maker_of
from glyphoxa.providers.registry import EMBEDDINGS, NONE, find
from glyphoxa.providers.rows import Provider
from glyphoxa.recall.semantic.embedder import Embedder

if TYPE_CHECKING:
    from glyphoxa.adapters.embeddings.google import GoogleEmbeddings
    from glyphoxa.adapters.embeddings.openai import OpenAiEmbeddings
    from glyphoxa.adapters.local.minilm import MiniLm

WARM_UP_MS = 3_000
"""A table opens without a provider that takes longer, and remembers by words until it answers."""


def embedder_of(local: LocalModels) -> Embedder | None:
    """What a table's talk is embedded with by a model that runs here; None when none does."""
    return None if local.minilm is None else _embedder(find(EMBEDDINGS, "minilm").weights[0], local.minilm)


async def open_embedder(
    settings: Settings, local: LocalModels, stack: AsyncExitStack, *, environ: Mapping[str, str] = os.environ
) -> Embedder | None:
    """What a table's talk is embedded with, ready for its first question; None when the settings want none. Closed by
    `stack`.

    A provider that is away is no reason not to play: words alone decide until it is there.

    Raises:
        InvalidInput: Its key is not set, its package is not installed, or it does not take what the settings ask for.
    """
    if settings.providers.embeddings.name == NONE or _row(settings).runs_here:
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
    if not _row(settings).runs_here:
        return await _far_away(settings, environ)
    async with AsyncExitStack() as stack:
        return _embedder(_name_of(settings), await load_minilm(settings, stack))


class LaterEmbedders:
    """What talk is embedded with when `glyphoxa worker reindex` has changed that under an open table: what the settings
    name by then.

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
    weights = _row(settings).weights
    if weights:
        need_packages(settings, EMBEDDINGS)
        with ShownProgress() as progress:
            await asyncio.to_thread(Weights(settings.models.dir).ensure, weights, progress)
    return await load_embedder(settings)


def _require(settings: Settings) -> None:
    if settings.providers.embeddings.name == NONE:
        raise InvalidInput("providers.embeddings is none: there is nothing to embed a text with; minilm runs here")


def _row(settings: Settings) -> Provider:
    return find(EMBEDDINGS, settings.providers.embeddings.name)


def _name_of(settings: Settings) -> str:
    """By which the vectors of different models are told from each other; "" where nothing is embedded."""
    if settings.providers.embeddings.name == NONE:
        return ""
    row = _row(settings)
    return row.weights[0] if row.runs_here else f"{row.name}/{settings.providers.embeddings.model_name}"


def _embedder(name: str, minilm: MiniLm) -> Embedder:
    from glyphoxa.adapters.local.minilm import DIMENSIONS

    async def embed(texts: list[str]) -> NDArray[float32]:
        return await asyncio.to_thread(minilm.embed, texts)

    return Embedder(name, DIMENSIONS, embed)


async def _far_away(settings: Settings, environ: Mapping[str, str]) -> Embedder:
    chosen, dimensions = settings.providers.embeddings, settings.memory.embedding_dimensions
    # Its import is a second of work, and the loop may be carrying sound.
    await asyncio.to_thread(maker_of, _row(settings), section=EMBEDDINGS)
    client: GoogleEmbeddings | OpenAiEmbeddings = build(
        chosen, section=EMBEDDINGS, environ=environ, dimensions=dimensions
    )
    return Embedder(
        _name_of(settings),
        dimensions,
        client.embed,
        embed_otherwise=client.embed_questions,
        batch=client.most_texts,
        aclose=client.close,
    )
