"""Names are corrected in the background: by sound if no ear did, by a language model if words are doubtful."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from loguru import logger

from glyphoxa.actors.limits import CircuitBreaker
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import Unparseable
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.events import TableEvent, UtteranceKept, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.heard import Correction, HeardWord, SpeechStarted, Utterance
from glyphoxa.domain.ids import EntityId, UtteranceId
from glyphoxa.language.words import words
from glyphoxa.names.corrector import Corrected
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry
from glyphoxa.npc import second_look
from glyphoxa.npc.transcript_revision import CAPACITY, MOST_TRIES, Asking, Reviser, SecondLook
from tests.support.builders import INNKEEPER, SMITH, TAMSIN, an_utterance
from tests.support.memory import LogTwin
from tests.support.model_twin import ModelTwin
from tests.support.virtual_time import in_virtual_time

GAZETTEER = Gazetteer.build([Entry(name, EntityId(name)) for name in ("Eldrinax", "Ironhold", "Grimjaw")])


def by_sound(text: str) -> Corrected:
    """The stage by sound, for the one garble of these tests."""
    at = text.find("iron hold")
    if at < 0:
        return Corrected(text, ())
    correction = Correction(at, at + 9, "iron hold", "Ironhold", 1.0, "phonetic", "spelling")
    return Corrected(text.replace("iron hold", "Ironhold", 1), (correction,))


def said(text: str, *, id: str = "u1", unsure: str = "", **changes: Any) -> Utterance:
    heard = tuple(HeardWord(word.start, word.end, 0.2 if word.text in unsure else 0.9) for word in words(text))
    return replace(an_utterance(text, id=id), **{"duration_ms": 900, "words": heard, **changes})


ELDER_NACKS = said("did elder nacks come", unsure="elder nacks")
PUT_RIGHT = {
    "corrections": [{"original": "elder nacks", "corrected": "Eldrinax", "reason": "sounds alike"}],
    "corrected_text": "did Eldrinax come",
}
Answer = dict[str, Any] | Exception


class Model(ModelTwin):
    """Answers at once, or after eight seconds."""

    def __init__(self, answers: Sequence[Answer] = (PUT_RIGHT,), *, is_slow: bool = False) -> None:
        super().__init__(*answers)
        self.is_slow = is_slow
        self.dropped = 0

    async def complete(self, *asked: Any, **options: Any) -> dict[str, Any]:
        answer = await super().complete(*asked, **options)
        try:
            await asyncio.sleep(8 * self.is_slow)
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        return answer


@dataclass
class Desk:
    """A reviser at work, and all that hears of it."""

    reviser: Reviser
    kept: dict[str, Utterance]
    falls: list[BaseException]
    log: LogTwin
    model: Model
    told: list[TableEvent]
    pauses: list[int]

    def hear(self, utterance: Utterance) -> None:
        self.kept[utterance.id] = utterance
        self.reviser.on(UtteranceKept(utterance))

    async def keep(self, *utterances: Utterance) -> None:
        for utterance in utterances:
            self.hear(utterance)
        assert await self.reviser.finish(600_000)

    @property
    def texts(self) -> list[str]:
        return [event.utterance.text for event in self.told if isinstance(event, UtteranceRevised)]


@asynccontextmanager
async def a_desk(
    model: Model | None = None, *, gives_way: bool = False, on_pause: Callable[[LogTwin], None] = lambda _: None,
    has_model: bool = True, has_log: bool = True, log: LogTwin | None = None, capacity: int = CAPACITY, **options: Any,
):  # fmt: skip
    model, log = model or Model(), log or LogTwin()
    told: list[TableEvent] = []
    pauses: list[int] = []

    kept: dict[str, Utterance] = {}
    falls: list[BaseException] = []

    async def revise(utterance: Utterance, was: Utterance) -> None:
        """Append a line, like the journal, and revise it."""
        if has_log:
            await log.append([kept[was.id]])
            await log.revise(utterance, was=was)

    async def at_once(work: Callable[[], Any]) -> Any:
        return work()

    async def pause() -> None:
        pauses.append(1)
        on_pause(log)
        await asyncio.sleep(5)

    never_paused = CircuitBreaker(lambda: 0, max_failures=1_000)
    asker = ModelAsker(model, 10_000, breaker=never_paused, retries=0, temperature=0.1)
    asking = Asking(asker, gives_way=gives_way)
    second_look = SecondLook(asking, lambda: GAZETTEER, **{"in_thread": at_once, **options}) if has_model else None
    reviser = Reviser(
        correct=by_sound,
        tell=told.append,
        revise=revise,
        second_look=second_look,
        transcribed=frozenset({INNKEEPER}),
        pause=pause,
        capacity=capacity,
    )

    async def supervised() -> None:
        while True:
            try:
                await reviser.run()
            except ExceptionGroup as fall:
                falls.append(fall)

    running = asyncio.create_task(supervised())
    try:
        yield Desk(reviser, kept, falls, log, model, told, pauses)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@contextmanager
def logged() -> Iterator[list[str]]:
    lines: list[str] = []
    sink = logger.add(lines.append, level="ERROR", format="{message}")
    try:
        yield lines
    finally:
        logger.remove(sink)


async def test_doubtful_name_is_corrected_and_reported() -> None:
    async with a_desk() as desk:
        await desk.keep(said("the storm is over", id="u0"), ELDER_NACKS)
        stored = desk.log.utterances[ELDER_NACKS.id]
    assert (stored.text, stored.raw_text) == ("did Eldrinax come", "did elder nacks come")
    [correction] = stored.corrections
    assert (correction.start, correction.end, correction.before, correction.after) == (4, 15, "elder nacks", "Eldrinax")
    assert (correction.stage, correction.reason) == ("llm", "sounds alike")
    [revised] = desk.told
    assert revised == UtteranceRevised(
        replace(ELDER_NACKS, text=stored.text, corrections=stored.corrections), ELDER_NACKS
    )
    assert "Tamsin: the storm is over" in desk.model.asked[0] and desk.model.temperatures == [0.1]


async def test_what_the_dm_strikes_or_corrects_is_shown_to_no_model_with_what_was_said_behind_it() -> None:
    async with a_desk() as desk:
        retracted, wrong, kept = (
            said(text, id=f"u{n}") for n, text in enumerate(("the duke", "the king", "the storm"), start=5)
        )
        for utterance in (retracted, wrong, kept, ELDER_NACKS):
            desk.hear(utterance)
        desk.reviser.on(UtteranceRetracted(retracted))
        desk.reviser.on(UtteranceRevised(replace(wrong, text="the queen"), wrong))
        assert await desk.reviser.finish(600_000)
    [asked] = desk.model.asked
    assert "the duke" not in asked and "the king" not in asked
    assert "Tamsin: the queen" in asked and "Tamsin: the storm" in asked


async def test_words_that_are_not_doubtful_are_shown_to_no_model() -> None:
    async with a_desk() as desk:
        await desk.keep(said("did elder nacks come"), said("is it so", id="u2", unsure="is it so"))
        assert desk.model.asked == []
        assert desk.told == []


async def test_what_somebody_typed_and_what_an_npc_said_in_its_own_words_is_left_alone() -> None:
    npc = said("So Eldernax went to iron hold.", id="u1", npc_id=SMITH, words=())
    typed = said("So Eldernax went to iron hold.", id="u2", typed=True, words=())
    async with a_desk() as desk:
        await desk.keep(npc, typed)
        assert desk.model.asked == []
        assert desk.told == []


async def test_an_utterance_whose_raw_text_and_corrections_do_not_make_its_text_stays_as_it_is() -> None:
    lost = replace(ELDER_NACKS, id=UtteranceId("u0"), raw_text="iron hold: did elder nacks come")
    async with a_desk() as desk:
        await desk.keep(lost, ELDER_NACKS)
        assert [event.utterance.id for event in desk.told if isinstance(event, UtteranceRevised)] == [ELDER_NACKS.id]


async def test_what_a_speech_to_speech_provider_wrote_down_goes_through_both_stages() -> None:
    text = "So Eldernax went to iron hold."
    answer = {
        "corrections": [{"original": "Eldernax", "corrected": "Eldrinax", "reason": ""}],
        "corrected_text": "So Eldrinax went to Ironhold.",
    }
    async with a_desk(Model([answer])) as desk:
        await desk.keep(said(text, npc_id=INNKEEPER, words=(), raw_text=text + " And then"))
        stored = desk.log.utterances[ELDER_NACKS.id]
        assert "<<Eldernax>> went to Ironhold" in desk.model.asked[0]
    assert stored.text == "So Eldrinax went to Ironhold."
    assert stored.raw_text == text + " And then"
    assert [(c.start, c.end, c.stage) for c in stored.corrections] == [(3, 11, "llm"), (20, 29, "phonetic")]
    assert desk.texts == ["So Eldernax went to Ironhold.", "So Eldrinax went to Ironhold."]


async def test_without_a_model_the_stage_by_sound_still_does_its_work() -> None:
    async with a_desk(has_model=False) as desk:
        await desk.keep(said("at iron hold, elder nacks", npc_id=INNKEEPER, words=()))
        assert desk.log.utterances[ELDER_NACKS.id].text == "at Ironhold, elder nacks"


async def test_without_long_term_memory_the_table_still_hears_of_it() -> None:
    async with a_desk(has_log=False) as desk:
        await desk.keep(ELDER_NACKS)
        assert desk.texts == ["did Eldrinax come"]


@pytest.mark.parametrize(
    "answer",
    [
        Unparseable("not JSON"),
        Unavailable("late"),
        {"corrections": [], "corrected_text": "did Eldrinax come"},
        {"corrections": "?", "corrected_text": 7},
        {"corrections": PUT_RIGHT["corrections"], "corrected_text": "I am a pirate now"},
    ],
)
async def test_an_answer_that_cannot_be_used_changes_nothing_and_the_next_utterance_is_asked_about(
    answer: Answer,
) -> None:
    async with a_desk(Model([answer, PUT_RIGHT])) as desk:
        await desk.keep(ELDER_NACKS)
        assert desk.told == []
        await desk.keep(replace(ELDER_NACKS, id="u2"))
        assert desk.texts == ["did Eldrinax come"]


@in_virtual_time
async def test_while_the_log_is_away_a_correction_waits_and_is_not_asked_for_again() -> None:
    def comes_back(log: LogTwin) -> None:
        log.weather.away = len(desk.pauses) < 3

    async with a_desk(on_pause=comes_back) as desk:
        desk.log.weather.away = True
        await desk.keep(ELDER_NACKS)
        assert len(desk.pauses) == 3
        assert len(desk.model.asked) == 1
        assert desk.log.utterances[ELDER_NACKS.id].text == "did Eldrinax come"
        assert desk.texts == ["did Eldrinax come"]  # the page and the NPCs did not wait


@in_virtual_time
async def test_the_npcs_own_model_is_asked_only_when_the_table_has_been_quiet_for_a_while() -> None:
    quiet = asyncio.Event()
    async with a_desk(gives_way=True, wait_until_quiet=quiet.wait) as desk:
        desk.hear(ELDER_NACKS)
        await asyncio.sleep(60)
        assert desk.model.asked == []
        quiet.set()
        await asyncio.sleep(1.9)
        desk.reviser.on(SpeechStarted(TAMSIN, 1))
        await asyncio.sleep(1.9)
        assert desk.model.asked == []
        await asyncio.sleep(0.2)
        assert len(desk.model.asked) == 1


@in_virtual_time
async def test_a_question_to_the_npcs_own_model_is_dropped_when_somebody_speaks_and_asked_again_later() -> None:
    async with a_desk(Model(is_slow=True), gives_way=True) as desk:
        desk.hear(ELDER_NACKS)
        await asyncio.sleep(5)
        assert len(desk.model.asked) == 1
        desk.reviser.on(SpeechStarted(TAMSIN, 1))
        await asyncio.sleep(0.01)
        assert desk.model.dropped == 1
        assert await desk.reviser.finish(60_000)
        assert len(desk.model.asked) == 2
        assert desk.texts == ["did Eldrinax come"]


@in_virtual_time
async def test_a_model_of_its_own_is_not_disturbed_by_talk() -> None:
    async with a_desk(Model(is_slow=True)) as desk:
        desk.hear(ELDER_NACKS)
        await asyncio.sleep(1)
        desk.reviser.on(SpeechStarted(TAMSIN, 1))
        assert await desk.reviser.finish(60_000)
        assert (len(desk.model.asked), desk.model.dropped) == (1, 0)


@in_virtual_time
async def test_when_too_much_waits_the_oldest_keeps_the_words_that_were_heard() -> None:
    quiet = asyncio.Event()
    async with a_desk(gives_way=True, wait_until_quiet=quiet.wait, capacity=3) as desk:
        for n in range(10):
            desk.hear(replace(ELDER_NACKS, id=f"u{n}"))
        quiet.set()
        assert await desk.reviser.finish(600_000)
        assert len(desk.model.asked) == 3
        assert {"u8", "u9"} < set(desk.log.utterances)


@in_virtual_time
async def test_the_session_ends_in_time_even_if_not_everything_was_looked_at() -> None:
    async with a_desk(gives_way=True, wait_until_quiet=asyncio.Event().wait) as desk:
        desk.hear(ELDER_NACKS)
        assert not await desk.reviser.finish(1_000)


async def test_an_utterance_over_which_every_try_fails_is_left_and_the_next_is_looked_at() -> None:
    fails = [RuntimeError("a bug")] * (MOST_TRIES * 10)
    poison = [replace(ELDER_NACKS, id=f"poison-{n}") for n in range(10)]
    with logged() as lines:
        async with a_desk(Model([*fails, PUT_RIGHT])) as desk:
            await desk.keep(*poison, ELDER_NACKS)
            assert len(desk.model.asked) == len(fails) + 1
            assert [event.utterance.id for event in desk.told if isinstance(event, UtteranceRevised)] == ["u1"]
            assert desk.falls == []  # no supervisor gives it up
    assert any("poison-3 keeps its stored words" in line for line in lines)


async def test_a_correction_that_can_never_be_written_does_not_keep_the_next_one_out() -> None:
    class Log(LogTwin):
        async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
            if was.id == "poison":
                raise RuntimeError("a bug")
            return await super().revise(utterance, was=was)

    with logged() as lines:
        async with a_desk(log=Log()) as desk:
            await desk.keep(replace(ELDER_NACKS, id="poison"), ELDER_NACKS)
            assert desk.log.utterances["poison"].text == ELDER_NACKS.text
            assert desk.log.utterances[ELDER_NACKS.id].text == "did Eldrinax come"
    assert any("poison keeps its stored words" in line for line in lines)


async def test_names_are_compared_beside_the_loop_that_carries_the_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    compared_in: list[int] = []
    likeness = second_look.likeness

    def noted(*compared: Any) -> float:
        compared_in.append(threading.get_ident())
        return likeness(*compared)

    monkeypatch.setattr(second_look, "likeness", noted)
    async with a_desk(in_thread=asyncio.to_thread) as desk:
        await desk.keep(ELDER_NACKS)
        assert desk.texts == ["did Eldrinax come"]
    assert len(compared_in) > 1
    assert threading.get_ident() not in compared_in


@in_virtual_time
async def test_a_question_is_not_asked_when_somebody_speaks_while_it_is_prepared() -> None:
    asked_while_speaking: list[int] = []

    async def disturbed(work: Callable[[], Any]) -> Any:
        if not asked_while_speaking:
            desk.reviser.on(SpeechStarted(TAMSIN, 1))
            asyncio.get_running_loop().call_later(1, lambda: asked_while_speaking.append(len(desk.model.asked)))
            asked_while_speaking.append(0)
        return work()

    async with a_desk(gives_way=True, in_thread=disturbed) as desk:
        await desk.keep(ELDER_NACKS)
        assert asked_while_speaking == [0, 0]
        assert desk.texts == ["did Eldrinax come"]
