"""The memory of a running session at a real table: what leaves a prompt is told in its summary, and stored."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from glyphoxa.config.settings import Settings
from glyphoxa.domain.events import UtteranceRetracted
from glyphoxa.domain.ids import CampaignId, NpcId, SceneId
from glyphoxa.npc.commands import SummariseEvery
from glyphoxa.prompt.prompt import Message, Prompt
from glyphoxa.transcript.sessions import DM_VIEW, SessionState, View
from glyphoxa.world.event_log import Cause
from tests.support.live_table import SESSION, Evening, an_evening, settings_for, write_campaign
from tests.support.patience import DEADLINE_S

TOWN, GRIMJAW, ELDRINAX = CampaignId("town"), NpcId("grimjaw"), NpcId("eldrinax")
PROMISE: Final = "Grimjaw, I promise to bring you the silver ring before the feast."
SO_FAR: Final = "Earlier this evening: "


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    """With room for some 20 lines."""
    settings = settings_for(write_campaign(tmp_path, others=["Eldrinax"]), dsn, tmp_path)
    return settings.model_copy(update={"context": settings.context.model_copy(update={"history_tokens": 400})})


async def asked(evening: Evening, text: str) -> Prompt:
    """Say this; return the prompt of Grimjaw's answer."""
    n_asked = len(evening.mouths[GRIMJAW].asked)
    await evening.asked(text)
    [prompt] = evening.mouths[GRIMJAW].asked[n_asked:]
    return prompt


async def talk(evening: Evening, n: int, *, first: int = 0) -> None:
    for at in range(first, first + n):
        await asked(evening, f"Grimjaw, how is the work on sword number {at} in your forge today?")


def summary_in(prompt: Prompt) -> list[Message]:
    return [message for message in prompt.messages if message.is_synthetic]


async def stored(evening: Evening, view: View, *, covers: str) -> SessionState:
    """A view's state, once it tells this."""
    assert evening.desk is not None
    states = evening.desk.store.states(TOWN, SESSION)
    async with asyncio.timeout(DEADLINE_S):
        while covers not in (state := await states.state(view)).text:  # noqa: ASYNC110 - stored in the background
            await asyncio.sleep(0.05)
    return state


async def test_promise_is_in_the_summary_after_its_line_left(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await asked(evening, PROMISE)
        await talk(evening, 40)
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


async def test_session_continues_with_its_summary_and_the_lines_after_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await asked(evening, PROMISE)
        (await evening.ear()).say("[OOC] brb")
        await evening.kept("[OOC] brb")
        await talk(evening, 30)
        state = await stored(evening, View(GRIMJAW), covers="silver ring")
    async with an_evening(settings, monkeypatch) as again:
        prompt = await asked(again, "Grimjaw, what did I promise you?")
        store = again.desk.store if again.desk is not None else None
        assert store is not None
        log = await store.log.recent(TOWN, SESSION, since_ms=0, limit=100)
    [told] = summary_in(prompt)
    assert "silver ring" in told.content
    assert all(one.text in told.content for one in state.summary[:1])
    lines = [message.content for message in prompt.messages if not message.is_synthetic]
    assert len([line for line in lines if "sword number 29" in line]) == 1
    assert not any("silver ring" in line for line in lines)
    assert [each.text for each in log].count("[OOC] brb") == 1
    assert not any(SO_FAR in each.text for each in log)


async def test_retracted_line_leaves_summary_and_prompt(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await asked(evening, PROMISE)
        promise = await evening.kept(PROMISE)
        await talk(evening, 40)
        await stored(evening, View(GRIMJAW), covers="silver ring")
        assert "silver ring" in str(summary_in(await asked(evening, "Grimjaw, what now?")))
        assert evening.desk is not None
        store = evening.desk.store
        await store.world.retract(TOWN, promise.id, Cause("dm", 1))
        assert "silver ring" not in (await store.states(TOWN, SESSION).state(View(GRIMJAW))).text
        await evening.until(lambda: [e for e in evening.told if isinstance(e, UtteranceRetracted)])
        prompt = await asked(evening, "Grimjaw, what did I promise you?")
    assert "silver ring" not in str(prompt.messages)


async def test_summary_rounds_follow_settings_and_command(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings.model_copy(update={"context": settings.context.model_copy(update={"memory_interval": 30})})
    async with an_evening(settings, monkeypatch) as evening:
        assert evening.table.summary_rounds == 30
        await evening.table.obey(SummariseEvery(45))
        assert evening.table.summary_rounds == 45


async def test_npc_is_told_only_what_it_witnessed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await evening.table.move(SceneId("inn"))  # without Eldrinax
        await asked(evening, PROMISE)
        await evening.table.move(SceneId("forge"))
        await talk(evening, 40)
        await stored(evening, DM_VIEW, covers="silver ring")
        assert evening.desk is not None
        states = await evening.desk.store.states(TOWN, SESSION).all()
        assert states[DM_VIEW].flags["location_change"]
        assert "silver ring" not in states[View(ELDRINAX)].text
        (await evening.ear()).say("Eldrinax, what did I promise?")
        prompt = (await evening.until(lambda: evening.mouths[ELDRINAX].asked))[-1]
    assert "silver ring" not in str(prompt.messages)


async def test_table_says_when_it_opens_that_a_local_model_does_not_summarise(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    memory = settings.memory.model_copy(update={"summaries": "llm", "judge": "llm"})
    async with an_evening(settings.model_copy(update={"memory": memory}), monkeypatch):
        pass
    [judge] = [line for line in warnings if line.startswith("memory.judge: llm has no effect")]
    [summaries] = [line for line in warnings if line.startswith("memory.summaries: llm has no effect")]
    assert "glyphoxa worker" in judge and "chronicle.llm" in summaries
