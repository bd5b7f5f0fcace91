from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from demo.evening import copy_campaign, show_recaps
from demo.play import RATE_HZ, Sound, Stretches, check, mixed, play_session, soft_limit
from demo.played import SessionPlayed, read_played, session_wav
from demo.recordings import read_recording, samples_of
from demo.report import evening_json, figures
from demo.script import Evening, read_evening
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import read_settings
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.turn import Outcome
from tests.support.table import TwinTable, open_twin
from tests.support.virtual_time import run_in_virtual_time

DEMO = Path(__file__).parents[3] / "demo"


@pytest.fixture(scope="module")
def evening() -> Evening:
    return read_evening(DEMO / "evening.yaml")


@pytest.fixture(scope="module")
def played(evening: Evening, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[SessionPlayed], Path]:
    """Both sessions at the twin of a table, one after the other."""
    out = tmp_path_factory.mktemp("out")
    campaign = copy_campaign(evening.campaign, read_campaign(evening.campaign).campaign, out)

    async def session(number: int) -> SessionPlayed:
        table = await open_twin(campaign, session=f"s-{number}", config=DEMO, tell=lambda _: None)
        script = evening.session(number)
        return await play_session(evening, script, table, out=out, tell=lambda _: None)

    return [run_in_virtual_time(session(number)) for number in (1, 2)], out


def test_the_script_fits_the_campaign_and_every_recording_is_there(evening: Evening) -> None:
    check(evening, read_campaign(evening.campaign).campaign)
    for session in evening.sessions:
        for line in session.lines:
            assert 1_000 < read_recording(evening.wav(line)).duration_ms < 10_000


def test_the_campaign_is_what_an_evening_needs(evening: Evening) -> None:
    file = read_campaign(evening.campaign)
    campaign = file.campaign
    assert file.warnings == ()
    assert len(campaign.npcs) == 2
    assert len({npc.voice.preset for npc in campaign.npcs}) == 2
    assert {"npc", "player", "location", "item", "faction", "quest"} <= {entity.type for entity in campaign.entities}
    assert all(len(secret.known_by) == 1 for secret in campaign.secrets)
    assert {secret.known_by for secret in campaign.secrets} == {frozenset({npc.id}) for npc in campaign.npcs}
    assert len({name for session in evening.sessions for line in session.lines for name in line.names}) >= 8


def test_the_demo_needs_no_key(evening: Evening) -> None:
    settings = read_settings(evening.folder / "settings.yaml")
    assert settings.has_memory
    assert (settings.providers.stt.name, settings.providers.tts.name) == ("whisper", "hibari")
    assert settings.providers.llm.name.startswith("qwen")


def test_the_expected_names_of_a_line_stand_in_it_and_in_the_campaign(evening: Evening) -> None:
    names = {entity.name for entity in read_campaign(evening.campaign).campaign.entities}
    for session in evening.sessions:
        for line in session.lines:
            assert all(name in line.text and name in names for name in line.names), line.id


def test_examples_of_an_npc_do_not_give_away_facts_of_the_story(evening: Evening) -> None:
    campaign = read_campaign(evening.campaign).campaign
    speakers = {npc.name for npc in campaign.npcs}
    for npc in campaign.npcs:
        shown = " ".join(f"{e.facts} {e.said} {e.reply}" for e in npc.examples)
        assert not [e.name for e in campaign.entities if e.name in shown and e.name not in speakers], npc.id


def test_what_is_told_is_in_no_campaign_file(evening: Evening) -> None:
    assert "Thomas" in evening.line(evening.memory.told[0]).text
    assert "thomas" not in evening.campaign.read_text("utf-8").casefold()


def test_every_line_is_said_once_and_in_real_time(evening: Evening, played: tuple[list[SessionPlayed], Path]) -> None:
    for session in played[0]:
        assert [line.line_id for line in session.lines] == [line.id for line in evening.session(session.number).lines]
        assert session.complete
        assert session.notes == ()
        for line in session.lines:
            assert line.ended_ms - line.began_ms == read_recording(evening.wav(evening.line(line.line_id))).duration_ms


def test_both_sessions_take_well_under_five_minutes(played: tuple[list[SessionPlayed], Path]) -> None:
    assert sum(session.ended_ms - session.began_ms for session in played[0]) < 240_000


def test_two_players_overlap_once(played: tuple[list[SessionPlayed], Path]) -> None:
    lines = played[0][0].lines
    overlaps = [(a.line_id, b.line_id) for a, b in pairwise(lines) if b.began_ms < a.ended_ms]
    assert overlaps == [("pass", "mine")]


def test_an_npc_is_interrupted_once(played: tuple[list[SessionPlayed], Path]) -> None:
    cut = [turn for session in played[0] for turn in session.turns if turn.outcome is Outcome.INTERRUPTED]
    assert [turn.npc_id for turn in cut] == ["marigund"]
    assert cut[0].reply.startswith(cut[0].reply_heard)
    assert cut[0].reply_heard != cut[0].reply


def test_told_fact_is_remembered_only_by_those_present(
    evening: Evening, played: tuple[list[SessionPlayed], Path]
) -> None:
    found = figures(evening, read_campaign(evening.campaign).campaign, played[0])
    assert found.recalled_across_sessions
    assert not found.leaked_to_absent_npc
    assert found.names_right_pct == 100
    assert [check.wrong for check in found.checks] == [(), (), (), ()]
    written = evening_json(found, played[0])
    assert written["l1_entries"] == sum(len(session.utterances) for session in played[0])
    json.dumps(written)


