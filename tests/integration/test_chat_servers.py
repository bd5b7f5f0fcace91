"""OpenAI-compatible servers as they are: a real turn with the real client against a server that differs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.servers.openai import OpenAiServer, Reply, tokens
from glyphoxa.adapters.openai_models import OpenAiEmbeddings
from glyphoxa.chat.client import OpenAiStructuredLlm
from glyphoxa.chat.dialect import Connection, Habits
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.turn_record import Stage
from glyphoxa.npc.mouth import Marked
from glyphoxa.prompt.prompt import Message
from tests.integration.test_fallbacks import an_npc, key, llm, tts  # noqa: F401 - `key` is a fixture
from tests.support.chat_server import (
    DONE,
    Answer,
    ChatServer,
    Rule,
    alternates,
    chunk,
    completion,
    error,
    no_system,
    only,
    refuses,
    refuses_as_fastapi,
    refuses_null,
    said,
    whole,
)
from tests.support.memory_twins import tools_of
from tests.support.pipecat_fakes import Stage as Play
from tests.support.pipecat_fakes import prompt, stage
from tests.support.provider import KEYS, ProviderNamed, make_llm

WORDS = "Iron is dear. Steel is dearer."
TALK = (
    Message("system", "You are Grimjaw."),
    Message("assistant", "Hail."),
    Message("user", "Alice: Good day."),
    Message("user", "Bob: Is that yours?"),
    Message("assistant", "It is."),
    Message("system", "The forge is cold."),
    Message("user", "Alice: What is iron worth?"),
)


class ServerNamed(ProviderNamed):
    habits = Habits()


@asynccontextmanager
async def a_mouth(server: ChatServer, *, model: str = "m", habits: Habits | None = None) -> AsyncIterator[Play]:
    provider = ServerNamed("openai-compatible", server.base_url, model)
    object.__setattr__(provider, "habits", habits or Habits())
    async with stage(server, llm=make_llm(provider, max_tokens=120, environ=KEYS)) as play:  # type: ignore[arg-type]
        yield play


def talk() -> Any:
    return replace(prompt("What is iron worth?"), messages=TALK)


# Requests that are refused.

RULES: dict[str, Sequence[Rule]] = {
    "null": [refuses_null],
    "an unknown field": [refuses("stream_options", "temperature")],
    "fields, one after the other": [refuses("temperature"), refuses("max_tokens")],
    "fields, as FastAPI names them": [refuses_as_fastapi("max_tokens")],
    "fields, without naming them": [only("stream", "max_tokens")],
    "everything but the messages": [only("stream")],
    "streaming": [refuses("stream", status=400, say="{} is not implemented")],
    "the old limit": [refuses("max_tokens", status=400, say="Unsupported: '{}'. Use 'max_completion_tokens'")],
    "both limits": [refuses("max_tokens"), refuses("max_completion_tokens")],
    "roles that repeat": [alternates],
    "a system role": [no_system],
    "a system role and roles that repeat": [no_system, alternates],
    "roles, without a reason": [lambda body: error(400, "invalid request") if alternates(body) else None],
    "roles, with status 500": [lambda body: error(500, "roles must alternate") if alternates(body) else None],
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
async def test_refused_request_is_repeated_as_the_server_wants_it(rules: Sequence[Rule]) -> None:
    answer = whole(completion(WORDS)) if rules is RULES["streaming"] else said(WORDS)
    async with ChatServer(answer, rules=rules) as server, a_mouth(server) as play:
        assert (await play.answered(asked=talk())).heard == WORDS
        n_asked = len(server.bodies)
        finished = await play.answered("t2", asked=talk())
        assert (finished.heard, finished.error) == (WORDS, "")
        assert len(server.bodies) == n_asked + 1, "what was refused is remembered"
        text = "\n".join(message["content"] for message in server.accepted[-1]["messages"])
        assert all(message.content in text for message in TALK), "nothing of the prompt is lost"


@pytest.mark.parametrize(
    ("model", "limit"),
    [("m", "max_tokens"), ("gpt-5-mini", "max_completion_tokens"), ("openai/o3", "max_completion_tokens")],
)
async def test_name_of_the_limit_follows_the_model(model: str, limit: str) -> None:
    async with ChatServer(said(WORDS)) as server, a_mouth(server, model=model) as play:
        await play.answered()
    assert server.bodies[0][limit] == 120
    assert None not in server.bodies[0].values() and "stream_options" not in server.bodies[0]


@pytest.mark.parametrize(("roles", "rules"), [("alternate", [alternates]), ("no_system", [no_system, alternates])])
async def test_roles_follow_the_setting_without_a_refusal(roles: Any, rules: Sequence[Rule]) -> None:
    async with ChatServer(said(WORDS), rules=rules) as server, a_mouth(server, habits=Habits(roles)) as play:
        assert (await play.answered(asked=talk())).heard == WORDS
    assert len(server.bodies) == 1


async def test_npcs_share_what_a_server_has_refused() -> None:
    async with ChatServer(said("Aye."), rules=[refuses("temperature")]) as server, OpenAiServer() as voice:
        chosen = {**llm(server.base_url), "temperature": 0.5}
        async with an_npc({"llm": chosen, "tts": tts(voice.base_url)}) as npc:
            assert [(await npc.answers()).heard for _ in range(2)] == ["Aye.", "Aye."]
    assert ["temperature" in body for body in server.bodies] == [True, False, False]


async def test_hopeless_refusal_fails_the_turn_with_the_reason() -> None:
    rules = [lambda _: error(400, "model is not loaded")]
    async with ChatServer(rules=rules) as server, a_mouth(server) as play:
        play.begin()
        assert (await play.finished()).error == "HTTP 400: model is not loaded"
    assert len(server.bodies) <= 4


# Usage data, and endings: the answer is whole, and nobody answers a second time.

USAGES: dict[str, dict[str, Any]] = {
    "null": {"usage": None},
    "empty": {"usage": {}},
    "no completion tokens": {"usage": {"prompt_tokens": 3, "total_tokens": 9}},
    "null counts": {"usage": {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}},
    "text": {"usage": "12 tokens"},
    "null details": {"usage": {"completion_tokens": 3, "completion_tokens_details": None}},
}
ENDINGS: dict[str, Answer] = {
    **{f"usage: {name}": said(WORDS, more=usage) for name, usage in USAGES.items()},
    "usage chunk without choices": said(WORDS, last=(b'data: {"usage": {"prompt_tokens": 1}}\n\n', DONE)),
    "usage chunk with null choices": said(WORDS, last=(b'data: {"choices": null, "usage": {}}\n\n', DONE)),
    "no end mark": said(WORDS, last=()),
    "an error after the end": said(WORDS, last=(b'data: {"error": {"message": "usage failed"}}\n\n',)),
    "garbage after the end": said(WORDS, last=(b"data: {]] \n\n", DONE)),
    "a lost connection after the end": replace(said(WORDS, last=()), hangs_up=True),
    "a connection that stays open": replace(said(WORDS, last=(b": ping\n\n",)), gate_after=7),
    "comments": Answer([b": PROCESSING\n\n", *said(WORDS).pieces]),
    "one document": whole(completion(WORDS)),
    "one line": whole(completion(WORDS), "text/plain"),
    "parts": whole(completion("", content=[{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": WORDS}])),
    "lines of JSON": whole('{"message": {"content": "Iron is dear. "}}\n{"message": {"content": "Steel is dearer."}}'),
}


@pytest.mark.parametrize("answer", ENDINGS.values(), ids=ENDINGS)
async def test_complete_answer_is_heard_once_and_not_failed(answer: Answer) -> None:
    async with (
        ChatServer(answer) as server,
        OpenAiServer([Reply("I am the fallback.")]) as good,
        an_npc({"llm": llm(server.base_url, good.base_url), "tts": tts(good.base_url)}) as npc,
    ):
        finished = await npc.answers()
        server.gate.set()
    assert (finished.heard, finished.reply, finished.error) == (WORDS, WORDS, "")
    assert good.completions == []


# Reasoning, and what stands before a reply.

THOUGHT = "They want a price. In the final count, iron costs four."
REASONED: dict[str, str] = {
    "think": f"<think>{THOUGHT}</think>\n\n{WORDS}",
    "think, not opened": f"{THOUGHT}\n</think>\n\n{WORDS}",
    "harmony": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{WORDS}",
    "announced": f"Here is my reply: {WORDS}",
}
"""One of each kind; tests/unit/chat/test_reasoning.py has them all."""


@pytest.mark.parametrize("model", ["m", "deepseek-r1"])
@pytest.mark.parametrize("text", REASONED.values(), ids=REASONED)
async def test_neither_reasoning_nor_openers_are_kept(text: str, model: str) -> None:
    async with ChatServer(said(text)) as server, a_mouth(server, model=model) as play:
        for turn in ("t1", "t2"):
            finished = await play.answered(turn)
            assert (finished.reply, finished.heard, finished.error) == (WORDS, WORDS, "")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
async def test_reasoning_in_its_own_field_is_left_out(field: str) -> None:
    answer = Answer([chunk({field: THOUGHT, "content": None}), *said(WORDS).pieces])
    async with ChatServer(answer) as server, a_mouth(server, model="deepseek-r1") as play:
        assert (await play.answered()).heard == WORDS


@pytest.mark.parametrize(
    "after", ["<|im_end|>\n<|im_start|>user\nAnd gold?", "\n\n### Instruction:\nAnd gold?", "\nuser\nAnd?"]
)
async def test_model_that_writes_on_after_its_end_is_not_read_further(after: str) -> None:
    text = f"{WORDS}{after}"
    answer = replace(said(text), gate_after=len(tokens(text)))
    async with ChatServer(answer, said(WORDS)) as server, a_mouth(server) as play:
        for turn in ("t1", "t2"):
            finished = await play.answered(turn)
            assert (finished.reply, finished.heard, finished.error) == (WORDS, WORDS, "")
        assert not server.gate.is_set()


async def test_reply_without_opening_mark_is_held_from_the_second_on() -> None:
    answer = replace(said(REASONED["think, not opened"]), gate_after=12)
    async with ChatServer(said(REASONED["think, not opened"]), answer) as server, a_mouth(server) as play:
        await play.answered()
        n_heard = len(play.sound)
        play.begin("t2")
        play.release("t2")
        await server.wait_until(lambda: len(server.accepted) == 2)
        server.gate.set()
        assert (await play.finished("t2")).heard == WORDS
        assert len(play.sound) - n_heard == len(WORDS.replace(". ", ".")) * 10 * 48, "the sound is the reply's alone"


@pytest.mark.parametrize("text", ["Iron is dear. Steel is dearer.", "Here is your blade. Steel is dearer.", "Ha! No."])
async def test_first_words_of_ordinary_models_do_not_wait(text: str) -> None:
    n_first = len(text.partition(".")[0].split()) + 1 if "." in text[:-1] else 2
    async with ChatServer(replace(said(text), gate_after=n_first)) as server, a_mouth(server) as play:
        play.begin()
        await play.until(lambda: Stage.FIRST_SENTENCE in [mark.stage for mark in play.of(Marked)])
        server.gate.set()
        play.release()
        assert (await play.finished()).heard == text


async def test_setting_says_that_every_answer_begins_with_reasoning() -> None:
    text = REASONED["think, not opened"]
    async with (
        ChatServer(said(text), said(WORDS)) as server,
        a_mouth(server, habits=Habits(reasoning="unopened")) as play,
    ):
        assert (await play.answered()).heard == WORDS
        assert (await play.answered("t2")).heard == WORDS, "the model stopped by itself, so it had not reasoned"


@pytest.mark.parametrize("text", ["Sure!", "Here is iron: take it.", "Model ships sell.", "Okay, lad. Take it."])
async def test_words_that_only_resemble_an_opener_are_said(text: str) -> None:
    async with ChatServer(said(text)) as server, a_mouth(server) as play:
        assert (await play.answered()).heard == text


# What comes instead of an answer.

NO_ANSWERS: dict[str, tuple[Answer, str]] = {
    "error": (whole({"error": {"message": "model is loading", "code": 503}}), "model is loading"),
    "error as text": (whole({"error": "no model loaded"}), "no model loaded"),
    "error in a stream": (Answer([b'data: {"error": {"message": "out of memory"}}\n\n']), "out of memory"),
    "error event": (Answer([b'event: error\ndata: {"error": "context full"}\n\n']), "context full"),
    "error object": (whole({"object": "error", "message": "bad gateway key"}), "bad gateway key"),
    "HTML": (whole("<!DOCTYPE html>\n<title>Sign in</title>" + "x" * 400, "text/html"), "<title>Sign in</title>xxx"),
    "nothing": (Answer([]), "the model returned no words"),
    "end mark alone": (Answer([DONE]), "the model returned no words"),
    "reasoning only": (said(f"<think>{THOUGHT}", finish="length"), "used its 120 tokens for reasoning"),
    "reasoning only, in its field": (
        Answer(
            [chunk({"reasoning_content": THOUGHT}), chunk({}, finish="length", usage={"completion_tokens": 99}), DONE]
        ),
        "used its 99 tokens for reasoning",
    ),
    "reasoning only, closed": (said(f"<think>{THOUGHT}</think>"), "returned only reasoning"),
    "filtered": (said("", finish="content_filter"), "content_filter"),
}


@pytest.mark.parametrize(("answer", "reason"), NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_dm_reads_what_came_instead_of_an_answer(answer: Answer, reason: str) -> None:
    async with ChatServer(answer) as server, a_mouth(server) as play:
        play.begin()
        finished = await play.finished()
    assert reason in finished.error
    assert len(finished.error) < 260
    assert finished.heard == ""


async def test_error_with_status_200_about_roles_is_corrected_too() -> None:
    def rule(body: Any) -> Any:
        refused = alternates(body)
        return None if refused is None else replace(refused, status=200)

    async with ChatServer(said(WORDS), rules=[rule]) as server, a_mouth(server) as play:
        assert (await play.answered(asked=talk())).heard == WORDS


async def test_key_that_a_server_quotes_is_not_shown() -> None:
    rules = [lambda _: error(401, "Incorrect API key provided: secret-1234")]
    async with ChatServer(rules=rules) as server, a_mouth(server) as play:
        play.begin()
        assert (await play.finished()).error == "HTTP 401: Incorrect API key provided: …"


# Other users of the endpoint.

SCHEMA = {"title": "facts", "type": "object", "properties": {"facts": {"type": "array"}}, "required": ["facts"]}


@pytest.mark.parametrize(
    ("answer", "rules"),
    [
        (whole(completion('{"facts": []}')), ()),
        (said('{"facts": []}'), ()),
        (whole(completion('<think>Hm, {} or []?</think>\n```json\n{"facts": []}\n```')), ()),
        (whole(completion('{"facts": []}')), [refuses("temperature", say="Unsupported value: '{}'")]),
        (whole(completion('{"facts": []}')), [refuses("response_format"), alternates]),
        (whole(completion('{"facts": []}')), [refuses("max_tokens", status=400)]),
        (whole(completion('{"facts": []}')), [no_system]),
        (whole({**completion('{"facts": []}'), "usage": {"completion_tokens": None}}), [refuses_null]),
    ],
)
async def test_structured_answers_come_from_servers_that_differ(answer: Answer, rules: Sequence[Rule]) -> None:
    async with ChatServer(answer, rules=rules) as server:
        model = OpenAiStructuredLlm(Connection("m", server.base_url, "a-key"))
        assert await model.complete("Extract facts.", "Grimjaw forges.", SCHEMA) == {"facts": []}
        n_asked = len(server.bodies)
        await model.complete("Extract facts.", "Grimjaw forges.", SCHEMA)
        assert len(server.bodies) == n_asked + 1
        text = str(server.accepted[-1])
        await model.close()
    assert "'required': ['facts']" in text or '"required": ["facts"]' in text, "the schema is asked for in any case"


async def test_structured_model_is_unavailable_when_the_connection_is_lost() -> None:
    half = Answer(said('{"facts": ["Grimjaw forges a sword for the king"]}').pieces[:3], hangs_up=True)
    async with ChatServer(half) as server:
        model = OpenAiStructuredLlm(Connection("m", server.base_url, "a-key"))
        with pytest.raises(Unavailable, match=r"model .m. fails: peer closed connection"):
            await model.complete("Extract facts.", "Grimjaw forges.", SCHEMA)
        await model.close()


VECTORS = {"data": [{"index": 1, "embedding": [0, 2.0]}, {"index": 0, "embedding": "AABAQAAAgEA="}]}
"""The second text first; the first as base64: 3 and 4."""


@pytest.mark.parametrize(
    "rules",
    [(), [refuses("dimensions", status=400)], [refuses_as_fastapi("encoding_format")], [refuses_null]],
)
async def test_vectors_come_from_servers_that_refuse_optional_fields(rules: Sequence[Rule]) -> None:
    async with ChatServer(whole(VECTORS), rules=rules) as server:
        embedder = OpenAiEmbeddings(Connection("m", server.base_url, "a-key"), dimensions=2, asks_for_dimensions=True)
        assert (await embedder.embed(["a", "b"])).tolist() == [pytest.approx([0.6, 0.8]), [0.0, 1.0]]
        n_asked = len(server.bodies)
        await embedder.embed(["a", "b"])
        await embedder.close()
    assert len(server.bodies) == n_asked + 1


# Tool calls.

CALL = {"name": "memory_query_entities", "arguments": '{"name": "Grimjaw"}'}
CALLS: dict[str, Answer] = {
    "in pieces": Answer(
        [
            chunk({"tool_calls": [{"index": 0, "id": "c", "function": {**CALL, "arguments": '{"na'}}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": 'me": "Grimjaw"}'}}]}),
            chunk({}, finish="tool_calls"),
            DONE,
        ]
    ),
    "without an index": Answer([chunk({"tool_calls": [{"id": "c", "function": CALL}]}, finish="tool_calls"), DONE]),
    "without an id": Answer([chunk({"tool_calls": [{"index": 0, "function": CALL}]}, finish="stop"), DONE]),
    "arguments as an object": Answer(
        [chunk({"tool_calls": [{"id": "c", "function": {**CALL, "arguments": {"name": "Grimjaw"}}}]}), DONE]
    ),
    "in one document": whole(completion("", tool_calls=[{"id": "c", "type": "function", "function": CALL}])),
    "after reasoning": Answer(
        [chunk({"content": "<think>Who?</think>"}), chunk({"tool_calls": [{"id": "c", "function": CALL}]}), DONE]
    ),
}


@pytest.mark.parametrize("answer", CALLS.values(), ids=CALLS)
async def test_tool_calls_are_read_as_servers_write_them(answer: Answer) -> None:
    async with ChatServer(answer, said("To the Wardens.")) as server:
        model = make_llm(ServerNamed("openai-compatible", server.base_url, "m"), environ=KEYS)
        async with stage(server, llm=model, tools=tools_of(tier="FAST")) as play:  # type: ignore[arg-type]
            assert (await play.answered()).heard == "To the Wardens."
    assert "Wardens of the Tide" in server.accepted[1]["messages"][-1]["content"]
