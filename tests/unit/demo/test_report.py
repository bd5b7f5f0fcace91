from __future__ import annotations

import dataclasses
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from demo.console import ConsoleReport, changed_spans, waterfall
from demo.page import MAX_SOUND_BYTES, embedded_rate_hz, page, turn_span_ms
from demo.played import LinePlayed, NpcSpoke, SessionPlayed
from demo.report import evening_json, figures, ordinary_words_changed, percentile, since_speech_end
from demo.script import Evening, MemoryCheck, Part, ScriptLine, SessionScript, Start
from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.events import SceneChanged, TurnFinished
from glyphoxa.domain.heard import Correction, Utterance
from glyphoxa.domain.ids import (
    CampaignId,
    EntityId,
    NpcId,
    PlayerId,
    SceneId,
    SessionId,
    SpeakerId,
    UtteranceId,
)
from glyphoxa.domain.turn import AssembledPrompt, Outcome, Stage, TurnRecord
from tests.support.builders import a_turn_record
from tests.support.recalled import heard

SMITH, WIDOW, ANN = NpcId("odo"), NpcId("berta"), PlayerId("ann")
TOLD = "My uncle Rufus drowned in the Velmar at harvest."
CAMPAIGN = Campaign(
    id=CampaignId("c"),
    name="A <small> campaign",
    language="en",
    entities=(
        Entity(EntityId("odo"), "npc", "Odo"),
        Entity(EntityId("berta"), "npc", "Berta"),
        Entity(EntityId("velmar"), "location", "Velmar", attributes={"description": "The Velmar is a river."}),
    ),
    relationships=(),
    npcs=(
        Npc(SMITH, EntityId("odo"), "Odo", "You are Odo."),
        Npc(WIDOW, EntityId("berta"), "Berta", "You are Berta."),
    ),
    players=(Player(ANN, "Ann"),),
    scenes=(Scene(SceneId("mill"), EntityId("velmar"), (SMITH,), "noon"),),
)


def line(line_id: str, text: str, *names: str) -> ScriptLine:
    return ScriptLine(id=line_id, player=ANN, wav="x.wav", text=text, names=names, start=Start(quiet_ms=0))


def evening(*lines: ScriptLine) -> Evening:
    sessions = tuple(
        SessionScript(number=n, title=f"Evening {n}", parts=(Part(scene="mill", lines=lines),)) for n in (1, 2)
    )
    memory = MemoryCheck(told=("told",), to=SMITH, absent=WIDOW)
    return Evening(Path("/nowhere"), Path("/nowhere/c.yaml"), memory, sessions)


EVENING = evening(line("told", TOLD, "Velmar"), line("asked", "Do you remember my uncle?"))


def utterance(
    text: str, *, at_ms: int = 1_000, raw: str | None = None, witnesses: tuple[NpcId, ...] = (SMITH,)
) -> Utterance:
    return Utterance(
        id=UtteranceId(f"u{at_ms}"),
        campaign_id=CAMPAIGN.id,
        session_id=SessionId("s1"),
        speaker_id=SpeakerId(ANN),
        speaker_name="Ann",
        text=text,
        raw_text=raw if raw is not None else text,
        at_ms=at_ms,
        witnesses=frozenset(witnesses),
    )


def turn(**changes: object) -> TurnRecord:
    who = {"session_id": SessionId("s2"), "speaker_id": SpeakerId(ANN), "speaker_name": "Ann", "npc_id": SMITH}
    said = {
        "text": "Do you remember my uncle?",
        "address_reason": "only NPC here",
        "reply": "Aye.",
        "reply_heard": "Aye.",
    }
    return a_turn_record(**{**who, **said, **changes})  # type: ignore[arg-type]


def session(
    number: int, *, turns: tuple[TurnRecord, ...] = (), said: tuple[Utterance, ...] = (), line_id: str = "told"
) -> SessionPlayed:
    return SessionPlayed(
        number=number,
        session_id=f"s{number}",
        began_ms=0,
        ended_ms=10_000,
        complete=True,
        turns=turns,
        utterances=said,
        lines=(LinePlayed(line_id, ANN, "mill", 900, 4_000),),
        speech=(NpcSpoke(SMITH, 5_000, 7_000),),
        l1_entries=len(said),
    )


