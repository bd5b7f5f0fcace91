"""One speech-to-speech mouth on a real graph, with a server of either provider's protocol behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from glyphoxa.actors.clock import now_ms
from glyphoxa.app.engines import MouthSpec
from glyphoxa.app.models import LocalModels
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn_record import TierChoice, Verdict
from glyphoxa.npc.mouth import Finished
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.prompt.prompt import Message, Prompt
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_pipelines.s2s import S2sMouth, stages
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.pipecat_fakes import GRIMJAW, VALE, Memory, MouthOnAGraph, Rules
from tests.support.provider import KEYS, ProviderNamed, make_endpoint
from tests.support.realtime_server import RealtimeServer, SpokenReply

PERSONA = Message("system", "You are Grimjaw.")
ASKED = Message("user", "Alice: How is my blade?")

Server = RealtimeServer | GeminiLiveServer


class Heard:
    """The messages to a server, in words that both protocols share."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def asked(self) -> list[list[tuple[str, str]]]:
        """At each question, over all connections: (role, text) of all that the model saw."""
        return [
            [("assistant" if role == "model" else role, text) for role, text in asked]
            for conversation in self._server.conversations
            for asked in conversation.asked
        ]

    @property
    def instructions(self) -> list[str]:
        """Return the instructions of each connection on which something was asked."""
        return [
            conversation.instructions
            if isinstance(self._server, GeminiLiveServer)
            else conversation.session["instructions"]
            for conversation in self._server.conversations
            if conversation.asked
        ]

    @property
    def tool_names(self) -> list[str]:
        first = self._server.conversations[0]
        if isinstance(self._server, GeminiLiveServer):
            return first.tool_names
        return [tool["name"] for tool in first.session["tools"]]


class Play(MouthOnAGraph):
    """A speech-to-speech mouth."""

    def begin(
        self, *talk: Message, turn: str = "t1", persona: Message = PERSONA, tier: TierChoice | None = None
    ) -> None:
        prompt = Prompt(GRIMJAW.id, (persona, *(talk or (ASKED,))), "How is my blade?", "Alice")
        self.mouth.begin(TurnId(turn), replace(prompt, tier=tier))

    async def answer(
        self, *talk: Message, turn: str = "t1", persona: Message = PERSONA, tier: TierChoice | None = None
    ) -> Finished:
        self.begin(*talk, turn=turn, persona=persona, tier=tier)
        self.release(turn)
        return await self.finished(turn)


def endpoint_of(server: Server, *, model: str = "m") -> Any:
    name = "gemini-live" if isinstance(server, GeminiLiveServer) else "openai-realtime"
    return make_endpoint(ProviderNamed(name, server.base_url, model), environ=KEYS)


@asynccontextmanager
async def play_with(
    server: Server,
    *,
    facts: Sequence[str] = (),
    tools: Toolbox | None = None,
    check: Any = Verdict,
    endpoint: Any = None,
    stalled_after_ms: int = 60_000,
) -> AsyncIterator[Play]:
    play, host = Play(), PipelineHost()
    spec = MouthSpec(
        campaign=VALE,
        npc=GRIMJAW,
        slot=0,
        settings=Settings(),
        local=LocalModels(),
        host=host,
        context=Memory(facts),
        tools=tools,
        listener=play.take_event,
        sink=play.take_sound,
        now_ms=now_ms,
    )
    graph = partial(
        stages,
        endpoint=endpoint or endpoint_of(server),
        rules=Rules(new_check=lambda asked: check),
        stalled_after_ms=stalled_after_ms,
    )
    play.mouth = S2sMouth(spec, graph)
    await play.mouth.start()
    try:
        yield play
    finally:
        await play.mouth.close()
        await host.close()


def brisk(kind: type[Any], replies: Sequence[SpokenReply], **changes: Any) -> Any:
    """A server whose speech is short: it is heard in real time."""
    return kind(replies, ms_per_character=10, **changes)
