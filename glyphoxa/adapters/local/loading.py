"""Makers of the models that run in this process, each loaded and warmed up. Named by the rows of `glyphoxa.providers`.

Each takes a `Wanted` and the stack that closes the model.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hibari import Hibari

    from glyphoxa.adapters.local.llama import LlamaServer
    from glyphoxa.adapters.local.minilm import MiniLm
    from glyphoxa.adapters.local.whisper import Whisper


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    Attributes:
        weights: Path of the weights; not used if the package contains them.
        model_id: Identifies the weights; may be empty.
        context_tokens: Tokens of prompt and reply per slot of a language model.
        prompts_dir: Where slots may be stored.
        slots: Number of slots of a language model's prompt cache.
        language: Language that is spoken at the table.
    """

    weights: Path
    model_id: str
    context_tokens: int
    prompts_dir: Path
    slots: int = 1
    language: str = "en"


async def whisper(wanted: Wanted, stack: AsyncExitStack) -> Whisper:
    from glyphoxa.adapters.local.whisper import Whisper

    model = await asyncio.to_thread(Whisper, wanted.weights, language=wanted.language)
    await asyncio.to_thread(model.warm_up)
    return model


async def llama(wanted: Wanted, stack: AsyncExitStack) -> LlamaServer:
    from glyphoxa.adapters.local.llama import LlamaServer

    server = LlamaServer(
        model_path=wanted.weights,
        slots=wanted.slots,
        ctx_per_slot=wanted.context_tokens,
        prompts_dir=wanted.prompts_dir,
        model_id=wanted.model_id,
    )
    return await stack.enter_async_context(server)


async def hibari(wanted: Wanted, stack: AsyncExitStack) -> Hibari:
    from glyphoxa.adapters.local.hibari_voice import HibariVoice, load_engine

    engine = await asyncio.to_thread(load_engine)
    await asyncio.to_thread(HibariVoice(engine).warm_up)
    return engine


async def minilm(wanted: Wanted, stack: AsyncExitStack) -> MiniLm:
    from glyphoxa.adapters.local.minilm import MiniLm

    model = await asyncio.to_thread(MiniLm, wanted.weights)
    await asyncio.to_thread(model.embed, ["warm up"])
    return model
