"""The models that run in this process, loaded before a session begins: never in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyphoxa.adapters.weights.progress import progress_to
from glyphoxa.adapters.weights.store import Store
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput

if TYPE_CHECKING:
    from hibari import Hibari

    from glyphoxa.adapters.local.llama import LlamaServer
    from glyphoxa.adapters.local.minilm import MiniLm
    from glyphoxa.adapters.local.whisper import Whisper

WHISPER = "whisper-tiny.en"
MINILM = "minilm-l6-v2-int8"
QWEN = {
    "qwen-1.5b": "qwen2.5-coder-1.5b-instruct-q4_k_m",
    "qwen-0.5b": "qwen2.5-coder-0.5b-instruct-q4_k_m",
}
"""Artefacts of the weights manifest, by the name a settings file uses."""


@dataclass(frozen=True, slots=True)
class LocalModels:
    """What the settings ask to run here; None for what a cloud provider does instead."""

    whisper: Whisper | None = None
    llama: LlamaServer | None = None
    hibari: Hibari | None = None
    minilm: MiniLm | None = None


def needed(settings: Settings) -> list[str]:
    """The artefacts of the weights manifest that these settings need."""
    providers = settings.providers
    names = []
    if providers.stt.name == "whisper":
        names.append(WHISPER)
    if settings.has_memory and providers.embeddings.name == "minilm":
        names.append(MINILM)
    if providers.llm.name in QWEN:
        names.append(QWEN[providers.llm.name])
    return names


async def load(
    settings: Settings, stack: AsyncExitStack, *, slots: int, tell: Callable[[str], None] = lambda _: None
) -> LocalModels:
    """Fetch what is missing, load and warm up. What must be closed is pushed onto `stack`.

    Args:
        slots: How many NPCs think with the local language model; each gets a prompt cache of its own.
        tell: Takes a line for the user about what takes long.

    Raises:
        InvalidInput: The extra `local` is not installed.
        Unavailable: A model is missing and cannot be fetched.
        Corrupt: A model's bytes are not what they must be.
    """
    store = Store(settings.models.dir)
    names = needed(settings)
    with progress_to() as progress:
        await asyncio.to_thread(store.ensure, names, progress)
    tell("loading models")
    try:
        return await _load(settings, store, stack, slots=slots)
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"running models here needs {error.name!r}, which is not installed: pip install 'glyphoxa[local]'"
        ) from error


async def load_llama(settings: Settings, stack: AsyncExitStack, *, slots: int = 1) -> LlamaServer:
    """The language model that the settings name, one that runs here, from weights that are here: nothing is fetched.
    Closed by `stack`.

    Raises:
        InvalidInput: The extra `local` is not installed.
        NotFound: Its weights are not here.
        Corrupt: They are not what they must be.
    """
    path = await asyncio.to_thread(Store(settings.models.dir).path, QWEN[settings.providers.llm.name])
    try:
        from glyphoxa.adapters.local.llama import LlamaServer

        return await stack.enter_async_context(LlamaServer(model_path=path, slots=slots))
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"running a language model here needs {error.name!r}, which is not installed: pip install 'glyphoxa[local]'"
        ) from error


async def _load(settings: Settings, store: Store, stack: AsyncExitStack, *, slots: int) -> LocalModels:
    providers = settings.providers
    whisper = minilm = hibari = llama = None
    if providers.llm.name in QWEN:
        from glyphoxa.adapters.local.llama import LlamaServer

        llama = LlamaServer(model_path=store.path(QWEN[providers.llm.name]), slots=slots)
        await stack.enter_async_context(llama)
    if providers.stt.name == "whisper":
        from glyphoxa.adapters.local.whisper import Whisper

        whisper = await asyncio.to_thread(Whisper, await asyncio.to_thread(store.path, WHISPER))
        await asyncio.to_thread(whisper.warm_up)
    if providers.tts.name == "hibari":
        from glyphoxa.adapters.local.hibari_voice import HibariVoice, load_engine

        hibari = await asyncio.to_thread(load_engine)
        await asyncio.to_thread(HibariVoice(hibari).warm_up)
    if MINILM in needed(settings):
        from glyphoxa.adapters.local.minilm import MiniLm

        minilm = await asyncio.to_thread(MiniLm, store.path(MINILM))
        await asyncio.to_thread(minilm.embed, ["warm up"])
    return LocalModels(whisper=whisper, llama=llama, hibari=hibari, minilm=minilm)
