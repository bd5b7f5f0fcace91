"""Why an NPC said what it said, as the DM reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from glyphoxa.cli.render import show_lines
from glyphoxa.dm.ports import CitedUtterance, Uttered
from glyphoxa.dm.turns import LAST, TurnDesk
from glyphoxa.dm.wording import IndentedLine
from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.heard import Correction
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Provenance, RecalledFact, RecalledUtterance, Signal, witnessed_by
from glyphoxa.domain.turn_record import (
    NO_PROMPT,
    AssembledPrompt,
    Fault,
    LookUp,
    Outcome,
    PromptPart,
    Rejected,
    Stage,
    TurnRecord,
    Unsaid,
)
from glyphoxa.judgement.safety import Judged, Risk, TurnJudgement
from glyphoxa.prompt.select import written
from glyphoxa.world.event_kinds import FactClosed, FactScoped, FactStated
from glyphoxa.world.event_log import Cause, Event
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH
from tests.support.world_twin import a_world

ASKED, TOLD, SPOKEN = UtteranceId("s2-1"), UtteranceId("s1-7"), UtteranceId("s2-2")
S1, S2 = SessionId("s1"), SessionId("s2")
BROTHER = RecalledUtterance(
    TOLD,
    S1,
    SpeakerId("tamsin"),
    "Tamsin",
    "My brother was lost in the fen.",
    60_000,
    reason="witnessed in session s1",
    similarity=0.5,
    signals={Signal.WORDS: 1.574, Signal.MEANING: 1.941},
)
TURN = TurnRecord(
    id=TurnId("s2-19ab3cd4e5f-t0007"),
    session_id=S2,
    speaker_id=SpeakerId("tamsin"),
    speaker_name="Tamsin",
    raw_text="grim jaw where was my brother lost",
    text="Grimjaw, where was my brother lost?",
    npc_id=SMITH,
    address_reason="Grimjaw was called",
    outcome=Outcome.ANSWERED,
    reply="In the fen.",
    reply_heard="In the fen.",
    prompt=AssembledPrompt(recalled=(BROTHER,), text="[system]\nYou are Grimjaw."),
    stages={Stage.SPEECH_END: 1_000_000, Stage.FIRST_AUDIO: 1_000_812, Stage.CONTEXT_READY: 1_000_030},
    utterance_id=ASKED,
    reply_id=SPOKEN,
    tier="FAST",
    tier_reason="needs nothing more",
)


class TurnsTwin:
    """Turns and the talk they rest on, newest first."""

    def __init__(self, turns: Sequence[TurnRecord]) -> None:
        self.held = list(turns)
        self.talk = {
            ASKED: Uttered(
                CitedUtterance(ASKED, S2, 1, "Tamsin", TURN.text, 999_000),
                (Correction(0, 8, "grim jaw", "Grimjaw", 0.93, "phonetic", "sounds alike"),),
            ),
            TOLD: Uttered(CitedUtterance(TOLD, S1, 7, "Tamsin", "My brother was lost in the fen.", 60_000)),
            SPOKEN: Uttered(CitedUtterance(SPOKEN, S2, 2, "Grimjaw", "In the fen.", 1_000_812)),
        }

    async def latest(
        self, campaign: CampaignId, *, session: SessionId | None = None, npc: NpcId | None = None, limit: int
    ) -> list[TurnRecord]:
        fit = [each for each in self.held if session in (None, each.session_id) and npc in (None, each.npc_id)]
        return [replace(each, prompt=replace(each.prompt, text="")) for each in fit[:limit]]

    async def turn(self, campaign: CampaignId, turn: TurnId) -> TurnRecord | None:
        return next((each for each in self.held if each.id == turn), None)

    async def ending_with(
        self,
        campaign: CampaignId,
        ending: str,
        *,
        session: SessionId | None = None,
        npc: NpcId | None = None,
        limit: int,
    ) -> list[TurnId]:
        fit = await self.latest(campaign, session=session, npc=npc, limit=1_000)
        return [each.id for each in fit if each.id.endswith(ending)][:limit]

    async def uttered(self, campaign: CampaignId, ids: Collection[UtteranceId]) -> Mapping[UtteranceId, Uttered]:
        return {each: self.talk[each] for each in ids if each in self.talk}


class Evening:
    """A DM who asks about turns, and a world that goes on."""

    def __init__(self, *turns: TurnRecord, calendar: StoryCalendar | None = None) -> None:
        self.turns = TurnsTwin(turns)
        self.world = a_world()
        self.desk = TurnDesk(CAMPAIGN, self.turns, self.world, self.world.resolver(), calendar)

    async def happens(self, *events: Event) -> None:
        await self.world.commit(CAMPAIGN, events, Cause("dm", 5_000))

    async def told(self, turn: str = LAST) -> list[str]:
        """The lines, each with two blanks for what it stands below."""
        explained = await self.desk.explain(await self.desk.find(turn))
        return [f"{'  ' * line.depth}{line.text}" for line in explained.told()]


async def test_turn_tells_how_the_line_was_judged_by_whom_and_why() -> None:
    evening = Evening(TURN)
    judgement = TurnJudgement(risk=Risk.MEDIUM, flags=("veil:torture",), note="worth keeping: a promise")
    evening.turns.talk[ASKED] = replace(
        evening.turns.talk[ASKED], judged=Judged(judgement, reason="the model is paused after repeated failures")
    )
    found = await evening.told()
    at = found.index("  judged: not kept, part of the game, medium risk, veil:torture, needs review, by the rules")
    assert found[at + 1 : at + 3] == [
        "    because: worth keeping: a promise",
        "    not by the language model: the model is paused after repeated failures",
    ]
    assert await evening.desk.judged([TURN]) == {
        TURN.id: "not kept, part of the game, medium risk, veil:torture, needs review, by the rules"
    }


def of_fact(fact: FactId) -> RecalledFact:
    return RecalledFact(fact, "Mirelle, debt: 40.", reason="witnessed in session s1", session_id=S1)


DEBT = Claim.attribute(EntityId("e-mirelle"), "debt", 40)


async def test_a_turn_tells_what_was_heard_what_was_in_mind_and_what_came_of_it() -> None:
    assert await Evening(TURN).told() == [
        "s2-19ab3cd4e5f-t0007: Tamsin to Grimjaw, 1970-01-01 00:16",
        "  heard: session s2, line 1, 1970-01-01 00:16",
        "    Tamsin: Grimjaw, where was my brother lost?",
        "    recognised as: grim jaw where was my brother lost",
        "    grim jaw was corrected to Grimjaw: sounds alike, 0.93",
        "  addressed: Grimjaw was called",
        "  memory tier: FAST: needs nothing more",
        "  answered, 812 ms after the end of speech",
        "    Grimjaw: In the fen.",
        "  in its prompt: 1",
        "    Tamsin said: My brother was lost in the fen.",
        "      known because: witnessed in session s1, line 7, 1970-01-01 00:01",
        "      found by: meaning 1.94, words 1.57 (score 1.00, cosine 0.500)",
        "  ms after the end of speech: context ready 30, first audio 812",
        "  the whole prompt: glyphoxa show turns 4e5f-t0007 --prompt",
    ]


BY_WORDS = replace(BROTHER, signals={Signal.WORDS: 1.5}, similarity=None)
IN_VAIN = Rejected(replace(BROTHER, text="Good evening."), "it shares no word with the question")
PARTS = (PromptPart("persona", "the campaign's file", 90), PromptPart("recall", "recalled now", 0, 12_340))
LOOK_UP = LookUp(
    "memory_search_sessions",
    {"query": "brother"},
    {"found": [{"said": "Tamsin: He is lost.", "session": "s1", "when": None}, {"name": "Joren"}], "note": "2 more"},
    took_ms=210,
)
BARGED_IN = {Stage.SPEECH_END: 1_000, Stage.FIRST_AUDIO: 1_812, Stage.BARGE_IN: 2_400, Stage.SILENCED: 2_431}
WAITED = {Stage.SPEECH_END: 1_000, Stage.TURN_END: 1_480, Stage.FLOOR: 10_480, Stage.FIRST_AUDIO: 10_500}


def of_file(source: str) -> RecalledFact:
    return written("You are Grimjaw.", source, EntityId("e-grimjaw"), 0.5)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {"tier": "", "tier_reason": ""},
            [
                "  answered with a ready line, 812 ms after the end of speech",
                "    no model was asked, because the NPC knows nothing that the question asks for",
                "    Grimjaw: In the fen.",
            ],
        ),
        (
            {"outcome": Outcome.INTERRUPTED, "stages": BARGED_IN},
            [
                "  ms after the end of speech: first audio 812, barge in 1400, silenced 1431",
                "  silenced by a voice within 31 ms",
            ],
        ),
        ({"stages": WAITED}, ["  waited 9000 ms for others to finish"]),
        ({"outcome": Outcome.FAILED, "error": "no model"}, ["  failed: no model, 812 ms after the end of speech"]),
        ({"outcome": Outcome.INTERRUPTED, "reply_heard": "In"}, ["    it would have said: In the fen."]),
        (
            {"npc_id": None, "outcome": Outcome.NOT_ADDRESSED, "stages": {}, "prompt": NO_PROMPT},
            ["  answered by nobody"],
        ),
        (
            {"unsaid": (Unsaid("Grimjaw nods.", Fault.NARRATED),)},
            ["  rejected before it was said:", "    Grimjaw nods. (it narrates what the NPC does)"],
        ),
        (
            {"looked_up": (LOOK_UP,)},
            [
                "  looked up by its model:",
                "    memory_search_sessions (query: brother), 210 ms",
                "      found: Tamsin: He is lost. (session s1)",
                '      found: {"name": "Joren"}',
                "      2 more",
            ],
        ),
    ],
)
async def test_turn_shows_what_came_of_it(changes: dict[str, Any], lines: list[str]) -> None:
    told = await Evening(replace(TURN, **changes)).told()
    at = told.index(lines[0])
    assert told[at : at + len(lines)] == lines


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"recalled": ()}, ["  recalled nothing"]),
        (
            {"parts": PARTS},
            [
                "  its prompt: about 90 tokens",
                "    persona: 90, the campaign's file",
                "    recall: nothing, recalled now, 12.3 ms",
                "  in its prompt: 1",
            ],
        ),
        ({"rejected": (IN_VAIN,)}, ["  in its prompt: 1, of 2 that it recalled"]),
        (
            {"rejected": (IN_VAIN,)},
            [
                "  left out:",
                "    Tamsin said: Good evening.",
                "      left out: it shares no word with the question",
            ],
        ),
        ({"omitted": ("scene: late",)}, ["  late or failed:", "    scene: late"]),
        (
            {"recalled": (BY_WORDS,)},
            [
                "      found by: words 1.50 (score 1.00)",
                "    found by words only: the search by meaning did not contribute",
            ],
        ),
        (
            {"recalled": (replace(of_fact(DEBT.fact_id), path="named 'the innkeeper'"),)},
            [f"      found by: named 'the innkeeper' (fact {DEBT.fact_id[:8]})"],
        ),
        *(
            (
                {"recalled": (of_file(source),)},
                [
                    "    You are Grimjaw.",
                    f"      known because: {source}",
                    "      found by: its meaning: 0.50",
                    "  ms after the end of speech: context ready 30, first audio 812",
                ],
            )
            for source in ("persona", "bible")
        ),
    ],
)
async def test_turn_shows_what_was_in_its_prompt_and_why(changes: dict[str, Any], lines: list[str]) -> None:
    told = await Evening(replace(TURN, prompt=replace(TURN.prompt, **changes))).told()
    at = told.index(lines[0])
    assert told[at : at + len(lines)] == lines


async def test_talk_that_was_rolled_back_corrected_or_lost_since_is_marked() -> None:
    evening = Evening(TURN)
    said = evening.turns.talk[TOLD].said
    evening.turns.talk[TOLD] = Uttered(replace(said, is_retracted=True))
    assert "      since then: rolled back" in await evening.told()
    evening.turns.talk[TOLD] = Uttered(replace(said, text="My brother was lost in the Fen."))
    assert "      since then: its words are now: My brother was lost in the Fen." in await evening.told()
    del evening.turns.talk[TOLD]
    assert "      since then: not in the log any more" in await evening.told()
    evening.turns.talk[SPOKEN] = Uttered(replace(evening.turns.talk[SPOKEN].said, is_retracted=True))
    assert "    since then: rolled back" in await evening.told()


async def test_later_change_of_a_fact_is_marked() -> None:
    fact = DEBT.fact_id
    evening = Evening(replace(TURN, prompt=replace(TURN.prompt, recalled=(of_fact(fact),))))
    await evening.happens(FactStated(DEBT, visibility=witnessed_by([SMITH])))
    lines = await evening.told()
    at = lines.index("    Mirelle, debt: 40.")
    assert lines[at + 1 : at + 4] == [
        "      known because: witnessed in session s1",
        f"      found by: a name in what was said (fact {fact[:8]})",
        "      holds: always",
    ]
    assert not any("since then" in line for line in lines)

    await evening.happens(FactScoped(fact, witnessed_by([INNKEEPER])))
    assert "      since then: Grimjaw may not know it any more" in await evening.told()
    await evening.happens(FactClosed(fact, 2_000))
    told = await evening.told()
    assert any(line.startswith("      since then: no longer held: closed (event ") for line in told)


@pytest.mark.parametrize(
    ("calendar", "until"),
    [(StoryCalendar((("Hammer", 30), ("Midwinter", 1))), "Midwinter 2"), (None, "day 92 of the story")],
)
async def test_end_of_a_fact_is_shown_in_story_days(calendar: StoryCalendar | None, until: str) -> None:
    evening = Evening(replace(TURN, prompt=replace(TURN.prompt, recalled=(of_fact(DEBT.fact_id),))), calendar=calendar)
    await evening.happens(FactStated(DEBT))
    await evening.happens(FactClosed(DEBT.fact_id, 60_000, 92))
    assert f"      holds: until 1970-01-01 00:01, until {until}" in await evening.told()


async def test_recalled_fact_that_a_model_inferred_is_marked() -> None:
    evening = Evening(replace(TURN, prompt=replace(TURN.prompt, recalled=(of_fact(DEBT.fact_id),))))
    await evening.happens(FactStated(DEBT, Provenance(0.65, "inferred", dm_confirmed=True)))
    inferred = "      known because: witnessed in session s1 (inferred, not said in these words)"
    assert inferred in await evening.told()
    await evening.happens(FactClosed(DEBT.fact_id, 2_000))
    assert inferred in await evening.told()


async def test_a_fact_whose_events_were_taken_back_is_held_no_longer() -> None:
    evening = Evening(replace(TURN, prompt=replace(TURN.prompt, recalled=(of_fact(DEBT.fact_id),))))
    assert "      since then: no longer held: it was undone" in await evening.told()


async def test_a_turn_is_found_by_the_end_of_its_id_or_as_the_last_that_fits() -> None:
    older = replace(TURN, id=TurnId("s1-18ff0000000-t0007"), session_id=S1)
    other = replace(TURN, id=TurnId("s1-18ff0000000-t0003"), session_id=S1, npc_id=INNKEEPER)
    desk = Evening(TURN, older, other).desk
    assert (await desk.find(LAST)).id == TURN.id
    assert (await desk.find(LAST, npc=INNKEEPER)).id == other.id
    assert (await desk.find("4e5f-t0007")).id == TURN.id
    assert (await desk.find("t0007", session=S1)).id == older.id
    with pytest.raises(InvalidInput, match=r"'t0007' matches several turns: 4e5f-t0007, 0000-t0007$"):
        await desk.find("t0007")


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ("4e5f-t0008", "no turn '4e5f-t0008' in campaign 'town': did you mean '4e5f-t0007'?"),
        ("Grimjaw", "no turn 'Grimjaw' in campaign 'town': the latest are 4e5f-t0007"),
        ("", "no turn '' in campaign 'town': the latest are 4e5f-t0007"),
    ],
)
async def test_unknown_turn_error_lists_turns(wanted: str, problem: str) -> None:
    with pytest.raises(NotFound) as raised:
        await Evening(TURN).desk.find(wanted)
    assert str(raised.value) == problem


async def test_session_without_turns_says_so() -> None:
    with pytest.raises(NotFound, match=r"^no turn in campaign 'town' yet$"):
        await Evening().desk.find(LAST)
    with pytest.raises(NotFound, match=r"^no turn of session 's1' to Mirelle in campaign 'town' yet$"):
        await Evening(TURN).desk.find(LAST, session=S1, npc=INNKEEPER)


def test_typed_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines([IndentedLine("Tamsin: \x1b[2Jhello\x07\nthere\x9b1m")])
    assert capsys.readouterr().out == "Tamsin: [2Jhello there 1m\n"
    show_lines([IndentedLine("Tamsin: I \u202edid not\u2066 pay\u202c (retracted)")])
    assert capsys.readouterr().out == "Tamsin: I did not pay (retracted)\n"


def test_terminal_lines_wrap_between_words_with_indent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [IndentedLine("heard"), IndentedLine("My brother was lost in the fen,\nlong ago.", 2)]
    show_lines(lines)
    assert capsys.readouterr().out == "heard\n    My brother was lost in the fen, long ago.\n"
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_lines(lines)
    assert capsys.readouterr().out == "heard\n    My brother was lost in\n      the fen, long ago.\n"
