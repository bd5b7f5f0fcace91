"""Asks a remote provider one short question, with the client that a table uses. Entry point `live_check`."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from pipecat.frames.frames import (
    Frame,
    InputAudioRawFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.actors.deadline import answered_within
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.npc.table_interface import INPUT_RATE_HZ
from glyphoxa.prompt.prompt import Message, Prompt
from glyphoxa.providers.registry import KINDS, LLM, S2S, STT, TTS, Choice, build
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_processors.frames import ReplyEndFrame
from glyphoxa_processors.hot_context import as_context
from glyphoxa_processors.llm import SpokenLLM

_SYSTEM: Final = "You answer with one word."
_MESSAGES: Final = (
    Message("system", _SYSTEM),
    Message("user", "Alice: Good day."),
    Message("user", "Bob: What colour is the sky?"),
)
_ANSWER_TOKENS: Final = 120
_SOUND_S: Final = 1.0
_SPOKEN_WITHIN_MS: Final = 30_000


async def ask(section: str, choice: Choice) -> str:
    """Return how long the provider took, and what it can do, in words. The caller sets the deadline.

    Args:
        section: That of a language model, a recogniser, a voice or a speech-to-speech service.

    Raises:
        InvalidInput: Its key or package is missing.
        Unavailable: It fails, with its reason.
    """
    match KINDS[section]:
        case "llm":
            return await _ask_llm(choice)
        case "stt":
            return await _ask_stt(choice)
        case "tts":
            return await _ask_tts(choice)
        case _:
            tried: str = await build(choice, section=S2S).try_out(_MESSAGES[::2])
            return tried


async def _ask_llm(choice: Choice) -> str:
    llm = build(choice, section=LLM, max_tokens=_ANSWER_TOKENS)
    context = as_context(Prompt(NpcId("live-check"), _MESSAGES, "", ""))
    began_s = time.monotonic()
    try:
        if isinstance(llm, SpokenLLM):
            return await llm.try_out(context)
        if not await llm.run_inference(context):
            raise Unavailable("the model returned no words")
        return f"answered after {_ms_since(began_s)} ms"
    finally:
        await llm.cleanup()


async def _ask_stt(choice: Choice) -> str:
    stt, heard = build(choice, section=STT), _Heard(TranscriptionFrame)
    host = PipelineHost()
    try:
        line = await host.add("live-check", [stt, heard], on_error=heard.fail)
        n_bytes = INPUT_RATE_HZ // 50 * 2
        line.send(VADUserStartedSpeakingFrame(start_secs=0.2))
        for _ in range(int(_SOUND_S * 50)):
            line.send(InputAudioRawFrame(bytes(n_bytes), INPUT_RATE_HZ, 1))
        line.send(VADUserStoppedSpeakingFrame(stop_secs=0.2))
        began_s = time.monotonic()
        await heard.answer
        return f"transcript after {_ms_since(began_s)} ms"
    finally:
        await host.close()


async def _ask_tts(choice: Choice) -> str:
    began_s = time.monotonic()
    if not await sample("Good day.", choice, voice=getattr(choice, "voice", None)):
        raise Unavailable("the voice returned no sound")
    return f"spoke after {_ms_since(began_s)} ms"


async def sample(text: str, tts: Choice, *, voice: str | None) -> bytes:
    """Return text spoken by a cloud voice: mono s16le at `OUTPUT_RATE_HZ`.

    Raises:
        InvalidInput: The key or the provider's package is missing.
        Unavailable: The provider fails or does not answer in time.
    """
    host, heard = PipelineHost(), _Heard(ReplyEndFrame)
    try:
        service = build(tts, section=TTS, voice=voice)
        line = await host.add("sample", [service, heard], on_error=lambda why: heard.fail(f"the voice failed: {why}"))
        line.send(TTSSpeakFrame(text, append_to_context=False))
        line.send(ReplyEndFrame(TurnId("sample")))
        async with answered_within(_SPOKEN_WITHIN_MS, "the voice did not speak"):
            await heard.answer
        return bytes(heard.pcm)
    finally:
        await host.close()


class _Heard(FrameProcessor):
    """Collects the sound of an answer, and waits for the frame that ends it."""

    def __init__(self, last: type[Frame]) -> None:
        super().__init__()
        self.pcm = bytearray()
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._last = last

    def fail(self, error: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(Unavailable(error))

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            self.pcm += frame.audio
        elif isinstance(frame, self._last) and not self.answer.done():
            self.answer.set_result(None)
        await self.push_frame(frame, direction)


def _ms_since(began_s: float) -> int:
    return round((time.monotonic() - began_s) * 1_000)