FIRST = session(1, said=(utterance(TOLD),))
MEMORY = heard(TOLD, utterance="u1000")
WITH_MEMORY = AssembledPrompt(recalled=(MEMORY,))


def remembers(*turns: TurnRecord) -> bool:
    return figures(EVENING, CAMPAIGN, [FIRST, session(2, turns=turns, line_id="asked")]).recalled_across_sessions


def leaks(*turns: TurnRecord, first: SessionPlayed = FIRST) -> bool:
    return figures(EVENING, CAMPAIGN, [first, session(2, turns=turns, line_id="asked")]).leaked_to_absent_npc


def test_remembered_means_it_was_in_the_prompt_and_shows_in_the_reply() -> None:
    shown = turn(prompt=WITH_MEMORY, reply_heard="Aye. Rufus drowned at harvest.")
    assert remembers(shown)
    assert remembers(
        dataclasses.replace(shown, prompt=dataclasses.replace(shown.prompt, recalled=(), text=f"Facts: {TOLD}"))
    )


@pytest.mark.parametrize(
    "forgotten",
    [
        turn(reply_heard="Aye. Rufus drowned at harvest."),
        turn(prompt=WITH_MEMORY, reply_heard="I do not remember your uncle."),
        turn(prompt=WITH_MEMORY, reply_heard="Rufus? No."),
        turn(prompt=WITH_MEMORY, reply_heard="Rufus drowned at harvest.", npc_id=WIDOW),
    ],
    ids=["guessed, not recalled", "recalled, not said", "one word may be chance", "said by another"],
)
def test_anything_less_is_not_remembered(forgotten: TurnRecord) -> None:
    assert not remembers(forgotten)


def test_what_is_only_repeated_from_the_question_does_not_count_as_remembered() -> None:
    asked = "Do you remember that my uncle Rufus drowned at harvest?"
    assert not remembers(turn(prompt=WITH_MEMORY, text=asked, reply_heard="Rufus drowned at harvest."))


def test_within_one_session_nothing_is_remembered_across_sessions() -> None:
    shown = turn(prompt=WITH_MEMORY, reply_heard="Rufus drowned at harvest.")
    assert not figures(EVENING, CAMPAIGN, [dataclasses.replace(FIRST, turns=(shown,))]).recalled_across_sessions


@pytest.mark.parametrize(
    "leak",
    [
        turn(npc_id=WIDOW, prompt=WITH_MEMORY),
        turn(npc_id=WIDOW, prompt=AssembledPrompt(text=f"Ann told you: {TOLD}")),
        turn(npc_id=WIDOW, prompt=AssembledPrompt(text="Somebody called Rufus came up.")),
    ],
    ids=["recalled", "in her prompt", "one private word of it"],
)
def test_a_leak_to_the_npc_that_was_absent_is_found(leak: TurnRecord) -> None:
    assert leaks(leak)


def test_public_knowledge_and_the_question_itself_are_no_leak() -> None:
    assert not leaks(
        turn(npc_id=WIDOW, prompt=AssembledPrompt(text="The Velmar is a river.\nAnn says: Do you remember my uncle?"))
    )
    assert not leaks(turn(npc_id=SMITH, prompt=WITH_MEMORY))


def test_what_was_said_in_her_presence_is_no_leak() -> None:
    told_her_too = utterance("Rufus was my uncle.", at_ms=9_500, witnesses=(WIDOW,))
    first = dataclasses.replace(FIRST, utterances=(*FIRST.utterances, told_her_too))
    assert not leaks(turn(npc_id=WIDOW, prompt=AssembledPrompt(text="Ann said: Rufus was my uncle.")), first=first)


