"""Topics that a group does not play: what is said, recalled and shown, with real engines and a real database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from glyphoxa.app.models import LocalModels
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Safety
from glyphoxa.domain.turn_record import Asked, Fault, Verdict
from glyphoxa.npc.mouth import SentenceRejected, SentenceStarted
from glyphoxa.prompt.select import NOT_PLAYED
from glyphoxa.prompt.wording import StandIns, wording
from glyphoxa_pipelines.cascaded import CharacterRules
from tests.support.builders import a_campaign
from tests.support.command_line import CommandLine, a_settings_file
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.live_table import an_evening, patient, settings_for, write_campaign
from tests.support.pipecat_fakes import ModelServer, stage
from tests.support.realtime_server import RealtimeServer, SpokenReply
from tests.support.s2s_play import brisk, play_with

TOPICS = Safety(("spiders", "harm to children"))


def check(asked: Asked) -> Callable[[str], Verdict]:
    """Return the check of a reply that a mouth of the product uses."""
    campaign = replace(a_campaign(), safety=TOPICS)
    order: Any = SimpleNamespace(
        campaign=campaign,
        npc=campaign.npcs[0],
        others=("Alice",),
        tools=None,
        settings=Settings(),
        local=LocalModels(),
    )
    return CharacterRules(order).new_check(asked)


async def test_model_that_speaks_of_a_line_changes_the_subject() -> None:
    async with ModelServer() as server:
        server.reply = ("Spiders? ", "Hund", "reds of spi", "ders, yes.")
        async with stage(server, new_check=check, stand_in=StandIns("en").line) as play:
            finished = await play.answered()
        assert finished.heard in wording("en").changes_subject
        assert len(server.requests) == 1
    assert {event.unsaid.fault for event in play.events if isinstance(event, SentenceRejected)} == {Fault.SAFETY}


async def test_reply_ends_before_the_sentence_that_touches_a_line() -> None:
    async with ModelServer() as server:
        server.reply = ("The road is dry. ", "He beat the ", "boy, poor thing. ", "It bled for days.")
        async with stage(server, new_check=check, stand_in=StandIns("en").line) as play:
            finished = await play.answered()
    assert finished.heard == "The road is dry."
    assert [event.text for event in play.events if isinstance(event, SentenceStarted)] == ["The road is dry."]


@pytest.mark.parametrize("kind", [RealtimeServer, GeminiLiveServer])
async def test_speech_to_speech_reply_ends_before_a_line(kind: Any) -> None:
    replies = [SpokenReply("Giant spiders. They have eight eyes."), SpokenReply("Good day. Spiders! They bite.")]
    async with brisk(kind, replies) as server, play_with(server, check=check(Asked())) as play:
        silent = await play.answer()
    async with brisk(kind, replies[1:]) as server, play_with(server, check=check(Asked())) as play:
        finished = await play.answer()
    assert silent.withheld and not silent.heard
    assert finished.heard == "Good day."


async def test_dm_sees_why_a_turn_was_redirected_and_no_prompt_recalls_it(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = write_campaign(tmp_path, safety={"lines": ["spiders"], "veils": ["torture"]})
    settings = settings_for(campaign, dsn, tmp_path)
    settings = patient(settings)
    async with an_evening(settings, monkeypatch, session="s1") as evening:
        await evening.asked("Grimjaw, a spider bit my brother Joren at the mill.")
        await evening.asked("Grimjaw, my brother Joren was at the mill.")
    async with an_evening(settings, monkeypatch, session="s2") as evening:
        turn = await evening.asked("Grimjaw, where was my brother Joren?")
        redirected = await evening.asked("Grimjaw, do you keep spiders?")
    assert "at the mill" in turn.prompt.text and "spider" not in turn.prompt.text
    assert turn.flags == ()
    assert any("spider" in one.recalled.text and one.why == NOT_PLAYED for one in turn.prompt.rejected)
    assert redirected.flags == ("line:spiders",) and "spider" not in redirected.prompt.text
    cli = CommandLine(a_settings_file(tmp_path, dsn), capsys)
    told = await cli.told("show", "turns", "last")
    assert "led away from what the group does not play: line:spiders" in told
