"""The speech-to-speech mouth, whoever provides the model: one suite for all protocols, over the wire."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.servers.openai import ToolCall
from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn_record import Fault, Stage, TierChoice, Verdict
from glyphoxa.npc.mouth import Injected, Marked
from glyphoxa.prompt.prompt import Message
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.memory_twins import tools_of
from tests.support.realtime_server import RealtimeServer, SpokenReply
from tests.support.s2s_play import ASKED, Heard, brisk, play_with

every_provider = pytest.mark.parametrize("kind", [RealtimeServer, GeminiLiveServer])
LOOK_UP = SpokenReply(tool_calls=(ToolCall("memory_query_entities", '{"name": "Grimjaw"}'),))


@every_provider
async def test_a_reply_is_spoken_whole_and_its_stages_come_in_order(kind: Any) -> None:
    """From outside it is a mouth like any other."""
    async with (
        brisk(kind, [SpokenReply("Well met. It is ready.")], key="secret-1234") as server,
        play_with(server) as play,
    ):
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


@every_provider
async def test_hot_context_reaches_the_session_as_text_and_leaves_it_with_the_turn(kind: Any) -> None:
    async with brisk(kind, [SpokenReply("Ready."), SpokenReply("Yes.")]) as server:
        async with play_with(server, facts=("The blade is called Vaelith.",)) as play:
            await play.answer()
            said = (ASKED, Message("assistant", "Ready."), Message("user", "Alice: Sharp?"))
            await play.answer(*said, turn="t2")
        told = Heard(server)
    assert set(told.instructions) == {"You are Grimjaw."}
    first, second = told.asked
    assert first == [("user", "Alice: How is my blade?\nFacts: The blade is called Vaelith.")]
    assert second == [
        ("user", "Alice: How is my blade?"),
        ("assistant", "Ready."),
        ("user", "Alice: Sharp?\nFacts: The blade is called Vaelith."),
    ]
    assert "Vaelith" in play.of(Injected)[0].prompt.text


@every_provider
async def test_new_instructions_hold_from_the_next_question_on(kind: Any) -> None:
    async with brisk(kind, [SpokenReply("Ready.")]) as server, play_with(server) as play:
        await play.answer()
        await play.answer(turn="t2", persona=Message("system", "You are Grimjaw, at sea."))
        assert Heard(server).instructions[-1] == "You are Grimjaw, at sea."


@every_provider
async def test_nothing_is_heard_before_the_release(kind: Any) -> None:
    async with brisk(kind, [SpokenReply("Well met.")]) as server, play_with(server) as play:
        play.begin()
        await play.until(lambda: Stage.FIRST_SENTENCE in [mark.stage for mark in play.of(Marked)])
        assert not play.sound
        play.release()
        assert (await play.finished()).heard == "Well met."


@every_provider
async def test_of_a_reply_that_was_cut_the_session_knows_what_was_heard(kind: Any) -> None:
    reply = SpokenReply("It is sharp, my friend, and bright. It is yours to carry home.", holds_after=9)
    async with brisk(kind, [reply, SpokenReply("Aye.")]) as server, play_with(server) as play:
        play.begin()
        play.release()
        await play.until(lambda: len(play.sound) >= 48 * 150)
        play.mouth.cancel(TurnId("t1"))
        finished = await play.finished()
        assert finished.interrupted
        assert "It is sharp, my friend, and bright.".startswith(finished.heard)
        assert finished.heard
        said = (ASKED, Message("assistant", finished.heard), Message("user", "Alice: Go on."))
        assert (await play.answer(*said, turn="t2")).heard == "Aye."
    assert len(Heard(server).asked[-1]) == 3


@every_provider
async def test_a_reply_cancelled_before_it_was_heard_is_taken_back(kind: Any) -> None:
    reply = SpokenReply("It is sharp. It is yours now.", holds_after=5)
    async with brisk(kind, [reply, SpokenReply("Aye.")]) as server, play_with(server) as play:
        play.begin()
        await play.until(lambda: Stage.FIRST_SENTENCE in [mark.stage for mark in play.of(Marked)])
        play.mouth.cancel(TurnId("t1"))
        assert (await play.finished()).heard == ""
        assert (await play.answer(turn="t2")).heard == "Aye."
    assert Heard(server).asked[1] == [("user", "Alice: How is my blade?")]


@every_provider
@pytest.mark.parametrize(("tier", "n_tools"), [("FAST", 1), ("STANDARD", 4), ("DEEP", 4)])
async def test_the_session_is_shown_the_tools_of_its_tier(kind: Any, tier: BudgetTier, n_tools: int) -> None:
    async with brisk(kind, [SpokenReply("Aye.")]) as server, play_with(server, tools=tools_of(tier=tier)) as play:
        await play.answer()
        names = Heard(server).tool_names
    assert names[0] == "memory_query_entities"
    assert len(names) == n_tools


async def test_gemini_connection_declares_the_tools_of_each_question_only() -> None:
    """A connection that was opened in advance for another tier is not used."""
    replies = [SpokenReply("Aye.")] * 4
    tiers: list[BudgetTier] = ["STANDARD", "FAST", "FAST", "DEEP"]
    async with brisk(GeminiLiveServer, replies) as server, play_with(server, tools=tools_of(tier="DEEP")) as play:
        for n, tier in enumerate(tiers):
            assert (await play.answer(turn=f"t{n}", tier=TierChoice(tier, "", 500, tier))).heard == "Aye."
        asked = [len(each.tool_names) for each in server.conversations if each.asked]
        n_connections = len(server.conversations)
    assert asked == [4, 1, 1, 4]
    # Opened in advance, and once more at each change of instructions or tools.
    assert n_connections <= len(tiers) + 4


@every_provider
async def test_a_tool_call_is_answered_by_the_same_handler_and_the_reply_goes_on(kind: Any) -> None:
    replies = [LOOK_UP, SpokenReply("To the Wardens."), SpokenReply("Aye.")]
    async with brisk(kind, replies) as server, play_with(server, tools=tools_of(tier="FAST")) as play:
        assert (await play.answer()).heard == "To the Wardens."
        said = (ASKED, Message("assistant", "To the Wardens."), Message("user", "Alice: Truly?"))
        await play.answer(*said, turn="t2")
        _, answered, later = Heard(server).asked
    assert "Grimjaw belongs to Wardens of the Tide" in answered[-1][1]
    # What was looked up is not carried into the next turn.
    assert [role for role, _ in later] == ["user", "assistant", "user"]


@every_provider
async def test_session_crash_fails_the_turn_and_the_next_gets_all_context(kind: Any) -> None:
    replies = [SpokenReply("It is sharp and", dies_after=2), SpokenReply("Aye.")]
    async with brisk(kind, replies) as server, play_with(server) as play:
        finished = await play.answer()
        assert "speech-to-speech" in finished.error
        said = (ASKED, Message("assistant", "It"), Message("user", "Alice: What?"))
        assert (await play.answer(*said, turn="t2")).heard == "Aye."
    assert [text for _, text in Heard(server).asked[1]] == [message.content for message in said]


@every_provider
async def test_a_connection_that_is_lost_before_a_word_came_is_opened_again_in_the_same_turn(kind: Any) -> None:
    """The server may have closed the session while nobody spoke to it."""
    replies = [SpokenReply("It is sharp.", dies_after=0), SpokenReply("Aye.")]
    async with brisk(kind, replies) as server, play_with(server) as play:
        finished = await play.answer()
    assert (finished.heard, finished.error) == ("Aye.", "")


@every_provider
async def test_words_that_may_not_be_said_are_not_heard(kind: Any) -> None:
    def check(text: str) -> Verdict:
        return Verdict(fault=Fault.ASSISTANT) if "AI" in text else Verdict(text)

    async with brisk(kind, [SpokenReply("AI")]) as server, play_with(server, check=check) as play:
        finished = await play.answer()
    assert finished.withheld
    assert not play.sound


@every_provider
async def test_a_wrong_key_fails_the_turn_and_says_nothing_of_the_key(kind: Any) -> None:
    async with kind(key="another") as server, play_with(server) as play:
        finished = await play.answer()
    assert "401" in finished.error
    assert "secret-1234" not in finished.error
