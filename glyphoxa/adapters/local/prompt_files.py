"""What the local model has read of an NPC's prompt, kept on disk: the next session does not read it again.

Reading a persona takes two cores ten to twenty seconds an NPC, restoring what was read takes milliseconds. Of a file
that no longer fits, the server uses as many tokens as are the same, and reads the others.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx
from loguru import logger

from glyphoxa.domain.ids import CampaignId, NpcId

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer

_KEPT_BYTES: Final = 1 << 30
"""Of all files together. One of the 1.5B model has some 15 MB."""
_WITHIN_S: Final = 10.0
_SUFFIX: Final = ".kv"


class PromptFile:
    """An NPC's slot of the server, and the file that keeps it.

    No method raises: without a file the NPC reads its persona.

    Args:
        slot: The NPC's.
        kept_bytes: When the files have more together, the oldest go.

    Attributes:
        one_at_a_time: The server's.
    """

    def __init__(
        self, server: LlamaServer, slot: int, campaign: CampaignId, npc: NpcId, *, kept_bytes: int = _KEPT_BYTES
    ) -> None:
        self.one_at_a_time = server.one_at_a_time
        self._server = server
        self._slot = slot
        self._name = _name(server, campaign, npc)
        self._kept_bytes = kept_bytes

    async def restore(self) -> None:
        """Let the slot hold what it held when it was saved; nothing happens when it has been used since the start."""
        directory = self._server.prompts_dir
        if self._slot in self._server.used_slots:
            return
        self._server.used_slots.add(self._slot)
        if directory is not None and await asyncio.to_thread((directory / self._name).is_file):
            await self._ask("restore", self._name)

    async def save(self) -> None:
        """Keep what the slot holds, in the place of what was kept before."""
        directory = self._server.prompts_dir
        unfinished = f"{self._name}.part"
        if directory is not None and await self._ask("save", unfinished):
            try:
                await asyncio.to_thread(self._put, directory, unfinished)
            except OSError as error:
                logger.warning("what an NPC's model has read is not kept: {}", error)

    async def _ask(self, action: str, filename: str) -> bool:
        address = f"{self._server.base_url.removesuffix('/v1')}/slots/{self._slot}"
        try:
            async with httpx.AsyncClient(headers={"Authorization": f"Bearer {self._server.api_key}"}) as client:
                answer = await client.post(
                    address, params={"action": action}, json={"filename": filename}, timeout=_WITHIN_S
                )
        except httpx.HTTPError as error:
            logger.warning("the local model did not {} what an NPC has read: {}", action, type(error).__name__)
            return False
        if answer.is_error:
            logger.info("the local model did not {} what an NPC has read: {}", action, answer.status_code)
        return answer.is_success

    def _put(self, directory: Path, unfinished: str) -> None:
        (directory / unfinished).chmod(0o600)
        (directory / unfinished).replace(directory / self._name)
        kept = 0
        for file in sorted(directory.glob(f"*{_SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True):
            kept += file.stat().st_size
            if kept > self._kept_bytes:
                # Another process may have been faster.
                with suppress(FileNotFoundError):
                    file.unlink()


def _name(server: LlamaServer, campaign: CampaignId, npc: NpcId) -> str:
    """Nobody else's, and another one when the model changes: the file does not say by which model it was read."""
    whose = "\0".join((server.model_id or _as_it_lies(server.model_path), campaign, npc))
    return hashlib.sha256(whose.encode()).hexdigest()[:32] + _SUFFIX


def _as_it_lies(model: Path) -> str:
    stat = model.stat()
    return "\0".join((model.name, str(stat.st_size), str(stat.st_mtime_ns)))
