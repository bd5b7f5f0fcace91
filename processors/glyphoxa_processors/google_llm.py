"""Spoken replies from Google Gemini."""

from __future__ import annotations

from typing import Any

from google.genai.types import HttpOptions
from pipecat.frames.frames import Frame, LLMContextFrame, LLMFullResponseEndFrame, LLMTextFrame
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.google.llm import GoogleLLMService

from glyphoxa.chat.dialect import Connection
from glyphoxa.chat.marks import COMMON, ReplyPart, ReplyText
from glyphoxa_processors.frames import RetractFrame
from glyphoxa_processors.llm import MAX_REPLY_TOKENS, STALLED_AFTER_MS, TOOL_TIMEOUT_S


class SpokenGoogle(GoogleLLMService):
    """Gemini for voice: breaks marks in its messages, and passes on what `ReplyText` leaves of its answers."""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, LLMContextFrame):
            self._reply = ReplyText()
            messages: Any = frame.context.get_messages()
            frame = LLMContextFrame(LLMContext(COMMON.in_messages(messages), tools=frame.context.tools))  # type: ignore[arg-type]
        await super().process_frame(frame, direction)

    async def push_frame(self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM) -> None:
        if isinstance(frame, LLMTextFrame):
            await self._pass_on(self._reply.push(frame.text))
            return
        if isinstance(frame, LLMFullResponseEndFrame):
            await self._pass_on(self._reply.end(is_cut=False))
        await super().push_frame(frame, direction)

    async def _pass_on(self, part: ReplyPart) -> None:
        if part.retracts:
            await super().push_frame(RetractFrame())
        if part.text:
            await super().push_frame(LLMTextFrame(part.text))


def google(
    connection: Connection,
    *,
    temperature: float | None = None,
    max_tokens: int = MAX_REPLY_TOKENS,
    stalled_after_ms: int = STALLED_AFTER_MS,
    **_of_openai: object,
) -> SpokenGoogle:
    """Create a model for one mouth. Arguments as for `glyphoxa_processors.llm.openai`."""
    return SpokenGoogle(
        api_key=connection.key,
        http_options=HttpOptions(base_url=connection.base_url) if connection.base_url else None,
        stream_idle_timeout_secs=stalled_after_ms / 1_000,
        retry_on_timeout=False,
        function_call_timeout_secs=TOOL_TIMEOUT_S,
        settings=SpokenGoogle.Settings(model=connection.model, temperature=temperature, max_tokens=max_tokens),
    )
