"""The models that run in this process, loaded before a session begins: never in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from glyphoxa.adapters.local.loading import Wanted
from glyphoxa.adapters.weights.download import ShownProgress
from glyphoxa.adapters.weights.store import ModelWeights
from glyphoxa.config.settings import Settings
from glyphoxa.providers.building import maker_of, not_installed
from glyphoxa.providers.chat_models import is_a_path
from glyphoxa.providers.extras import need
from glyphoxa.providers.registry import EMBEDDINGS, LLM, NONE, STT, TTS, Choice, find, runs_here, weights_of

if TYPE_CHECKING:
    from hibari import Hibari

    from glyphoxa.adapters.local.llama import LlamaServer
    from glyphoxa.adapters.local.minilm import MiniLm
    from glyphoxa.adapters.local.whisper import Whisper

_SECTIONS: Final = (LLM, STT, TTS, EMBEDDINGS)
"""Of the settings: those whose models may run here, in the order in which they are loaded."""


@dataclass(frozen=True, slots=True)
class LocalModels:
    """What the settings ask to run here; None for what a cloud provider does instead."""

    whisper: Whisper | None = None
    llama: LlamaServer | None = None
    hibari: Hibari | None = None
    minilm: MiniLm | None = None


def needed(settings: Settings) -> list[str]:
    """The weights that these settings need and that can be fetched: of the manifest, or of the hub."""
    return [name for name in named(settings) if not is_a_path(name)]


def named(settings: Settings) -> list[str]:
    """As `needed`, with the files that are named by their path."""
    return [name for section in _here(settings) for name in weights_of(section, _choice_here(section, settings))]


def weights_for(settings: Settings) -> ModelWeights:
    """Where the weights of these settings' models are."""
    return ModelWeights(settings.data_directory, settings.models.dir)


def _here(settings: Settings) -> list[str]:
    """Sections whose models run here."""
    chosen = [each for each in _SECTIONS if each != EMBEDDINGS or settings.has_memory]
    return [each for each in chosen if any(runs_here(each, one.name) for one in settings.chain(each))]


def _choice_here(section: str, settings: Settings) -> Choice:
    """Of that section, what runs here: at most one does."""
    return next(one for one in settings.chain(section) if runs_here(section, one.name))


def need_packages(settings: Settings, *sections: str) -> None:
    """To be called before weights are fetched, which takes minutes.

    Args:
        sections: Whose models run here.

    Raises:
        NotInstalled: What loads one of their models is not there.
    """
    for section in sections:
        row = find(section, _choice_here(section, settings).name)
        need(*row.modules, by=f"{section} {row.name!r}", extra=row.extra)


async def load(
    settings: Settings, stack: AsyncExitStack, *, slots: int, tell: Callable[[str], None] = lambda _: None
) -> LocalModels:
    """Fetch what is missing, load and warm up. What must be closed is pushed onto `stack`. What asks providers far away
    is imported: nobody at the open table waits for that.

    Args:
        slots: How many NPCs think with the local language model; each gets a prompt cache of its own.
        tell: Takes a line for the user about what takes long.

    Raises:
        InvalidInput: An extra that these settings need is not installed.
        Unavailable: A model is missing and cannot be fetched.
        Corrupt: A model's bytes are not what they must be.
    """
    need_packages(settings, *_here(settings))
    weights = weights_for(settings)
    with ShownProgress() as progress:
        await asyncio.to_thread(weights.ensure, needed(settings), progress)
    tell("loading models")
    for section in _SECTIONS:
        for name in {one.name for one in settings.chain(section)}:
            if name != NONE and not runs_here(section, name):
                await asyncio.to_thread(maker_of, find(section, name), section=section)
    made = {section: await _made(section, settings, stack, slots=slots) for section in _here(settings)}
    return LocalModels(whisper=made.get(STT), llama=made.get(LLM), hibari=made.get(TTS), minilm=made.get(EMBEDDINGS))


async def load_llama(settings: Settings, stack: AsyncExitStack, *, context_tokens: int | None = None) -> LlamaServer:
    """The language model that the settings name, one that runs here, from weights that are here: nothing is fetched.
    Closed by `stack`.

    Args:
        context_tokens: Of prompt and reply; None: as the settings have it.

    Raises:
        InvalidInput: The extra `local` is not installed.
        NotFound: Its weights are not here.
        Corrupt: They are not what they must be.
    """
    llama: LlamaServer = await _made(LLM, settings, stack, context_tokens=context_tokens)
    return llama


async def load_minilm(settings: Settings, stack: AsyncExitStack) -> MiniLm:
    """The embeddings model that runs here. As `load_llama`."""
    minilm: MiniLm = await _made(EMBEDDINGS, settings, stack)
    return minilm


def _context_tokens(settings: Settings) -> int:
    """Of prompt and reply together, for the language model that runs here, wherever in the chain it stands."""
    with_it = (each for each in settings.in_turn if runs_here(LLM, each.providers.llm.name))
    return next(with_it, settings).context_tokens


async def _made(
    section: str, settings: Settings, stack: AsyncExitStack, *, slots: int = 1, context_tokens: int | None = None
) -> Any:
    choice = _choice_here(section, settings)
    row = find(section, choice.name)
    names = weights_of(section, choice)
    file = await asyncio.to_thread(weights_for(settings).find, *names) if names else None
    wanted = Wanted(
        path=None if file is None else file.path,
        model_id="" if file is None else file.sha256,
        slots=slots,
        context_tokens=context_tokens or _context_tokens(settings),
        prompts_dir=settings.data_directory / "prompts",
    )
    try:
        return await maker_of(row, section=section)(wanted, stack)
    except ModuleNotFoundError as error:
        raise not_installed(row, section, error) from error
