"""A seat of one microphone for several people, at a table with a real database: its speaker is unknown until named."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.app.desk import desk_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.events import UtteranceKept, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.ids import PlayerId
from glyphoxa.web.events import event_json
from tests.support.live_table import Evening, an_evening, patient, settings_for, write_campaign

UNKNOWN = "somebody at the table"
TABLE = Player(PlayerId("table"), UNKNOWN, table=True)
PARTY = [{"name": "Tamsin"}, {"name": "Bran"}, {"name": "The Game Master", "dm": True}, {"table": True}]


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    settings = settings_for(write_campaign(tmp_path, players=PARTY), dsn, tmp_path)
    return patient(settings)


async def speaker(evening: Evening, text: str) -> str:
    await evening.asked(text, TABLE)
    return (await evening.kept(text)).speaker_name


def revisions(evening: Evening) -> list[tuple[str, str]]:
    """Return the speakers before and after each revision that changed one."""
    events = [e for e in evening.told if isinstance(e, UtteranceRevised)]
    pairs = [(e.was.speaker_name, e.utterance.speaker_name) for e in events]
    return [(was, now) for was, now in pairs if was != now]


async def test_shared_microphone_has_an_unknown_speaker_until_one_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        asked = await evening.asked("Grimjaw, is my sword done?", TABLE)
        assert f"{UNKNOWN} says: Grimjaw, is my sword done?" in asked.prompt.text
        assert (await evening.kept("Grimjaw, is my sword done?")).speaker_id == TABLE.id
        asked = await evening.asked("This is Tamsin. Grimjaw, is mine done?", TABLE)
        assert "Tamsin says: This is Tamsin. Grimjaw, is mine done?" in asked.prompt.text
        kept = await evening.kept("This is Tamsin. Grimjaw, is mine done?")
        assert kept.speaker_id == "tamsin"
        # A page knows speech in progress by its seat.
        message = event_json(UtteranceKept(kept), evening.table.campaign)
        assert message["speaker"] == {"id": "table", "name": "Tamsin", "kind": "player"}
        assert await speaker(evening, "Bran here: Grimjaw, and mine?") == "Bran"
        assert await speaker(evening, "Grimjaw, this is Bran.") == UNKNOWN
        asked = await evening.asked("What does it cost?", TABLE)
        assert (asked.npc_id, asked.speaker_name) == ("grimjaw", UNKNOWN)  # the seat need not call him again


async def test_shared_microphone_gives_no_voice_command_of_the_game_master(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        assert (await evening.asked("Grimjaw, be quiet.", TABLE)).unaddressed is None
        assert await speaker(evening, "This is The Game Master. Grimjaw, be quiet.") == UNKNOWN


@pytest.mark.parametrize(
    ("before", "request_", "by"),
    [
        ("This is Tamsin. My real name is Ada.", "Forget what I said.", "tamsin"),
        ("My real name is Ada.", "This is Tamsin. Forget what I said.", "table"),
    ],
)
async def test_request_at_a_shared_microphone_is_about_the_line_before_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, before: str, request_: str, by: str
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        for text in ("Grimjaw, it rains.", f"Grimjaw! {before}", request_):
            (await evening.ear(TABLE)).say(text)
            assert (await evening.kept(text)).text == text
        assert (await evening.kept(request_)).speaker_id == by
        await evening.until(
            lambda: (
                [e.utterance.text for e in evening.told if isinstance(e, UtteranceRetracted)][:1]
                == [f"Grimjaw! {before}"]
            )
        )


async def test_corrected_speaker_reaches_the_open_table_and_its_undo_does(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await evening.asked("Grimjaw, I lost my sword.", TABLE)
        await evening.table.kept()
        assert evening.desk is not None
        desk = await desk_of(evening.desk)
        line = await desk.sessions.find("lost my sword")
        event = await desk.timeline.correct(line, line.text, by=desk.resolver.speaking_player("tamsin"))
        await evening.until(lambda: revisions(evening) == [(UNKNOWN, "Tamsin")])
        asked = await evening.asked("Grimjaw, what did I tell you?", TABLE)
        assert "Tamsin says: Grimjaw, I lost my sword." in asked.prompt.text
        assert UNKNOWN not in asked.prompt.text.partition("I lost my sword")[0]
        await desk.timeline.undo(event.seq)
        await evening.until(lambda: revisions(evening)[1:] == [("Tamsin", UNKNOWN)])
        asked = await evening.asked("Grimjaw, do you hear me?", TABLE)
        assert f"{UNKNOWN} says: Grimjaw, I lost my sword." in asked.prompt.text
