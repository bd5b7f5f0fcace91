from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

import pytest

from glyphoxa.domain.heard import (
    Correction,
    EagerTurn,
    Heard,
    HeardWord,
    NothingSaid,
    PartialHeard,
    SpeechPaused,
    SpeechStarted,
    TurnEnded,
)
from glyphoxa.domain.ids import PlayerId
from glyphoxa.language.words import leads_to
from glyphoxa.turns.endpointing import (
    Endpointing,
    EndpointingEffect,
    Final,
    Onset,
    Partial,
    Paused,
    Started,
    Tick,
    TickAt,
    TurnOver,
    sounds_unfinished,
)

ALICE = PlayerId("alice")
Report = TypeVar("Report")


def heard(text: str, *, at_ms: int = 0, raw: str | None = None, corrections: tuple[Correction, ...] = ()) -> Heard:
    return Heard(text, text if raw is None else raw, corrections, transcript_ms=at_ms, corrected_ms=at_ms)


def reports(effects: tuple[EndpointingEffect, ...]) -> list[object]:
    return [effect for effect in effects if not isinstance(effect, TickAt | TurnOver)]


def the(kind: type[Report], effects: tuple[EndpointingEffect, ...]) -> Report:
    """Return the only report, which is of this kind."""
    (found,) = reports(effects)
    assert isinstance(found, kind)
    return found


def kinds(effects: tuple[EndpointingEffect, ...]) -> list[type]:
    return [type(report) for report in reports(effects)]


def an_ear(**settings: int) -> Endpointing:
    """Return an ear with one wait for all words."""
    return Endpointing(ALICE, **{"complete_ms": 480, "unfinished_ms": 480, **settings})  # type: ignore[arg-type]


def paused(**settings: int) -> Endpointing:
    """Speech from 1000 to 2000 ms."""
    ear = an_ear(**settings)
    ear.on(Started(1_000))
    ear.on(Paused(2_000, at_ms=2_200))
    return ear


def paused_after(text: str, **settings: int) -> Endpointing:
    """Speech from 1000 to 2000 ms, its transcript there at 2300."""
    ear = paused(**settings)
    ear.on(Final(heard(text, at_ms=2_300), at_ms=2_300))
    return ear


def test_a_turn_is_eager_at_the_pause_and_ends_after_the_silence() -> None:
    ear = an_ear()
    assert reports(ear.on(Started(1_000))) == [SpeechStarted(ALICE, 1_000)]
    assert kinds(ear.on(Paused(2_000, at_ms=2_200))) == [SpeechPaused]
    effects = ear.on(Final(heard("I have come back, Grimjaw.", at_ms=2_300), at_ms=2_300))
    assert kinds(effects) == [EagerTurn]
    assert TickAt(2_480) in effects
    ended = the(TurnEnded, ear.on(Tick(2_480)))
    assert (ended.draft.text, ended.draft.began_ms, ended.draft.speech_end_ms) == (
        "I have come back, Grimjaw.",
        1_000,
        2_000,
    )
    assert ended.draft.heard.transcript_ms == 2_300


def test_a_pause_inside_a_turn_does_not_cut_it_in_two() -> None:
    ear = paused_after("I have come back, Grimjaw.")
    assert kinds(ear.on(Started(2_400))) == [SpeechStarted]
    assert kinds(ear.on(Tick(2_480))) == []
    ear.on(Paused(3_000, at_ms=3_200))
    eager = the(EagerTurn, ear.on(Final(heard("How is my blade?"), at_ms=3_300)))
    assert eager.draft.text == "I have come back, Grimjaw. How is my blade?"
    ended = the(TurnEnded, ear.on(Tick(3_480)))
    assert ended.draft == eager.draft


def test_words_that_sound_unfinished_are_waited_for_longer() -> None:
    ear = paused_after("I would like the", unfinished_ms=900)
    assert ear.on(Tick(2_480)) == (TickAt(2_900),)
    assert kinds(ear.on(Tick(2_900))) == [TurnEnded]


