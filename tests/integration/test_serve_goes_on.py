"""A table's session goes on after its process was killed, and ends by a command: real processes on a real database."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from websockets.asyncio.client import ClientConnection, connect

from glyphoxa.config.campaign_file import read_campaign
from tests.integration.test_serve_ends import a_table, ended, read_until, settings_file
from tests.support.command_line import run
from tests.support.forked import ForkedProcess
from tests.support.patience import DEADLINE_S
from tests.support.web_client import next_of

Capture = pytest.CaptureFixture[str]
DIRECTION = "Be afraid of the dark."


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Path:
    return settings_file(tmp_path, dsn=dsn, others=["Eldrinax"], chronicle="none")


def naming_no_campaign(settings: Path) -> tuple[Path, str]:
    """The same settings without the campaign's file; and its id."""
    document = yaml.safe_load(settings.read_text("utf-8"))
    campaign = read_campaign(Path(document.pop("campaign"))).campaign.id
    path = settings.with_name("without-campaign.yaml")
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path, campaign


@asynccontextmanager
async def a_page(process: ForkedProcess) -> AsyncIterator[ClientConnection]:
    row = await asyncio.to_thread(read_until, process, "is open at")
    origin = next(word for word in row.split() if word.startswith("http")).rstrip("/")
    async with asyncio.timeout(DEADLINE_S):
        async with connect(f"{origin.replace('http', 'ws')}/ws?player=tamsin", origin=origin) as socket:  # type: ignore[arg-type]
            yield socket


async def asked(page: ClientConnection, text: str, *, is_answered: bool = True) -> dict[str, Any]:
    """The page's message of the turn that this line became, once all that was said in it is on disk."""
    await page.send(json.dumps({"say": text}))
    turn: dict[str, Any] | None = None
    kept: dict[str, str] = {}
    while turn is None or not {turn["utterance"], turn["reply"]} - {None} <= kept.keys():
        message = await next_of(page, "utterance", "turn")
        if message["type"] == "utterance":
            kept[message["id"]] = message["spans"][0]["text"]
        else:
            turn = message
    assert (turn["outcome"] == "answered") is is_answered
    assert text in kept.values()
    return turn


async def test_after_a_kill_in_the_middle_of_the_evening_npcs_are_muted_directed_and_know_what_was_said(
    settings: Path, capsys: Capture
) -> None:
    with a_table("", settings) as process:
        async with a_page(process) as page:
            await asked(page, "Grimjaw, my brother Joren was lost in the fen.")
            assert await run("table", "mute", "Eldrinax", "--config", settings) == 0
            assert await run("table", "direct", "Grimjaw", DIRECTION, "--config", settings) == 0
            process.kill()
            process.communicate()

    with a_table("", settings, "--continue") as process:
        async with a_page(process) as page:
            shown = [m["spans"][0]["text"] for m in (await next_of(page, "welcome"))["history"] if "spans" in m]
            assert shown == ["Grimjaw, my brother Joren was lost in the fen.", "Aye."]
            capsys.readouterr()
            assert await run("table", "--config", settings) == 0
            assert capsys.readouterr().out.splitlines()[1:] == [
                "NPCs: Grimjaw, Eldrinax",
                "players: Tamsin",
                "muted: Eldrinax",
                f"directed for its next 3 answers: Grimjaw: {DIRECTION}",
            ]
            assert (await asked(page, "Eldrinax, are you there?", is_answered=False))["unaddressed"] == "muted"
            await asked(page, "Grimjaw, what did I tell you?")
            assert await run("table", "end", "--config", settings) == 0
            await next_of(page, "session_ends")
        code, errors = await asyncio.to_thread(ended, process)
    assert (code, "Traceback" in errors) == (0, False)

    capsys.readouterr()
    assert await run("show", "turns", "last", "--prompt", "--npc", "Grimjaw", "--config", settings) == 0
    prompt = capsys.readouterr().out
    assert "my brother Joren was lost in the fen" in prompt and DIRECTION in prompt


async def test_a_stored_campaign_is_opened_by_its_id_and_session_by_number(settings: Path) -> None:
    with a_table("", settings) as process:
        async with a_page(process) as page:
            await asked(page, "Grimjaw, my brother Joren was lost in the fen.")
            assert await run("table", "end", "--config", settings) == 0
            await next_of(page, "session_ends")
        told, _ = await asyncio.to_thread(process.communicate, timeout=DEADLINE_S)  # until it is stored
    [command] = [line.partition(": ")[2] for line in told.splitlines() if "glyphoxa wrap-up" in line]
    assert await run(*shlex.split(command)[1:]) == 0
    without_file, campaign = naming_no_campaign(settings)
    with a_table("", without_file, "--campaign", campaign, "--session", "1") as process:
        async with a_page(process) as page:
            shown = [m["spans"][0]["text"] for m in (await next_of(page, "welcome"))["history"] if "spans" in m]
            assert shown == ["Grimjaw, my brother Joren was lost in the fen.", "Aye."]
            await asked(page, "Grimjaw, what did I tell you?")
