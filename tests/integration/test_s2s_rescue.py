"""An NPC whose speech-to-speech service fails, as the settings open it: over the wire, with a real voice behind it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.local.hibari_voice import load_engine
from glyphoxa.app.engines import MouthSpec, find_mouth
from glyphoxa.app.models import LocalModels
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import TurnId
from glyphoxa.npc.mouth import Finished, Injected, MouthEvent
from glyphoxa_pipelines.host import PipelineHost
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.patience import DEADLINE_S
from tests.support.pipecat_fakes import GRIMJAW, VALE, Memory, model_server, prompt
from tests.support.realtime_server import RealtimeServer


async def _answer(s2s: dict[str, Any]) -> tuple[list[MouthEvent], Finished]:
    """Return an NPC's answer to a question with this service."""
    events: list[MouthEvent] = []
    finished: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()

    def listen(event: MouthEvent) -> None:
        events.append(event)
        if isinstance(event, Finished):
            finished.set_result(event)

    host = PipelineHost()
    async with model_server() as server:
        llm = {"name": "openai-compatible", "base_url": server.base_url, "model": "m"}
        order = MouthSpec(
            campaign=VALE,
            npc=GRIMJAW,
            slot=0,
            settings=Settings.model_validate({"providers": {"llm": llm, "s2s": s2s}}),
            local=LocalModels(hibari=load_engine()),
            host=host,
            context=Memory(),
            tools=None,
            listener=listen,
            sink=lambda *_: None,
            now_ms=now_ms,
        )
        mouth = await find_mouth("s2s", files={})(order)
        await mouth.start()
        mouth.begin(TurnId("t1"), prompt("How is my blade?"))
        mouth.release(TurnId("t1"))
        heard = await asyncio.wait_for(finished, DEADLINE_S)
        await mouth.close()
        await host.close()
    return events, heard


@pytest.mark.parametrize(
    ("name", "kind", "key"),
    [("openai-realtime", RealtimeServer, "OPENAI_API_KEY"), ("gemini-live", GeminiLiveServer, "GOOGLE_API_KEY")],
)
async def test_a_service_that_refuses_is_replaced_within_the_turn(
    name: str, kind: Any, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(key, "a-key")
    async with kind(refuse_with=500) as server:
        events, finished = await _answer({"name": name, "base_url": server.base_url, "model": "m"})
    assert finished.heard
    assert finished.error == ""
    [*_, injected] = [event for event in events if isinstance(event, Injected)]
    assert any("the first engine's answer" in why for why in injected.prompt.omitted)


async def test_without_rescue_the_turn_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    async with RealtimeServer(refuse_with=500) as server:
        _, finished = await _answer({"name": "openai-realtime", "base_url": server.base_url, "rescue": False})
    assert finished.heard == ""
    assert "speech-to-speech" in finished.error
