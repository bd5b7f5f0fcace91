"""Deepgram's voice, which never says the words of an interrupted reply in the next one."""

from __future__ import annotations

import json
from typing import Any

from loguru import logger
from pipecat.frames.frames import TTSAudioRawFrame, TTSStoppedFrame
from pipecat.services.deepgram.tts import DeepgramTTSService


class AuraTts(DeepgramTTSService):
    """The protocol does not say which text a piece of sound belongs to, and pipecat takes it for the current one's.

    Sound that was on its way when a player interrupted would so become the beginning of the next reply. Between
    our `Clear` and the server's `Cleared`, everything is dropped.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._n_clearing = 0

    async def on_audio_context_interrupted(self, context_id: str) -> None:
        if self._websocket:
            self._n_clearing += 1
        await super().on_audio_context_interrupted(context_id)

    async def _connect_websocket(self) -> None:
        self._n_clearing = 0
        await super()._connect_websocket()

    async def _receive_messages(self) -> None:
        async for message in self._get_websocket():
            if isinstance(message, str):
                await self._take(json.loads(message))
                continue
            context_id = self.get_active_audio_context_id()
            if context_id and not self._n_clearing:
                frame = TTSAudioRawFrame(message, self.sample_rate, 1, context_id=context_id)
                await self.append_to_audio_context(context_id, frame)

    async def _take(self, control: dict[str, Any]) -> None:
        match control.get("type"):
            case "Cleared":
                self._n_clearing = max(0, self._n_clearing - 1)
            case "Flushed" if not self._n_clearing:
                context_id = self.get_active_audio_context_id()
                if context_id:
                    await self.append_to_audio_context(context_id, TTSStoppedFrame(context_id=context_id))
                    await self.remove_audio_context(context_id)
            case "Warning" | "Error":
                # Its words may quote the text that was to be said.
                logger.bind(content=str(control)).warning("{}: the voice service complains", self)
            case _:
                pass
