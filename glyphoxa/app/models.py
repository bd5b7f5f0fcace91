"""Loads the models that run in this process before a session begins."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.actors.deadline import answered_within
from glyphoxa.adapters.weights.download import ShownProgress
from glyphoxa.adapters.weights.store import ModelFile, WeightStore
from glyphoxa.chat.models import is_a_path
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.providers.extras import need
from glyphoxa.providers.registry import (
    EMBEDDINGS,
    LLM,
    NONE,
    STT,
    TTS,
    Choice,
    Provider,
    build,
    find,
    maker_of,
    runs_here,
    weights_of,
)
from glyphoxa.recall.vectors import Embedder

if TYPE_CHECKING:
    from hibari import Hibari

    from glyphoxa.adapters.hosted_embedding import HostedEmbeddings
    from glyphoxa.adapters.local.llama import LlamaServer
    from glyphoxa.adapters.local.minilm import MiniLm
    from glyphoxa.adapters.local.whisper import Whisper


Tell = Callable[[str], None]
_SECTIONS: Final = (LLM, STT, TTS, EMBEDDINGS)
"""Settings sections whose models may run here, in loading order."""


@dataclass(frozen=True, slots=True)
class LocalModels:
    """The loaded local models; None where a cloud provider is used."""

    whisper: Whisper | None = None
    llama: LlamaServer | None = None
    hibari: Hibari | None = None
    minilm: MiniLm | None = None


def needed(settings: Settings) -> list[str]:
    """Return the downloadable weights that these settings need."""
    return [name for name in named(settings) if not is_a_path(name)]


def named(settings: Settings) -> list[str]:
    """Return the weights that these settings need, including files given by path."""
    return [
        name for section in _local_sections(settings) for name in weights_of(section, _local_choice(section, settings))
    ]


def weights_for(settings: Settings) -> WeightStore:
    """Return the location of the models' weights."""
    return WeightStore(settings.models.dir, pins=settings.data_directory / "models.json")


def _local_sections(settings: Settings) -> list[str]:
    """Return the sections whose models run here."""
    chosen = [each for each in _SECTIONS if each != EMBEDDINGS or settings.has_memory]
    return [each for each in chosen if any(runs_here(each, one.name) for one in settings.chain(each))]


def _local_choice(section: str, settings: Settings) -> Choice:
    """Return the provider in this section that runs here; at most one does."""
    return next(one for one in settings.chain(section) if runs_here(section, one.name))


def need_packages(settings: Settings, *sections: str) -> None:
    """Check the packages before weights are downloaded, which takes minutes.

    Args:
        sections: Sections whose models run here.

    Raises:
        NotInstalled: A package for one of the models is missing.
    """
    for section in sections:
        row = find(section, _local_choice(section, settings).name)
        need(*row.modules, by=f"{section} {row.name!r}", extra=row.extra)


async def load_local_models(
    settings: Settings, stack: AsyncExitStack, *, slots: int, language: str = "en", tell: Tell = lambda _: None
) -> LocalModels:
    """Download missing weights, then load and warm up the models. `stack` closes them.

    Client libraries of remote providers are imported too, so that an open table does not wait for imports.

    Args:
        slots: NPCs that use the local language model. Each gets its own prompt cache.
        language: Language that the recogniser transcribes.
        tell: Receives progress messages for the user.

    Raises:
        InvalidInput: A required extra is not installed.
        Unavailable: A model is missing and cannot be downloaded.
        Corrupt: A model's file is damaged.
    """
    need_packages(settings, *_local_sections(settings))
    weights = weights_for(settings)
    if missing := [name for name in needed(settings) if not weights.has(name)]:
        tell(f"fetching {', '.join(missing)}")
    with ShownProgress() as progress:
        await asyncio.to_thread(weights.ensure, needed(settings), progress)
    tell("loading models")
    for section in _SECTIONS:
        for name in {one.name for one in settings.chain(section)}:
            if name != NONE and not runs_here(section, name):
                await asyncio.to_thread(maker_of, find(section, name), section=section)
    here = _local_sections(settings)

    async def loaded(section: str, load: Callable[[], Awaitable[object]]) -> Any:
        return await load() if section in here else None

    # Together, because the language model also waits for the disk. All end before a failure is raised: a thread that
    # loads a model cannot be stopped.
    found: Sequence[Any] = await asyncio.gather(
        loaded(STT, lambda: load_whisper(settings, language)),
        loaded(LLM, lambda: load_llama(settings, stack, slots=slots)),
        loaded(TTS, lambda: load_hibari(settings)),
        loaded(EMBEDDINGS, lambda: load_minilm(settings)),
        return_exceptions=True,
    )
    for failure in found:
        if isinstance(failure, BaseException):
            raise failure
    return LocalModels(*found)


async def load_llama(
    settings: Settings, stack: AsyncExitStack, *, slots: int = 1, context_tokens: int | None = None
) -> LlamaServer:
    """Load the configured local language model without downloading. `stack` closes it.

    Args:
        slots: Slots of its prompt cache.
        context_tokens: For prompt and reply, per slot; None: as configured.

    Raises:
        InvalidInput: The extra `local` is not installed.
        NotFound: Its weights are missing.
        Corrupt: Its weights are damaged.
    """
    file = await _weights(settings, LLM)
    from glyphoxa.adapters.local.llama import LlamaServer

    server = LlamaServer(
        model_path=file.path,
        slots=slots,
        ctx_per_slot=context_tokens or (with_local_llm(settings) or settings).context_tokens,
        prompts_dir=settings.data_directory / "prompts",
        model_id=file.sha256,
    )
    return await stack.enter_async_context(server)


