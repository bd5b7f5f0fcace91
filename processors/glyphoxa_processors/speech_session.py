"""The seam over providers of speech-to-speech models: one NPC's session with one of them.

Protocol of use, for each turn:

1. `ask(messages)`: the session then knows exactly these, whatever it knew before.
2. `respond()` until it ends. If it gave calls, `answer` them and `respond()` once more.
3. `replied(text)`, and when that is known, `heard(text)`: the session must not believe that it said more.
4. `renew()` between turns: whatever the next one needs is made ready then.

`stop()` at any point ends a response. Whatever fails raises `SessionFailed`; `close()` then, and the next `ask` opens
a new connection, which is told everything anew. `expect` and `renew` may be called in any order while nobody asks.
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
    """Its connection is gone: another one may well give it."""


@dataclass(frozen=True, slots=True)
class SpokenWords:
    """What is being said, a little before its sound."""

    text: str


@dataclass(frozen=True, slots=True)
class SpokenSound:
    """Mono s16le at 24 kHz."""

    pcm: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """The model wants to look something up.

    Attributes:
        arguments: None when they are not a JSON object.
    """

    id: str
    name: str
    arguments: Mapping[str, object] | None


Given = SpokenWords | SpokenSound | Call


class SpeechSession(Protocol):
    """See the module's protocol of use."""

    async def open(self) -> None:
        """Connect, unless it is connected."""
        ...

    async def expect(self, instructions: str) -> None:
        """The next question will probably come with these."""
        ...

    async def ask(self, messages: Sequence[Message]) -> None: ...

    def respond(self, tools: Sequence[ToolSpec]) -> AsyncIterator[Given]:
        """The reply to what was asked, as it comes. It ends with the reply, or with the calls of tools.

        Args:
            tools: What may be called in this response. A session that cannot be told so calls others all the same.
        """
        ...

    async def answer(self, answers: Sequence[tuple[Call, Any]]) -> None:
        """What all calls of a response have found."""
        ...

    def replied(self, text: str) -> None: ...

    async def heard(self, text: str, *, audio_ms: int) -> None: ...

    async def stop(self) -> None: ...

    async def renew(self) -> None: ...

    async def close(self) -> None: ...


class Endpoint(Protocol):
    """Where sessions are opened: address, model, voice and key."""

    def session(self, tools: Sequence[ToolSpec], on_ending: Callable[[], None]) -> SpeechSession:
        """A session of one NPC, not connected yet.

        Args:
            tools: All that the model may ever be shown.
            on_ending: Called when its connection ends or soon will, and nobody asked for that: it wants a `renew`.
        """
        ...


def instructions_of(messages: Sequence[Message]) -> str:
    """What a prompt says of how to behave: such services take it apart from the talk."""
    return "\n\n".join(message.content for message in messages if message.role == "system")


def parameters_of(spec: ToolSpec) -> dict[str, Any]:
    """A tool's arguments as JSON schema."""
    return {
        "type": "object",
        "properties": {name: dict(schema) for name, schema in spec.parameters.items()},
        "required": list(spec.required),
    }


def reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
