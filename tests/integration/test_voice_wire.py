"""The voices over a socket: each clause is heard once and whole, whatever its connection does."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from pipecat.frames.frames import Frame, InterruptionFrame, TTSAudioRawFrame, TTSSpeakFrame

from benchmarks.servers.deepgram import Close, Wire
from benchmarks.servers.local import tone
from glyphoxa.domain.ids import TurnId
from glyphoxa_processors.cloud import voices
from glyphoxa_processors.frames import PieceEndFrame, PieceFrame, ReplyEndFrame
from tests.support.graph import RunningGraph
from tests.support.provider import KEYS, ProviderNamed, make_tts
from tests.support.voice_server import RATE_HZ, VOICES, Clause, VoiceServer

EACH = pytest.mark.parametrize("name", VOICES)
TURN = TurnId("t1")
TEXTS = ("Well met.", "Sit down by the fire.", "What brings you?")
ERRORS: dict[str, list[Wire]] = {
    "deepgram": [{"type": "Error", "err_code": "DATA-0001", "err_msg": "the text is too long"}],
    "elevenlabs": [{"error": "quota_exceeded", "message": "the text is too long", "code": 1008}],
    "cartesia": [{"type": "error", "error": "the text is too long", "status_code": 400}],
}


def clause(text: str) -> list[Frame]:
    return [PieceFrame(TURN, text), TTSSpeakFrame(text, append_to_context=False), PieceEndFrame(TURN)]


def heard(graph: RunningGraph) -> list[str]:
    """Return which text each piece sounds like; "" for another sound."""
    known = {tone(text, rate_hz=RATE_HZ): text for text in TEXTS}
    pieces: list[bytes] = []
    for frame in graph.out:
        if isinstance(frame, PieceFrame):
            pieces.append(b"")
        elif isinstance(frame, TTSAudioRawFrame):
            pieces[-1] += frame.audio
    return [known.get(piece, "") for piece in pieces]


def reasons(graph: RunningGraph) -> list[str]:
    """Return the errors without pipecat's own remark on each clause without sound."""
    return [error for error in graph.errors if not error.endswith("completed with no audio")]


async def spoken(name: str, on_wire: Callable[[Clause], Iterable[Wire]]) -> tuple[RunningGraph, VoiceServer]:
    async with (
        VoiceServer(name, on_wire=on_wire, key="secret-1234") as server,
        RunningGraph(make_tts(ProviderNamed(name, server.address), environ=KEYS)) as graph,
    ):
        for text in TEXTS:
            await graph.send(*clause(text))
        await graph.send(ReplyEndFrame(TURN))
        await graph.wait_for(ReplyEndFrame)
    return graph, server


@EACH
async def test_each_clause_is_heard_on_one_connection(name: str) -> None:
    graph, server = await spoken(name, lambda clause: clause.answers)
    assert heard(graph) == list(TEXTS)
    assert (server.n_connections, server.texts, graph.errors) == (1, list(TEXTS), [])


@EACH
@pytest.mark.parametrize("code", [1000, 1008, 1011, 4408])
@pytest.mark.parametrize("n_sounds", [0, 3])
async def test_a_clause_whose_connection_is_closed_is_heard_once_and_whole(
    name: str, code: int, n_sounds: int, warnings: list[str]
) -> None:
    def closes(clause: Clause) -> list[Wire]:
        return [*clause.sounds[:n_sounds], Close(code, "inactivity" if code != 1011 else "")]

    graph, server = await spoken(name, lambda clause: closes(clause) if clause.n == 1 else clause.answers)
    assert heard(graph) == list(TEXTS)
    assert (server.n_connections, graph.errors) == (2, [])
    assert len(warnings) == 1 and "requests a clause again" in warnings[0]


@EACH
async def test_a_connection_that_was_closed_between_two_clauses_costs_nothing(name: str) -> None:
    graph, server = await spoken(name, lambda clause: [*clause.answers, Close(1000, "idle")])
    assert heard(graph) == list(TEXTS)
    assert (server.n_connections >= 3, graph.errors) == (True, [])


@EACH
@pytest.mark.parametrize("n_sounds", [0, 2])
async def test_a_voice_that_sends_nothing_more_is_asked_again_at_once(
    name: str, n_sounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voices, "STALLED_AFTER_S", 0.2)
    graph, server = await spoken(name, lambda clause: clause.sounds[:n_sounds] if clause.n == 1 else clause.answers)
    assert heard(graph) == list(TEXTS)
    assert (server.texts, graph.errors) == ([TEXTS[0], TEXTS[1], TEXTS[1], TEXTS[2]], [])