async def load_whisper(settings: Settings, language: str) -> Whisper:
    """Load and warm up the local recogniser for a language. Raises as `load_llama`."""
    file = await _weights(settings, STT)
    from glyphoxa.adapters.local.whisper import Whisper

    model = await asyncio.to_thread(Whisper, file.path, language=language)
    await asyncio.to_thread(model.warm_up)
    return model


async def load_hibari(settings: Settings) -> Hibari:
    """Load and warm up the local voice. Raises InvalidInput as `load_llama`."""
    need_packages(settings, TTS)
    from glyphoxa.adapters.local.hibari_voice import HibariVoice, load_engine

    engine = await asyncio.to_thread(load_engine)
    await asyncio.to_thread(HibariVoice(engine).warm_up)
    return engine


async def load_minilm(settings: Settings) -> MiniLm:
    """Load and warm up the local embeddings model. Raises as `load_llama`."""
    file = await _weights(settings, EMBEDDINGS)
    from glyphoxa.adapters.local.minilm import MiniLm

    model = await asyncio.to_thread(MiniLm, file.path)
    await asyncio.to_thread(model.embed, ["warm up"])
    return model


def with_local_llm(settings: Settings) -> Settings | None:
    """Return these settings with the language model in front that runs on this machine, if one does."""
    return next((each for each in settings.in_turn if runs_here(LLM, each.providers.llm.name)), None)


async def _weights(settings: Settings, section: str) -> ModelFile:
    """Find the weights of the local model of a section, once its packages are there."""
    need_packages(settings, section)
    return await asyncio.to_thread(weights_for(settings).find, *weights_of(section, _local_choice(section, settings)))


# The embeddings model, local or remote, of a table or a single command.


WARM_UP_MS = 3_000
"""A table opens without a slower provider, and recalls by words until it answers."""


async def open_embedder(
    settings: Settings, local: LocalModels, stack: AsyncExitStack, *, environ: Mapping[str, str] = os.environ
) -> Embedder | None:
    """Open and warm up the configured embedder; None if there is none. `stack` closes it.

    If a provider is unreachable, recall uses words only until it is back.

    Raises:
        InvalidInput: Its key or package is missing, or it rejects the settings.
    """
    if settings.providers.embeddings.name == NONE or _row(settings).runs_here:
        return None if local.minilm is None else embedder_of(local.minilm)
    embedder = await _remote_embedder(settings, environ)
    stack.push_async_callback(embedder.aclose)
    try:
        async with answered_within(WARM_UP_MS, f"model {embedder.name} has not answered"):
            await embedder.embed_questions(["Good morning."])
    except Unavailable as error:
        logger.warning("utterances are not embedded yet, so recall uses words only: {}", error)
    return embedder


async def load_embedder(settings: Settings, *, environ: Mapping[str, str] = os.environ) -> Embedder:
    """Load the configured embedder without downloading. Close it with `aclose`.

    Raises:
        InvalidInput: There is none, or its package or key is missing.
        NotFound: Its weights are missing.
        Corrupt: Its weights are damaged.
    """
    if not _row(settings).runs_here:
        return await _remote_embedder(settings, environ)
    return embedder_of(await load_minilm(settings))


async def fetch_embedder(settings: Settings) -> Embedder:
    """Download missing weights, then load the embedder.

    Raises:
        Unavailable: They cannot be downloaded.
    """
    weights = _row(settings).weights
    if weights:
        need_packages(settings, EMBEDDINGS)
        with ShownProgress() as progress:
            await asyncio.to_thread(weights_for(settings).ensure, weights, progress)
    return await load_embedder(settings)


def _row(settings: Settings) -> Provider:
    """Return the provider of the embedder. Raises: InvalidInput: There is none."""
    if settings.providers.embeddings.name == NONE:
        raise InvalidInput("providers.embeddings is none, so nothing can be embedded; minilm runs locally")
    return find(EMBEDDINGS, settings.providers.embeddings.name)


def embedder_of(minilm: MiniLm) -> Embedder:
    """Return the embedder that runs the local model in a thread."""
    from glyphoxa.adapters.local.minilm import DIMENSIONS

    async def embed(texts: list[str]) -> NDArray[float32]:
        return await asyncio.to_thread(minilm.embed, texts)

    return Embedder(find(EMBEDDINGS, "minilm").weights[0], DIMENSIONS, embed)


async def _remote_embedder(settings: Settings, environ: Mapping[str, str]) -> Embedder:
    chosen, dimensions = settings.providers.embeddings, settings.memory.embedding_dimensions
    # The import takes a second, and the loop may be carrying sound.
    await asyncio.to_thread(maker_of, _row(settings), section=EMBEDDINGS)
    client: HostedEmbeddings = build(chosen, section=EMBEDDINGS, environ=environ, dimensions=dimensions)
    return Embedder(
        f"{_row(settings).name}/{chosen.model_name}",
        dimensions,
        client.embed,
        embed_otherwise=client.embed_questions,
        batch=client.most_texts,
        aclose=client.close,
    )
