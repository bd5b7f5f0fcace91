"""Whole ears and mouths with cloud services in them, each behind a server of its provider's protocol."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.servers.deepgram import DeepgramServer, Heard, Word
from benchmarks.servers.openai import OpenAiServer, Reply, ToolCall
from glyphoxa.app.models import LocalModels
from glyphoxa.config.settings import Settings
from glyphoxa.domain.heard import EagerTurn, PartialHeard, TurnEnded
from glyphoxa.domain.turn_record import Fault, Stage
from glyphoxa.npc.mouth import Marked, SentenceRejected, SentenceStarted
from glyphoxa.npc.tool_spec import CallableTool, Found, ToolSpec
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa_pipelines.cascaded import CharacterRules
from tests.support.builders import a_campaign
from tests.support.memory_twins import tools_of
from tests.support.pipecat_fakes import Scripted, listening, stage
from tests.support.provider import KEYS, ProviderNamed, make_llm, make_stt, make_tts

WORDS = (Word("Where"), Word("is"), Word("glif", 0.4), Word("oxa?", 0.5))
SCRIPTS = {
    "deepgram-nova": (Heard(60, "interim", WORDS[:2]), Heard(120, "interim", WORDS)),
    "deepgram-flux": (Heard(60, "StartOfTurn", WORDS[:2]), Heard(120, "Update", WORDS)),
}


@pytest.mark.parametrize("name", ["deepgram-nova", "deepgram-flux"])
async def test_an_ear_ends_a_turn_by_itself_whichever_service_recognises_the_words(name: str) -> None:
    async with DeepgramServer(SCRIPTS[name], on_finalize=WORDS) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), keyterms=["Glyphoxa"], environ=KEYS)
        async with listening(Scripted({}), stt=stt) as play:
            play.detect(speech=True)
            play.hear(100, ms=200)
            partial = await play.until(PartialHeard)
            play.detect(speech=False)
            eager = await play.until(EagerTurn)
            ended = await play.until(TurnEnded)
    assert partial.text.startswith("Where is")
    assert eager.draft.text == ended.draft.text == "Where is Glyphoxa?"
    assert ended.draft.heard.raw_text == "Where is glif oxa?"
    assert [event for event in play.events if isinstance(event, TurnEnded)] == [ended]


@pytest.mark.parametrize(("name", "n_partials"), [("deepgram-nova", 3), ("deepgram-flux", 2)])
async def test_words_that_come_when_their_turn_was_given_up_are_not_said_a_second_time(
    name: str, n_partials: int
) -> None:
    voices = {1: Word("Where"), 2: Word("is"), 3: Word("Vaelith?"), 4: Word("Hello!")}
    async with DeepgramServer(voices=voices) as server:
        server.finals_may_go.clear()
        stt = make_stt(ProviderNamed(name, server.http_url), environ=KEYS)
        async with listening(Scripted({}), stt=stt, final_within_ms=400) as play:
            play.detect(speech=True)
            for word in (1, 2, 3):
                play.hear(word, ms=200)
            play.hear(0, ms=200)
            await play.until(PartialHeard, n_partials)
            play.detect(speech=False)
            await play.until(TurnEnded)
            server.finals_may_go.set()
            play.hear(0, ms=200)
            play.detect(speech=True)
            play.hear(4, ms=200)
            play.hear(0, ms=200)
            play.detect(speech=False)
            await play.until(EagerTurn)
            await play.until(TurnEnded, 2)
    ended = [event.draft.text for event in play.events if isinstance(event, TurnEnded)]
    assert ended == ["Where is Vaelith?", "Hello!"]


@pytest.mark.parametrize("name", ["deepgram-nova", "deepgram-flux"])
async def test_a_turn_does_not_wait_for_words_it_has_when_their_positions_are_wrong(name: str) -> None:
    """A turn that took them for late ones would end only when its words are given up: here, not at all."""
    voices = {1: Word("Where"), 2: Word("is"), 3: Word("Vaelith?"), 4: Word("Hello!")}
    async with DeepgramServer(voices=voices, tells_positions=False) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), environ=KEYS)
        async with listening(Scripted({}), stt=stt) as play:
            for n, words in enumerate([(1, 2, 3), (4, 4, 4), (4,)], 1):
                play.hear(0, ms=400)
                play.detect(speech=True)
                for word in words:
                    play.hear(word, ms=200)
                    play.hear(0, ms=20)
                play.hear(0, ms=200)
                play.detect(speech=False)
                await play.until(EagerTurn, n)
                await play.until(TurnEnded, n)
    ended = [event.draft.text for event in play.events if isinstance(event, TurnEnded)]
    assert ended == ["Where is Vaelith?", "Hello! Hello! Hello!", "Hello!"]


async def test_a_cascaded_mouth_looks_something_up_and_says_it_with_cloud_services() -> None:
    """The look-up is part of the turn, and the turn is one reply."""
    look_up = Reply(tool_calls=(ToolCall("memory_query_entities", '{"name": "Grimjaw"}'),))
    async with OpenAiServer([look_up, Reply("To the Wardens. Why?")], key="secret-1234") as server:
        provider = ProviderNamed("openai", server.base_url)
        llm, tts = make_llm(provider, environ=KEYS), make_tts(provider, environ=KEYS)
        async with stage(server, llm=llm, tts=tts, tools=tools_of(tier="FAST")) as play:  # type: ignore[arg-type]
            finished = await play.answered()
    assert finished.error == ""
    assert finished.reply == finished.heard == "To the Wardens. Why?"
    assert len(play.sound) == finished.audio_ms * 48 > 0
    assert [started.text for started in play.of(SentenceStarted)] == ["To the Wardens.", "Why?"]
    assert [mark.stage for mark in play.of(Marked)].count(Stage.FIRST_TOKEN) == 1
    assert [speech["input"] for speech in server.speeches] == ["To the Wardens.", "Why?"]


async def test_a_result_that_nobody_rolled_is_not_heard_and_the_dice_are_rolled_on_a_second_try() -> None:
    async def ask(_arguments: object) -> Found:
        return {"found": ["4"]}

    dice = CallableTool(ToolSpec("dice.roll", "Roll.", {"dice": {"type": "string"}}, ("dice",), 50), ask)
    box = Toolbox(None, [dice], tier="FAST")
    campaign = a_campaign()
    settings = Settings.model_validate({"providers": {"llm": {"name": "openai"}}})
    order: Any = SimpleNamespace(
        campaign=campaign, npc=campaign.npcs[0], others=(), tools=box, settings=settings, local=LocalModels()
    )
    look_up = Reply(tool_calls=(ToolCall("dice_roll", '{"dice": "d20"}'),))
    replies = [Reply("I rolled a natural 20!"), look_up, Reply("I rolled a 4.")]
    async with OpenAiServer(replies, key="secret-1234") as server:
        provider = ProviderNamed("openai", server.base_url)
        llm, tts = make_llm(provider, environ=KEYS), make_tts(provider, environ=KEYS)
        check = CharacterRules(order).new_check
        async with stage(server, llm=llm, tts=tts, tools=box, new_check=check) as play:  # type: ignore[arg-type]
            assert (await play.answered()).heard == "I rolled a 4."
        assert [unsaid.unsaid.fault for unsaid in play.of(SentenceRejected)] == [Fault.DICE]
        assert [speech["input"] for speech in server.speeches] == ["I rolled a 4."]


async def test_a_model_that_dies_in_the_middle_fails_the_turn_and_the_next_one_is_answered() -> None:
    replies = [Reply("Once. There was a smith who", dies_after=4), Reply("Aye.")]
    async with OpenAiServer(replies) as server:
        provider = ProviderNamed("openai", server.base_url)
        llm, tts = make_llm(provider, environ=KEYS), make_tts(provider, environ=KEYS)
        async with stage(server, llm=llm, tts=tts) as play:  # type: ignore[arg-type]
            assert (await play.answered()).error
            assert (await play.answered("t2")).heard == "Aye."
