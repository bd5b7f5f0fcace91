"""Features that only one provider's speech-to-speech protocol has."""

from __future__ import annotations

from typing import Any

import pytest

from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.prompt import Prompt
from glyphoxa.transcript.sessions import SummarySentence
from glyphoxa_processors import sockets
from tests.support.builders import an_utterance
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.pipecat_fakes import GRIMJAW
from tests.support.realtime_server import RealtimeServer, SpokenReply
from tests.support.s2s_play import ASKED, PERSONA, Heard, brisk, endpoint_of, play_with


async def test_summary_of_what_was_cut_goes_to_the_next_openai_session() -> None:
    talk = Conversation(GRIMJAW, (PERSONA,))
    line = an_utterance("I promise you a silver ring.", id="u1")
    talk.hear(line)
    before = talk.prompt("Ready?", "Alice").messages
    talk.cover([SummarySentence("Tamsin promised a silver ring.", (line.id,))], [line.id])
    talk.fold()
    after = talk.prompt("Sharp?", "Alice").messages
    server = brisk(RealtimeServer, [SpokenReply("Ready.")])
    async with server, play_with(server) as play:
        await play.answer(*before[1:])
        await play.answer(*after[1:], turn="t2")
    assert [text for _, text in server.conversations[1].asked[0]] == [
        "Earlier this evening: Tamsin promised a silver ring.",
        "Alice says: Sharp?",
    ]


@pytest.mark.parametrize("kind", [RealtimeServer, GeminiLiveServer])
async def test_a_connection_that_is_old_or_ended_is_replaced_before_it_is_used(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers end connections after ten minutes or an hour."""
    async with brisk(kind, [SpokenReply("Ready.")]) as server, play_with(server) as play:
        await play.answer()
        monkeypatch.setattr(sockets, "_MAX_AGE_S", 0)
        n_before = len(server.conversations)
        play.mouth.prime(Prompt(GRIMJAW.id, (PERSONA, ASKED), "", "Alice"))
        await server.wait_until(lambda: len(server.conversations) > n_before)
        assert (await play.answer(turn="t2")).heard == "Ready."


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
        endpoint = endpoint_of(server, model="gemini-2.0-flash-live-001")
        async with play_with(server, endpoint=endpoint) as play:
            assert (await play.answer()).heard == "Ready."
        assert Heard(server).asked == [[("user", ASKED.content)]]
