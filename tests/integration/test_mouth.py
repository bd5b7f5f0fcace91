"""The cascaded mouth on a real graph, with a model behind a real port and a voice that hums."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from glyphoxa.chat.client import ChatClient
from glyphoxa.chat.dialect import Connection
from glyphoxa.domain import turn_record as turns
from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn_record import Asked, Character, Fault, TierChoice, Verdict
from glyphoxa.judgement.reply import ReplyCheck
from glyphoxa.language.sentences import SentenceSplitter
from glyphoxa.language.spoken_form import SpokenForm
from glyphoxa.npc.mouth import FailedEarly, Finished, Injected, Marked, SentenceRejected, SentenceStarted
from glyphoxa.prompt.prompt import Doubt
from glyphoxa_processors.llm import SpokenLLM, StreamDeadlines
from glyphoxa_processors.streamed_voice import HibariTTS
from tests.support.builders import a_campaign
from tests.support.memory_twins import tools_of
from tests.support.minds import Mind
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.pipecat_fakes import GRIMJAW, Memory, ModelServer, OneMachine, hum, prompt, stage


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as running:
        yield running


def a_model(server: ModelServer, **options: Any) -> SpokenLLM:
    return SpokenLLM(ChatClient(Connection("m", server.base_url, "x")), **options)


async def test_an_answer_is_heard_whole_and_its_stages_come_in_order(server: ModelServer) -> None:
    async with stage(server) as play:
        finished = await play.answered()
        assert finished.reply == finished.heard == "Well met. The blade is ready."
        assert (finished.interrupted, finished.withheld, finished.error) == (False, False, "")
        assert [mark.stage for mark in play.of(Marked)] == [
            turns.Stage.CONTEXT_READY,
            turns.Stage.FIRST_TOKEN,
            turns.Stage.FIRST_SENTENCE,
            turns.Stage.FIRST_AUDIO,
            turns.Stage.AUDIO_END,
        ]
        assert [started.text for started in play.of(SentenceStarted)] == ["Well met.", "The blade is ready."]
        assert len(play.sound) == finished.audio_ms * 48 == (9 + 19) * 10 * 48


async def test_nothing_is_heard_before_the_release(server: ModelServer) -> None:
    async with stage(server) as play:
        play.begin()
        await play.until(lambda: turns.Stage.FIRST_SENTENCE in [m.stage for m in play.of(Marked)])
        await play.mouth.wait_until_drained()
        assert not play.sound
        play.release()
        assert (await play.finished()).heard
        assert play.sound


class RecordingVoice:
    """Hums each text and keeps it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> Iterator[NDArray[np.int16]]:
        self.texts.append(text)
        return hum()(text)


@pytest.mark.parametrize(
    ("tokens", "written", "spoken"),
    [
        (["Bread &am", "p; ale."], "Bread & ale.", ["Bread and ale."]),
        (["It is out.<", "br>Go ", "round."], "It is out. Go round.", ["It is out.", "Go round."]),
        (["{{us", "er}}, go ", "round."], "Alice, go round.", ["Alice, go round."]),
        (["{{", "char}} is my ", "name."], "Grimjaw is my name.", ["Grimjaw is my name."]),
        (["Berwin I", "II built it."], "Berwin III built it.", ["Berwin the Third built it."]),
        (["It costs 15&", "nbsp;gp."], "It costs 15 gp.", ["It costs fifteen gold pieces."]),
        (["It is 2", ",", "350", " feet."], "It is 2,350 feet.", ["It is two thousand three hundred and fifty feet."]),
        (["It is **very", "** deep 🌊."], "It is very deep.", ["It is very deep."]),
        (["*sighs* Go ", "3–", "4 miles."], "Go 3–4 miles.", ["Go three to four miles."]),
    ],
)
async def test_voice_receives_words_and_log_what_was_written(
    server: ModelServer, tokens: list[str], written: str, spoken: list[str]
) -> None:
    server.reply, voice = tokens, RecordingVoice()
    parts = {
        "tts": HibariTTS(voice, voice="recording"),
        "new_splitter": SentenceSplitter,
        "new_check": lambda asked: ReplyCheck(Character("Grimjaw"), asked, repairs=False).decide,
        "spoken_form": SpokenForm("en"),
    }
    async with stage(server, **parts) as play:
        finished = await play.answered()
        assert finished.reply == finished.heard == written
        assert " ".join(started.text for started in play.of(SentenceStarted)) == written
        assert voice.texts == spoken


