"""Voices that return the sound of one clause at a time."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing

from pipecat.frames.frames import ErrorFrame, Frame, TTSAudioRawFrame
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TTSService

from glyphoxa.npc.table import OUTPUT_RATE_HZ


class VoiceFailed(Exception):
    """A clause cannot be spoken. The message is for the DM."""


class StreamedVoice(TTSService):
    """A voice that returns the sound of one clause at a time, as a stream: mono s16le at `OUTPUT_RATE_HZ`."""

    def __init__(self, *, model: str, voice: str, push_text_frames: bool = True) -> None:
        super().__init__(
            push_start_frame=True,
            push_stop_frames=True,
            push_text_frames=push_text_frames,
            # A clause without sound does not mean that the service died.
            max_consecutive_zero_audio_contexts=0,
            sample_rate=OUTPUT_RATE_HZ,
            settings=TTSSettings(model=model, voice=voice, language=None),
        )

    def can_generate_metrics(self) -> bool:
        return True

    @abstractmethod
    def spoken(self, text: str) -> AsyncGenerator[bytes, None]:
        """Yield the sound of a clause, of any length each.

        Raises:
            VoiceFailed: The provider refuses it or fails.
        """

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        rest, has_sound = b"", False
        try:
            async with aclosing(self.spoken(text)) as parts:
                async for part in parts:
                    sound = rest + part if rest else part
                    rest = sound[len(sound) & ~1 :]  # half a sample
                    if len(sound) < 2:
                        continue
                    has_sound = True
                    await self.stop_ttfb_metrics()
                    yield TTSAudioRawFrame(sound[: len(sound) & ~1], self.sample_rate, 1, context_id=context_id)
                    await asyncio.sleep(0)  # let the player run first
        except VoiceFailed as error:
            # Without an exception: for some kinds of it, pipecat would never use the voice again.
            yield ErrorFrame(error=f"the voice failed: {error}")
        if not has_sound:
            # Otherwise pipecat would delay it and the next clause by three seconds.
            await self.remove_audio_context(context_id)
