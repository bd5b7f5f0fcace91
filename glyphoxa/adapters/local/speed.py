"""How fast a language model reads and speaks on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import httpx

from glyphoxa.adapters.local.gguf import read_header
from glyphoxa.adapters.local.llama import LlamaServer
from glyphoxa.domain.errors import Unavailable
from glyphoxa.providers.chat_models import Measured

_PATIENCE_S: Final = 120.0
_N_READ, _N_SPOKEN = 128, 16
_CTX_TOKENS: Final = 512


async def measure(path: Path) -> Measured:
    """Loads the model, has it read and speak for a few seconds, and lets it go.

    Raises:
        NotFound, Corrupt, InvalidInput: As `LlamaServer.start`.
        Unavailable: It does not answer.
    """
    header = read_header(path)
    async with LlamaServer(model_path=path, ctx_per_slot=_CTX_TOKENS) as server:
        address = f"{server.base_url.removesuffix('/v1')}/completion"
        async with httpx.AsyncClient(
            headers={"Authorization": f"Bearer {server.api_key}"}, timeout=_PATIENCE_S
        ) as client:
            # What is read of the file for the first time comes from the disk.
            await _timed(client, address, n_read=16, n_spoken=2)
            timings = await _timed(client, address, n_read=_N_READ, n_spoken=_N_SPOKEN)
    return Measured(
        billions=header.n_parameters / 1e9,
        bytes=path.stat().st_size,  # noqa: ASYNC240 - the model is let go of, and nobody waits
        reads_per_s=float(timings["prompt_per_second"]),
        speaks_per_s=float(timings["predicted_per_second"]),
    )


def measure_within(path: Path, *, deadline_s: float) -> Measured:
    """As `measure`; blocks. Not for a thread that runs an event loop.

    Raises:
        Unavailable: Besides: it takes longer.
    """
    try:
        return asyncio.run(_within(path, deadline_s))
    except TimeoutError:
        raise Unavailable(
            f"{path.name} was not measured within {deadline_s:g} s: this machine is slow, or busy"
        ) from None


async def _within(path: Path, deadline_s: float) -> Measured:
    async with asyncio.timeout(deadline_s):
        return await measure(path)


async def _timed(client: httpx.AsyncClient, address: str, *, n_read: int, n_spoken: int) -> dict[str, Any]:
    asked = {
        # By their numbers: how many tokens a text has depends on the model.
        "prompt": [100 + at % 100 for at in range(n_read)],
        "n_predict": n_spoken,
        "ignore_eos": True,
        "cache_prompt": False,
    }
    try:
        answer = await client.post(address, json=asked)
        answer.raise_for_status()
        timings: dict[str, Any] = answer.json()["timings"]
        return timings
    except (httpx.HTTPError, ValueError, KeyError) as error:
        raise Unavailable(f"the language model cannot be measured: {error}") from error