@pytest.mark.parametrize(
    "question",
    ["What did I tell you about my brother?", "Who is Tarquin?", "Did you forge a crown?", "Sell me a dagger."],
)
async def test_no_repair_changes_a_reply_of_a_large_model(server: ModelServer, question: str) -> None:
    reply = "Grimjaw forges blades. My name is Mirelle. I heard it from Tarquin. My brother? I forge for no king."
    server.reply = (reply,)
    mind = Mind(a_campaign(), repairs=False)
    async with stage(server, context=mind.assembly, tools=tools_of(), has_shipped_rules=True) as play:
        finished = await play.answered(asked=prompt(question))
        assert (finished.reply, play.of(SentenceRejected)) == (reply, [])
    (sent,) = server.requests
    assert "nothing" not in str(sent["messages"]) and "never heard" not in str(sent["messages"])


@pytest.mark.usefixtures("paced")
async def test_a_cancelled_reply_fades_out_within_five_milliseconds(server: ModelServer) -> None:
    server.reply = ("One two three four five six seven eight nine ten.",)
    async with stage(server) as play:
        play.begin()
        play.release()
        await play.until(lambda: len(play.sound) >= 48 * 100)
        n_before = len(play.sound)
        play.cancel()
        fade = np.frombuffer(bytes(play.sound[n_before:]), dtype=np.int16)
        assert len(fade) == 120
        assert fade[0] == 8_000 and fade[-1] == 0
        assert (np.diff(fade) <= 0).all()


@pytest.mark.usefixtures("paced")
async def test_a_held_reply_fades_out_at_once_and_goes_on_to_its_end_where_it_was(server: ModelServer) -> None:
    server.reply = ("One two three four five six seven eight nine ten.",)
    async with stage(server) as play:
        play.begin()
        play.release()
        await play.until(lambda: len(play.sound) >= 48 * 100)
        n_before = len(play.sound)
        play.mouth.hold(TurnId("t1"))
        assert play.of(Marked)[-1].stage is turns.Stage.SILENCED
        n_held = len(play.sound)
        fade = np.frombuffer(bytes(play.sound[n_before:]), dtype=np.int16)
        assert fade[-1] == 0 and (np.diff(fade) <= 0).all()
        await play.mouth.wait_until_drained()
        assert len(play.sound) == n_held
        play.mouth.resume(TurnId("t1"))
        finished = await play.finished()
        assert finished.heard == finished.reply == server.reply[0]
        assert len(play.sound) - len(fade) * 2 == finished.audio_ms * 48


async def test_a_brief_answer_is_one_sentence_and_the_model_is_asked_for_one(server: ModelServer) -> None:
    server.reply = ("Iron is dear. ", "It comes from far. ", "And so on.")
    async with stage(server) as play:
        finished = await play.answered(asked=replace(prompt("Iron is what the smith sells."), is_brief=True))
        assert finished.heard == finished.reply == "Iron is dear."
        (injected,) = play.of(Injected)
        assert server.requests[-1]["messages"][-1]["content"].endswith("(React in one short sentence.)")
        assert injected.npc == GRIMJAW.id


async def test_nothing_of_a_cancelled_turn_is_heard_in_the_next(server: ModelServer) -> None:
    async with stage(server) as play:
        for n in range(5):
            server.reply = (f"Stale reply number {n} that must not be heard.",)
            server.arrived.clear()
            play.begin(f"stale{n}")
            if n % 2:
                play.release(f"stale{n}")
                await play.until(lambda: bool(play.sound))
            else:
                await asyncio.wait_for(server.arrived.wait(), DEADLINE_S)
            play.cancel(f"stale{n}")
            play.sound.clear()
            server.reply = ("Fresh.",)
            finished = await play.answered(f"fresh{n}")
            assert finished.reply == finished.heard == "Fresh."
            assert len(play.sound) == 6 * 10 * 48
            play.sound.clear()


async def test_every_begun_turn_is_finished_exactly_once(server: ModelServer) -> None:
    async with stage(server) as play:
        play.begin("a")
        play.begin("b")  # cancels the first
        play.cancel("a")
        play.release("b")
        await play.finished("b")
        play.cancel("b")
        play.begin("c")
        await play.mouth.close()
        for turn in "abc":
            assert len(play.of(Finished, turn)) == 1
        assert [play.of(Finished, turn)[0].heard for turn in "ac"] == ["", ""]


