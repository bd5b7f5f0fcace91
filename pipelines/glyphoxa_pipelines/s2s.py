"""A mouth whose model speaks by itself: memory, then a speech-to-speech session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loguru import logger
from pipecat.frames.frames import InterruptionFrame
from pipecat.processors.frame_processor import FrameProcessor

from glyphoxa.context.ports import HotContextSource
from glyphoxa.context.prompt import Prompt
from glyphoxa.domain.campaign import Npc
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import TurnId
from glyphoxa.npc.mouth import Finished, Listener, Mouth, MouthEvent
from glyphoxa.npc.table import AudioSink
from glyphoxa.npc.tools import MemoryTools
from glyphoxa_pipelines.host import Host, Line
from glyphoxa_pipelines.parts import now_ms
from glyphoxa_processors.cloud import Provider, choose, key_of
from glyphoxa_processors.frames import BeginFrame
from glyphoxa_processors.hot_context import HotContextInjector
from glyphoxa_processors.realtime_voice import HeardFrame, RealtimeVoice, Session
from glyphoxa_processors.speaker import Speaker
from glyphoxa_processors.spoken_text import Clean, Splitter

if TYPE_CHECKING:
    from openai import AsyncOpenAI


@dataclass(frozen=True, slots=True)
class S2sParts:
    """Attributes:
    session: See `make_session`.
    tools: What the session may look up, by the NPC's budget tier; the same handler as in a cascaded mouth.
    """

    npc: Npc
    session: Session
    context: HotContextSource
    new_splitter: Callable[[], Splitter]
    new_clean: Callable[[], Clean]
    sink: AudioSink
    listener: Listener
    host: Host
    tools: MemoryTools | None = None
    clock: Callable[[], int] = now_ms


@dataclass(frozen=True, slots=True)
class OpenAiSession:
    """An OpenAI Realtime endpoint."""

    model: str
    voice: str
    base_url: str | None
    key: str = field(repr=False)

    def client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        return AsyncOpenAI(api_key=self.key, base_url=self.base_url)


def make_session(
    provider: Provider, *, voice: str | None = None, environ: Mapping[str, str] = os.environ
) -> OpenAiSession:
    """Names: `openai-realtime`.

    Raises:
        InvalidInput: The name is unknown, or the key is not set.
    """

    def openai() -> OpenAiSession:
        key = key_of(provider, kind="s2s", default_env="OPENAI_API_KEY", environ=environ)
        return OpenAiSession(provider.model or "gpt-realtime", voice or "cedar", provider.base_url, key)

    if provider.name == "gemini-live":
        raise InvalidInput("s2s provider 'gemini-live' cannot be used yet; valid: openai-realtime")
    return choose(provider, {"openai-realtime": openai}, kind="s2s")


async def build(parts: S2sParts) -> Mouth:
    """A mouth that is ready to `start`."""
    return S2sMouth(parts)


class S2sMouth:
    """See `glyphoxa.npc.mouth`. Fillers are not rendered: the session has the NPC's only voice."""

    def __init__(self, parts: S2sParts) -> None:
        self._parts = parts
        self._npc = parts.npc
        self._line: Line | None = None
        self._speaker = Speaker(self._npc.id, parts.sink, self._report, clock=parts.clock)
        self._voice = RealtimeVoice(
            self._npc.id,
            parts.session,
            tools=parts.tools,
            new_splitter=parts.new_splitter,
            new_clean=parts.new_clean,
            listener=self._report,
            on_failure=self._speaker.fail,
            clock=parts.clock,
        )

    def processors(self) -> list[FrameProcessor]:
        """The graph, in the order of the frames."""
        injector = HotContextInjector(self._parts.context, self._report, self._speaker.fail, clock=self._parts.clock)
        return [injector, self._voice, self._speaker]

    async def start(self) -> None:
        def report(error: str) -> None:
            logger.warning("a mouth's service failed: npc={} error={}", self._npc.id, error)

        self._line = await self._parts.host.add(f"mouth-{self._npc.id}", self.processors(), on_error=report)

    def prime(self, prompt: Prompt) -> None:
        """Nothing: the session keeps what it knows, and there is no speculative pre-fetch for it (R-231)."""

    def begin(self, turn: TurnId, prompt: Prompt) -> None:
        if self._speaker.turn is not None:
            self.cancel(self._speaker.turn)
        self._speaker.begin(turn)
        if self._line is None or not self._line.send(BeginFrame(turn, prompt)):
            self._speaker.fail(turn, "the pipeline does not run")

    def release(self, turn: TurnId) -> None:
        self._speaker.release(turn)

    def cancel(self, turn: TurnId) -> None:
        if turn == self._speaker.turn:
            self._speaker.cancel(turn)
            self._interrupt()

    def fill(self, turn: TurnId, text: str) -> None:
        self._speaker.fill(turn, text)

    async def wait_until_drained(self) -> None:
        """Until the graph is at rest. A reply that is being made or played is not part of it."""
        if self._line is not None:
            await self._line.wait_until_drained()

    async def close(self) -> None:
        if self._speaker.turn is not None:
            self._speaker.cancel(self._speaker.turn)
        self._line = None
        await self._parts.host.remove(f"mouth-{self._npc.id}")

    def _report(self, event: MouthEvent) -> None:
        """Pass an event on, unless it belongs to a turn that is over."""
        if isinstance(event, Finished):
            if self._line is not None:
                self._line.send(HeardFrame(event.heard, event.audio_ms))
            if event.error:
                self._interrupt()
            self._parts.listener(event)
        elif event.turn == self._speaker.turn:
            self._parts.listener(event)

    def _interrupt(self) -> None:
        if self._line is not None:
            self._line.send(InterruptionFrame())
