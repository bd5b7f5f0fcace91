"""The models that run in this process, each loaded and warm: the makers that the rows of `glyphoxa.providers` name.

Each takes the path of its weights (None for one whose package brings them), a stack that closes it, how many places its
prompt cache has, if it has one, and a directory that may keep what is in it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hibari import Hibari

    from glyphoxa.adapters.local.llama import LlamaServer
    from glyphoxa.adapters.local.minilm import MiniLm
    from glyphoxa.adapters.local.whisper import Whisper


async def whisper(path: Path, stack: AsyncExitStack, slots: int, prompts_dir: Path) -> Whisper:
    from glyphoxa.adapters.local.whisper import Whisper

    model = await asyncio.to_thread(Whisper, path)
    await asyncio.to_thread(model.warm_up)
    return model


async def llama(path: Path, stack: AsyncExitStack, slots: int, prompts_dir: Path) -> LlamaServer:
    from glyphoxa.adapters.local.llama import LlamaServer

    return await stack.enter_async_context(LlamaServer(model_path=path, slots=slots, prompts_dir=prompts_dir))


async def hibari(path: None, stack: AsyncExitStack, slots: int, prompts_dir: Path) -> Hibari:
    from glyphoxa.adapters.local.hibari_voice import HibariVoice, load_engine

    engine = await asyncio.to_thread(load_engine)
    await asyncio.to_thread(HibariVoice(engine).warm_up)
    return engine


async def minilm(path: Path, stack: AsyncExitStack, slots: int, prompts_dir: Path) -> MiniLm:
    from glyphoxa.adapters.local.minilm import MiniLm

    model = await asyncio.to_thread(MiniLm, path)
    await asyncio.to_thread(model.embed, ["warm up"])
    return model
