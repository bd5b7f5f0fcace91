"""The demo's evening at the twin of a table: what is played, what is checked, and what is written."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from demo.console import ConsoleReport
from demo.evening import LOCAL, Run, copy_campaign, print_next_steps, report_checks
from demo.page import page
from demo.play import check, play_session
from demo.played import SessionPlayed, read_played, session_wav
from demo.recordings import read_recording
from demo.report import DemoCheck, evening_json, figures
from demo.script import Evening, read_evening
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import read_settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.events import TurnFinished
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.turn_record import AssembledPrompt, Outcome, TurnRecord
from tests.support.table import ScriptedTable, open_twin
from tests.support.virtual_time import run_in_virtual_time

DEMO = Path(__file__).parents[3] / "demo"
EVENING = read_evening(DEMO / "evening.yaml")
CAMPAIGN = read_campaign(EVENING.campaign).campaign


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def played(out: Path) -> list[SessionPlayed]:
    """Both sessions, one after the other."""
    campaign = copy_campaign(EVENING.campaign, CAMPAIGN, out)

    async def session(number: int) -> SessionPlayed:
        table = await open_twin(campaign, session=f"s-{number}", config=DEMO, tell=lambda _: None)
        return await play_session(EVENING, EVENING.session(number), table, out=out, tell=lambda _: None)

    return [run_in_virtual_time(session(number)) for number in (1, 2)]


def failed(sessions: list[SessionPlayed]) -> list[str]:
    return [each.what for each in figures(EVENING, CAMPAIGN, sessions).checks if not each.holds]


def with_turns(sessions: list[SessionPlayed], changed: list[TurnRecord]) -> list[SessionPlayed]:
    return [sessions[0], replace(sessions[1], turns=tuple(changed))]


def test_script_fits_its_campaign_and_needs_no_key() -> None:
    check(EVENING, CAMPAIGN)
    names = {entity.name for entity in CAMPAIGN.entities}
    for line in (line for session in EVENING.sessions for line in session.lines):
        assert all(name in line.text and name in names for name in line.names), line.id
        assert 1_000 < read_recording(EVENING.wav(line)).duration_ms < 10_000
    providers = read_settings(EVENING.folder / "settings.yaml").providers
    assert (providers.stt.name, providers.tts.name, providers.llm.name[:4]) == ("whisper", "hibari", "qwen")


def test_every_line_is_said_in_real_time(played: list[SessionPlayed], out: Path) -> None:
    for session in played:
        assert [line.line_id for line in session.lines] == [line.id for line in EVENING.session(session.number).lines]
        assert (session.complete, session.notes) == (True, ())
        for line in session.lines:
            assert line.ended_ms - line.began_ms == read_recording(EVENING.wav(EVENING.line(line.line_id))).duration_ms
        assert read_played(out, session.number) == session


def test_two_players_overlap_and_an_npc_is_interrupted(played: list[SessionPlayed]) -> None:
    overlaps = [(a.line_id, b.line_id) for a, b in pairwise(played[0].lines) if b.began_ms < a.ended_ms]
    assert overlaps == [("pass", "mine")]
    [cut] = [turn for session in played for turn in session.turns if turn.outcome is Outcome.INTERRUPTED]
    assert cut.npc_id == "marigund"
    assert cut.reply.startswith(cut.reply_heard) and cut.reply_heard != cut.reply


def test_all_checks_hold_for_the_evening_as_it_should_be(played: list[SessionPlayed]) -> None:
    found = figures(EVENING, CAMPAIGN, played)
    assert failed(played) == []
    assert (found.recalled_across_sessions, found.leaked_to_absent_npc, found.names_right_pct) == (True, False, 100)
    written = json.loads(json.dumps(evening_json(found, played)))
    assert written["l1_entries"] == sum(len(session.utterances) for session in played)


def test_memory_needs_the_fact_in_the_prompt(played: list[SessionPlayed]) -> None:
    empty = [replace(turn, prompt=AssembledPrompt()) for turn in played[1].turns]
    assert failed(with_turns(played, empty)) == ["an NPC remembers the next evening"]


def test_leak_to_the_absent_npc_fails_its_check(played: list[SessionPlayed]) -> None:
    told = EVENING.line(EVENING.memory.told[0]).text
    leak = replace(played[1].turns[0], npc_id=EVENING.memory.absent, prompt=AssembledPrompt(text=f"Facts: {told}"))
    assert "an absent NPC does not know it" in failed(with_turns(played, [*played[1].turns, leak]))


def test_misheard_name_and_missing_answer_fail_their_checks(played: list[SessionPlayed]) -> None:
    unheard = tuple(replace(each, text="A noise.") for each in played[0].utterances)
    assert failed([replace(played[0], utterances=unheard), played[1]])[0] == "names are recognised"
    assert "the addressed NPC answers every line" in failed(with_turns(played, []))


def test_stopped_session_still_leaves_what_was_said(tmp_path: Path) -> None:
    tables: list[ScriptedTable] = []

    async def stop_midway() -> None:
        heard = {"hanna": ["Good evening, Korvald. How is my blade?"]}
        tables.append(ScriptedTable(CAMPAIGN, SessionId("s1"), tmp_path / "memory.json", heard))
        script = EVENING.session(1)
        playing = asyncio.ensure_future(play_session(EVENING, script, tables[0], out=tmp_path, tell=lambda _: None))
        await asyncio.sleep(12)
        playing.cancel()
        await asyncio.wait([playing])

    run_in_virtual_time(stop_midway())
    left = read_played(tmp_path, 1)
    assert tables[0].closed
    assert left is not None and not left.complete
    assert "Good evening, Korvald. How is my blade?" in [u.text for u in left.utterances]
    assert session_wav(tmp_path, 1).exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("quiet_ms: 500", "quite_ms: 500", "quite_ms"),
        ("line: pass", "line: paas", r"no line 'paas' before this one in the session: did you mean 'pass'"),
        ("id: fen", "id: greeting", "duplicate line id 'greeting'"),
        ("told: [brother", "told: [brothr", "no line 'brothr': did you mean 'brother'"),
        ("start: {quiet_ms: 500}", "start: {quiet_ms: 500, npc_speaking_ms: 3}", "exactly one of"),
    ],
)
def test_mistake_in_the_script_is_shown_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=rf"evening\.yaml:\d+: .*{message}"):
        script_with(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("player: joss", "player: jos", "no player 'jos': did you mean 'joss'"),
        ("to: korvald", "to: korvalt", "korvalt"),
    ],
)
def test_script_for_another_campaign_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(NotFound, match=message):
        check(script_with(tmp_path, old, new), CAMPAIGN)


def script_with(folder: Path, old: str, new: str) -> Evening:
    script = folder / "evening.yaml"
    script.write_text((DEMO / "evening.yaml").read_text("utf-8").replace(old, new, 1), "utf-8")
    return read_evening(script)


def test_failed_check_is_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_checks([DemoCheck("nothing leaks", ())]) == 0
    assert report_checks([DemoCheck("it is remembered", ()), DemoCheck("nothing leaks", ("a", "b", "c", "d"))]) == 1
    assert capsys.readouterr().out.strip().endswith("FAILED: nothing leaks: a; b; 2 more in evening.json")


def test_demo_ends_with_commands_that_can_be_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(DEMO / "evening.yaml", tmp_path / "my out", DEMO / "settings.yaml", LOCAL)
    print_next_steps(run, tmp_path / "my out" / "campaign.yaml")
    printed = capsys.readouterr().out
    commands = [shlex.split(line) for line in printed.splitlines() if line.startswith("     ")]
    assert [command[1] for command in commands] == ["serve", "serve", "wrap-up", "campaign", "serve"]
    assert commands[1][-1] == str(tmp_path / "my out" / "campaign.yaml"), "a path with a space is one word"


@pytest.mark.parametrize("width", [40, 200])
def test_console_fits_its_width(played: list[SessionPlayed], width: int) -> None:
    printed = io.StringIO()
    programme = ConsoleReport(CAMPAIGN, Console(file=printed, width=width, highlight=False))
    for turn in played[0].turns:
        programme.told(TurnFinished(turn))
    programme.summary(figures(EVENING, CAMPAIGN, played), played)
    assert max(len(row.rstrip()) for row in printed.getvalue().splitlines()) <= width
    assert "\x1b" not in printed.getvalue()


def test_page_needs_nothing_from_outside_and_escapes_speech(played: list[SessionPlayed]) -> None:
    spoken = replace(played[0].turns[0], text="<script>", reply="<b>Aye", reply_heard="<b>Aye")
    sessions = [replace(played[0], turns=(spoken, *played[0].turns[1:])), played[1]]
    campaign: Campaign = replace(CAMPAIGN, name="A <small> town")
    text = page(campaign, figures(EVENING, CAMPAIGN, sessions), sessions, {1: bytes(48_000)}, titles={1: "Evening"})
    addresses: list[str] = []

    class Resources(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            addresses.extend(value or "" for name, value in attrs if name in ("src", "href", "srcset", "action"))

    Resources().feed(text)
    assert addresses and all(address.startswith("data:") for address in addresses)
    assert "@import" not in text and not re.search(r"[^a-z]url\(", text.casefold())
    assert "A &lt;small&gt; town" in text and "&lt;script&gt;" in text and "<b>Aye" not in text