def test_names_are_scored_on_the_corrected_transcript() -> None:
    found = figures(EVENING, CAMPAIGN, [FIRST])
    assert (found.names_right, found.names_expected, found.names_right_pct) == (1, 1, 100)
    garbled = session(1, said=(utterance("My uncle drowned in the bell Mar."),))
    assert figures(EVENING, CAMPAIGN, [garbled]).names_right_pct == 0
    unheard = session(1)
    assert figures(EVENING, CAMPAIGN, [unheard]).names_right_pct == 0


def test_without_lines_there_is_no_percentage() -> None:
    nothing = dataclasses.replace(session(1), lines=())
    found = figures(EVENING, CAMPAIGN, [nothing])
    assert found.names_right_pct is None
    assert found.first_audio_p50_ms is None


def test_an_ordinary_word_that_a_correction_took_away_is_counted() -> None:
    truth = "We walked out of the city to the Velmar."
    wrong = Correction(3, 17, "walked out of", "Velmar", 0.7, "phonetic", "")
    right = Correction(30, 38, "bell Mar", "Velmar", 0.9, "phonetic", "")
    assert ordinary_words_changed(truth, [dataclasses.replace(utterance(truth), corrections=(right,))]) == ()
    damaged = dataclasses.replace(utterance(truth), corrections=(wrong, right))
    assert ordinary_words_changed(truth, [damaged]) == ("walked", "out", "of")


def test_latency_is_counted_from_the_end_of_speech_over_the_turns_that_were_heard() -> None:
    heard = [turn(stages={Stage.SPEECH_END: 1_000, Stage.FIRST_AUDIO: 1_000 + wait}) for wait in (1_000, 2_000, 3_000)]
    unheard = turn(outcome=Outcome.NOT_ADDRESSED, npc_id=None, stages={Stage.SPEECH_END: 1_000})
    found = figures(EVENING, CAMPAIGN, [session(1, turns=(*heard, unheard))])
    assert found.first_audio_p50_ms == 2_000
    assert found.first_audio_p95_ms == 2_900
    assert found.outcomes == {"answered": 3, "not_addressed": 1}
    assert percentile([], 50) is None


def test_a_filler_is_the_first_sound_and_the_answer_the_first_audio() -> None:
    plain = turn(stages={Stage.SPEECH_END: 1_000, Stage.FIRST_AUDIO: 2_000})
    filled = turn(stages={Stage.SPEECH_END: 1_000, Stage.FILLER: 3_000, Stage.FIRST_AUDIO: 4_000})
    found = figures(EVENING, CAMPAIGN, [session(1, turns=(plain, filled))])
    assert (found.first_audio_p50_ms, found.first_sound_p50_ms) == (2_000, 1_500)


def test_the_json_has_the_keys_that_others_read() -> None:
    played = [FIRST, session(2, turns=(turn(prompt=WITH_MEMORY),), line_id="asked")]
    written = json.loads(json.dumps(evening_json(figures(EVENING, CAMPAIGN, played), played)))
    assert {
        "turns",
        "first_audio_p50_ms",
        "first_audio_p95_ms",
        "first_sound_p50_ms",
        "first_sound_p95_ms",
        "l1_entries",
        "recalled_across_sessions",
        "leaked_to_absent_npc",
        "names_right_pct",
        "ordinary_words_changed",
        "checks",
    } <= written.keys()
    assert {
        "session",
        "speaker",
        "raw",
        "corrected",
        "addressed",
        "reply",
        "outcome",
        "first_audio_ms",
        "first_sound_ms",
        "recalled",
    } <= written["turns"][0].keys()
    assert written["l1_entries"] == 1
    assert written["turns"][0]["session"] == 2


def test_a_reply_that_says_it_does_not_know_is_no_memory_whatever_words_it_repeats() -> None:
    denied = "I do not know about " + " ".join(TOLD.rstrip(".").split()[-4:]) + "."
    assert not remembers(turn(npc_id=SMITH, prompt=WITH_MEMORY, reply=denied, reply_heard=denied))


CHECKS = ("names", "answered", "remembered", "absent")


