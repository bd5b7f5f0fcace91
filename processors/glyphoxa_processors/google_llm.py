"""Spoken replies from Google Gemini."""

from __future__ import annotations

from typing import Any

from pipecat.frames.frames import Frame, LLMContextFrame, LLMFullResponseEndFrame, LLMTextFrame
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.google.llm import GoogleLLMService

from glyphoxa.judgement.marks import COMMON
from glyphoxa.judgement.reasoning import ReplyPart, ReplyText
from glyphoxa_processors.frames import RetractFrame


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