@pytest.mark.parametrize(
    ("segments", "wait_ms"),
    [
        (["Where?"], 200),
        (["Tell me what you know about Velkoreth."], 200),
        (["I came back, Grimjaw.", "We lost the map."], 200),
        (["I have come back."], 1_200),
        (["Stop!"], 480),
        (["I have come back again."], 480),
        (["What I have heard of it and"], 1_200),
    ],
)
def test_silence_depends_on_how_complete_the_words_are(segments: list[str], wait_ms: int) -> None:
    assert Endpointing(ALICE).wait_ms(*segments) == wait_ms


def test_streamed_partial_that_sounds_finished_is_eager() -> None:
    ear = an_ear(confirm_within_ms=350, unfinished_ms=900)
    ear.on(Started(1_000))
    assert kinds(ear.on(Partial(heard("Grimjaw, how is"), at_ms=1_500))) == [PartialHeard]
    partial, eager = reports(ear.on(Partial(heard("Grimjaw, how is my blade?"), at_ms=1_800)))
    assert isinstance(partial, PartialHeard) and isinstance(eager, EagerTurn)
    assert (eager.draft.text, eager.draft.speech_end_ms) == ("Grimjaw, how is my blade?", 1_800)


def test_a_transcript_later_than_the_silence_ends_the_turn_at_once() -> None:
    ear = paused()
    assert kinds(ear.on(Final(heard("Yes."), at_ms=2_600))) == [TurnEnded]


def test_sound_without_words_is_nothing_said() -> None:
    ear = an_ear()
    ear.on(Started(1_000))
    ear.on(Paused(1_200, at_ms=1_400))
    assert reports(ear.on(Final(heard(""), at_ms=1_500))) == [NothingSaid(ALICE, 1_500)]


@pytest.mark.parametrize("revises", [False, True])
def test_a_cough_after_words_does_not_undo_them(revises: bool) -> None:
    ear = paused_after("A pint, please.")
    ear.on(Started(2_400))
    ear.on(Paused(2_500, at_ms=2_700))
    ear.on(Final(heard(""), at_ms=2_800, revises=revises))
    ended = the(TurnEnded, ear.on(Tick(2_980)))
    assert ended.draft.text == "A pint, please."


def test_a_recogniser_that_never_answers_does_not_hold_the_turn_forever() -> None:
    ear = an_ear()
    ear.on(Started(1_000))
    assert ear.on(Paused(2_000, at_ms=2_200))[1:] == (TickAt(5_000),)
    assert reports(ear.on(Tick(5_000))) == [NothingSaid(ALICE, 5_000)]


def test_unfinished_recogniser_leaves_the_last_partial() -> None:
    ear = an_ear()
    ear.on(Started(1_000))
    assert kinds(ear.on(Partial(heard("Good evening"), at_ms=1_500))) == [PartialHeard]
    ear.on(Paused(2_000, at_ms=2_200))
    ended = the(TurnEnded, ear.on(Tick(5_000)))
    assert ended.draft.text == "Good evening"


def test_words_that_come_after_the_turn_was_given_up_are_a_turn_after_all() -> None:
    ear = paused()
    ear.on(Tick(5_000))
    effects = ear.on(Final(heard("Where were you?"), at_ms=5_400))
    assert kinds(effects) == [SpeechStarted, TurnEnded]
    ended = reports(effects)[1]
    assert isinstance(ended, TurnEnded)
    assert ended.draft.speech_end_ms == 2_000


def test_a_voice_too_quiet_for_the_detector_is_still_a_turn() -> None:
    ear = an_ear()
    effects = ear.on(Final(heard("Over here."), at_ms=1_000))
    assert kinds(effects) == [SpeechStarted, EagerTurn]
    assert kinds(ear.on(Tick(1_480))) == [TurnEnded]


def test_two_pauses_wait_for_both_transcripts() -> None:
    ear = paused()
    ear.on(Started(2_300))
    ear.on(Paused(2_600, at_ms=2_800))
    assert kinds(ear.on(Final(heard("First."), at_ms=3_200))) == []
    ended = the(TurnEnded, ear.on(Final(heard("Second."), at_ms=3_400)))
    assert ended.draft.text == "First. Second."


