"""`glyphoxa transcript summary`: NPCs that were in a session recall its summary in the next one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.context.scene import Past
from glyphoxa.domain.ids import NpcId, SessionId
from tests.support.builders import INNKEEPER, SESSION, SMITH, a_campaign, an_utterance
from tests.support.command_line import a_settings_file, run

Capture = pytest.CaptureFixture[str]
NEXT = SessionId("s2")


@pytest.fixture
async def settings(dsn: str, tmp_path: Path) -> Path:
    """Grimjaw, and nobody else, heard something said."""
    async with open_store(dsn, data_dir=tmp_path) as store:
        await store.campaigns.load(a_campaign())
        await store.log.append([replace(an_utterance("The tithe box is gone."), witnesses=frozenset({SMITH}))])
    return a_settings_file(tmp_path, dsn)


async def recalled(dsn: str, tmp_path: Path, npc: NpcId) -> str:
    """What an NPC has in mind of earlier sessions when the next one opens."""
    async with open_store(dsn, data_dir=tmp_path) as store:
        past = Past(a_campaign(), store.summaries, session=NEXT, tokens=100)
        await past.read(npc)
        return past.of(npc)


async def test_who_was_there_recalls_what_the_dm_says_of_a_session(
    settings: Path, dsn: str, tmp_path: Path, capsys: Capture
) -> None:
    assert await run("transcript", "summary", SESSION, "--config", settings) == 0
    assert "has no summary" in capsys.readouterr().out
    assert await run("transcript", "summary", SESSION, "The tithe box was stolen.", "--config", settings) == 0
    assert "The tithe box was stolen." in capsys.readouterr().out
    assert await recalled(dsn, tmp_path, SMITH) == "The tithe box was stolen."
    assert await recalled(dsn, tmp_path, INNKEEPER) == ""

    assert (
        await run(
            "transcript", "summary", SESSION, "Bran", "stole", "it.", "--known-by", "Mirelle", "--config", settings
        )
        == 0
    )
    assert await recalled(dsn, tmp_path, SMITH) == ""
    assert await recalled(dsn, tmp_path, INNKEEPER) == "Bran stole it."
    assert await run("transcript", "summary", SESSION, "Bran stole it.", "--public", "--config", settings) == 0
    assert await recalled(dsn, tmp_path, SMITH) == "Bran stole it."

    assert await run("show", "sessions", "--config", settings) == 0
    listed = " ".join(re.sub(r"[^\w.]", " ", capsys.readouterr().out).split())
    assert f"{SESSION} " in listed
    assert "Bran stole it." in listed


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nosuch", "They sang."], "no session 'nosuch' in campaign"),
        ([SESSION, "  "], "is empty"),
        ([SESSION, "x" * 4_001], "4,001 characters"),
        ([SESSION, "They sang.", "--known-by", "Nobody"], "Nobody"),
    ],
    ids=["session", "empty", "long", "npc"],
)
async def test_what_cannot_be_said_of_a_session_is_one_clear_line_and_changes_nothing(
    settings: Path, dsn: str, tmp_path: Path, capsys: Capture, words: list[str], complaint: str
) -> None:
    assert await run("transcript", "summary", *words, "--config", settings) != 0
    [line] = capsys.readouterr().err.strip().splitlines()
    assert complaint in line
    assert await recalled(dsn, tmp_path, SMITH) == ""
