"""`glyphoxa transcript summary`: NPCs that were in a session recall its summary in the next one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.memory import StoredSessions
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.prompt.scene import Past
from glyphoxa.prompt.wording import SaidWhen
from tests.support.builders import CAMPAIGN, INNKEEPER, SESSION, SMITH, a_campaign, an_utterance
from tests.support.command_line import CommandLine, a_settings_file

Capture = pytest.CaptureFixture[str]
NEXT = SessionId("s2")


@pytest.fixture
async def cli(dsn: str, tmp_path: Path, capsys: Capture) -> CommandLine:
    """Grimjaw, and nobody else, heard something said."""
    async with open_store(dsn) as store:
        await store.campaigns.load(a_campaign())
        await store.log.append([replace(an_utterance("The tithe box is gone."), witnesses=frozenset({SMITH}))])
    return CommandLine(a_settings_file(tmp_path, dsn), capsys)


async def recalled(dsn: str, npc: NpcId) -> str:
    """Return an NPC's memory of earlier sessions when the next one opens."""
    async with open_store(dsn) as store:
        await store.read(CAMPAIGN)
        past = Past(SaidWhen(a_campaign(), NEXT, None), StoredSessions(store, CAMPAIGN, NEXT), tokens=100)
        await past.read(npc)
        return past.of(npc)


async def test_npc_that_was_present_recalls_the_dms_summary(cli: CommandLine, dsn: str, tmp_path: Path) -> None:
    assert "has no summary" in await cli.told("transcript", "summary", SESSION)
    assert "The tithe box was stolen." in await cli.told("transcript", "summary", SESSION, "The tithe box was stolen.")
    assert await recalled(dsn, SMITH) == "The tithe box was stolen."
    assert await recalled(dsn, INNKEEPER) == ""

    await cli.told("transcript", "summary", SESSION, "Bran", "stole", "it.", "--known-by", "Mirelle")
    assert await recalled(dsn, SMITH) == ""
    assert await recalled(dsn, INNKEEPER) == "Bran stole it."
    await cli.told("transcript", "summary", SESSION, "Bran stole it.", "--public")
    assert await recalled(dsn, SMITH) == "Bran stole it."

    listed = " ".join(re.sub(r"[^\w.]", " ", await cli.told("show", "sessions")).split())
    assert f"{SESSION} " in listed
    assert "Bran stole it." in listed


async def test_what_cannot_be_said_of_a_session_is_one_clear_line_and_changes_nothing(
    cli: CommandLine, dsn: str
) -> None:
    for words, complaint in (
        (["nosuch", "They sang."], "no session 'nosuch' in campaign"),
        ([SESSION, "  "], "is empty"),
        ([SESSION, "x" * 4_001], "4,001 characters"),
        ([SESSION, "They sang.", "--known-by", "Nobody"], "Nobody"),
    ):
        assert complaint in await cli.problem("transcript", "summary", *words), words
    assert await recalled(dsn, SMITH) == ""