def test_unconfirmed_streaming_transcript_is_used_after_a_delay() -> None:
    ear = an_ear(confirm_within_ms=350)
    ear.on(Started(1_000))
    ear.on(Final(heard("I have come back, Grimjaw."), at_ms=1_900, closes=False))
    assert ear.on(Paused(2_000, at_ms=2_200))[1:] == (TickAt(2_350),)
    ear.on(Tick(2_350))
    assert kinds(ear.on(Tick(2_480))) == [TurnEnded]


def test_partials_carry_corrections_and_word_data_at_their_positions() -> None:
    ear = paused_after("Well then.")
    ear.on(Started(2_400))
    grimjaw = Correction(4, 10, "grimja", "Grimjaw", 1.0, "phonetic", "")
    words = (HeardWord(0, 3, 0.9), HeardWord(4, 10, 0.3))
    so_far = replace(heard("ask Grimjaw", raw="ask grimja", corrections=(grimjaw,)), words=words)
    partial = the(PartialHeard, ear.on(Partial(so_far, at_ms=2_900)))
    assert (partial.text, partial.heard.raw_text) == ("Well then. ask Grimjaw", "Well then. ask grimja")
    assert partial.heard.corrections == (replace(grimjaw, start=15, end=21),)
    assert partial.heard.words == (HeardWord(11, 14, 0.9), HeardWord(15, 21, 0.3))


def test_spaces_around_a_transcript_shift_no_positions() -> None:
    first = Correction(1, 7, "grimja", "Grimjaw", 1.0, "phonetic", "")
    second = Correction(5, 11, "grimja", "Grimjaw", 1.0, "phonetic", "")
    ear = paused()
    ear.on(Final(heard("Grimjaw?", raw=" grimja? ", corrections=(first,)), at_ms=2_300))
    ear.on(Started(2_400))
    ear.on(Paused(2_900, at_ms=3_100))
    late = replace(heard("Old Grimjaw.", raw=" old grimja.", corrections=(second,)), words=(HeardWord(5, 12, 0.3),))
    eager = the(EagerTurn, ear.on(Final(replace(late, text="old Grimjaw."), at_ms=3_200)))
    assert eager.draft.heard.raw_text == "grimja? old grimja."
    assert leads_to(eager.draft.heard.raw_text, eager.draft.heard.corrections, eager.draft.text)
    assert eager.draft.heard.words == (HeardWord(12, 19, 0.3),)


def test_a_transcript_of_the_whole_turn_takes_the_place_of_the_last_one() -> None:
    ear = paused_after("Marigund.")
    ear.on(Started(2_400))
    (partial,) = reports(ear.on(Partial(heard("Marigund, what do"), at_ms=2_900, revises=True)))
    assert partial == PartialHeard(ALICE, heard("Marigund, what do"), 2_900)
    ear.on(Paused(3_000, at_ms=3_200))
    eager = the(EagerTurn, ear.on(Final(heard("Marigund, what do people say?"), at_ms=3_300, revises=True)))
    assert eager.draft.text == "Marigund, what do people say?"


def test_settled_transcript_is_not_revised() -> None:
    ear = paused_after("A long story.")
    for at_ms, text, revises in ((3_000, "And", False), (4_000, "And then", True)):
        ear.on(Started(at_ms))
        ear.on(Paused(at_ms + 300, at_ms=at_ms + 500))
        ear.on(Final(heard(text), at_ms=at_ms + 600, revises=revises))
    partial = the(PartialHeard, ear.on(Partial(heard("And then it"), at_ms=5_000, revises=True)))
    assert partial.text == "A long story. And then it"


def test_a_turn_that_is_given_up_has_the_words_of_the_partial_once() -> None:
    ear = paused_after("I have come back.")
    ear.on(Started(2_400))
    ear.on(Partial(heard("I have come back, Grimjaw."), at_ms=2_900, revises=True))
    ear.on(Paused(3_000, at_ms=3_200))
    ended = the(TurnEnded, ear.on(Tick(6_000)))
    assert ended.draft.text == "I have come back, Grimjaw."


