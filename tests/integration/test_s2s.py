"""The speech-to-speech mouth on a real graph, with a server of OpenAI's Realtime protocol behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from benchmarks.servers.openai import ToolCall
from benchmarks.servers.realtime import RealtimeServer, SpokenReply
from glyphoxa.context.prompt import Message, Prompt
from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.domain.turn import Fault, Stage
from glyphoxa.judgement.reply import Verdict
from glyphoxa.npc.mouth import Finished, Injected, Marked, MouthEvent
from glyphoxa.npc.tools import MemoryTools
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_pipelines.s2s import S2sParts, build, make_session
from tests.support.memory_twins import tools_of
from tests.support.patience import DEADLINE_S
from tests.support.pipecat_fakes import GRIMJAW, Memory, SentenceSplitter
from tests.support.provider import KEYS, ProviderNamed

PERSONA = Message("system", "You are Grimjaw.")
ASKED = Message("user", "Alice: How is my blade?")


def brisk(replies: list[SpokenReply], **changes: Any) -> RealtimeServer:
    """A server whose speech is short: it is heard in real time."""
    return RealtimeServer(replies, ms_per_character=10, **changes)


class Play:
    """One mouth, its sink and its reports."""

    def __init__(self) -> None:
        self.sound = bytearray()
        self.events: list[MouthEvent] = []
        self._news = asyncio.Event()
        self.mouth: Any = None

    def take_sound(self, _npc: NpcId, pcm: bytes) -> None:
        self.sound += pcm
        self._news.set()

    def take_event(self, event: MouthEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                self._news.clear()
                await self._news.wait()

    def of(self, kind: type[MouthEvent], turn: str = "t1") -> list[Any]:
        return [event for event in self.events if isinstance(event, kind) and event.turn == turn]

    async def finished(self, turn: str = "t1") -> Finished:
        await self.until(lambda: bool(self.of(Finished, turn)))
        [finished] = self.of(Finished, turn)
        assert isinstance(finished, Finished)
        return finished

    def begin(self, *talk: Message, turn: str = "t1") -> None:
        self.mouth.begin(TurnId(turn), Prompt(GRIMJAW.id, (PERSONA, *(talk or (ASKED,))), "How is my blade?", "Alice"))

    def release(self, turn: str = "t1") -> None:
        self.mouth.release(TurnId(turn))

    async def answer(self, *talk: Message, turn: str = "t1") -> Finished:
        self.begin(*talk, turn=turn)
        self.release(turn)
        return await self.finished(turn)


@asynccontextmanager
async def play_with(
    server: RealtimeServer, *, facts: tuple[str, ...] = (), tools: MemoryTools | None = None, check: Any = Verdict
) -> AsyncIterator[Play]:
    play, host = Play(), PipelineHost()
    session = make_session(ProviderNamed("openai-realtime", server.base_url), environ=KEYS)
    parts = S2sParts(
        npc=GRIMJAW,
        session=session,
        context=Memory(facts),
        new_splitter=SentenceSplitter,
        new_check=lambda asked: check,
        sink=play.take_sound,
        listener=play.take_event,
        host=host,
        tools=tools,
    )
    play.mouth = await build(parts)
    await play.mouth.start()
    try:
        yield play
    finally:
        await play.mouth.close()
        await host.close()


async def test_a_reply_is_spoken_whole_and_its_stages_come_in_order() -> None:
    """From outside it is a mouth like any other."""
    async with brisk([SpokenReply("Well met. It is ready.")], key="secret-1234") as server, play_with(server) as play:
        finished = await play.answer()
    assert finished.reply == finished.heard == "Well met. It is ready."
    assert (finished.interrupted, finished.withheld, finished.error) == (False, False, "")
    assert len(play.sound) == finished.audio_ms * 48 > 0
    assert [mark.stage for mark in play.of(Marked)] == [
        Stage.CONTEXT_READY,
        Stage.FIRST_TOKEN,
        Stage.FIRST_SENTENCE,
        Stage.FIRST_AUDIO,
        Stage.AUDIO_END,
    ]


async def test_hot_context_reaches_the_session_as_items_and_leaves_it_with_the_turn() -> None:
    async with brisk([SpokenReply("Ready."), SpokenReply("Yes.")]) as server:
        async with play_with(server, facts=("The blade is called Vaelith.",)) as play:
            await play.answer()
            said = (ASKED, Message("assistant", "Ready."), Message("user", "Alice: Sharp?"))
            await play.answer(*said, turn="t2")
        [conversation] = server.conversations
    assert conversation.session["instructions"] == "You are Grimjaw."
    first, second = conversation.asked
    assert first == [("user", "Alice: How is my blade?\nFacts: The blade is called Vaelith.")]
    assert second == [
        ("user", "Alice: How is my blade?"),
        ("assistant", "Ready."),
        ("user", "Alice: Sharp?\nFacts: The blade is called Vaelith."),
    ]
    assert "Vaelith" in play.of(Injected)[0].prompt_text


async def test_nothing_is_heard_before_the_release() -> None:
    async with brisk([SpokenReply("Well met.")]) as server, play_with(server) as play:
        play.begin()
        await play.until(lambda: Stage.FIRST_SENTENCE in [mark.stage for mark in play.of(Marked)])
        assert not play.sound
        play.release()
        assert (await play.finished()).heard == "Well met."


async def test_a_cancelled_reply_is_cut_on_both_sides_to_what_was_heard() -> None:
    reply = SpokenReply("It is sharp, my friend, and bright. It is yours to carry home.", holds_after=9)
    async with brisk([reply, SpokenReply("Aye.")]) as server, play_with(server) as play:
        play.begin()
        play.release()
        await play.until(lambda: len(play.sound) >= 48 * 150)
        play.mouth.cancel(TurnId("t1"))
        finished = await play.finished()
        assert finished.interrupted
        assert "It is sharp, my friend, and bright.".startswith(finished.heard)
        assert finished.heard
        [conversation] = server.conversations
        await server.wait_until(
            lambda: "conversation.item.truncate" in [event["type"] for event in conversation.received]
        )
        kinds = [event["type"] for event in conversation.received]
        assert kinds.index("response.cancel") < kinds.index("conversation.item.truncate")
        truncated = next(event for event in conversation.received if event["type"] == "conversation.item.truncate")
        assert truncated["audio_end_ms"] == finished.audio_ms
        await play.answer(ASKED, Message("assistant", finished.heard), Message("user", "Alice: Go on."), turn="t2")
        assert len(conversation.asked) == 2


async def test_a_reply_cancelled_before_it_was_heard_is_taken_back() -> None:
    reply = SpokenReply("It is sharp. It is yours now.", holds_after=5)
    async with brisk([reply, SpokenReply("Aye.")]) as server, play_with(server) as play:
        play.begin()
        await play.until(lambda: Stage.FIRST_SENTENCE in [mark.stage for mark in play.of(Marked)])
        play.mouth.cancel(TurnId("t1"))
        assert (await play.finished()).heard == ""
        assert (await play.answer(turn="t2")).heard == "Aye."
        [conversation] = server.conversations
    assert conversation.asked[1] == [("user", "Alice: How is my blade?")]


@pytest.mark.parametrize(("tier", "n_tools"), [("FAST", 1), ("STANDARD", 4), ("DEEP", 4)])
async def test_the_session_is_shown_the_tools_of_its_tier(tier: BudgetTier, n_tools: int) -> None:
    async with brisk([SpokenReply("Aye.")]) as server, play_with(server, tools=tools_of(tier=tier)) as play:
        await play.answer()
        names = [tool["name"] for tool in server.conversations[0].session["tools"]]
    assert names[0] == "memory_query_entities"
    assert len(names) == n_tools


async def test_a_tool_call_is_answered_by_the_same_handler_and_the_reply_goes_on() -> None:
    look_up = SpokenReply(tool_calls=(ToolCall("memory_query_entities", '{"name": "Grimjaw"}'),))
    replies = [look_up, SpokenReply("To the Wardens."), SpokenReply("Aye.")]
    async with brisk(replies) as server, play_with(server, tools=tools_of(tier="FAST")) as play:
        assert (await play.answer()).heard == "To the Wardens."
        said = (ASKED, Message("assistant", "To the Wardens."), Message("user", "Alice: Truly?"))
        await play.answer(*said, turn="t2")
        _, answered, later = server.conversations[0].asked
    assert answered[-1][0] == "function_call_output"
    assert "Grimjaw belongs to Wardens of the Tide" in answered[-1][1]
    # What was looked up is not carried into the next turn.
    assert [role for role, _ in later] == ["user", "assistant", "user"]


async def test_a_session_that_dies_fails_the_turn_and_the_next_one_is_told_everything_anew() -> None:
    replies = [SpokenReply("It is sharp and", dies_after=2), SpokenReply("Aye.")]
    async with brisk(replies) as server, play_with(server) as play:
        finished = await play.answer()
        assert "speech-to-speech" in finished.error
        said = (ASKED, Message("assistant", "It"), Message("user", "Alice: What?"))
        assert (await play.answer(*said, turn="t2")).heard == "Aye."
        assert len(server.conversations) == 2
    assert [text for _, text in server.conversations[1].asked[0]] == [message.content for message in said]


async def test_words_that_may_not_be_said_are_not_heard() -> None:
    def check(text: str) -> Verdict:
        return Verdict(fault=Fault.ASSISTANT) if "AI" in text else Verdict(text)

    async with brisk([SpokenReply("AI")]) as server, play_with(server, check=check) as play:
        finished = await play.answer()
    assert finished.withheld
    assert not play.sound


async def test_a_wrong_key_fails_the_turn_and_says_nothing_of_the_key() -> None:
    async with RealtimeServer(key="another") as server, play_with(server) as play:
        finished = await play.answer()
    assert "401" in finished.error
    assert "secret-1234" not in finished.error


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (ProviderNamed("openai-realtime", api_key_env=None), "OPENAI_API_KEY is not set"),
        (ProviderNamed("gemini-live"), "valid: openai-realtime"),
        (ProviderNamed("openai-realtim"), "did you mean 'openai-realtime'"),
    ],
)
def test_what_is_missing_is_named(provider: ProviderNamed, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make_session(provider, environ={})