async def test_a_model_that_fails_ends_the_turn_and_not_the_npc(server: ModelServer) -> None:
    async with stage(server) as play:
        server.status = 400
        play.begin()
        assert "out of order" in (await play.finished()).error
        server.status = 200
        assert (await play.answered("t2")).heard == "Well met. The blade is ready."


async def test_a_model_that_never_begins_ends_the_turn_as_timed_out(server: ModelServer) -> None:
    llm = a_model(server, deadlines=StreamDeadlines(first_token_ms=50))
    async with stage(server, llm=llm) as play:
        server.gate.clear()
        play.begin()
        assert "timed out" in (await play.finished()).error
        server.gate.set()
        llm.deadlines = StreamDeadlines(first_token_ms=DEADLINE_MS)
        assert (await play.answered("t2")).error == ""


async def test_a_clause_that_the_voice_cannot_say_does_not_cost_the_rest(server: ModelServer) -> None:
    """Nor the time that pipecat waits for its sound."""

    def stumbles(text: str) -> Iterator[NDArray[np.int16]]:
        if text.startswith("Well"):
            raise RuntimeError("no such sound")
        yield from hum()(text)

    voice = HibariTTS(stumbles, voice="stumbling")
    voice._stop_frame_timeout_s = 6 * DEADLINE_S
    async with stage(server, tts=voice) as play:
        finished = await play.answered()
        assert finished.heard == "The blade is ready."
        assert finished.error == ""


async def test_a_reply_of_which_nothing_may_be_said_is_withheld(server: ModelServer) -> None:
    async with stage(server, new_check=lambda asked: lambda piece: Verdict(fault=Fault.NARRATED)) as play:
        play.begin()
        finished = await play.finished()
        assert finished.withheld and not finished.error and not finished.heard


async def test_a_reply_of_which_nothing_may_be_said_gives_way_to_a_line_in_character(server: ModelServer) -> None:
    said = ("Hm. Say that again.", "Let us speak of something else.")
    lines = iter(said)

    def new_check(asked: Asked) -> Callable[[str], Verdict]:
        return lambda piece: Verdict(fault=Fault.NARRATED)

    async with stage(server, new_check=new_check, stand_in=lambda question, fault, _told: next(lines)) as play:
        for turn, line in zip(("t1", "t2"), said, strict=True):
            finished = await play.answered(turn)
            assert (finished.heard, finished.withheld, finished.error) == (line, False, "")


@pytest.mark.parametrize(("n_rejected", "heard"), [(1, "I am here."), (2, "Hm.")])
async def test_a_model_whose_words_may_not_be_said_is_asked_once_more(
    server: ModelServer, n_rejected: int, heard: str
) -> None:
    def new_check(asked: Asked) -> Callable[[str], Verdict]:
        is_rejected = len(server.requests) < n_rejected
        return lambda piece: Verdict(fault=Fault.NARRATED) if is_rejected else Verdict(piece)

    server.reply = ("I am here.",)
    async with stage(server, new_check=new_check, stand_in=lambda question, fault, _told: "Hm.") as play:
        finished = await play.answered()
    assert (finished.heard, len(server.requests)) == (heard, 2)
    rejected = [event.unsaid.text for event in play.events if isinstance(event, SentenceRejected)]
    assert rejected == ["I am here."] * n_rejected


async def test_what_it_knows_nothing_of_is_answered_without_asking_the_model(server: ModelServer) -> None:
    shrugs = ("Nobody told me of him.", "I do not know.")
    async with stage(server, context=Memory(shrugs=shrugs), shrug=lambda lines: lines[-1]) as play:
        assert (await play.answered()).heard == "I do not know."
        assert server.requests == []
    async with stage(server, context=Memory(), shrug=lambda lines: lines[-1]) as play:
        await play.answered()
        assert len(server.requests) == 1


