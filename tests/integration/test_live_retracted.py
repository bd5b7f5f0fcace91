"""Talk that the DM retracts, corrects or rolls back leaves the prompts of an open table, with the real database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.erasure import Meant, PostgresErasure
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.events import UtteranceKept, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.ids import CampaignId, NpcId, PlayerId, SpeakerId, UtteranceId
from glyphoxa.web.events import event_json
from glyphoxa.world.event_log import Cause, WorldEvent
from glyphoxa.world.graph import ConsentChange
from tests.support.live_table import SESSION, Evening, an_evening, patient, settings_for, with_chronicle, write_campaign

TOWN, GRIMJAW = CampaignId("town"), NpcId("grimjaw")
BY_DM = Cause("dm", 1)
CLAIM = "It was Eldrinax who stole the tithe box."


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    settings = settings_for(write_campaign(tmp_path), dsn, tmp_path)
    return patient(settings)


async def decided(dsn: str, decide: Callable[[Store], Awaitable[WorldEvent | None]]) -> WorldEvent:
    """Decide like the DM's commands, on a connection of its own."""
    async with open_store(dsn) as store:
        event = await decide(store)
    assert event is not None
    return event


async def claimed(evening: Evening) -> UtteranceId:
    """Grimjaw says it, and it is in the log."""
    await evening.asked("Grimjaw, who was it?")
    [said] = await evening.until(
        lambda: [e.utterance for e in evening.told if isinstance(e, UtteranceKept) and e.utterance.text == CLAIM]
    )
    await evening.table.kept()
    return said.id


def on_the_page(evening: Evening, campaign: Campaign) -> list[dict[str, object]]:
    kinds = (UtteranceRetracted, UtteranceRevised)
    return [dict(event_json(event, campaign)) for event in evening.told if isinstance(event, kinds)]


async def test_what_is_retracted_leaves_the_prompt_of_an_npc_that_said_it_and_the_page(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch, reply=CLAIM) as evening:
        said = await claimed(evening)
        evening.mouths[GRIMJAW].reply = "Aye."
        assert CLAIM in (await evening.asked("Grimjaw, are you sure?")).prompt.text
        event = await decided(dsn, lambda store: store.world.retract(TOWN, said, BY_DM))
        await evening.until(lambda: [e for e in evening.told if isinstance(e, UtteranceRetracted)])
        assert CLAIM not in (await evening.asked("Grimjaw, what did you say of the tithe box?")).prompt.text
        assert [one["is_retracted"] for one in on_the_page(evening, evening.table.campaign)] == [True]

        await decided(dsn, lambda store: store.world.undo(TOWN, [event.seq], BY_DM))
        await evening.until(
            lambda: [e for e in evening.told if isinstance(e, UtteranceRetracted) and not e.is_retracted]
        )
        again = await evening.asked("Grimjaw, what was it you said of the tithe box?")
        assert again.prompt.text.count(f"Remembered: You said (earlier this evening): {CLAIM}") == 1


async def test_what_is_erased_leaves_the_prompts_of_an_open_table(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch, reply=CLAIM) as evening:
        said = await claimed(evening)
        evening.mouths[GRIMJAW].reply = "Aye."
        assert CLAIM in (await evening.asked("Grimjaw, are you sure?")).prompt.text
        await evening.until(lambda: "Grimjaw, are you sure?" in evening.kept_texts)
        await evening.table.kept()
        kept = {event.utterance.id for event in evening.told if isinstance(event, UtteranceKept)}
        assert said in kept
        async with open_store(dsn) as store:
            await PostgresErasure(store.database).erase(TOWN, Meant(session=SESSION), at_ms=1)
        await evening.until(
            lambda: kept <= {event.utterance.id for event in evening.told if isinstance(event, UtteranceRetracted)}
        )
        prompt = (await evening.asked("Grimjaw, what did you say of the tithe box?")).prompt.text
        assert CLAIM not in prompt
        assert "are you sure" not in prompt