def failed(*sessions: SessionPlayed, to: str = SMITH) -> dict[str, str]:
    """The checks that do not hold, each with what was wrong."""
    asked = evening(
        *(line.model_copy(update={"to": to}) for line in (EVENING.line("told"), EVENING.line("asked"))),
    )
    found = figures(asked, CAMPAIGN, sessions).checks
    return {name: "; ".join(check.wrong) for name, check in zip(CHECKS, found, strict=True) if not check.holds}


def told_and(*turns: TurnRecord) -> tuple[SessionPlayed, SessionPlayed]:
    """An evening on which the smith is told something and answers, and the next one with these turns."""
    return dataclasses.replace(FIRST, turns=(at(4_000, text=TOLD),)), session(2, turns=turns, line_id="asked")


def at(speech_end_ms: int, **changes: object) -> TurnRecord:
    return turn(stages={Stage.SPEECH_END: speech_end_ms}, **changes)


REMEMBERED = at(4_000, prompt=WITH_MEMORY, reply_heard="Aye. Rufus drowned at harvest.")


def test_all_checks_hold_for_an_evening_as_it_should_be() -> None:
    assert failed(*told_and(REMEMBERED)) == {}


def test_a_misheard_name_fails_its_check_with_its_line() -> None:
    first, second = told_and(REMEMBERED)
    garbled = dataclasses.replace(first, utterances=(utterance("My uncle Rufus drowned in the bell Mar."),))
    assert "Velmar in line 'told'" in failed(garbled, second)["names"]


@pytest.mark.parametrize(
    ("became", "why"),
    [
        ((), "not heard"),
        ((at(4_000, npc_id=None, outcome=Outcome.NOT_ADDRESSED, address_reason="Odo is only mentioned"),), "mentioned"),
        ((at(4_000, outcome=Outcome.FAILED, error="the model is away"),), "the model is away"),
        ((at(4_000, npc_id=WIDOW),), "answered"),
        ((at(4_000, outcome=Outcome.INTERRUPTED, reply_heard=""),), "interrupted"),
        ((at(4_000, outcome=Outcome.MERGED),), "merged"),
    ],
    ids=["no turn", "not addressed", "failed", "another answered", "cut off unheard", "merged into nothing"],
)
def test_a_line_without_an_answer_of_its_npc_fails(became: tuple[TurnRecord, ...], why: str) -> None:
    _, second = told_and(REMEMBERED)
    wrong = failed(dataclasses.replace(FIRST, turns=became), second)["answered"]
    assert "line 'told' to Odo" in wrong
    assert why in wrong


def test_a_line_in_two_parts_is_answered_by_the_turn_that_answers_both() -> None:
    first, second = told_and(REMEMBERED)
    parts = (at(2_000, outcome=Outcome.MERGED), at(4_000, outcome=Outcome.INTERRUPTED, reply_heard="Aye,"))
    assert failed(dataclasses.replace(first, turns=parts), second) == {}


def test_a_line_that_nobody_must_answer_needs_no_answer() -> None:
    assert "answered" not in failed(FIRST, session(2, line_id="asked"), to="")


def test_memory_needs_no_certain_words_but_the_prompt_and_no_denial() -> None:
    assert "remembered" not in failed(*told_and(at(4_000, prompt=WITH_MEMORY, reply_heard="Aye, I do.")))
    unmoved = at(4_000, reply_heard="Aye, I do.")
    assert "no prompt of Odo contained it" in failed(*told_and(unmoved))["remembered"]
    denied = at(4_000, prompt=WITH_MEMORY, reply_heard="I do not remember your uncle.")
    assert "I do not remember" in failed(*told_and(denied))["remembered"]
    other = at(4_000, prompt=WITH_MEMORY, text="How much is a dagger?", reply_heard="Six crowns.")
    assert "remembered" in failed(*told_and(other)), "nobody asked for it"


def test_a_leak_fails_its_check() -> None:
    leak = at(4_500, npc_id=WIDOW, prompt=WITH_MEMORY)
    assert "prompt of Berta" in failed(*told_and(REMEMBERED, leak))["absent"]