@dataclass
class Notes:
    """A twin of the model that says whether notes hold an answer."""

    says: float | Exception | None
    takes_s: float = 0
    asked: list[str] = field(default_factory=list)

    async def get_ready(self) -> None: ...

    async def close(self) -> None: ...

    async def log_odds(self, notes: str) -> float | None:
        self.asked.append(notes)
        await asyncio.sleep(self.takes_s)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@pytest.mark.parametrize(
    ("by_wording", "says", "takes_s", "may_answer"),
    [
        pytest.param(-1.0, 3.0, 0, True, id="the model knows"),
        pytest.param(0.5, -3.0, 0, False, id="the model does not know"),
        pytest.param(0.5, None, 0, True, id="it cannot tell, and the wording decides"),
        pytest.param(-1.0, None, 0, False, id="it cannot tell, and the wording denies"),
        pytest.param(-1.0, 3.0, 60, False, id="it is late"),
        pytest.param(0.5, KeyError("choices"), 0, True, id="it fails"),
    ],
)
async def test_model_decides_whether_the_npc_knows_an_answer_if_that_is_uncertain(
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    by_wording: float,
    says: float | Exception | None,
    takes_s: float,
    may_answer: bool,
) -> None:
    monkeypatch.setattr("glyphoxa_processors.llm._CHECK_TIMEOUT_S", 0.2)
    untold = "Nobody has told Grimjaw anything about that."
    guess = () if by_wording > 0 else ("I do not know.",)
    memory = Memory(shrugs=guess, doubt=Doubt(by_wording, "Notes of Grimjaw", (untold,), ("I do not know.",)))
    machine = OneMachine(asyncio.Lock())
    llm = a_model(server, cache=machine)
    llm.notes = notes = Notes(says, takes_s)
    async with stage(server, context=memory, llm=llm, shrug=lambda lines: lines[0]) as play:
        heard = (await play.answered()).heard
        assert notes.asked == ["Notes of Grimjaw"]
        assert (heard != "I do not know.", len(server.requests)) == (may_answer, int(may_answer))
        assert untold not in str(server.requests)
        assert not machine.one_at_a_time.locked()


async def test_model_that_has_no_notes_is_asked_as_the_wording_says(server: ModelServer) -> None:
    doubt = Doubt(0.5, "Notes of Grimjaw", (), ("I do not know.",))
    async with stage(server, context=Memory(doubt=doubt), shrug=lambda lines: lines[0]) as play:
        assert (await play.answered()).heard != "I do not know."


async def test_an_own_secret_is_turned_aside_and_not_asked_for_again(server: ModelServer) -> None:
    told: list[str] = []

    def new_check(asked: Asked) -> Callable[[str], Verdict]:
        def decide(piece: str) -> Verdict:
            told.append(piece)
            return Verdict(fault=Fault.SECRET)

        return decide

    server.reply = ("It was me. ", "With nightshade.")
    async with stage(server, new_check=new_check, stand_in=lambda question, fault, _told: f"{fault}") as play:
        finished = await play.answered()
    assert (finished.heard, len(server.requests), len(told)) == ("secret", 1, 1)


REFUSES = "I'm sorry, but I can't help you with that."


def checked_as(name: str) -> Callable[[Asked], Callable[[str], Verdict]]:
    return lambda asked: ReplyCheck(Character(name), asked).decide


async def test_refused_question_is_asked_again_with_the_fact(server: ModelServer) -> None:
    context = Memory(facts=("Grimjaw's blade is cracked.", "Grimjaw owns a mule."))
    server.reply, server.later = (REFUSES,), ("It is cracked. ", "Alas.")
    async with stage(server, context=context, new_check=checked_as("Grimjaw")) as play:
        assert (await play.answered()).heard == "It is cracked. Alas."
    first, second = (request["messages"][-1]["content"] for request in server.requests)
    assert second == f"{first}\n(You know this, and say it: Grimjaw's blade is cracked.)"


async def test_model_that_refuses_twice_leaves_the_fact_to_be_said(server: ModelServer) -> None:
    server.reply = (REFUSES,)
    shrug = "Hm? Say that again."
    for facts, heard in ((("Grimjaw's blade is cracked.",), "My blade is cracked."), ((), shrug)):
        async with stage(
            server, context=Memory(facts=facts), new_check=checked_as("Grimjaw"), stand_in=lambda *_: shrug
        ) as play:
            assert (await play.answered()).heard == heard


async def test_fact_about_a_veiled_topic_is_not_said_after_a_refusal(server: ModelServer) -> None:
    server.reply = (REFUSES,)
    memory, shrug = Memory(facts=("Grimjaw's blade tortured Bran.",), direction="Fade out."), "Hm? Say that again."
    new_check = checked_as("Grimjaw")
    async with stage(server, context=memory, new_check=new_check, stand_in=lambda *_: shrug) as play:
        assert (await play.answered()).heard == shrug
    assert not any("and say it" in request["messages"][-1]["content"] for request in server.requests)


