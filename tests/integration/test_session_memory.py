"""The memory of a running session at a real table: what leaves a prompt is told in its summary, and stored."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from glyphoxa.config.settings import Settings
from glyphoxa.context.prompt import Message, Prompt
from glyphoxa.domain.events import TurnFinished
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.domain.session_state import DM_VIEW, SessionState, View
from tests.support.live_table import SESSION, Evening, an_evening, settings_for, write_campaign
from tests.support.patience import DEADLINE_S

TOWN, GRIMJAW, ELDRINAX = CampaignId("town"), NpcId("grimjaw"), NpcId("eldrinax")
PROMISE: Final = "Grimjaw, I promise to bring you the silver ring before the feast."
SO_FAR: Final = "Earlier this evening: "


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    return settings_for(write_campaign(tmp_path, others=["Eldrinax"]), dsn, tmp_path)


async def asked(evening: Evening, text: str) -> Prompt:
    """Say this; return the prompt of Grimjaw's answer."""
    mouth = evening.mouths[GRIMJAW]
    n_asked = len(mouth.asked)
    (await evening.ear()).say(text)
    await evening.until(lambda: [e for e in evening.told if isinstance(e, TurnFinished) and e.turn.text == text])
    assert len(mouth.asked) == n_asked + 1
    return mouth.asked[-1]


async def talk(evening: Evening, n: int, *, first: int = 0) -> None:
    for at in range(first, first + n):
        await asked(evening, f"Grimjaw, how is the work on sword number {at} in your forge today?")


def summary_in(prompt: Prompt) -> list[Message]:
    return [message for message in prompt.messages if message.is_synthetic]


async def stored(evening: Evening, view: View, *, covers: str) -> SessionState:
    """A view's state, once it tells this."""
    assert evening.desk is not None
    states = evening.desk.store.states
    async with asyncio.timeout(DEADLINE_S):
        while covers not in (state := await states.state(TOWN, SESSION, view)).text:  # noqa: ASYNC110 - stored in the background
            await asyncio.sleep(0.05)
    return state


async def test_promise_is_in_the_summary_after_its_line_left(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await asked(evening, PROMISE)
        await talk(evening, 60)
        for view in (DM_VIEW, View(GRIMJAW)):
            state = await stored(evening, view, covers="silver ring")
            assert state.last_ordinal >= 2
        prompt = await asked(evening, "Grimjaw, what did I promise you?")
    [told] = summary_in(prompt)
    assert told.role == "user"
    assert told.content.startswith(SO_FAR)
    assert "silver ring" in told.content
    assert not any("silver ring" in message.content for message in prompt.messages if message is not told)
    at = prompt.messages.index(told)
    assert at == 1 + prompt.n_examples