STAGED = turn(
    raw_text="Odo, who is bell Mar?",
    text="Odo, who is Velmar?",
    outcome=Outcome.INTERRUPTED,
    reply="It is a river, and a <cold> one.",
    reply_heard="It is a river,",
    prompt=AssembledPrompt(recalled=(MEMORY,), omitted=("scene: late by 12 ms",)),
    stages={
        Stage.SPEECH_END: 4_000,
        Stage.TRANSCRIPT_FINAL: 4_300,
        Stage.FIRST_TOKEN: 4_900,
        Stage.FIRST_AUDIO: 5_200,
        Stage.AUDIO_END: 7_000,
    },
)


def test_stages_are_told_from_the_end_of_speech_in_order_of_time() -> None:
    assert since_speech_end(STAGED) == {
        "speech_end": 0,
        "transcript_final": 300,
        "first_token": 900,
        "first_audio": 1_200,
        "audio_end": 3_000,
    }
    assert waterfall(STAGED) == [("transcript_final", 0, 300), ("first_token", 300, 900), ("first_audio", 900, 1_200)]
    assert waterfall(turn()) == []


def test_only_what_differs_in_words_is_marked() -> None:
    assert changed_spans("odo, who is bell Mar?", "Odo, who is Velmar?") == [("Odo, who is", False), ("Velmar?", True)]


def printed(width: int) -> str:
    out = io.StringIO()
    programme = ConsoleReport(CAMPAIGN, Console(file=out, width=width, highlight=False))
    programme.open(1, "Evening")
    programme.told(SceneChanged(CAMPAIGN.scenes[0], 0))
    programme.told(TurnFinished(STAGED))
    programme.told(TurnFinished(turn(outcome=Outcome.NOT_ADDRESSED, npc_id=None, reply="", reply_heard="")))
    played = [session(1, turns=(STAGED,))]
    programme.summary(figures(EVENING, CAMPAIGN, played), played)
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_console_fits_its_width_and_leaves_no_escape_codes_in_a_file(width: int) -> None:
    text = printed(width)
    assert max(len(row.rstrip()) for row in text.splitlines()) <= width
    assert "\x1b" not in text


def test_the_console_tells_what_a_turn_was() -> None:
    text = " ".join(printed(80).split())
    for expected in (
        "Ann → Odo",
        "only NPC here",
        "bell Mar",
        "1.20 s",
        "interrupted",
        "✂",
        "1200 ms",
        "not addressed",
    ):
        assert expected in text, expected


def html() -> str:
    played = [session(1, turns=(STAGED,))]
    found = figures(EVENING, CAMPAIGN, played)
    return page(CAMPAIGN, found, played, {1: bytes(48_000)}, titles={1: "Evening"})


class Resources(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self.open.pop() == tag, tag


def test_the_page_needs_nothing_from_outside_and_is_well_formed() -> None:
    text = html()
    resources = Resources()
    resources.feed(text)
    assert resources.open == []
    assert all(address.startswith("data:") for address in resources.addresses)
    assert "@import" not in text
    assert not re.search(r"[^a-z]url\(", text.casefold())


def test_the_page_escapes_what_people_say() -> None:
    text = html()
    assert "A &lt;small&gt; campaign" in text
    assert "&lt;cold&gt;" in text
    assert "<cold>" not in text


def test_the_page_plays_each_turn_from_its_line_to_the_end_of_the_reply() -> None:
    assert re.findall(r'data-from="([\d.]+)" data-to="([\d.]+)"', html()) == [("0.50", "7.50")]
    assert turn_span_ms(session(1), turn()) is None


def test_sound_is_embedded_at_a_rate_that_keeps_the_page_small() -> None:
    assert embedded_rate_hz(48_000 * 60) == 16_000
    long = 48_000 * 390
    assert embedded_rate_hz(long) == 12_000
    assert long * 12_000 // 24_000 <= MAX_SOUND_BYTES
    assert embedded_rate_hz(48_000 * 4_000) == 8_000
