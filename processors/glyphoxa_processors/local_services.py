"""The services that run on this machine: Whisper, a llama.cpp server, the hibari voice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import Frame, TTSAudioRawFrame
from pipecat.services.openai.base_llm import OpenAILLMSettings
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TTSService

from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.table import OUTPUT_RATE_HZ
from glyphoxa.providers.building import Connection
from glyphoxa_processors.llm import AsWords, PromptCache, SpokenLLM, StreamDeadlines
from glyphoxa_processors.recogniser import Recogniser
from glyphoxa_processors.whisper_stt import WhisperSTT

# The local voice as a pipecat service: a blocking synthesiser in a thread, its sound passed on as it comes.


Synthesise = Callable[[str], Iterator[NDArray[np.int16]]]
"""Blocking: 24 kHz mono, in parts as they are ready."""


class HibariTTS(TTSService):
    """An interruption is obeyed between two parts; the part in the making is thrown away."""

    def __init__(self, synthesise: Synthesise, *, voice: str) -> None:
        super().__init__(
            push_start_frame=True,
            push_stop_frames=True,
            push_text_frames=False,
            # It is not a provider that may have stopped answering: the next clause may have a sound again.
            max_consecutive_zero_audio_contexts=0,
            sample_rate=OUTPUT_RATE_HZ,
            settings=TTSSettings(model="hibari", voice=voice, language=None),
        )
        self._synthesise = synthesise
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"voice-{voice}")

    def can_generate_metrics(self) -> bool:
        return True

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        stop = threading.Event()

        def hand_over(part: bytes | Exception | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(parts.put_nowait, part)

        def synthesise() -> None:
            try:
                if not stop.is_set():
                    for part in self._synthesise(text):
                        if stop.is_set():
                            return
                        hand_over(part.tobytes())
                hand_over(None)
            except Exception as error:  # carried over to the event loop and reported there
                hand_over(error)

        self._executor.submit(synthesise)
        has_sound = False
        try:
            while (part := await parts.get()) is not None:
                if isinstance(part, Exception):
                    await self.push_error(f"the voice failed: {part}", exception=part)
                    break
                has_sound = True
                await self.stop_ttfb_metrics()
                yield TTSAudioRawFrame(part, OUTPUT_RATE_HZ, 1, context_id=context_id)
            if not has_sound:
                # pipecat would wait three seconds for it, and the next clause with it.
                await self.remove_audio_context(context_id)
        finally:
            stop.set()

    async def cleanup(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        await super().cleanup()


def make_stt(
    player: PlayerId, recogniser: Recogniser, *, glossary: Callable[[], str], clock: Callable[[], int]
) -> WhisperSTT:
    """An ear's own front to the model that all ears share."""
    return WhisperSTT(player, recogniser, glossary=glossary, clock=clock)


def make_llm(  # noqa: PLR0913 - what the server takes beside its connection
    connection: Connection,
    *,
    max_tokens: int = 90,
    temperature: float = 0.6,
    extra_body: Mapping[str, Any] | None = None,
    as_words: AsWords | None = None,
    cache: PromptCache | None = None,
    deadlines: StreamDeadlines | None = None,
) -> SpokenLLM:
    """A llama.cpp server through its OpenAI-compatible port.

    Args:
        connection: Its address ends in `/v1`; its model's name means nothing there.
        extra_body: What the server takes beyond OpenAI's fields: the slot that keeps this NPC's prompt (one each, or
            they push each other's prefix out), a grammar, a penalty for repeating.
        as_words: See `SpokenLLM`: the server reads markers of its chat template wherever they stand.
        cache: The NPC's. Two prompts that a processor reads at once are both late: the first NPC begins to speak when
            both are read, and the second is not heard before the first is silent.
    """
    return SpokenLLM(
        api_key=connection.key,
        base_url=connection.base_url,
        settings=OpenAILLMSettings(model=connection.model, temperature=temperature, max_tokens=max_tokens),
        extra_body=extra_body,
        as_words=as_words,
        primes=True,
        cache=cache,
        deadlines=deadlines or StreamDeadlines(),
    )


def make_tts(synthesise: Synthesise, *, voice: str) -> HibariTTS:
    return HibariTTS(synthesise, voice=voice)
