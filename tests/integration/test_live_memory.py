"""Who knows what at an open table, with the real database: what each NPC's prompt holds and what its tools find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, SpeakerId
from glyphoxa.domain.knowledge import (
    HIDDEN,
    PUBLIC,
    Claim,
    Knower,
    Provenance,
    Visibility,
    secret_of,
    witnessed_by,
)
from glyphoxa.transcript.sessions import EPISODE, episode_of
from glyphoxa.world.event_kinds import EntityAdded, EntityScoped, FactClosed, FactRevealed, FactScoped, FactStated
from glyphoxa.world.event_log import Cause, Event
from tests.support.live_table import Evening, an_evening, patient, settings_for, write_campaign

TOWN = CampaignId("town")
GRIMJAW, ELDRINAX = NpcId("grimjaw"), NpcId("eldrinax")
IRONHOLD = EntityId("ironhold")


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    born = {
        "source": "Grimjaw",
        "target": "Ironhold",
        "type": "LOCATED_AT",
        "attributes": {"note": "he was born there"},
    }
    campaign = write_campaign(
        tmp_path,
        others=["Eldrinax"],
        relationships=[born],
        secrets=[{"text": "The king's crown is false.", "known_by": ["Grimjaw"]}],
    )
    settings = settings_for(campaign, dsn, tmp_path)
    return patient(settings)


async def happen(dsn: str, *events: Event) -> None:
    async with open_store(dsn) as store:
        await store.world.commit(TOWN, events, Cause("dm", at_ms=1))


async def of_both(evening: Evening, question: str) -> tuple[str, str]:
    """The prompts of Grimjaw and Eldrinax when they are asked this."""
    prompts = [(await evening.asked(f"{name}, {question}")).prompt.text for name in ("Grimjaw", "Eldrinax")]
    return prompts[0], prompts[1]


def told(what: str, visibility: Visibility = PUBLIC, *, confidence: float = 1.0) -> FactStated:
    return FactStated(Claim.attribute(IRONHOLD, "rumour", what), Provenance(confidence=confidence), visibility)


async def test_an_npc_has_in_mind_what_it_is_what_it_keeps_secret_and_nothing_of_others(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        grimjaw, eldrinax = await of_both(evening, "who are you?")
        assert "crown" not in grimjaw
        grimjaw, eldrinax = await of_both(evening, "is the king's crown real?")
    assert "Grimjaw is at Ironhold: he was born there." in grimjaw
    assert "You keep this to yourself and deny it: The king's crown is false." in grimjaw
    assert "crown is false" not in eldrinax
    assert "born there" not in eldrinax


@pytest.mark.parametrize(
    ("visibility", "why"),
    [
        (witnessed_by([GRIMJAW]), "witnessed"),
        (Visibility.of("told", [Knower(GRIMJAW, "told", SpeakerId("tamsin"))]), "told by tamsin"),
    ],
)
async def test_what_one_witnessed_or_was_told_is_in_its_prompt_only_and_says_why(
    visibility: Visibility, why: str, settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await happen(dsn, told("The mine of Ironhold is flooded.", visibility))
        turn = await evening.asked("Grimjaw, tell me of Ironhold.")
        assert "The mine of Ironhold is flooded." in turn.prompt.text
        assert why in [fact.reason for fact in turn.prompt.recalled]
        turn = await evening.asked("Eldrinax, what of Ironhold?")
        assert "flooded" not in turn.prompt.text
        assert not any("flooded" in fact.text for fact in turn.prompt.recalled)


async def test_what_the_dm_decides_holds_from_the_next_question(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = told("The mine of Ironhold is flooded.")
    known = fact.claim.fact_id
    async with an_evening(settings, monkeypatch) as evening:
        assert "flooded" not in "".join(await of_both(evening, "what of Ironhold?"))
        await happen(dsn, fact)
        assert ["flooded" in prompt for prompt in await of_both(evening, "and Ironhold?")] == [True, True]
        await happen(dsn, FactScoped(known, secret_of([ELDRINAX])))
        assert ["flooded" in prompt for prompt in await of_both(evening, "is it Ironhold?")] == [False, True]
        await happen(dsn, FactScoped(known, HIDDEN))
        assert ["flooded" in prompt for prompt in await of_both(evening, "why Ironhold?")] == [False, False]
        await happen(dsn, FactRevealed(known))
        assert ["flooded" in prompt for prompt in await of_both(evening, "so Ironhold?")] == [True, True]
        await happen(dsn, FactClosed(known))
        assert ["flooded" in prompt for prompt in await of_both(evening, "still Ironhold?")] == [False, False]


async def test_what_waits_for_the_dm_and_what_may_not_be_known_of_is_in_no_prompt(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await happen(dsn, told("The mine of Ironhold is flooded.", confidence=0.4))
        assert ["flooded" in prompt for prompt in await of_both(evening, "what of Ironhold?")] == [False, False]
        await happen(dsn, told("Ironhold is ours."), EntityScoped(IRONHOLD, secret_of([ELDRINAX])))
        assert ["is ours" in prompt for prompt in await of_both(evening, "and Ironhold?")] == [False, True]


async def test_an_npc_s_tools_find_what_it_may_know(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = episode_of(SessionId("one"))

    async def found(npc: NpcId, tool: str, **arguments: Any) -> str:
        tools = evening.mouths[npc].tools
        assert tools is not None
        return str((await tools.call(tool, arguments))["found"])

    assert settings.campaign is not None
    file = settings.campaign.read_text("utf-8")
    settings.campaign.write_text(file.replace("voice: heart", "voice: heart\n  budget_tier: DEEP"), "utf-8")
    async with an_evening(settings, monkeypatch) as evening:
        await happen(
            dsn,
            told("The mine of Ironhold is flooded.", witnessed_by([GRIMJAW])),
            EntityAdded(episode, "event", "The first evening", visibility=witnessed_by([GRIMJAW])),
            FactStated(Claim.attribute(episode, "kind", EPISODE)),
            FactStated(Claim.attribute(episode, "summary", "They met at the forge.")),
        )
        for tool, arguments, needle in (
            ("memory_query_entities", {"name": "Ironhold"}, "flooded"),
            ("memory_search_facts", {"query": "flooded mine"}, "flooded"),
            ("memory_get_session_summary", {"session": "one"}, "at the forge"),
        ):
            assert needle in await found(GRIMJAW, tool, **arguments)
            assert needle not in await found(ELDRINAX, tool, **arguments)
        await evening.asked("Grimjaw, my sister is a pirate.")
        assert await evening.table.kept() == 2
        for npc in (GRIMJAW, ELDRINAX):
            assert "sister" in await found(npc, "memory_search_sessions", query="sister")
            # Nothing here is embedded, so that nothing found around anybody, and everything is searched.
            assert "sister" in await found(npc, "memory_search_sessions", query="sister", around="Ironhold")
            tools = evening.mouths[npc].tools
            assert tools is not None
            assert any("around" in spec.parameters for spec in tools.declared)
