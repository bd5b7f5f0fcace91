"""OpenAI's chat completions, without the client library's cost per message and without waiting for ever."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI, Timeout
from pipecat.services.openai.llm import OpenAILLMService

_CONNECT_WITHIN_S = 3.0


class QuickOpenAiLlm(OpenAILLMService):
    """Args:
    stalled_after_s: The longest silence of a stream, and the longest wait for its first word.
    limit_name: What the endpoint calls the limit of a reply's length.
    """

    def __init__(self, *, stalled_after_s: float, limit_name: str, max_reply_tokens: int, **kwargs: Any) -> None:
        # Needed by `create_client`, which the base class calls from its constructor.
        self._stalled_after_s = stalled_after_s
        super().__init__(**kwargs)
        self._limit = {limit_name: max_reply_tokens}

    def create_client(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        default_headers: Any = None,
        **_kwargs: Any,
    ) -> AsyncOpenAI:
        return AsyncOpenAI(
            api_key=api_key,
            base_url=base_url,
            organization=organization,
            project=project,
            default_headers=default_headers,
            timeout=Timeout(self._stalled_after_s, connect=_CONNECT_WITHIN_S),
            # One, for a connection that went stale between two turns; more would only keep the table waiting.
            max_retries=1,
        )

    def build_chat_completion_params(self, params_from_context: Any) -> dict[str, Any]:
        params = super().build_chat_completion_params(params_from_context)
        params.update(self._limit)
        # The library walks every message to rename its keys: 0.15 ms each, with the event loop blocked. In
        # `extra_body` they are sent as they are.
        self._merge_extra_body(params, {"messages": params["messages"]})
        params["messages"] = []
        return params

    async def cleanup(self) -> None:
        await super().cleanup()
        await self._client.close()
