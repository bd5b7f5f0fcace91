"""`glyphoxa table` on a table that is open, over a real database: what the DM commands is done there, and answered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.address import read_cases
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.table_commands import PostgresTableCommands
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.events import TurnFinished, UtteranceKept
from glyphoxa.domain.ids import CampaignId, NpcId, PlayerId, SessionId
from glyphoxa.domain.knowledge import DM
from glyphoxa.domain.turn_record import Outcome, TurnRecord, Unaddressed
from glyphoxa.transcript.ports import TalkFilter
from glyphoxa.web.events import Hub, PageOutbox, PageReader
from tests.support.command_line import CommandLine, a_settings_file
from tests.support.live_table import SESSION, Evening, an_evening, settings_for, write_campaign
from tests.support.patience import DEADLINE_S

Capture = pytest.CaptureFixture[str]
TOWN, GRIMJAW, ELDRINAX = CampaignId("town"), NpcId("grimjaw"), NpcId("eldrinax")
TAMSIN, BRAN, GAME_MASTER = PlayerId("tamsin"), PlayerId("bran"), Player(PlayerId("gm"), "Game Master", dm=True)
DIRECTION = "Be afraid of the dark."
PLAYERS = [{"name": "Tamsin"}, {"name": "Bran"}, {"name": "Game Master", "id": "gm", "dm": True}]


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    return settings_for(write_campaign(tmp_path, others=["Eldrinax"], players=PLAYERS), dsn, tmp_path)


@pytest.fixture
def cli(tmp_path: Path, dsn: str, capsys: Capture) -> CommandLine:
    return CommandLine(a_settings_file(tmp_path, dsn), capsys)


async def asked(evening: Evening, text: str) -> TurnRecord:
    (await evening.ear()).say(text)
    turns = await evening.until(
        lambda: [e.turn for e in evening.told if isinstance(e, TurnFinished) and e.turn.text == text]
    )
    return turns[-1]


async def test_an_npc_is_muted_at_the_open_table_and_stays_so_when_the_session_goes_on(
    settings: Settings, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        assert await cli.told("table", "mute", "grimjaw") == "Grimjaw is muted\n"
        assert (await asked(evening, "Grimjaw, one.")).unaddressed is Unaddressed.MUTED
        await cli.told("table", "direct", "Eldrinax", DIRECTION, "--turns", 2)
        assert DIRECTION in (await asked(evening, "Eldrinax, one.")).prompt.text
        await cli.told("table", "talk", 2)
        await cli.told("table", "puppet", "Tamsin", "Eldrinax")
        await kept(settings, evening)

    async with an_evening(settings, monkeypatch) as evening:
        assert (await asked(evening, "Grimjaw, two.")).unaddressed is Unaddressed.MUTED
        assert (await cli.told("table")).splitlines()[1:] == [
            "NPCs: Grimjaw, Eldrinax",
            "players: Tamsin",
            "muted: Grimjaw",
            f"directed for its next answer: Eldrinax: {DIRECTION}",
            "what Tamsin says goes to Eldrinax",
            "NPCs may give each other 2 answers in a row",
        ]
        assert DIRECTION in (await asked(evening, "Eldrinax, two.")).prompt.text
        assert DIRECTION not in (await asked(evening, "Eldrinax, three.")).prompt.text
        await cli.told("table", "unmute", "--all")
        assert (await asked(evening, "Grimjaw, three.")).npc_id == GRIMJAW

    async with an_evening(settings, monkeypatch, session="another") as evening:
        assert evening.table.room.control.controls.puppets == {}


async def kept(settings: Settings, evening: Evening) -> None:
    """Until the database has what is in force now."""
    controls = evening.table.room.control.controls
    async with asyncio.timeout(DEADLINE_S), open_store(settings.memory.postgres_dsn) as store:
        commands = PostgresTableCommands(store.database, store.listener)
        while (await commands.controls(TOWN, SESSION)).get("puppets") != controls.puppets:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_words_that_an_npc_is_given_are_in_the_log_as_its_own_and_the_direction_and_whisper_are_not(
    settings: Settings, cli: CommandLine, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        hub = Hub(evening.table)
        evening.table.subscribe(hub.on)
        pages = {player: PageOutbox() for player in (TAMSIN, BRAN)}
        await evening.ear()
        await cli.told("table", "say", "Grimjaw", "The gate", "is closed.")
        await evening.until(lambda: "The gate is closed." in evening.kept_texts)
        [turn] = [event.turn for event in evening.told if isinstance(event, TurnFinished)]
        assert (turn.npc_id, turn.speaker_name, turn.reply_heard) == (GRIMJAW, "the DM", "The gate is closed.")
        await cli.told("table", "direct", "Grimjaw", DIRECTION)
        await asked(evening, "Grimjaw, one.")
        with hub.joined(pages[TAMSIN], PageReader(TAMSIN)), hub.joined(pages[BRAN], PageReader(BRAN)):
            await cli.told("table", "whisper", "Tamsin", "The cup is poisoned.")
        told = {player: [message async for message in messages(page)] for player, page in pages.items()}
        assert ["poisoned" in "".join(told[player]) for player in pages] == [True, False]
        assert "poisoned" in json.dumps(hub.history(TAMSIN)) and "poisoned" not in json.dumps(hub.history(BRAN))
        last = await asked(evening, "Grimjaw, is the cup poisoned?")
        assert "The gate is closed." in last.prompt.text and "The cup is poisoned." not in last.prompt.text
        await evening.table.kept()

    async with open_store(dsn) as store:
        said = await said_by_all(store)
        assert ("Grimjaw", "The gate is closed.") in said
        assert not any(DIRECTION in text or "The cup is" in text for _, text in said)
    out = await cli.told("table", "log")
    assert "The cup is poisoned." in out and "The gate is closed." in out and "Tamsin reads it" in out


async def test_readdressed_lines_are_answered_by_the_right_npc_and_exported_as_cases(
    settings: Settings, cli: CommandLine, tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        bran = await evening.ear(evening.table.campaign.players[1])
        await asked(evening, "Grimjaw, are you there?")
        with monkeypatch.context() as patched:
            patched.setattr(evening.mouths[GRIMJAW], "_done_with", lambda _: None)  # it goes on speaking
            (await evening.ear()).say("Grimjaw, who of you has been to the north?")
            await evening.until(lambda: evening.mouths[GRIMJAW].is_heard)
            told = await cli.told("table", "readdress", "Eldrinax")
            assert told == "what Tamsin said was for Eldrinax\n"
        right = await evening.finished("Grimjaw, who of you has been to the north?", ELDRINAX)
        assert (right.outcome, right.reply_heard) == (Outcome.ANSWERED, "Aye.")
        assert (await evening.finished(right.text, GRIMJAW)).outcome is Outcome.INTERRUPTED
        (await evening.ear()).say("brb, the well is deep.")
        await evening.finished("brb, the well is deep.")
        await cli.told("table", "readdress", "Eldrinax")
        await evening.finished("brb, the well is deep.", ELDRINAX)
        bran.say("Grimjaw, I hid the body.")
        await evening.finished("Grimjaw, I hid the body.")
        await cli.told("table", "readdress", "--nobody")
        await asked(evening, "Grimjaw, I stole the seal.")
        await cli.told("table", "readdress", "--nobody")
        (await evening.ear()).say("Forget what I just said.")
        await evening.finished("Forget what I just said.")
        await evening.table.kept()

    (tmp_path / "other").mkdir()
    elsewhere = write_campaign(tmp_path / "other", campaign={"id": "port", "name": "The Port", "language": "en"})
    async with an_evening(settings_for(elsewhere, dsn, tmp_path / "other"), monkeypatch) as evening:
        await asked(evening, "Grimjaw, who rules the port?")
        await cli.told("table", "readdress", "--nobody", "--campaign", "port")
        await evening.table.kept()

    await cli.told("privacy", "erase", "--player", "Bran", "--yes", "--campaign", "town")
    file = tmp_path / "cases.jsonl"
    assert await cli.told("campaign", "export", file, "--addressees", "--campaign", "town") == f"{file}: 2 lines\n"
    north, well = read_cases(file)
    assert (north.text, north.speaker, north.expected) == (right.text, "tamsin", ["eldrinax"])
    assert [(npc.id, npc.present) for npc in north.npcs] == [("grimjaw", True), ("eldrinax", True)]
    assert [(said.speaker, said.text, said.to) for said in north.before] == [
        ("tamsin", "Grimjaw, are you there?", "grimjaw"),
        ("grimjaw", "Aye.", "tamsin"),
    ]
    assert (well.text, well.expected) == ("brb, the well is deep.", ["eldrinax"])
    assert ("tamsin", right.text, "eldrinax") in [(said.speaker, said.text, said.to) for said in well.before]
    async with open_store(dsn) as store:
        for npc in (GRIMJAW, ELDRINAX):
            assert await store.talk_search.search(TOWN, npc, TalkFilter("well"))


async def messages(page: PageOutbox):  # type: ignore[no-untyped-def]
    while (message := await page.next()) is not None:
        yield message


async def said_by_all(store: Store) -> list[tuple[str, str]]:
    found = await store.talk_search.search(TOWN, DM, TalkFilter("", limit=50))
    return [(one.utterance.speaker_name, one.utterance.text) for one in found]


async def test_the_dm_commands_aloud_and_no_npc_recalls_it(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        dm = await evening.ear(GAME_MASTER)
        dm.say("Grimjaw, be quiet.")
        await evening.until(lambda: evening.table.room.control.controls.muted)
        await evening.until(lambda: [e for e in evening.told if isinstance(e, UtteranceKept)])
        await evening.table.kept()
        assert (await asked(evening, "Grimjaw, one.")).unaddressed is Unaddressed.MUTED
        dm.say("Everyone, you may speak.")
        await evening.until(lambda: not evening.table.room.control.controls.muted)
        assert "be quiet" not in (await asked(evening, "Grimjaw, two.")).prompt.text
        await evening.table.kept()
    async with open_store(dsn) as store:
        assert ("Game Master", "Grimjaw, be quiet.") in await said_by_all(store)
        assert not await store.talk_search.search(TOWN, GRIMJAW, TalkFilter("quiet"))


async def test_a_paused_table_keeps_nothing_stays_paused_over_a_restart_and_is_resumed(
    settings: Settings, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await asked(evening, "Grimjaw, one.")
        await cli.told("table", "pause")
        (await evening.ear()).say("Grimjaw, who ate the last slice?")
        with pytest.raises(InvalidInput, match="the game master has paused the table"):
            evening.table.say(TAMSIN, "Grimjaw, two.")
        await cli.told("table", "puppet", "Tamsin", "Eldrinax")  # by now the room has read it all
        assert not any("slice" in text for text in evening.kept_texts)
        await kept(settings, evening)

    async with an_evening(settings, monkeypatch) as evening:
        assert evening.table.is_paused
        assert await cli.told("table", "resume") == "the table continues\n"
        assert (await asked(evening, "Grimjaw, three.")).npc_id == GRIMJAW


MISTAKES: list[tuple[list[object], str]] = [
    (["mute", "Grimjow"], "no NPC 'Grimjow' in campaign 'town': did you mean 'Grimjaw'?"),
    (["whisper", "Tamsyn", "Hush."], "no player 'Tamsyn' in campaign 'town': did you mean 'Tamsin'?"),
    (["whisper", "Bran", "Hush."], "Bran does not sit at the table and would not see it"),
    (["direct", "Grimjaw", "Hush.", "--turns", 26], "a direction applies to 1 to 25 turns, not 26"),
    (["mute"], "give either the name of an NPC or --all"),
    (["mute", "Grimjaw", "--all"], "give either the name of an NPC or --all"),
    (["direct", "Grimjaw"], "give either an instruction, or --off to end the current one"),
    (["puppet", "Tamsin"], "give either the name of an NPC or --off"),
]


async def test_what_cannot_be_done_is_one_clear_error_and_nothing_is_done(
    settings: Settings, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        for arguments, why in MISTAKES:
            assert await cli.problem("table", *arguments) == f"glyphoxa: {why}\n", arguments
        assert (await cli.told("table")).splitlines()[1:] == ["NPCs: Grimjaw, Eldrinax", "players: nobody"]
        assert evening.kept_texts == []


async def test_without_an_open_table_nothing_is_done_then_or_later(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch):
        pass  # the campaign is stored
    async with open_store(dsn) as store:
        commands = PostgresTableCommands(store.database, store.listener)
        with pytest.raises(Unavailable, match="no table of campaign 'town' is open: the command was not executed"):
            await commands.command(TOWN, {"do": "mute"}, within_s=2.0)
        async with an_evening(settings, monkeypatch) as evening:
            assert (await asked(evening, "Grimjaw, one.")).npc_id == GRIMJAW
            with pytest.raises(Unavailable, match="no table of session 'another' is open"):
                await commands.command(TOWN, {"do": "mute"}, session=SessionId("another"), within_s=2.0)
            assert await commands.command(TOWN, {"do": "stop"}, session=SESSION) == "everybody was stopped"


async def test_a_command_is_taken_by_one_table_and_by_none_of_another_campaign(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(dsn) as store:
        await store.database.open()
        commands = PostgresTableCommands(store.database, store.listener)
        waiting = asyncio.create_task(commands.command(TOWN, {"do": "stop"}))
        async for _ in commands.changes(TOWN):
            assert await commands.take(CampaignId("elsewhere"), SESSION) is None
            if (taken := await commands.take(TOWN, SESSION)) is not None:
                break
        assert await commands.take(TOWN, SESSION) is None
        await commands.answer(TOWN, taken[0], "done", is_done=True)
        assert await waiting == "done"