def test_a_session_is_read_back_as_it_was_written(played: tuple[list[SessionPlayed], Path]) -> None:
    sessions, out = played
    assert [read_played(out, session.number) for session in sessions] == sessions
    assert read_played(out, 7) is None


def test_the_recording_holds_players_and_npcs_where_they_were_heard(
    played: tuple[list[SessionPlayed], Path],
) -> None:
    session, out = played[0][0], played[1]
    track = samples_of(read_recording(session_wav(out, 1), rate_hz=RATE_HZ).pcm)
    assert len(track) * 1000 // RATE_HZ == pytest.approx(session.ended_ms - session.began_ms, abs=50)

    def loudness(from_ms: int, to_ms: int) -> float:
        a, b = ((at - session.began_ms) * RATE_HZ // 1000 for at in (from_ms, to_ms))
        return float(np.abs(track[a:b]).max())

    for stretch in [*session.lines, *session.speech]:
        assert loudness(stretch.began_ms, stretch.ended_ms) > 0.1
    first_line, first_reply = session.lines[0], session.speech[0]
    assert loudness(first_line.ended_ms + 40, first_reply.began_ms - 40) < 0.01


def test_a_session_that_is_stopped_still_leaves_what_was_said(evening: Evening, tmp_path: Path) -> None:
    campaign = read_campaign(evening.campaign).campaign
    tables: list[TwinTable] = []

    async def stop_midway() -> None:
        heard = {"hanna": ["Good evening, Korvald. How is my blade?"]}
        table = TwinTable(campaign, SessionId("s1"), tmp_path / "memory.json", heard)
        tables.append(table)
        playing = asyncio.ensure_future(
            play_session(evening, evening.session(1), table, out=tmp_path, tell=lambda _: None)
        )
        await asyncio.sleep(12)
        playing.cancel()
        await asyncio.wait([playing])
        assert playing.cancelled()

    run_in_virtual_time(stop_midway())
    left = read_played(tmp_path, 1)
    assert tables[0].closed
    assert left is not None
    assert not left.complete
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
def test_a_mistake_in_the_script_is_shown_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    script = tmp_path / "evening.yaml"
    script.write_text((DEMO / "evening.yaml").read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(InvalidInput, match=rf"evening\.yaml:\d+: .*{message}"):
        read_evening(script)


def test_a_script_for_another_campaign_is_refused_with_the_nearest_name(tmp_path: Path, evening: Evening) -> None:
    script = tmp_path / "evening.yaml"
    script.write_text((DEMO / "evening.yaml").read_text("utf-8").replace("player: joss", "player: jos"), "utf-8")
    with pytest.raises(NotFound, match="no player 'jos': did you mean 'joss'"):
        check(read_evening(script), read_campaign(evening.campaign).campaign)


def test_a_line_to_an_npc_that_the_campaign_does_not_have_is_refused(tmp_path: Path, evening: Evening) -> None:
    script = tmp_path / "evening.yaml"
    script.write_text((DEMO / "evening.yaml").read_text("utf-8").replace("to: korvald", "to: korvalt", 1), "utf-8")
    with pytest.raises(NotFound, match="korvalt"):
        check(read_evening(script), read_campaign(evening.campaign).campaign)


def test_each_run_has_a_campaign_of_its_own(tmp_path: Path, evening: Evening) -> None:
    original = read_campaign(evening.campaign).campaign
    copied = read_campaign(copy_campaign(evening.campaign, original, tmp_path)).campaign
    assert copied.id.startswith(f"{original.id}-")
    assert copied.entities == original.entities


def test_chunks_that_come_a_little_late_are_joined_without_a_gap() -> None:
    voice = Stretches()
    chunk = (np.ones(480) * 1000).astype("<i2").tobytes()
    for at_ms in (1_000, 1_031, 1_040, 3_000):
        voice.add(chunk, at_ms=at_ms)
    first, second = voice.sounds()
    assert (first.at_ms, first.end_ms) == (1_000, 1_060)
    assert second.at_ms == 3_000


def test_two_loud_voices_at_once_are_limited_and_a_quiet_one_is_left_alone() -> None:
    loud = np.full(RATE_HZ, 0.9, np.float32)
    both = samples_of(mixed([Sound(0, loud), Sound(0, loud)], duration_ms=1_000))
    assert 0.9 < both.max() < 1.0
    quiet = np.linspace(-0.5, 0.5, 100, dtype=np.float32)
    assert np.array_equal(soft_limit(quiet), quiet)


def test_sound_beyond_the_end_of_the_track_is_cut() -> None:
    assert len(mixed([Sound(900, np.ones(RATE_HZ, np.float32))], duration_ms=1_000)) == 2 * RATE_HZ


def test_what_is_not_answered_is_told_and_spoils_nothing(tmp_path: Path) -> None:
    noted: list[str] = []
    show_recaps(tmp_path / "missing.yaml", CampaignId("town"), "town-1", noted.append)
    asked = [line for line in noted if "glyphoxa show recap town-1" in line]
    assert len(asked) == 2
    assert sum("missing.yaml" in line for line in noted) == 3
