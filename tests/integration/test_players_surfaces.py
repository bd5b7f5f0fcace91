"""The bundle, the vault, Discord, the recap and the calendar tell players the same of a world, and nothing else."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from icalendar import Calendar

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.desk import desk_of, recap_of
from glyphoxa.app.scope import Scope
from glyphoxa.config.settings import Settings
from glyphoxa.domain.budgets import SUMMARY_TOKENS
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.knowledge import HIDDEN, Claim
from glyphoxa.plugins.exports import CalendarFeed, vault_of
from glyphoxa.world.event_kinds import FactStated
from glyphoxa.world.event_log import Cause
from tests.support.builders import an_utterance
from tests.support.bundles import exported_for_players
from tests.support.discord_server import OpenDoor, a_discord_server
from tests.support.guarded_worlds import SESSION, Words, a_guarded_campaign, play

TOWN = CampaignId("town")


def a_line(text: str, n: int) -> Utterance:
    said = an_utterance(text, id=f"u{n}")
    return replace(said, campaign_id=TOWN, session_id=SESSION, at_ms=1_000 * n)


@pytest.mark.parametrize("seed", range(4))
async def test_all_surfaces_tell_players_the_same_of_a_random_world(
    store: Store, dsn: str, tmp_path: Path, seed: int
) -> None:
    words = Words(random.Random(100 + seed))
    campaign = a_guarded_campaign(words, TOWN)
    await store.campaigns.load(campaign)
    await play(store, words, campaign)
    promises = (
        f"I promise that I will bring the {words.shown()} to the mill by Friday.",
        f"I promise that {campaign.entities[-2].name} will bring the {words.hidden()} to the mill by Friday.",
    )
    await store.log.append([a_line(text, n) for n, text in enumerate(promises, start=20)])

    tables = json.loads(await exported_for_players(store, TOWN))["tables"]
    desk = await desk_of(Scope(store, Settings(), TOWN))
    notes = await vault_of(store, desk, readers="players", with_transcript=True)
    recap = " ".join(await recap_of(store, TOWN, SESSION, "players", tokens=100 * SUMMARY_TOKENS))
    events = Calendar.from_ical(await CalendarFeed(store, TOWN).read()).walk("VEVENT")
    calendar = " ".join(str(each["description"]) for each in events).lower()
    async with a_discord_server(dsn, tmp_path, campaign=TOWN) as discord:
        discord.bot.door = OpenDoor(discord.bot.door.settings)
        listed = await discord.told(discord.tamsin, "entity list")
        shown = [await discord.told(discord.tamsin, "fact show", about=each.name) for each in campaign.entities]

    bundle, transcript = (json.dumps(each).lower() for each in (tables, tables["session_entries"]))
    world = json.dumps([tables[name] for name in ("entities", "attribute_facts", "relationships")]).lower()
    is_session = {path: path.startswith("Sessions/") for path in notes if "/" in path}
    lines = " ".join(notes[path] for path in is_session if is_session[path]).lower()
    pages = " ".join(notes[path] for path in is_session if not is_session[path]).lower()
    discord_said = " ".join((listed, *(text for text in shown if not text.startswith("no entity")))).lower()
    recapped = recap.lower()

    for text in (bundle, pages, lines, discord_said, recapped, calendar):
        assert [word for word in words.guarded if word in text] == []
    for word in words.public:
        assert {word in pages, word in discord_said} == {word in world}, word
        assert word in lines or word not in transcript, word
        assert word in transcript or word not in recapped, word
        assert word in recapped or word not in calendar, word
    assert recapped and any(word in transcript for word in words.public)


async def test_line_that_touches_what_the_dm_hid_is_on_no_surface(store: Store) -> None:
    """A fact that is hidden at the desk is a secret, like those of the campaign file."""
    words = Words(random.Random(7))
    campaign = replace(a_guarded_campaign(words, TOWN), secrets=())
    await store.campaigns.load(campaign)
    line = "I promise that I will find the tunnel under the old mill by Friday."
    await store.log.append([a_line(line, 1)])
    assert line in " ".join(await recap_of(store, TOWN, SESSION, "players"))
    hidden = Claim.attribute(campaign.entities[0].id, "past", "He dug a tunnel under the mill by night.")
    await store.world.commit(TOWN, [FactStated(hidden, visibility=HIDDEN)], Cause("dm", 2_000))
    notes = await vault_of(
        store, await desk_of(Scope(store, Settings(), TOWN)), readers="players", with_transcript=True
    )
    for text in (
        await exported_for_players(store, TOWN),
        " ".join(notes.values()),
        " ".join(await recap_of(store, TOWN, SESSION, "players")),
    ):
        assert "tunnel" not in text