async def test_the_filter_of_a_reply_knows_what_it_answers(server: ModelServer) -> None:
    answered: list[Asked] = []

    def new_check(asked: Asked) -> Callable[[str], Verdict]:
        answered.append(asked)
        return Verdict

    async with stage(server, new_check=new_check) as play:
        await play.answered()
    assert answered[-1].question == "How is my blade?"


async def test_memory_goes_into_a_copy_of_the_prompt(server: ModelServer) -> None:
    """Assembled before the call and placed before the question; the shared prompt is unchanged."""
    memory = Memory(facts=("The blade is cracked.",), omitted=("recall: late by 4 ms",))
    async with stage(server, context=memory) as play:
        asked = prompt("How is my blade?")
        await play.answered(asked=asked)
        assert asked == prompt("How is my blade?")
        messages = server.requests[-1]["messages"]
        assert messages[0] == {"role": "system", "content": "You are Grimjaw, a smith."}
        assert messages[-1]["content"] == "Alice: How is my blade?\nFacts: The blade is cracked."
        (injected,) = play.of(Injected)
        assert injected.prompt.omitted == ("recall: late by 4 ms",)
        assert "The blade is cracked." in injected.prompt.text


@pytest.mark.parametrize(("tier", "n_tools"), [("FAST", 1), ("STANDARD", 4)])
async def test_a_model_is_shown_the_tools_of_the_turn_s_tier(
    server: ModelServer, tier: BudgetTier, n_tools: int
) -> None:
    async with stage(server, tools=tools_of(tier="DEEP")) as play:
        choice = TierChoice(tier, "first turn of the conversation", 500, tier)
        await play.answered(asked=replace(prompt("How is my blade?"), tier=choice))
        assert len(server.requests[-1]["tools"]) == n_tools
        (injected,) = play.of(Injected)
        assert injected.tier == choice


async def test_priming_reads_the_prompt_in_and_gives_way_to_a_begin(server: ModelServer) -> None:
    async with stage(server) as play:
        server.gate.clear()
        play.mouth.prime(prompt("How is"))
        await asyncio.wait_for(server.arrived.wait(), DEADLINE_S)
        assert server.requests[-1]["max_tokens"] == 1
        assert server.requests[-1]["cache_prompt"] is True and server.requests[-1]["id_slot"] == 0
        play.begin()
        await asyncio.wait_for(server.gave_up.wait(), DEADLINE_S)
        server.gate.set()
        play.release()
        assert (await play.finished()).heard == "Well met. The blade is ready."


async def test_no_prompt_is_made_for_a_model_that_reads_none_ahead(server: ModelServer) -> None:
    memory = Memory()
    async with stage(server, context=memory, llm=a_model(server)) as play:
        play.mouth.prime(prompt("How is"))
        await play.answered()
    assert memory.read_ahead == []


@pytest.mark.parametrize(("is_bare", "n_read", "done"), [(True, 500, 1), (True, 3, 0), (False, 500, 0)])
async def test_what_is_read_of_a_persona_is_kept_and_nothing_of_the_talk(
    server: ModelServer, is_bare: bool, n_read: int, done: int
) -> None:
    machine = OneMachine(asyncio.Lock())
    server.timings = {"prompt_n": n_read}
    llm = a_model(server, cache=machine)
    async with stage(server, llm=llm) as play:
        play.mouth.prime(prompt("" if is_bare else "How is"))
        await play.mouth.wait_until_primed()
        assert machine.done == ["restore", *["save"] * done]


async def test_of_two_npcs_on_one_machine_the_second_is_answered_when_the_first_is(server: ModelServer) -> None:
    alone = asyncio.Lock()
    llms = [a_model(server, cache=OneMachine(alone)) for _ in range(2)]
    async with stage(server, llm=llms[0]) as first, stage(server, llm=llms[1]) as second:
        server.gate.clear()
        first.begin("t1")
        await asyncio.wait_for(server.arrived.wait(), DEADLINE_S)
        second.begin("t2")
        second.mouth.cancel(TurnId("t2"))
        second.mouth.prime(prompt("How is"))
        second.begin("t3")
        await second.until(lambda: bool(second.of(Injected, "t3")))
        assert len(server.requests) == 1
        server.gate.set()
        await first.until(lambda: turns.Stage.FIRST_SENTENCE in [m.stage for m in first.of(Marked)])
        second.release("t3")
        assert (await second.finished("t3")).heard == "Well met. The blade is ready."
        assert [asked["max_tokens"] for asked in server.requests[1:] if "max_tokens" in asked] == []
        first.release("t1")
        await first.finished("t1")
        assert not alone.locked()