def test_the_recogniser_is_told_which_segment_was_the_last_of_the_turn() -> None:
    ear = paused_after("I have come back.")
    ear.on(Started(2_400))
    ear.on(Paused(2_500, at_ms=2_700))
    ear.on(Final(heard("I have come back, Grimjaw."), at_ms=2_800, revises=True, segment=2))
    assert ear.on(Tick(2_980))[-1] == TurnOver(2)
    ear.on(Started(4_000))
    ear.on(Paused(4_100, at_ms=4_300))
    assert ear.on(Final(heard(""), at_ms=4_400, segment=3))[-1] == TurnOver(3)


def test_words_that_come_after_their_turn_ended_are_not_the_next_turns() -> None:
    ear = paused()
    assert kinds(ear.on(Tick(5_000))) == [NothingSaid]
    ear.on(Started(5_100))
    assert ear.on(Partial(heard("Where were"), at_ms=5_200, segment=1)) == ()
    assert ear.on(Final(heard("Where were you?"), at_ms=5_300, segment=1)) == ()
    ear.on(Paused(6_000, at_ms=6_200))
    ended = the(TurnEnded, ear.on(Final(heard("I am back."), at_ms=6_500, segment=2)))
    assert (ended.draft.text, ended.draft.began_ms) == ("I am back.", 5_100)


def test_late_transcript_does_not_repeat_words_of_a_partial() -> None:
    ear = an_ear()
    ear.on(Started(1_000))
    ear.on(Partial(heard("Good evening"), at_ms=1_500, segment=1))
    ear.on(Paused(2_000, at_ms=2_200))
    assert kinds(ear.on(Tick(5_000))) == [TurnEnded]
    assert ear.on(Final(heard("I have come back."), at_ms=5_200, segment=1)) == ()


def test_speech_does_not_end_before_it_began() -> None:
    ear = an_ear()
    ear.on(Started(1_000))
    ear.on(Paused(speech_end_ms=950, at_ms=1_200))
    eager = the(EagerTurn, ear.on(Final(heard("Aye."), at_ms=1_250)))
    assert eager.draft.speech_end_ms == 1_000


def test_a_turn_does_not_end_while_speech_may_be_beginning() -> None:
    ear = paused_after("Marigund.")
    ear.on(Onset(2_470))
    assert ear.on(Tick(2_480)) == (TickAt(2_520),)
    ear.on(Onset(2_520))
    assert ear.on(Tick(2_520)) == (TickAt(2_560),)
    assert kinds(ear.on(Started(2_400))) == [SpeechStarted]
    assert ear.on(Tick(2_560)) == ()


def test_a_click_delays_the_end_of_a_turn_only_a_little() -> None:
    ear = paused_after("I have come back.")
    ear.on(Onset(2_480))
    assert ear.on(Tick(2_480)) == (TickAt(2_520),)
    assert kinds(ear.on(Tick(2_520))) == [TurnEnded]


def test_an_onset_that_becomes_nothing_does_not_hold_the_turn_forever() -> None:
    """The microphone is closed in the middle of it, so the detector's verdict does not change."""
    ear = paused_after("I have come back.")
    at_ms = 2_480
    while at_ms < 2_780:
        ear.on(Onset(at_ms))
        assert ear.on(Tick(at_ms)) == (TickAt(at_ms + 40),)
        at_ms += 40
    ear.on(Onset(at_ms))
    assert kinds(ear.on(Tick(at_ms))) == [TurnEnded]


def with_words(text: str, *, sound_ms: int | None) -> Heard:
    spans = [(found.start(), found.end()) for found in re.finditer(r"\S+", text)]
    words = tuple(HeardWord(*span, 0.5, 100 * n, 100 * n + 100) for n, span in enumerate(spans))
    return replace(heard(text), words=words, sound_ms=sound_ms)


