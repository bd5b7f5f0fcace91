"""Nova and Flux over a connection that misbehaves: no word is lost, and none is said twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from pipecat.frames.frames import InterimTranscriptionFrame

from benchmarks.servers.deepgram import Close, Connection, DeepgramServer, OnWire, Wire, Word
from glyphoxa_processors.cloud import deepgram_stt
from tests.support.counting import COUNTING, say, sound, spoken, starts, stops, transcript
from tests.support.graph import RunningGraph
from tests.support.provider import KEYS, ProviderNamed, make_stt

BOTH = pytest.mark.parametrize("name", ["deepgram-nova", "deepgram-flux"])
ERRORS: dict[str, dict[str, Any]] = {
    "deepgram-nova": {"type": "Error", "err_code": "Bad Request", "err_msg": "failed to process audio"},
    "deepgram-flux": {"type": "Error", "code": "INTERNAL_SERVER_ERROR", "description": "failed to process audio"},
}
SILENCE = b"\0\1\2"


def is_final(message: dict[str, Any]) -> bool:
    return bool(message.get("is_final")) or message.get("event") == "EndOfTurn"


async def heard(name: str, on_wire: OnWire, *, server: DeepgramServer | None = None) -> tuple[str, DeepgramServer]:
    """Return what is heard of three turns of two words each."""
    server = server or DeepgramServer(voices=COUNTING, on_wire=on_wire)
    async with server:
        stt = make_stt(ProviderNamed(name, server.http_url), keyterms=["Vaelith"], environ=KEYS)
        async with RunningGraph(stt) as graph:
            for voices, until in (((1, 2), "two"), ((3, 4), "four"), ((5, 6), "six")):
                await graph.send(starts(), *spoken(*voices), *sound(0, 200), stops(), *sound(0, 100))
                await graph.wait_until(lambda until=until: transcript(graph).endswith(until))  # type: ignore[misc]
        assert graph.errors == []
    return transcript(graph), server


@BOTH
@pytest.mark.parametrize("code", [1000, 1008, 1011, 4999])
async def test_a_connection_that_is_closed_before_the_words_loses_none(
    name: str, code: int, warnings: list[str]
) -> None:
    def closes(connection: Connection, message: dict[str, Any]) -> list[Wire]:
        return [Close(code, "NET-0001")] if is_final(message) and len(server.connections) == 1 else [message]

    server = DeepgramServer(voices=COUNTING, on_wire=closes)
    said, _ = await heard(name, closes, server=server)
    assert (said, len(server.connections)) == ("one two three four five six", 2)
    assert [line for line in warnings if "is lost" in line] == warnings
    assert len(warnings) == 1 and f"code {code} NET-0001" in warnings[0]


@BOTH
@pytest.mark.parametrize("code", [1000, 4001])
async def test_an_error_followed_by_a_close_is_one_line_with_its_reason(
    name: str, code: int, warnings: list[str]
) -> None:
    def fails(connection: Connection, message: dict[str, Any]) -> list[Wire]:
        return [ERRORS[name], Close(code)] if is_final(message) and len(server.connections) == 1 else [message]

    server = DeepgramServer(voices=COUNTING, on_wire=fails)
    said, _ = await heard(name, fails, server=server)
    assert said == "one two three four five six"
    assert len(warnings) == 1 and "failed to process audio" in warnings[0]


@BOTH
@pytest.mark.parametrize(
    "rubbish",
    [
        ["{", "", "null", "[]", "7", '"Results"', '{"type": 5}'],
        ['{"type": "Results", "channel": 3, "is_final": true}'],
        ['{"type": "Results", "start": "soon"}'],
        ['{"type": "TurnInfo", "event": "Update", "sequence_id": "x", "words": 4}'],
        ['{"type": "TurnInfo", "event": null, "audio_window_end": null, "sequence_id": -3}'],
        ['{"type": "ConfigureSuccess"}', '{"type": "ConfigureFailure"}'],
        ['{"type": "Metadata", "request_id": "r"}', '{"type": "SpeechStarted"}', '{"type": "UtteranceEnd"}'],
        ['{"type": "Warning", "code": "SLOW", "description": "slow"}', '{"type": "TomorrowsMessage"}'],
        [SILENCE],
    ],
)
async def test_messages_that_cannot_be_read_cost_nothing(name: str, rubbish: list[Wire], warnings: list[str]) -> None:
    """They come before and after each good message. The log names them at most once a connection."""
    said, server = await heard(name, lambda _, message: [*rubbish, message, *rubbish])
    assert (said, len(server.connections)) == ("one two three four five six", 1)
    assert len(warnings) <= 1
    assert "five" not in "".join(warnings)


@BOTH
async def test_each_message_that_comes_twice_is_said_once(name: str) -> None:
    said, _ = await heard(name, lambda _, message: [message, message])
    assert said == "one two three four five six"


@BOTH
async def test_messages_that_come_again_much_later_are_not_said_again(name: str) -> None:
    """A partial after its final, taken for new words, would hold the turn open and be said at its end."""
    before: list[dict[str, Any]] = []

    def repeats(_: Connection, message: dict[str, Any]) -> list[Wire]:
        before.append(message)
        return [message, *before]

    async with DeepgramServer(voices=COUNTING, on_wire=repeats) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), environ=KEYS)
        async with RunningGraph(stt) as graph:
            await say(graph, 1, 2)
            await say(graph, 3, 4)
            n_before = len(graph.of(InterimTranscriptionFrame))
            await graph.send(stops())
            before[:] = [message for message in before if "three" in json.dumps(message)]
            await say(graph, 5, 6)
    assert transcript(graph) == "one two three four five six"
    late = graph.of(InterimTranscriptionFrame)[n_before:]
    assert [frame.text for frame in late if "three" in frame.text] == []


@BOTH
async def test_a_server_that_answers_nothing_more_is_replaced_within_the_turn(
    name: str, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    """It still reads and answers pings."""
    monkeypatch.setattr(deepgram_stt, "ANSWERED_WITHIN_S", 0.2)
    monkeypatch.setattr(deepgram_stt, "_NOTICEABLE_S", 0.1)

    def stops_sending(connection: Connection, message: dict[str, Any]) -> list[Wire]:
        is_spoilt = connection is server.connections[0] and (is_final(message) or "two" in json.dumps(message))
        return [] if is_spoilt else [message]

    server = DeepgramServer(voices=COUNTING, on_wire=stops_sending)
    said, _ = await heard(name, stops_sending, server=server)
    assert (said, len(server.connections)) == ("one two three four five six", 2)
    assert len(warnings) == 1 and "answered nothing" in warnings[0]


@BOTH
async def test_a_server_that_closes_each_connection_at_once_is_reported_once(name: str, warnings: list[str]) -> None:
    numbers = count()

    def closes(_: Connection, message: dict[str, Any]) -> list[Wire]:
        return [Close(1008, "DATA-0000")] if next(numbers) < 3 else [message]

    said, server = await heard(name, closes)
    assert said == "one two three four five six"
    assert len(server.connections) == 4
    assert len(warnings) == 1 and "code 1008 DATA-0000" in warnings[0]


@pytest.mark.parametrize(("name", "kind"), [("deepgram-nova", "KeepAlive"), ("deepgram-flux", "sound")])
async def test_an_idle_connection_is_kept_open(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deepgram closes a connection after ten seconds without data."""
    monkeypatch.setattr(deepgram_stt, "_KEPT_ALIVE_EVERY_S", 0.1)
    async with DeepgramServer(voices=COUNTING) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), environ=KEYS)
        async with RunningGraph(stt) as graph:
            [connection] = server.connections
            is_kept: dict[str, Callable[[], bool]] = {
                "KeepAlive": lambda: {"type": "KeepAlive"} in connection.messages,
                "sound": lambda: connection.heard_ms > 0,
            }
            await server.wait_until(is_kept[kind])
            await say(graph, 1, 2)
    assert transcript(graph) == "one two"


async def test_flux_ends_a_turn_though_the_microphone_sends_nothing_more() -> None:
    """A muted microphone: the service counts silence, and hears none."""
    async with DeepgramServer(voices={1: Word("Aye.")}) as server:
        stt = make_stt(ProviderNamed("deepgram-flux", server.http_url), environ=KEYS)
        async with RunningGraph(stt) as graph:
            await graph.send(starts(), *spoken(1), *sound(0, 20))
            await server.wait_until(lambda: server.connections[0].heard_ms >= 620)
            await graph.send(stops())
            await graph.wait_until(lambda: transcript(graph) == "Aye.")
