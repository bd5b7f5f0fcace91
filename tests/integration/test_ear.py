"""An ear on a real graph: what the room is told when a human speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from demo.recordings import read_recording, resample
from glyphoxa.adapters.local.hibari_voice import HibariVoice, load_engine
from glyphoxa.adapters.local.whisper import Whisper
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.config.sections import TurnsSettings
from glyphoxa.domain.heard import EagerTurn, HeardWord, NothingSaid, PartialHeard, SpeechStarted, TurnEnded
from glyphoxa.language.words import words_of_text
from glyphoxa_pipelines import ear
from tests.support.pipecat_fakes import Corrected, Listening, Scripted, Transcript, listening, put_right

GIVES_UP_SOON_MS = 400
PATIENT = TurnsSettings(complete_ms=2_000, end_of_turn_ms=2_000, unfinished_ms=2_000)
SHIPPED: Mapping[str, Any] = {"turns": TurnsSettings(), "final_within_ms": 3_000}


async def test_speech_becomes_a_turn() -> None:
    async with listening(Scripted({100: "Good evening, Grimjaw."})) as play:
        play.say(100)
        ended = await play.until(TurnEnded)
        assert ended.draft.text == "Good evening, Grimjaw."
        assert ended.draft.began_ms <= ended.draft.speech_end_ms < ended.draft.heard.transcript_ms
        assert ended.draft.heard.transcript_ms <= ended.draft.heard.corrected_ms <= ended.at_ms
        assert ended.at_ms - ended.draft.speech_end_ms >= 300
        assert isinstance(play.events[0], SpeechStarted)


async def test_a_recognisers_words_for_noise_are_nothing_said() -> None:
    async with listening(Scripted({100: "Thanks for watching!"})) as play:
        play.say(100)
        nothing = await play.until(NothingSaid)
        assert nothing.noise is not None
        assert nothing.noise.text == "Thanks for watching!"
        assert not [event for event in play.events if isinstance(event, PartialHeard | EagerTurn | TurnEnded)]


async def test_the_eager_turn_has_the_words_of_the_final_one() -> None:
    """Correction happens before anything looks at the words."""
    async with listening(Scripted({100: "Tell me about glif oxa."}), **SHIPPED) as play:
        play.say(100)
        eager, ended = await play.until(EagerTurn), await play.until(TurnEnded)
        assert eager.draft == ended.draft
        assert ended.draft.text == "Tell me about Glyphoxa."
        assert ended.draft.heard.raw_text == "Tell me about glif oxa."


async def test_what_the_recogniser_knows_of_each_word_arrives_with_the_turn() -> None:
    """Also for what is said after a breath, where it is heard again with what came before."""
    told: list[tuple[str, Sequence[HeardWord]]] = []

    def correct(text: str, *, heard: Sequence[HeardWord]) -> Corrected:
        told.append((text, heard))
        return put_right(text)

    scripted = Scripted({100: "Tell me about glif oxa.", 200: "Tell me about glif oxa and her tower."})
    async with listening(scripted, correct=correct, turns=PATIENT) as play:
        play.say(100)
        first = (await play.until(EagerTurn)).draft.heard
        play.say(200)
        ended = (await play.until(TurnEnded)).draft.heard
        await play.until(TurnEnded)
    for each in (first, ended):
        assert [each.raw_text[word.start : word.end] for word in each.words] == each.raw_text.split()
        known = {each.text[w.start : w.end]: w for w in words_of_text(each.words, each.corrections)}
        assert known["about"] == HeardWord(8, 13, 0.8, 200, 300)
    assert {text[word.start : word.end] for text, heard in told for word in heard} >= {"Tell", "glif", "oxa."}
    known = {first.text[w.start : w.end]: w for w in words_of_text(first.words, first.corrections)}
    assert (known["Glyphoxa."].confidence, known["Glyphoxa."].from_ms, known["Glyphoxa."].to_ms) == (0.6, 300, 500)


async def test_partial_transcripts_are_corrected_and_reach_recall_while_the_player_speaks() -> None:
    async with listening(Scripted({100: "Tell me about glif oxa."})) as play:
        play.detect(speech=True)
        play.hear(100, ms=600)
        partial = await play.until(PartialHeard)
        assert (partial.text, partial.heard.raw_text) == ("Tell me about Glyphoxa.", "Tell me about glif oxa.")
        assert play.partials == ["Tell me about Glyphoxa."]
        assert not [event for event in play.events if isinstance(event, TurnEnded)]


async def test_the_recogniser_is_given_the_glossary_and_the_sound_from_before_the_onset() -> None:
    scripted = Scripted({100: "Yes."})
    lengths: list[int] = []

    def transcribe(pcm, glossary, *, retry):  # type: ignore[no-untyped-def]
        lengths.append(len(pcm) // 16)
        return scripted(pcm, glossary, retry=retry)

    async with listening(transcribe) as play:
        play.hear(100, ms=2_000)
        play.detect(speech=True)
        play.hear(100, ms=200)
        play.detect(speech=False)
        await play.until(TurnEnded)
        assert scripted.calls[-1] == (100, "Eldrinax", True)
        assert lengths[-1] == 800 + 200  # 600 ms before the onset, 200 ms that the detector took


async def test_a_cough_is_nothing_said() -> None:
    async with listening(Scripted({})) as play:
        play.say(100)
        await play.until(NothingSaid)
        assert not [event for event in play.events if isinstance(event, TurnEnded)]


async def test_a_recogniser_that_fails_does_not_hold_the_turn() -> None:
    scripted = Scripted({100: "Yes."})
    scripted.failing = True
    async with listening(scripted) as play:
        play.say(100)
        await play.until(NothingSaid)
        scripted.failing = False
        play.say(100)
        assert (await play.until(TurnEnded)).draft.text == "Yes."


async def test_a_recogniser_that_hangs_does_not_hold_the_turn_and_its_words_are_not_lost() -> None:
    scripted = Scripted({100: "Where were you?"})
    scripted.let_go.clear()
    async with listening(scripted, final_within_ms=GIVES_UP_SOON_MS) as play:
        play.say(100, ms=100)
        await play.until(NothingSaid)
        scripted.let_go.set()
        assert (await play.until(TurnEnded)).draft.text == "Where were you?"


async def test_a_corrector_that_fails_leaves_the_words_as_they_were() -> None:
    def broken(text: str, *, heard: Sequence[HeardWord]) -> Corrected:
        raise ValueError("no such table")

    async with listening(Scripted({100: "Yes."}), correct=broken) as play:
        play.say(100)
        assert (await play.until(TurnEnded)).draft.text == "Yes."


async def test_whoever_speaks_for_very_long_is_transcribed_in_parts() -> None:
    async with listening(Scripted({100: "And then."})) as play:
        play.detect(speech=True)
        for _ in range(5):
            play.hear(100, ms=5_000)
            await play.drained()
        play.detect(speech=False)
        draft = (await play.until(TurnEnded)).draft
    assert draft.text == "And then. And then."
    heard = draft.heard
    assert [heard.raw_text[word.start : word.end] for word in heard.words] == ["And", "then.", "And", "then."]
    times = [word.from_ms or 0 for word in draft.heard.words]
    assert times[:2] == [0, 100]
    assert times[2] > 20_000  # the second part's sound begins where the first one's ended


async def test_the_recogniser_is_asked_before_the_pause_is_certain_and_not_again_when_it_is() -> None:
    scripted = Scripted({100: "Good evening."})
    async with listening(scripted) as play:
        play.detect(speech=True)
        play.hear(100, ms=100)
        play.hear(0, ms=200)
        await play.until(PartialHeard)
        play.detect(speech=False)
        assert (await play.until(TurnEnded)).draft.text == "Good evening."
        assert [retry for _, _, retry in scripted.calls] == [True]


async def test_speech_behind_what_was_transcribed_early_is_transcribed_too() -> None:
    lines = iter(["Good.", "Good evening.", "Good evening.", "Good evening."])
    lengths: list[int] = []

    def transcribe(pcm, glossary, *, retry):  # type: ignore[no-untyped-def]
        lengths.append(len(pcm))
        return Transcript(next(lines))

    async with listening(transcribe) as play:
        play.detect(speech=True)
        play.hear(100, ms=100)
        play.hear(0, ms=140)
        await play.until(PartialHeard)
        play.hear(100, ms=100)  # not for 200 ms before the detector's pause: it was still speech
        play.hear(0, ms=20)
        play.detect(speech=False)
        assert (await play.until(TurnEnded)).draft.text == "Good evening."
        assert lengths[-1] == (100 + 140 + 100 + 20) * 16


def spoken(text: str) -> bytes:
    """The local voice as a microphone hears it: 16 kHz, a little noise, a second of quiet around the words."""
    pcm = np.concatenate(list(HibariVoice(load_engine(), "heart").synthesise(text))).astype(np.float32)
    voice = resample(pcm, from_hz=24_000, to_hz=16_000)
    quiet = np.zeros(16_000, dtype=np.float32)
    noise = np.random.default_rng(0).normal(0, 8, len(voice) + 2 * len(quiet))
    return (np.concatenate([quiet, voice, quiet]) + noise).clip(-32_768, 32_767).astype(np.int16).tobytes()


async def play_in_real_time(pcm: bytes, play: Listening) -> int:
    """Twenty milliseconds at a time, at best as fast as they are spoken; the ear's clock goes on with them.

    A recogniser that takes its time takes none of the ear's. Returns when the last voiced sample was heard, by
    that clock.
    """
    step = 640
    samples = np.abs(np.frombuffer(pcm, dtype=np.int16))
    last_voiced = int(np.flatnonzero(samples > 500)[-1]) * 2
    voiced_ms = 0
    for at in range(0, len(pcm), step):
        play.ear.hear(pcm[at : at + step])
        await asyncio.gather(play.until_at_rest(), asyncio.sleep(0.02))
        play.clock.advance(20)
        if at <= last_voiced:
            voiced_ms = play.clock()
    return voiced_ms


@pytest.fixture
def however_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sound stands still while a model works; that is no silence."""
    monkeypatch.setattr(ear, "PauseFinder", partial(ear.PauseFinder, audio_idle_timeout=0))