@EACH
async def test_a_voice_that_stays_silent_fails_the_clause_and_speaks_the_next(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voices, "STALLED_AFTER_S", 0.2)
    graph, _ = await spoken(name, lambda clause: [] if clause.n in (1, 2) else clause.answers)
    assert heard(graph) == [TEXTS[0], "", TEXTS[2]]
    assert [("the voice failed" in error) for error in reasons(graph)] == [True]


@EACH
@pytest.mark.parametrize("close", [[], [Close(1000)], [Close(4001, "policy")]])
async def test_an_error_of_the_provider_is_one_line_with_its_reason(name: str, close: list[Wire]) -> None:
    graph, _ = await spoken(name, lambda clause: [*ERRORS[name], *close] if clause.n == 1 else clause.answers)
    assert heard(graph) == [TEXTS[0], "", TEXTS[2]]
    assert [("the text is too long" in error) for error in reasons(graph)] == [True]


@EACH
@pytest.mark.parametrize(
    "rubbish",
    [
        ["{", "", "null", "[]", "5", '"done"', "{}", '{"type": null}'],
        ['{"type": "TomorrowsMessage", "data": "AAAA", "context_id": "another"}'],
        ['{"type": "Metadata", "request_id": "r"}', '{"type": "Warning", "warn_msg": "slow"}'],
        ['{"audio": null, "contextId": null}', '{"audio": "", "isFinal": null}'],
        ['{"audio": "not base64!", "type": "chunk", "data": "not base64!"}'],
        ['{"type": "timestamps", "word_timestamps": {}}', '{"type": "flush_done"}'],
        ['{"audio": "AAAA", "isFinal": true, "contextId": "of-another-clause"}'],
        ['{"type": "done", "context_id": "of-another-clause"}', '{"type": "Flushed", "sequence_id": -7}'],
    ],
)
async def test_messages_that_cannot_be_read_cost_nothing(name: str, rubbish: list[Wire]) -> None:
    def spoilt(clause: Clause) -> list[Wire]:
        return [wire for answer in clause.answers for wire in (*rubbish, answer)]

    graph, server = await spoken(name, spoilt)
    assert heard(graph) == list(TEXTS)
    assert (server.n_connections, graph.errors) == (1, [])


@EACH
async def test_an_end_that_is_told_twice_cuts_no_later_clause(name: str) -> None:
    graph, _ = await spoken(name, lambda clause: [*clause.sounds, *clause.ends, *clause.ends, *clause.ends])
    assert heard(graph) == list(TEXTS)


@EACH
async def test_an_interrupted_clause_leaves_no_sound_for_the_next_reply(name: str) -> None:
    def held(clause: Clause) -> Iterable[Wire]:
        return clause.sounds[:2] if clause.n == 0 else clause.answers

    async with (
        VoiceServer(name, on_wire=held) as server,
        RunningGraph(make_tts(ProviderNamed(name, server.address), environ=KEYS)) as graph,
    ):
        await graph.send(*clause(TEXTS[0]))
        await graph.wait_for(TTSAudioRawFrame)
        await graph.send(InterruptionFrame())
        await graph.wait_for(InterruptionFrame)
        graph.out.clear()
        await graph.send(*clause(TEXTS[1]), ReplyEndFrame(TURN))
        await graph.wait_for(ReplyEndFrame)
    assert heard(graph) == [TEXTS[1]]


@EACH
@pytest.mark.parametrize("status", [401, 429, 503])
async def test_a_refused_connection_is_an_error_with_its_status_and_reason(name: str, status: int) -> None:
    async with (
        VoiceServer(name, refuse_with=status) as server,
        RunningGraph(make_tts(ProviderNamed(name, server.address), environ=KEYS)) as graph,
    ):
        await graph.send(*clause(TEXTS[0]), ReplyEndFrame(TURN))
        await graph.wait_for(ReplyEndFrame)
        assert f"HTTP {status} this key has no access" in graph.errors[0]
        # The table pays its bill, and the session goes on.
        server.refuse_with = None
        await graph.send(*clause(TEXTS[1]), ReplyEndFrame(TURN))
        await graph.wait_for(ReplyEndFrame, n=2)
    assert heard(graph) == ["", TEXTS[1]]
    assert len(reasons(graph)) == 1
    assert "secret-1234" not in "".join(graph.errors)