EXCUSES = ("Hm? Say that again.", "What was it?")


async def test_an_answer_that_does_not_come_is_a_line_in_character_and_the_next_one_another(
    server: ModelServer,
) -> None:
    async with stage(server, excuses=EXCUSES) as play:
        await play.mouth.wait_until_drained()
        for turn, line in zip(("t1", "t2", "t3"), (*EXCUSES, EXCUSES[0]), strict=True):
            server.gate.clear()
            server.arrived.clear()
            play.begin(turn)
            play.release(turn)
            await asyncio.wait_for(server.arrived.wait(), DEADLINE_S)
            play.mouth.give_up(TurnId(turn))
            finished = await play.finished(turn)
            assert (finished.reply, finished.heard) == ("", "")
            assert "timed out" in finished.error
            assert len(play.sound) == len(line) * 10 * 48
            assert [mark.stage for mark in play.of(Marked, turn)] == [turns.Stage.CONTEXT_READY, turns.Stage.FILLER]
            play.sound.clear()
            server.gate.set()
        assert (await play.answered("t4")).heard == "Well met. The blade is ready."


async def test_an_answer_that_fails_before_it_may_be_heard_is_a_line_in_character_as_soon_as_it_may(
    server: ModelServer,
) -> None:
    async with stage(server, excuses=EXCUSES) as play:
        await play.mouth.wait_until_drained()
        server.status = 400
        play.begin()
        await play.mouth.wait_until_drained()
        assert not play.sound
        assert not play.of(Finished)
        assert len(play.of(FailedEarly)) == 1
        play.release()
        assert "out of order" in (await play.finished()).error
        assert len(play.sound) == len(EXCUSES[0]) * 10 * 48
        play.sound.clear()
        play.begin("t2")
        await play.mouth.wait_until_drained()
        play.cancel("t2")  # they went on speaking: of this one nobody hears that it failed
        assert "out of order" in (await play.finished("t2")).error
        assert not play.sound


async def test_a_filler_is_played_once_while_nothing_else_is_heard(server: ModelServer) -> None:
    async with stage(server, npc=replace(GRIMJAW, fillers=("Hm.",))) as play:
        await play.mouth.wait_until_drained()
        server.gate.clear()
        play.begin()
        play.mouth.fill(TurnId("t1"), "Hm.")
        assert not play.sound  # not released yet
        play.release()
        play.mouth.fill(TurnId("t1"), "Hm.")
        play.mouth.fill(TurnId("t1"), "Hm.")
        await play.until(lambda: len(play.sound) == 3 * 10 * 48)
        server.gate.set()
        finished = await play.finished()
        assert finished.heard == "Well met. The blade is ready."
        assert len(play.sound) == (3 + 9 + 19) * 10 * 48
        stages = [mark.stage for mark in play.of(Marked)]
        assert stages.count(turns.Stage.FILLER) == 1
        assert stages.index(turns.Stage.FILLER) < stages.index(turns.Stage.FIRST_AUDIO)


async def test_words_that_the_dm_gives_are_said_as_they_are_and_no_model_is_asked(server: ModelServer) -> None:
    words = "Grimjaw nods. As an AI, I have no wares. (ooc) The gate is closed!"
    async with stage(server) as play:
        finished = await play.answered(asked=replace(prompt(""), words=words))
        assert finished.reply == finished.heard == words
        assert play.of(SentenceRejected) == [] and play.of(Injected) == []
        assert not server.arrived.is_set()
        assert (await play.answered("t2")).heard == "Well met. The blade is ready."


async def test_the_model_is_asked_with_the_direction_of_the_dm(server: ModelServer) -> None:
    async with stage(server) as play:
        play.mouth.begin(TurnId("t1"), replace(prompt("How is my blade?"), direction="Be short."))
        await play.until(lambda: bool(play.of(Injected)))
        (injected,) = play.of(Injected)
        assert injected.prompt.text.endswith("For this answer: Be short.")
        assert [(part.source, part.name) for part in injected.prompt.parts][-1] == ("the DM", "direction")
        play.cancel()
