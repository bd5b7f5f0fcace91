"""The interface of speech-to-speech providers: one NPC's session with one of them.

Protocol of use, for each turn:

1. `ask(messages)`: the session then knows exactly these messages.
2. `respond()` until it ends. If it made tool calls, `answer` them and `respond()` again.
3. `replied(text)`, and once known, `heard(text)`, so that the session does not believe it said more.
4. `renew()` between turns, to prepare the next one.

`stop()` ends a response at any point. Errors raise `SessionFailed`; then call `close()`, and the next `ask` opens a new
connection with the whole conversation. `expect` and `renew` may be called in any order while no question is open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from glyphoxa.context.prompt import Message
from glyphoxa.npc.tool_spec import ToolSpec

OPEN_WITHIN_S = 5.0


class SessionFailed(Exception):
    """The session cannot give this reply."""


class SessionLost(SessionFailed):
    """The connection is lost. Another one may succeed."""


@dataclass(frozen=True, slots=True)
class SpokenWords:
    """Words of the reply, a little before their sound."""

    text: str


@dataclass(frozen=True, slots=True)
class SpokenSound:
    """Mono s16le at 24 kHz."""

    pcm: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model.

    Attributes:
        arguments: None if they are not a JSON object.
    """

    id: str
    name: str
    arguments: Mapping[str, object] | None


Given = SpokenWords | SpokenSound | Call


class SpeechSession(Protocol):
    """See the module's protocol of use."""

    async def open(self) -> None:
        """Connect, unless connected."""
        ...

    async def expect(self, instructions: str) -> None:
        """Prepare for a question with these instructions."""
        ...

    async def ask(self, messages: Sequence[Message]) -> None: ...

    def respond(self, tools: Sequence[ToolSpec]) -> AsyncIterator[Given]:
        """Yield the reply as it arrives. Ends with the reply or with tool calls.

        Args:
            tools: Tools allowed in this response. A session that cannot restrict them may call others.
        """
        ...

    async def answer(self, answers: Sequence[tuple[Call, Any]]) -> None:
        """Send the results of all calls of a response."""
        ...

    def replied(self, text: str) -> None: ...

    async def heard(self, text: str, *, audio_ms: int) -> None: ...

    async def stop(self) -> None: ...

    async def renew(self) -> None: ...

    async def close(self) -> None: ...


class Endpoint(Protocol):
    """Opens sessions with an address, model, voice and key."""

    def session(self, tools: Sequence[ToolSpec], on_ending: Callable[[], None]) -> SpeechSession:
        """Create a session of one NPC, not connected yet.

        Args:
            tools: All tools that the model may ever see.
            on_ending: Called when its connection ends or soon will, without a request. Then call `renew`.
        """
        ...


def instructions_of(messages: Sequence[Message]) -> str:
    """Return the system messages of a prompt, because such services take instructions separately."""
    return "\n\n".join(message.content for message in messages if message.role == "system")


def parameters_of(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool's arguments as JSON schema."""
    return {
        "type": "object",
        "properties": {name: dict(schema) for name, schema in spec.parameters.items()},
        "required": list(spec.required),
    }


def reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
