"""Tools in a mouth: declares them to the model and returns their results."""

from __future__ import annotations

import json
from typing import Any

from pipecat.frames.frames import (
    Frame,
    FunctionCallCancelFrame,
    FunctionCallFromLLM,
    FunctionCallInProgressFrame,
    FunctionCallResultFrame,
    FunctionCallsStartedFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.llm_service import FunctionCallParams

from glyphoxa.domain.turn_record import TierChoice
from glyphoxa.npc.toolbox import Toolbox

try:
    from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
    from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
except ImportError:  # before pipecat 1.14
    from pipecat.adapters.schemas.function_schema import FunctionSchema
    from pipecat.adapters.schemas.tools_schema import ToolsSchema

_MAX_ROUNDS = 2
"""After this many, the model is asked without tools and has to speak."""


def declare(tools: Toolbox | None, chosen: TierChoice | None) -> ToolsSchema | None:
    """Return the tools of the chosen tier, else of the NPC's own, with their handler; None without tools."""
    if tools is None:
        return None
    of_tier = tools if chosen is None else tools.at(chosen.tier)

    async def handle(params: FunctionCallParams) -> None:
        await params.result_callback(await of_tier.call(params.function_name, params.arguments))

    return ToolsSchema(
        standard_tools=[
            FunctionSchema(
                name=spec.wire_name,
                description=spec.description,
                properties=spec.schema["properties"],
                required=list(spec.required),
                handler=handle,
            )
            for spec in of_tier.declared
        ]
    )


class ToolRounds(FrameProcessor):
    """Combines the model's tool calls and responses into one reply. Placed after the LLM.

    A reply with tool calls consists of several responses. When all calls of a response are answered, the results go
    back to the model in a copy of its context. Later processors see one response: its inner starts and ends are
    dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[FunctionCallFromLLM] = []
        self._answers: dict[str, Any] = {}
        self._keep_back_end = False
        self._rounds = 0

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if direction is FrameDirection.UPSTREAM:
            await self.push_frame(frame, direction)
            return
        match frame:
            case FunctionCallsStartedFrame(function_calls=calls):
                self._calls = list(calls)
                self._answers = {}
                self._keep_back_end = True
            case FunctionCallResultFrame(tool_call_id=call_id, result=result):
                await self._answered(call_id, result)
            case FunctionCallCancelFrame(tool_call_id=call_id):
                await self._answered(call_id, {"found": [], "note": "too slow"})
            case FunctionCallInProgressFrame():
                pass
            case LLMFullResponseStartFrame() if self._rounds:
                pass
            case LLMFullResponseEndFrame() if self._keep_back_end:
                self._keep_back_end = False
                await self._ask_again_when_answered()
            case LLMFullResponseEndFrame():
                self._forget()
                await self.push_frame(frame, direction)
            case InterruptionFrame():
                self._forget()
                await self.push_frame(frame, direction)
            case _:
                await self.push_frame(frame, direction)

    async def _answered(self, call_id: str, result: Any) -> None:
        if any(call.tool_call_id == call_id for call in self._calls):
            self._answers[call_id] = result
            await self._ask_again_when_answered()

    async def _ask_again_when_answered(self) -> None:
        # The results may arrive before the end of the response with the calls.
        if self._keep_back_end or not self._calls or len(self._answers) < len(self._calls):
            return
        calls, self._calls = self._calls, []
        self._rounds += 1
        context = with_answers(calls, self._answers, may_call_again=self._rounds < _MAX_ROUNDS)
        await self.push_frame(LLMContextFrame(context=context), FrameDirection.UPSTREAM)

    def _forget(self) -> None:
        self._calls = []
        self._answers = {}
        self._keep_back_end = False
        self._rounds = 0


def with_answers(calls: list[FunctionCallFromLLM], answers: dict[str, Any], *, may_call_again: bool) -> LLMContext:
    """Return a copy of the calls' context with the calls and their results appended."""
    asked: LLMContext = calls[0].context
    messages: list[Any] = [
        *asked.get_messages(),
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.tool_call_id,
                    "type": "function",
                    "function": {
                        "name": call.function_name,
                        "arguments": json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for call in calls
            ],
        },
        *(
            {
                "role": "tool",
                "tool_call_id": call.tool_call_id,
                "content": json.dumps(answers[call.tool_call_id], ensure_ascii=False),
            }
            for call in calls
        ),
    ]
    return LLMContext(messages, tools=asked.tools) if may_call_again else LLMContext(messages)