@pytest.mark.parametrize(
    ("second_sound_ms", "times"),
    [(9_000, [0, 100, 4_000, 4_100]), (None, [0, 100, None, None]), (200, [0, 100, None, None])],
    ids=["known", "unknown", "reconnected"],
)
def test_words_of_later_segments_keep_position_and_known_time(
    second_sound_ms: int | None, times: list[int | None]
) -> None:
    ear = an_ear()
    ear.on(Started(1_000))
    ear.on(Final(with_words("Well, now.", sound_ms=5_000), at_ms=1_500, closes=False))
    ear.on(Paused(2_000, at_ms=2_200))
    eager = the(EagerTurn, ear.on(Final(with_words("Hello Grimjaw.", sound_ms=second_sound_ms), at_ms=2_300)))
    said = eager.draft.heard
    assert [said.raw_text[word.start : word.end] for word in said.words] == ["Well,", "now.", "Hello", "Grimjaw."]
    assert [word.from_ms for word in said.words] == times
    (ended,) = [report for report in reports(ear.on(Tick(9_000))) if isinstance(report, TurnEnded)]
    assert ended.draft.heard == said


def test_a_transcript_that_takes_anothers_place_brings_its_own_words() -> None:
    ear = paused_after("Hello Grimja.")
    eager = the(EagerTurn, ear.on(Final(with_words("Hello Grimjaw.", sound_ms=0), at_ms=2_310, revises=True)))
    assert [word.start for word in eager.draft.heard.words] == [0, 6]


@pytest.mark.parametrize(
    ("language", "text", "unfinished"),
    [
        ("en", "How is my blade?", False),
        ("en", "Good evening, Grimjaw, here I am.", False),
        ("en", "I think so.", False),
        ("en", "Tell me about the", True),
        ("en", "I went there and.", True),
        ("en", "Well,", True),
        ("en", "So I said...", True),
        ("en", "no stop here", True),
        ("en", "Um.", True),
        ("en", "His name is spelled K-O-R.", True),
        ("en", "It is written T, H, R", True),
        ("en", "That is plan B.", False),
        ("en", "If you help us, we will pay.", False),
        ("en", "After the bridge you turn left and then go on.", False),
        ("en", "I would like to die.", False),
        ("de", "Ich möchte die.", True),
        ("de", "Ähm.", True),
        ("fr", "Bonjour, Grimjaw,", True),
        ("fr", "Bonjour, Grimjaw.", False),
    ],
)
def test_unfinished_sentences_are_recognised(language: str, text: str, unfinished: bool) -> None:
    assert sounds_unfinished(text, language=language) is unfinished


@pytest.mark.parametrize("text", ["Thanks for watching!", "[Music]", "Untertitel der Amara.org-Community"])
def test_turn_of_a_recognisers_words_for_noise_is_nothing_said(text: str) -> None:
    ear = an_ear()
    ear.on(Started(1_000))
    assert reports(ear.on(Partial(heard(text), at_ms=1_500))) == []
    ear.on(Paused(speech_end_ms=2_000, at_ms=2_200))
    assert kinds(ear.on(Final(heard(text), at_ms=2_300))) == []
    ended = the(NothingSaid, ear.on(Tick(4_000)))
    assert ended.noise is not None
    assert (ended.noise.text, ended.noise.began_ms, ended.noise.speech_end_ms) == (text, 1_000, 2_000)


def test_noise_after_words_leaves_the_words() -> None:
    ear = paused_after("Where is the blade?")
    ear.on(Started(2_400))
    ear.on(Paused(speech_end_ms=3_000, at_ms=3_200))
    ear.on(Final(heard("Please subscribe!"), at_ms=3_300, revises=True))
    ended = the(TurnEnded, ear.on(Tick(9_000)))
    assert ended.draft.text == "Where is the blade?"
    assert ended.draft.heard.raw_text == "Where is the blade? Please subscribe!"


def test_you_without_detected_speech_is_nothing_said() -> None:
    ear = an_ear()
    ear.on(Final(heard("you"), at_ms=2_300))
    assert kinds(ear.on(Tick(9_000))) == [NothingSaid]
