"""Features that only one provider's speech-to-speech protocol has."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.session_state import SummarySentence
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.prompt import Message, Prompt
from tests.support.builders import an_utterance
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.pipecat_fakes import GRIMJAW
from tests.support.realtime_server import RealtimeServer, SpokenReply
from tests.support.s2s_play import ASKED, PERSONA, Heard, brisk, endpoint_of, play_with


async def test_openai_is_told_where_a_reply_was_cut() -> None:
    reply = SpokenReply("It is sharp, my friend, and bright. It is yours to carry home.", holds_after=9)
    async with brisk(RealtimeServer, [reply, SpokenReply("Aye.")]) as server, play_with(server) as play:
        play.begin()
        play.release()
        await play.until(lambda: len(play.sound) >= 48 * 150)
        play.mouth.cancel(TurnId("t1"))
        finished = await play.finished()
        [conversation] = server.conversations
        await server.wait_until(
            lambda: "conversation.item.truncate" in [event["type"] for event in conversation.received]
        )
        kinds = [event["type"] for event in conversation.received]
        assert kinds.index("response.cancel") < kinds.index("conversation.item.truncate")
        truncated = next(event for event in conversation.received if event["type"] == "conversation.item.truncate")
        assert truncated["audio_end_ms"] == finished.audio_ms


async def test_an_openai_session_that_has_grown_is_replaced_between_turns() -> None:
    """Before the provider cuts its beginning off. The new one is told the same talk, as text."""
    async with brisk(RealtimeServer, [SpokenReply("Ready.", n_tokens=25_000), SpokenReply("Aye.")]) as server:
        async with play_with(server) as play:
            await play.answer()
            await server.wait_until(lambda: len(server.conversations) == 2)
            said = (ASKED, Message("assistant", "Ready."), Message("user", "Alice: Sharp?"))
            assert (await play.answer(*said, turn="t2")).heard == "Aye."
        first, second = server.conversations
    assert (len(first.asked), len(second.asked)) == (1, 1)
    assert [text for _, text in second.asked[0]] == [message.content for message in said]


async def test_summary_of_what_was_cut_goes_to_the_next_openai_session() -> None:
    talk = Conversation(GRIMJAW, (PERSONA,))
    line = an_utterance("I promise you a silver ring.", id="u1")
    talk.hear(line)
    before = talk.prompt("Ready?", "Alice").messages
    talk.cover([SummarySentence("Tamsin promised a silver ring.", (line.id,))], [line.id])
    talk.fold()
    after = talk.prompt("Sharp?", "Alice").messages
    server = brisk(RealtimeServer, [SpokenReply("Ready.", n_tokens=25_000), SpokenReply("Aye.")])
    async with server, play_with(server) as play:
        await play.answer(*before[1:])
        await server.wait_until(lambda: len(server.conversations) == 2)
        await play.answer(*after[1:], turn="t2")
    assert [text for _, text in server.conversations[1].asked[0]] == [
        "Earlier this evening: Tamsin promised a silver ring.",
        "Alice says: Sharp?",
    ]


async def test_an_openai_session_is_replaced_before_its_hour_is_over() -> None:
    now_ms = 0
    server = brisk(RealtimeServer, [SpokenReply("Ready.")])
    async with server:
        endpoint = replace(endpoint_of(server), clock=lambda: now_ms)
        async with play_with(server, endpoint=endpoint) as play:
            await play.answer()
            assert len(server.conversations) == 1
            now_ms = 51 * 60_000
            await play.answer(turn="t2")
            await server.wait_until(lambda: len(server.conversations) == 2)
            assert (await play.answer(turn="t3")).heard == "Ready."
    assert server.conversations[1].asked


async def test_gemini_answers_one_question_a_connection_and_the_next_is_open_before_it_is_asked() -> None:
    server = brisk(GeminiLiveServer, [SpokenReply("Ready."), SpokenReply("Aye.")])
    async with server, play_with(server) as play:
        play.mouth.prime(Prompt(GRIMJAW.id, (PERSONA, ASKED), "", "Alice"))
        await server.wait_until(lambda: server.conversations[-1].instructions == PERSONA.content)
        await play.answer()
        await server.wait_until(lambda: len(server.conversations) == 3)
        await play.answer(turn="t2")
    assert [len(conversation.asked) for conversation in server.conversations[:3]] == [0, 1, 1]
    setup = server.conversations[1].setup
    assert setup["contextWindowCompression"] == {"slidingWindow": {}}
    assert setup["generationConfig"]["responseModalities"] == ["AUDIO"]
    assert setup["model"] == "models/m"


async def test_a_gemini_connection_that_will_end_is_replaced_while_nobody_speaks() -> None:
    async with brisk(GeminiLiveServer, [SpokenReply("Ready.")]) as server, play_with(server) as play:
        await server.wait_until(lambda: len(server.conversations) == 1)
        await server.say_go_away()
        await server.wait_until(lambda: len(server.conversations) == 2 and server.conversations[0].is_over)
        assert (await play.answer()).heard == "Ready."


async def test_a_gemini_connection_that_ended_is_opened_again() -> None:
    async with brisk(GeminiLiveServer, [SpokenReply("Ready.")]) as server, play_with(server) as play:
        await server.close_sessions()
        assert (await play.answer()).heard == "Ready."


async def test_the_last_words_of_gemini_may_come_after_its_sound() -> None:
    server = brisk(GeminiLiveServer, [SpokenReply("It is ready.")], words_last=True)
    async with server, play_with(server) as play:
        assert (await play.answer()).heard == "It is ready."


async def test_a_second_generation_gemini_speaks_at_the_end_of_what_it_is_told() -> None:
    async with brisk(GeminiLiveServer, [SpokenReply("Ready.")]) as server:
        endpoint = endpoint_of(server)
        endpoint = replace(endpoint, connection=replace(endpoint.connection, model="gemini-2.0-flash-live-001"))
        async with play_with(server, endpoint=endpoint) as play:
            assert (await play.answer()).heard == "Ready."
        assert Heard(server).asked == [[("user", ASKED.content)]]
