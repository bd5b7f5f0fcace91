"""An NPC whose speech-to-speech service fails, as the settings open it: over the wire, with a real voice behind it."""

from __future__ import annotations

from typing import Any

import pytest

from glyphoxa.adapters.local.hibari_voice import load_engine
from glyphoxa.app.models import LocalModels
from glyphoxa.npc.mouth import Finished, Injected
from tests.integration.test_fallbacks import an_npc
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.pipecat_fakes import ModelServer
from tests.support.realtime_server import RealtimeServer


async def _answer(s2s: dict[str, Any]) -> tuple[list[Injected], Finished]:
    """Return what an NPC with this service was told, and its answer to a question."""
    async with ModelServer() as server:
        llm = {"name": "openai-compatible", "base_url": server.base_url, "model": "m"}
        local = LocalModels(hibari=load_engine())
        async with an_npc({"llm": llm, "s2s": s2s}, engine="s2s", local=local) as npc:
            finished = await npc.answers()
    return npc.injected, finished


@pytest.mark.parametrize(
    ("name", "kind", "key"),
    [("openai-realtime", RealtimeServer, "OPENAI_API_KEY"), ("gemini-live", GeminiLiveServer, "GOOGLE_API_KEY")],
)
async def test_a_service_that_refuses_is_replaced_within_the_turn(
    name: str, kind: Any, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(key, "a-key")
    async with kind(refuse_with=500) as server:
        told, finished = await _answer({"name": name, "base_url": server.base_url, "model": "m"})
    assert finished.heard
    assert finished.error == ""
    assert any("the first engine's answer" in why for why in told[-1].prompt.omitted)


async def test_without_rescue_the_turn_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    async with RealtimeServer(refuse_with=500) as server:
        _, finished = await _answer({"name": "openai-realtime", "base_url": server.base_url, "rescue": False})
    assert finished.heard == ""
    assert "speech-to-speech" in finished.error