async def test_corrected_words_replace_the_old_ones_in_prompts(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch, reply=CLAIM) as evening:
        said = await claimed(evening)
        evening.mouths[GRIMJAW].reply = "Aye."
        await decided(dsn, lambda store: store.world.correct(TOWN, said, "I never saw a thief.", BY_DM))
        await evening.until(lambda: [e for e in evening.told if isinstance(e, UtteranceRevised)])
        prompt = (await evening.asked("Grimjaw, are you sure?")).prompt.text
        assert "I never saw a thief." in prompt
        assert CLAIM not in prompt
        [page] = on_the_page(evening, evening.table.campaign)
        assert (page["type"], page["id"], page["spans"]) == ("revised", said, [{"text": "I never saw a thief."}])


async def test_what_is_rolled_back_leaves_the_prompt_too_and_stays_away_when_the_evening_goes_on(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch, reply=CLAIM) as evening:
        await claimed(evening)
        evening.mouths[GRIMJAW].reply = "Aye."
        await decided(dsn, lambda store: store.world.rollback(TOWN, SESSION, 1, BY_DM))
        await evening.until(lambda: [e for e in evening.told if isinstance(e, UtteranceRetracted)])
        prompt = (await evening.asked("Grimjaw, are you sure?")).prompt.text
        assert CLAIM not in prompt
        assert "Grimjaw, who was it?" in prompt
    async with an_evening(settings, monkeypatch) as evening:
        assert CLAIM not in (await evening.asked("Grimjaw, who was it, then?")).prompt.text


async def retracted(store: Store, said: UtteranceId) -> None:
    await store.world.retract(TOWN, said, BY_DM)


async def withheld(store: Store, said: UtteranceId) -> None:
    await store.world.consent(TOWN, ConsentChange(SpeakerId("bran"), "withheld", (said,)), Cause("player", 1))


async def erased(store: Store, said: UtteranceId) -> None:
    await PostgresErasure(store.database).erase(TOWN, Meant(player=PlayerId("bran")), at_ms=1)


@pytest.mark.parametrize("take_back", [retracted, withheld, erased])
async def test_what_is_taken_back_of_an_earlier_evening_leaves_the_prompts_of_an_open_table(
    settings: Settings,
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    take_back: Callable[[Store, UtteranceId], Awaitable[None]],
) -> None:
    settings, crowns = with_chronicle(settings), "the six silver crowns"
    async with an_evening(settings, monkeypatch, session="first", reply="Aye.") as evening:
        ear = await evening.ear(evening.table.campaign.players[1])
        ear.say(f"Grimjaw, I promise to bring you {crowns} before the feast.")
        kept = await evening.until(
            lambda: [e.utterance for e in evening.told if isinstance(e, UtteranceKept) and crowns in e.utterance.text]
        )
        await evening.table.kept()
    async with an_evening(settings, monkeypatch, session="second", reply="Aye.") as evening:
        assert crowns in (await evening.asked("Grimjaw, nice weather today.")).prompt.text
        async with open_store(dsn) as store:
            await take_back(store, kept[0].id)
        assert crowns not in (await evening.asked("Grimjaw, lovely weather indeed.")).prompt.text
        assert crowns not in (await evening.asked("Grimjaw, what weather it is.")).prompt.text


async def test_what_an_npc_said_is_no_fact_the_next_evening(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = with_chronicle(settings)
    async with an_evening(settings, monkeypatch, session="first", reply=CLAIM) as evening:
        await claimed(evening)
    async with an_evening(settings, monkeypatch, session="second") as evening:
        assert CLAIM not in (await evening.asked("Grimjaw, who stole the tithe box?")).prompt.text
        prompt = (await evening.asked("Grimjaw, what did you say about the tithe box?")).prompt.text
        assert f"\nRemembered: You said (last session): {CLAIM}" in prompt
