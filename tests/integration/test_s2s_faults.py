"""Messages of speech-to-speech servers besides a reply: errors, repeats, rubbish, and the end of a session."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from benchmarks.servers.local import tone
from benchmarks.servers.openai import SPEECH_RATE_HZ, ToolCall
from glyphoxa_processors.s2s.providers import arguments_of, pcm_of
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.memory_twins import tools_of
from tests.support.realtime_server import Close, RealtimeServer, SpokenReply
from tests.support.s2s_play import ASKED, Heard, brisk, play_with

WHOLE = "It is sharp. It is yours."
AYE = SpokenReply("Aye.")
LONG = SpokenReply("It is sharp, my friend, and bright. It is yours to carry home.", holds_after=9)
STALLED_AFTER_MS = 3_000


def error(message: str, code: str = "invalid_value", kind: str = "invalid_request_error", **more: Any) -> Any:
    return {"type": "error", "event_id": "e1", "error": {"type": kind, "code": code, "message": message, **more}}


def ended(status: str, **details: Any) -> Any:
    return {"status": status, "status_details": {"type": status, **details}}


def done(status: str, **details: Any) -> Any:
    return {"type": "response.done", "response": {"id": "$response", "output": [], **ended(status, **details)}}


def words(text: str) -> Any:
    return {
        "type": "response.output_audio_transcript.delta",
        "response_id": "$response",
        "item_id": "$response_item",
        "delta": text,
    }


def whole_words(text: str) -> Any:
    return {**words(""), "type": "response.output_audio_transcript.done", "transcript": text}


def sound(text: str) -> Any:
    pcm = base64.b64encode(tone(text, rate_hz=SPEECH_RATE_HZ, ms_per_character=10)).decode()
    return {**words(pcm), "type": "response.output_audio.delta"}


def bytes_of_sound(n: int) -> Any:
    return {**sound(""), "delta": base64.b64encode(b"\0" * n).decode()}


EXPIRED = error("Your session hit the maximum duration of 60 minutes.", "session_expired")
LIMITS = {"type": "rate_limits.updated", "rate_limits": [{"name": "tokens", "limit": None, "remaining": 0}]}
OPENAI_REPLIES_WHOLE: dict[str, tuple[SpokenReply, ...]] = {
    "rate limits": (SpokenReply(WHOLE, extras={"first": [LIMITS], "amid": [LIMITS]}),),
    "unknown events": (SpokenReply(WHOLE, extras={"first": [{"type": "response.mood.delta"}], "amid": [{"a": 1}]}),),
    "rubbish": (SpokenReply(WHOLE, extras={"first": ["", "[]", "null", '{"type": 7}'], "amid": ['{"type": "resp']}),),
    "empty fields": (
        SpokenReply(WHOLE, extras={"amid": [{"type": "response.output_audio.delta"}, {"type": "response.created"}]}),
    ),
    "broken base64": (SpokenReply(WHOLE, extras={"amid": [{**sound(""), "delta": "A"}]}),),
    "samples cut in two": (
        SpokenReply(WHOLE, extras={"amid": [bytes_of_sound(1), bytes_of_sound(3)], "last": [bytes_of_sound(5)]}),
    ),
    "error about something else": (SpokenReply(WHOLE, extras={"amid": [error("no such item")]}),),
    "error without a body": (SpokenReply(WHOLE, extras={"amid": [{"type": "error", "error": None}]}),),
    "session expires unheard": (SpokenReply(WHOLE, dies_after=0, extras={"first": [EXPIRED]}), SpokenReply(WHOLE)),
    "server error unheard": (
        SpokenReply(WHOLE, holds_after=0, extras={"first": [error("Sorry about that!", "", "server_error")]}),
        SpokenReply(WHOLE),
    ),
    "closed unheard": (SpokenReply(WHOLE, extras={"first": [Close(1001, "going away")]}), SpokenReply(WHOLE)),
    "cancelled unheard": (SpokenReply("", ending=ended("cancelled", reason="turn_detected")), SpokenReply(WHOLE)),
    "words only at the end": (SpokenReply("", extras={"last": [sound("Hm."), whole_words(WHOLE), sound("Hm.")]}),),
    "words once more at the end": (SpokenReply(WHOLE, extras={"last": [whole_words(WHOLE)]}),),
    "usage missing": (SpokenReply(WHOLE, ending={"usage": None}),),
}


@pytest.mark.parametrize("replies", OPENAI_REPLIES_WHOLE.values(), ids=OPENAI_REPLIES_WHOLE)
async def test_openai_reply_is_whole_despite(replies: tuple[SpokenReply, ...]) -> None:
    server = brisk(RealtimeServer, [*replies, AYE])
    async with server, play_with(server, stalled_after_ms=STALLED_AFTER_MS) as play:
        finished = await play.answer()
        assert (finished.heard, finished.error) == (WHOLE, "")
        assert (await play.answer(turn="t2")).heard == "Aye."


async def test_sound_of_a_lost_connection_without_its_words_is_not_heard() -> None:
    lost = SpokenReply(WHOLE, extras={"first": [sound("Hm. Hm. Hm."), Close(1001, "going away")]})
    server = brisk(RealtimeServer, [SpokenReply(WHOLE), lost, SpokenReply(WHOLE)])
    async with server, play_with(server, stalled_after_ms=STALLED_AFTER_MS) as play:
        usual, again = await play.answer(), await play.answer(turn="t2")
        assert (again.heard, again.audio_ms) == (WHOLE, usual.audio_ms)


GEMINI_TURN_END = {"serverContent": {"turnComplete": True}}
GEMINI_REPLIES_WHOLE: dict[str, tuple[SpokenReply, ...]] = {
    "unknown messages": (SpokenReply(WHOLE, extras={"first": [{"moodUpdate": {"mood": 1}}], "amid": [{}]}),),
    "unknown fields": (SpokenReply(WHOLE, extras={"amid": [{"serverContent": {"waitingForInput": 7, "x": [{}]}}]}),),
    "rubbish": (SpokenReply(WHOLE, extras={"first": ["", "[]", "null"], "amid": ['{"serverContent": {"mod']}),),
    "wrong kinds": (
        SpokenReply(WHOLE, extras={"amid": [{"serverContent": {"modelTurn": {"parts": [{"inlineData": "A"}, 3]}}}]}),
    ),
    "goAway amid": (SpokenReply(WHOLE, extras={"amid": [{"goAway": {"timeLeft": "1s"}}]}),),
    "end repeated": (SpokenReply(WHOLE, extras={"after": [GEMINI_TURN_END, GEMINI_TURN_END]}),),
    "closed unheard": (SpokenReply(WHOLE, extras={"first": [Close(1008, "time is over")]}), SpokenReply(WHOLE)),
    "interrupted unheard": (
        SpokenReply(WHOLE, extras={"first": [{"serverContent": {"interrupted": True}}]}),
        SpokenReply(WHOLE),
    ),
}


@pytest.mark.parametrize("replies", GEMINI_REPLIES_WHOLE.values(), ids=GEMINI_REPLIES_WHOLE)
async def test_gemini_reply_is_whole_despite(replies: tuple[SpokenReply, ...]) -> None:
    server = brisk(GeminiLiveServer, [*replies, AYE])
    async with server, play_with(server, stalled_after_ms=STALLED_AFTER_MS) as play:
        finished = await play.answer()
        assert (finished.heard, finished.error) == (WHOLE, "")
        assert (await play.answer(turn="t2")).heard == "Aye."


QUOTA = "You exceeded your current quota, please check your plan."
OPENAI_REASONS: dict[str, tuple[SpokenReply, str]] = {
    "failed with a message": (SpokenReply("", ending=ended("failed", error={"message": QUOTA})), QUOTA),
    "failed with a code": (
        SpokenReply("", ending=ended("failed", error={"type": "x", "code": "rate_limit_exceeded"})),
        "rate_limit_exceeded",
    ),
    "cut by the filter": (SpokenReply("It is", ending=ended("incomplete", reason="content_filter")), "content_filter"),
    "cancelled while heard": (SpokenReply(WHOLE, extras={"amid": [done("cancelled", reason="turn_detected")]}), "turn"),
    "stalled": (SpokenReply(WHOLE, holds_after=0), "no data for 3000 ms"),
    "stalled after an error": (
        SpokenReply(WHOLE, holds_after=1, extras={"amid": [error("The model is overloaded.")]}),
        "The model is overloaded.",
    ),
    "expired while heard": (SpokenReply(WHOLE, extras={"amid": [EXPIRED]}), "maximum duration of 60 minutes"),
    "closed while heard": (SpokenReply(WHOLE, extras={"amid": [Close(1011, QUOTA[:50])]}), QUOTA[:50]),
    "closed as usual": (SpokenReply(WHOLE, extras={"amid": [Close(1000, "bye")]}), "bye"),
    "closed with a reason sent before": (SpokenReply(WHOLE, extras={"amid": [error(QUOTA), Close(1000)]}), QUOTA),
    "no words": (SpokenReply(""), "the model returned no words"),
}


@pytest.mark.parametrize(("reply", "why"), OPENAI_REASONS.values(), ids=OPENAI_REASONS)
async def test_openai_reason_is_reported_and_the_next_turn_answers(reply: SpokenReply, why: str) -> None:
    server = brisk(RealtimeServer, [reply, AYE])
    async with server, play_with(server, stalled_after_ms=STALLED_AFTER_MS) as play:
        finished = await play.answer()
        assert why in finished.error
        assert WHOLE.startswith(finished.heard)
        assert (await play.answer(turn="t2")).heard == "Aye."


GEMINI_REASONS: dict[str, tuple[SpokenReply, str]] = {
    "rejected": (SpokenReply("", ending={"turnCompleteReason": "RESPONSE_REJECTED"}), "RESPONSE_REJECTED"),
    "no words": (SpokenReply(""), "the model returned no words"),
    "error message": (
        SpokenReply(WHOLE, extras={"amid": [{"error": {"code": 429, "message": QUOTA, "status": "X"}}]}),
        QUOTA,
    ),
    "closed while heard": (SpokenReply(WHOLE, extras={"amid": [Close(1011, QUOTA[:50])]}), QUOTA[:50]),
    "closed as usual": (SpokenReply(WHOLE, extras={"amid": [Close(1000, "bye")]}), "bye"),
    "interrupted while heard": (
        SpokenReply(WHOLE, extras={"amid": [{"serverContent": {"interrupted": True}}]}),
        "the server interrupted the reply",
    ),
}


@pytest.mark.parametrize(("reply", "why"), GEMINI_REASONS.values(), ids=GEMINI_REASONS)
async def test_gemini_reason_is_reported_and_the_next_turn_answers(reply: SpokenReply, why: str) -> None:
    server = brisk(GeminiLiveServer, [reply, AYE])
    async with server, play_with(server, stalled_after_ms=STALLED_AFTER_MS) as play:
        finished = await play.answer()
        assert why in finished.error
        assert WHOLE.startswith(finished.heard)
        assert (await play.answer(turn="t2")).heard == "Aye."


async def test_openai_late_events_of_an_ended_response_are_not_heard() -> None:
    again = [done("completed"), words("Go."), sound("Go."), done("completed")]
    server = brisk(RealtimeServer, [SpokenReply(WHOLE, extras={"after": again}), AYE, AYE])
    async with server, play_with(server, stalled_after_ms=STALLED_AFTER_MS) as play:
        for turn, heard in (("t1", WHOLE), ("t2", "Aye."), ("t3", "Aye.")):
            finished = await play.answer(turn=turn)
            assert (finished.heard, finished.error) == (heard, "")


@pytest.mark.parametrize("kind", [RealtimeServer, GeminiLiveServer])
@pytest.mark.parametrize("arguments", ["{not json", "[1]", '"name"', "7", "{" * 500])
async def test_call_with_invalid_arguments_is_answered(kind: Any, arguments: str) -> None:
    call = SpokenReply(tool_calls=(ToolCall("memory_query_entities", arguments),))
    server = brisk(kind, [call, AYE])
    tools = tools_of(tier="FAST")
    async with server, play_with(server, tools=tools, stalled_after_ms=STALLED_AFTER_MS) as play:
        finished = await play.answer()
    assert (finished.heard, finished.error) == ("Aye.", "")
    assert "the arguments are not a JSON object" in Heard(server).asked[1][-1][1]


async def test_gemini_end_of_a_call_is_not_the_end_of_the_reply() -> None:
    call = SpokenReply(
        tool_calls=(ToolCall("memory_query_entities", '{"name": "Grimjaw"}'),), extras={"after": [GEMINI_TURN_END]}
    )
    server = brisk(GeminiLiveServer, [call, SpokenReply(WHOLE)])
    async with server, play_with(server, tools=tools_of(tier="FAST"), stalled_after_ms=STALLED_AFTER_MS) as play:
        finished = await play.answer()
    assert (finished.heard, finished.error) == (WHOLE, "")


@pytest.mark.parametrize(
    ("kind", "status", "why"),
    [
        (RealtimeServer, 429, "HTTP 429: refused"),
        (RealtimeServer, 503, "HTTP 503: refused"),
        (RealtimeServer, 401, "HTTP 401"),
        (GeminiLiveServer, 429, "HTTP 429: refused"),
        (GeminiLiveServer, 403, "HTTP 403"),
    ],
)
async def test_refused_connection_is_reported_with_the_reason(kind: Any, status: int, why: str) -> None:
    async with kind(refuse_with=status) as server, play_with(server) as play:
        finished = await play.answer()
    assert finished.error.endswith(why)


async def test_connection_that_breaks_off_is_reported() -> None:
    reply = SpokenReply(WHOLE, dies_after=2)
    async with brisk(RealtimeServer, [reply, AYE]) as server, play_with(server) as play:
        finished = await play.answer()
        assert "the connection to the server broke off" in finished.error
        assert (await play.answer(ASKED, turn="t2")).heard == "Aye."


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (None, None),
        ("[]", None),
        ("{", None),
        ("[" * 100_000, None),
    ],
)
def test_arguments_are_an_object_or_nothing(given: object, arguments: object) -> None:
    assert arguments_of(given) == arguments


def test_sound_that_cannot_be_decoded_is_silent() -> None:
    assert (pcm_of("A"), pcm_of("AAA="), pcm_of("ä")) == (b"", b"\x00\x00", b"")