@pytest.mark.models
@pytest.mark.usefixtures("however_long")
async def test_a_human_voice_is_detected_transcribed_and_ended_by_the_real_models() -> None:
    whisper = Whisper(WeightStore().path("whisper-tiny.en"))
    whisper.warm_up()
    # This voice leaves more than a second between two sentences.
    turns = TurnsSettings(complete_ms=1_400, end_of_turn_ms=1_400, unfinished_ms=1_600)
    async with listening(whisper.transcribe, turns=turns) as play:
        voiced_ms = await play_in_real_time(spoken("Good evening, my friend. How is the weather?"), play)
        ended = await play.until(TurnEnded)
        assert isinstance(play.events[0], SpeechStarted)
        assert "good evening" in ended.draft.text.lower()
        assert "weather" in ended.draft.text.lower()
        assert abs(ended.draft.speech_end_ms - voiced_ms) < 250
        assert play.partials


@pytest.mark.models
@pytest.mark.usefixtures("however_long")
async def test_a_pause_at_a_comma_ends_neither_the_turn_nor_the_sentence() -> None:
    """320 ms after the name: longer than the detector's pause, shorter than the end of a turn."""
    whisper = Whisper(WeightStore().path("whisper-tiny.en"))
    whisper.warm_up()
    recorded = read_recording(Path(__file__).parents[2] / "demo" / "players" / "fen.wav")
    async with listening(whisper.transcribe, **SHIPPED) as play:
        await play_in_real_time(recorded.pcm + bytes(2 * 16_000), play)
        ended = await play.until(TurnEnded)
        # Which name it hears is the recogniser's affair; that nothing ends behind it is the ear's.
        name, _, question = ended.draft.text.partition(", ")
        assert name
        assert not set(name) & set(".?!")
        assert question.lower().startswith("what do people say about the")
        assert [event for event in play.events if isinstance(event, TurnEnded)] == [ended]
        assert len([event for event in play.events if isinstance(event, SpeechStarted)]) == 2
