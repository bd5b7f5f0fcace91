"""`glyphoxa discord`: each command in an in-memory Discord, on a real database."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from random import Random

import discord as library
import pytest
from simcord.enums import InteractionType

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.dm.entities import NewEntity
from glyphoxa.domain.campaign import NodeType
from glyphoxa.domain.events import SceneChanged
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.domain.knowledge import DM
from glyphoxa.plugins.discord.bot import _view
from glyphoxa.plugins.discord.commands import COMMANDS, _card
from tests.support.command_line import BAKER, CAMPAIGN_FILE, DEBT, SALTMERE
from tests.support.discord_server import (
    GUILD,
    DiscordServer,
    OpenDoor,
    OutsideTables,
    a_discord_server,
    everything_in,
    messages_of,
    text_of,
)
from tests.support.live_table import Evening, an_evening, settings_for, write_campaign
from tests.support.network import a_network
from tests.support.secret_campaigns import SecretCampaign, words_in

REFUSAL = "Sorry, I answer only the people who play at my table."
OPTIONS: dict[str, dict[str, object]] = {
    "entity add": {"name": "Old Bess", "type": "npc"},
    "entity list": {},
    "entity remove": {"entity": "Vaelith"},
    "fact add": {"subject": "Vaelith", "predicate": "colour", "value": "blue"},
    "fact show": {"about": "Vaelith"},
    "whoknows": {"about": "Grimjaw"},
    "review": {},
    "recap": {},
    "say": {"npc": "Grimjaw", "words": "The gate is closed."},
    "mute": {},
    "direct": {"npc": "Grimjaw", "words": "Be short."},
    "scene": {"scene": "smithy"},
    "join": {},
    "session title": {"session": "last", "title": "The Night of the Bell"},
    "campaign load": {"file": ("town.yaml", b"campaign: {id: town}")},
}
"""Options with which each command could be given."""
FOR_PLAYERS = {"entity list", "fact show", "recap", "join"}


@pytest.fixture
async def discord(evenings_dsn: str, tmp_path: Path) -> AsyncIterator[DiscordServer]:
    async with a_discord_server(evenings_dsn, tmp_path) as server:
        yield server


async def world_of(server: DiscordServer) -> tuple[object, ...]:
    desk = await server.desk()
    return desk.seen, await desk.inspection.current(desk.campaign, DM, limit=10_000)


def test_every_command_is_tried_below() -> None:
    assert {name for name, _, _ in COMMANDS} == OPTIONS.keys()


# Entities and facts


async def test_dm_adds_lists_and_removes_an_entity(discord: DiscordServer) -> None:
    added = await discord.told(
        discord.dm, "entity add", name="Old Bess", type="npc", attributes='--occupation "ferry woman" --level 9'
    )
    assert "Old Bess" in added
    bess = (await discord.desk()).resolver.entity("Old Bess")
    assert bess.attributes == {"occupation": "ferry woman", "level": 9}
    assert "Old Bess (npc)" in await discord.told(discord.dm, "entity list", type="npc")
    asked = await discord.dm.slash(discord.channel, "entity remove", entity="Old Bess")
    assert "This removes Old Bess (npc)" in text_of(asked)
    assert "old-bess" in (await discord.desk()).resolver.entities, "not confirmed yet"
    [message] = messages_of(asked)
    await discord.dm.click(message, label="Confirm")
    assert "old-bess" not in (await discord.desk()).resolver.entities


async def test_removal_is_refused_if_more_is_known_by_then(discord: DiscordServer) -> None:
    asked = await discord.dm.slash(discord.channel, "entity remove", entity="Vaelith")
    await discord.told(discord.dm, "fact add", subject="Vaelith", predicate="colour", value="blue")
    clicked = await discord.dm.click(messages_of(asked)[0], label="Confirm")
    assert "has changed meanwhile; nothing was changed" in clicked.followups[-1].content
    assert "vaelith" in (await discord.desk()).resolver.entities


async def test_confirm_button_works_once_and_not_after_a_restart(discord: DiscordServer) -> None:
    first = await discord.dm.slash(discord.channel, "entity remove", entity="Vaelith")
    second = await discord.dm.slash(discord.channel, "entity remove", entity="The Silent Bell")
    stale = await discord.dm.click(messages_of(first)[0], label="Confirm")
    assert "this can no longer be confirmed" in stale.followups[-1].content
    await discord.restart()
    late = await discord.dm.click(messages_of(second)[0], label="Confirm")
    assert "this can no longer be confirmed" in late.followups[-1].content
    assert {"vaelith", "the-silent-bell"} <= (await discord.desk()).resolver.entities.keys()


async def test_dm_states_a_hidden_fact_that_a_player_is_not_shown(discord: DiscordServer) -> None:
    told = await discord.told(
        discord.dm, "fact add", subject="Vaelith", predicate="curse", value="it drowns its owner", hidden=True
    )
    assert "hidden" in told and "it drowns its owner" in told
    assert "it drowns" in await discord.told(discord.dm, "fact show", about="the blue blade")
    shown = await discord.told(discord.tamsin, "fact show", about="the blue blade")
    assert "sword" in shown and "drowns" not in shown
    assert "hidden" in await discord.told(discord.dm, "whoknows", about="Vaelith")


async def test_whoknows_names_each_npc_and_how_it_learned_a_fact(discord: DiscordServer) -> None:
    told = await discord.told(discord.dm, "whoknows", about="Elowen")
    [line] = [line for line in told.splitlines() if "the sea" in line]
    assert "Grimjaw was there when it was said" in line
    assert "the sea" not in await discord.told(discord.dm, "whoknows", about="Elowen", npc="Elowen")


IMPOSSIBLE: list[tuple[str, dict[str, object], str]] = [
    ("entity add", {"name": "Bess", "type": "ncp"}, "unknown entity type 'ncp': did you mean 'npc'?"),
    ("entity add", {"name": "Bess", "type": "npc", "attributes": '--a "b'}, "No closing quotation"),
    ("entity add", {"name": "Bess", "type": "npc", "attributes": "{"}, "attributes are not JSON"),
    ("entity remove", {"entity": "Veilith"}, "no entity 'Veilith' in campaign 'saltmere': did you mean 'Vaelith'?"),
    ("fact add", {"subject": "Vaelith", "predicate": "colour"}, "either an object (another entity) or a value"),
    ("recap", {"session": 9, "dm": True}, "no session '9' in campaign 'saltmere': valid: 1 (s1), 2 (s2), last"),
]


async def test_impossible_command_gets_one_clear_sentence(discord: DiscordServer) -> None:
    before = await world_of(discord)
    for command, options, why in IMPOSSIBLE:
        told = await discord.told(discord.dm, command, **options)
        assert why in told and "\n" not in told
    assert await world_of(discord) == before


async def test_command_for_a_table_that_is_not_open_says_so(
    discord: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def subscribed_until_it_is_asked(tables: OutsideTables, campaign: CampaignId) -> AsyncIterator[object]:
        yield None
        raise TimeoutError  # after the time that a table has for its answer

    monkeypatch.setattr(OutsideTables, "changes", subscribed_until_it_is_asked)
    told = await discord.told(discord.dm, "say", npc="Grimjaw", words="Aye.")
    assert told.startswith("no table of campaign 'saltmere' is open: the command was not executed")


# Review


async def test_review_cards_accept_reject_and_hide(discord: DiscordServer) -> None:
    result = await discord.dm.slash(discord.channel, "review")
    assert discord.is_private(result)
    first, *cards = messages_of(result)
    assert "facts need review" in first.content
    by_word = {word: card for card in cards for word in ("debt", "baker") if word in card.content}
    assert "said: Tamsin: I heard she owes forty silver." in by_word["debt"].content
    assert "contradicts:" in by_word["baker"].content
    await discord.dm.click(by_word["debt"], label="Hide")
    await discord.dm.click(by_word["baker"], label="Accept")
    desk = await discord.desk()
    assert (await desk.facts.find(DEBT.fact_id)).visibility.scope == "hidden"
    baker = await desk.facts.find(BAKER.fact_id)
    assert (baker.status, baker.provenance.dm_confirmed) == ("accepted", True)
    third = next(card for card in cards if "OWES" in card.content.upper() or "owes" in card.content)
    await discord.dm.click(third, label="Reject")
    assert "owes money" not in await discord.told(discord.dm, "fact show", about="Elowen")


async def test_button_works_after_a_restart_of_the_bot(discord: DiscordServer) -> None:
    _, *cards = messages_of(await discord.dm.slash(discord.channel, "review"))
    debt = next(card for card in cards if "debt" in card.content)
    await discord.restart()
    await discord.dm.click(debt, label="Accept")
    assert (await (await discord.desk()).facts.find(DEBT.fact_id)).status == "accepted"


async def test_card_that_is_out_of_date_decides_nothing(discord: DiscordServer) -> None:
    _, *cards = messages_of(await discord.dm.slash(discord.channel, "review"))
    debt = next(card for card in cards if "debt" in card.content)
    await (await discord.desk()).facts.hide(DEBT.fact_id)
    clicked = await discord.dm.click(debt, label="Accept")
    assert "this is not what the card shows; nothing was decided" in clicked.followups[-1].content
    assert (await (await discord.desk()).facts.find(DEBT.fact_id)).status == "pending"


async def test_button_is_checked_again_when_it_is_clicked(discord: DiscordServer) -> None:
    desk = await discord.desk()
    card = await _card(desk, await desk.facts.find(DEBT.fact_id))
    channel = discord.bot.get_channel(discord.channel.id)
    assert isinstance(channel, library.TextChannel)
    shown = await channel.send("everybody can click this", view=_view(card))
    before = await world_of(discord)
    for who, answer in ((discord.tamsin, "Only the game master may do that."), (discord.stranger, REFUSAL)):
        clicked = await who.click(shown, label="Accept")
        assert (text_of(clicked), discord.is_private(clicked)) == (answer, True)
    assert await world_of(discord) == before
    await discord.dm.click(shown, label="Accept")
    assert (await (await discord.desk()).facts.find(DEBT.fact_id)).status == "accepted"


# Recap and links


async def test_recap_is_for_everybody_and_the_dms_version_is_private(discord: DiscordServer) -> None:
    public = await discord.tamsin.slash(discord.channel, "recap", session=1)
    assert not messages_of(public)[0].ephemeral
    assert "water" in text_of(public)
    private = await discord.dm.slash(discord.channel, "recap", session=1, dm=True)
    assert discord.is_private(private) and "water" in text_of(private)
    assert await discord.told(discord.tamsin, "recap", dm=True) == "Only the game master may do that."


async def test_everybody_gets_their_own_link_privately(discord: DiscordServer) -> None:
    assert await discord.told(discord.tamsin, "join") == "https://table.example/join#of_tamsin"
    assert await discord.told(discord.dm, "join") == "https://table.example/join#of_None"


# The open table


async def test_commands_reach_the_open_table(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_for(write_campaign(tmp_path, others=["Eldrinax"]), dsn, tmp_path)
    async with (
        an_evening(settings, monkeypatch) as evening,
        a_discord_server(dsn, tmp_path, campaign=CampaignId("town")) as discord,
    ):
        await evening.ear()
        controls = evening.table.room.control.controls
        assert await discord.told(discord.dm, "mute", npc="eldrinax") == "Eldrinax is muted"
        assert controls.muted == {NpcId("eldrinax")}
        assert await discord.told(discord.dm, "mute", off=True) == "everybody may speak again"
        await discord.told(discord.dm, "direct", npc="Grimjaw", words="Be afraid of the dark.", turns=2)
        assert controls.direction(NpcId("grimjaw")) == "Be afraid of the dark."
        await discord.told(discord.dm, "say", npc="Grimjaw", words="The gate is closed.")
        await evening.until(lambda: "The gate is closed." in evening.kept_texts)
        assert await discord.told(discord.dm, "scene", scene="the drowned lantern") == (
            "the table is now at The Drowned Lantern"
        )
        await moved_to(evening, "inn")
        assert "no scene 'cellar'" in await discord.told(discord.dm, "scene", scene="cellar")
        assert "did you mean 'Grimjaw'" in await discord.told(discord.dm, "mute", npc="Grimjow")


async def moved_to(evening: Evening, scene: str) -> None:
    await evening.until(lambda: [e for e in evening.told if isinstance(e, SceneChanged)])
    assert evening.table.state.scene.id == scene


# Players, strangers and others


async def test_player_is_refused_what_only_the_dm_may_do(discord: DiscordServer) -> None:
    discord.bot.door = OpenDoor(discord.bot.door.settings)
    before = await world_of(discord)
    for command in OPTIONS.keys() - FOR_PLAYERS:
        told = await discord.told(discord.tamsin, command, **OPTIONS[command])
        assert told == "Only the game master may do that.", command
    assert await world_of(discord) == before


async def test_stranger_gets_one_polite_line_and_then_nothing(discord: DiscordServer) -> None:
    before, names = await world_of(discord), ("Saltmere", "Grimjaw", "Vaelith", "Tamsin said")
    discord.bot.door._limits.clear()
    answers = [await discord.stranger.slash(discord.channel, each, **OPTIONS[each]) for each in OPTIONS]
    told = [text_of(answer) for answer in answers]
    assert set(told[:10]) == {REFUSAL} and set(told[10:]) == {""}
    assert all(discord.is_private(answer) for answer in answers)
    for command, option in (("entity remove", "entity"), ("fact show", "about"), ("say", "npc"), ("scene", "scene")):
        others = {key: value for key, value in OPTIONS[command].items() if key != option}
        assert await discord.stranger.autocomplete(discord.channel, command, option, "", **others) == []
    assert await world_of(discord) == before
    assert not [name for name in names if name in everything_in(discord.env).replace("Grimjaw,", "")]


async def test_forged_command_gets_one_line(discord: DiscordServer) -> None:
    before = await world_of(discord)
    unknown = {"id": "1", "name": "sudo", "type": 1, "guild_id": str(GUILD)}
    wrong = {**unknown, "name": "direct", "options": [{"name": "turns", "type": 4, "value": 10**6}]}
    for data in (unknown, wrong):
        for who, told in ((discord.dm, "This command has changed"), (discord.stranger, REFUSAL)):
            answer = await who._dispatch_interaction(InteractionType.APPLICATION_COMMAND, discord.channel, data)
            assert text_of(answer).startswith(told) and discord.is_private(answer)
    assert len(discord.env.errors) == 2, "those of the game master; a stranger's is not even read"
    assert await world_of(discord) == before


async def test_one_who_is_too_fast_waits_and_others_do_not(discord: DiscordServer) -> None:
    told = [await discord.told(discord.tamsin, "join") for _ in range(11)]
    assert told[9].startswith("https") and told[10].startswith("That was too fast; try again in ")
    assert (await discord.told(discord.dm, "join")).startswith("https")


@pytest.mark.parametrize("seed", range(4))
async def test_player_reads_nothing_that_players_may_not_know(dsn: str, tmp_path: Path, seed: int) -> None:
    secret = SecretCampaign.of(seed)
    campaign = secret.campaign
    async with open_store(dsn) as store:
        await store.campaigns.load(campaign)
    may_know = secret.may_know(NpcId("nobody"))
    async with a_discord_server(dsn, tmp_path, campaign=campaign.id) as discord:
        discord.bot.door = OpenDoor(discord.bot.door.settings)
        read: set[str] = set()
        for each in Random(seed).sample(campaign.entities, 12):
            answer = await discord.told(discord.tamsin, "fact show", about=each.name)
            read |= words_in(answer.replace(each.name, ""))
            offered = await discord.tamsin.autocomplete(discord.channel, "fact show", "about", each.name[:5])
            read |= words_in(str(offered))
        listed = await discord.told(discord.tamsin, "entity list")
        offered = await discord.tamsin.autocomplete(discord.channel, "entity list", "type", "")
        read |= words_in(f"{listed} {offered}")
    assert words_in(listed)
    assert {word for word in read if not may_know(word)} == set()


async def test_name_that_a_player_may_not_know_is_as_unknown_as_any(discord: DiscordServer) -> None:
    await (await discord.desk()).entities.hide("Vaelith")
    answers = [await discord.told(discord.tamsin, "fact show", about=name) for name in ("Vaelith", "Veilith")]
    assert [answer.partition(": ")[0] for answer in answers] == [
        f"no entity {name!r} in campaign 'saltmere'" for name in ("Vaelith", "Veilith")
    ]
    assert "Vaelith" not in answers[1].replace("Veilith", "")
    shown = await discord.told(discord.tamsin, "fact show", about="Grimjaw")
    assert "blacksmith" in shown and "Vaelith" not in shown
    assert await discord.tamsin.autocomplete(discord.channel, "fact show", "about", "Vae") == []
    assert await discord.tamsin.autocomplete(discord.channel, "say", "npc", "", words="x") == []


async def test_alias_that_is_a_hidden_name_is_as_unknown_as_any(discord: DiscordServer) -> None:
    await (await discord.desk()).entities.hide("Vaelith")
    await (await discord.desk()).entities.add(NewEntity(name="Hanna Reed", type="npc", alias=["Vaelith", "Nan"]))
    hidden = await discord.told(discord.tamsin, "fact show", about="Vaelith")
    assert hidden.startswith("no entity 'Vaelith' in campaign 'saltmere'")
    assert "Hanna" not in hidden.partition("valid:")[0]
    assert await discord.told(discord.tamsin, "fact show", about="Nan") == "nothing is known about Hanna Reed"


async def test_no_spelling_of_a_hidden_name_tells_whose_alias_it_is(discord: DiscordServer) -> None:
    discord.bot.door = OpenDoor(discord.bot.door.settings)
    await (await discord.desk()).entities.hide("Vaelith")
    hanna = NewEntity(name="Hanna Reed", type="npc", alias=["Vaelith", "Old Vaelith", "Nan"])
    await (await discord.desk()).entities.add(hanna)
    for asked in ("vaelith", "VAELITH", "Vaelit", "Vaeliths", "Vaelith's", "Old Vaelith", "vae lith"):
        told = await discord.told(discord.tamsin, "fact show", about=asked)
        assert told.startswith(f"no entity {asked!r} in campaign 'saltmere'"), asked
        assert "Hanna" not in told.partition("valid:")[0], asked
        offered = await discord.tamsin.autocomplete(discord.channel, "fact show", "about", asked)
        assert "Hanna" not in str(offered) and "Vaelith" not in str(offered), asked


async def test_public_fact_that_names_something_hidden_is_not_shown(discord: DiscordServer) -> None:
    for value in ("Vaelith lies under the quay", "hums at night"):
        await discord.told(discord.dm, "fact add", subject="The Anvil", predicate="rumour", value=value)
    assert "Vaelith lies" in await discord.told(discord.tamsin, "fact show", about="The Anvil")
    await (await discord.desk()).entities.hide("Vaelith")
    shown = await discord.told(discord.tamsin, "fact show", about="The Anvil")
    assert "hums at night" in shown and "Vaelith" not in shown
    assert "Vaelith lies" in await discord.told(discord.dm, "fact show", about="The Anvil")


async def test_suggestions_come_from_the_campaign(discord: DiscordServer) -> None:
    async def offered(command: str, option: str, typed: str, **others: object) -> list[str]:
        found = await discord.dm.autocomplete(discord.channel, command, option, typed, **others)
        return [each["value"] for each in found]

    assert await offered("fact show", "about", "vae") == ["Vaelith"]
    assert await offered("say", "npc", "", words="x") == ["Elowen", "Grimjaw"]
    assert await offered("scene", "scene", "smi") == ["smithy"]
    assert await offered("entity list", "type", "sp") == ["spell"]


async def test_own_types_are_suggested_to_the_dm_only(discord: DiscordServer) -> None:
    source = discord.bot.services.source
    campaign = await source.store.campaigns.get(SALTMERE)
    await source.store.campaigns.load(replace(campaign, node_types={"lich": NodeType()}))
    for caller, values in ((discord.dm, ["lich"]), (discord.tamsin, [])):
        found = await caller.autocomplete(discord.channel, "entity list", "type", "lic")
        assert [each["value"] for each in found] == values


# Files


async def test_campaign_file_is_loaded_after_its_changes_are_confirmed(evenings_dsn: str, tmp_path: Path) -> None:
    file = tmp_path / "campaign.yaml"
    file.write_text(CAMPAIGN_FILE.read_text("utf-8"), "utf-8")
    changed = file.read_text("utf-8").replace("name: The Silent Bell", "name: The Loud Bell", 1).encode()
    changed = changed.replace(b"target: The Silent Bell", b"target: The Loud Bell")
    async with a_discord_server(evenings_dsn, tmp_path, file=file) as discord:
        shown = await discord.dm.slash(discord.channel, "campaign load", file=("saltmere.yaml", changed))
        assert "+ " in text_of(shown) and "The Loud Bell" in text_of(shown) and "- " in text_of(shown)
        assert b"Loud" not in file.read_bytes(), "not confirmed yet"
        await discord.dm.click(messages_of(shown)[0], label="Confirm")
        assert file.read_bytes() == changed
        assert (await discord.desk()).resolver.entity("The Loud Bell").type == "quest"
        again = await discord.told(discord.dm, "campaign load", file=("saltmere.yaml", changed))
        assert again == "nothing to change"


def with_entities(*entities: str) -> bytes:
    """Return the campaign file with more items and places, each as `name, type`."""
    rows = "".join(f"\n  - {{name: {each.split(', ')[0]}, type: {each.split(', ')[1]}}}" for each in entities)
    return CAMPAIGN_FILE.read_text("utf-8").replace("\nentities:", f"\nentities:{rows}", 1).encode()


async def test_table_waits_for_review(discord: DiscordServer) -> None:
    before = await world_of(discord)
    rows = b"name;type;colour\nThe Salt Crown;item;white\n"
    told = await discord.told(discord.dm, "campaign load", file=("loot.csv", rows))
    assert "1 new and 0 changed documents of loot need review" in told
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as tables:
        tables.writestr("entities.csv", rows)
        tables.writestr("relationships.csv", "source,type,target\nGrimjaw,OWNS,The Salt Crown\n")
    told = await discord.told(discord.dm, "campaign load", file=("hoard.zip", archive.getvalue()), tool="csv")
    assert "2 new and 0 changed documents of hoard need review" in told
    assert await world_of(discord) == before


async def test_campaign_that_changed_since_it_was_shown_is_not_loaded(discord: DiscordServer) -> None:
    crown = with_entities("The Salt Crown, item")
    shown = await discord.dm.slash(discord.channel, "campaign load", file=("saltmere.yaml", crown))
    await discord.told(discord.dm, "entity add", name="The Salt Crown", type="item")
    clicked = await discord.dm.click(messages_of(shown)[0], label="Confirm")
    assert "has changed in the meantime; nothing was loaded" in clicked.followups[-1].content


WRONG_FILES = [
    ("town.yaml", b"campaign: {id: town, name: Town, language: en}\n", "town.yaml:1:"),
    ("broken.yaml", b"\xff\xfe\x00", "broken.yaml"),
    ("loot.csv", b"name,type\nX,itme\n", "loot.csv:2: unknown entity type 'itme', did you mean 'item'?"),
    ("../../etc/passwd", b"root", "passwd is neither a campaign file (.yaml) nor a table (.csv)"),
    ("world.zip", b"PK", "choose the tool: foundry, roll20, markdown"),
]


async def test_wrong_file_gets_one_clear_error_without_a_path(discord: DiscordServer) -> None:
    before = await world_of(discord)
    for name, content, why in WRONG_FILES:
        told = await discord.told(discord.dm, "campaign load", file=(name, content))
        assert why in told
        assert "/tmp" not in told and "Traceback" not in told
    assert await world_of(discord) == before


async def test_file_of_another_campaign_is_refused(discord: DiscordServer, tmp_path: Path) -> None:
    town = write_campaign(tmp_path).read_bytes()
    told = await discord.told(discord.dm, "campaign load", file=("town.yaml", town))
    assert told == "town.yaml is the file of campaign 'town', not of 'saltmere'"


# What goes wrong


async def test_database_that_is_away_costs_one_line_and_nothing_else(evenings_dsn: str, tmp_path: Path) -> None:
    async with a_network(evenings_dsn) as network, a_discord_server(network.dsn, tmp_path) as discord:
        assert "Grimjaw" in await discord.told(discord.tamsin, "entity list")
        network.cut()
        assert await discord.told(discord.tamsin, "entity list") == (
            "Something that the table needs cannot be reached now. Try again later."
        )
        away = await discord.told(discord.dm, "fact add", subject="Vaelith", predicate="colour", value="blue")
        assert "\n" not in away and "Traceback" not in away
        assert await discord.dm.autocomplete(discord.channel, "fact show", "about", "Vae") == []
        network.well()
        assert "Grimjaw" in await discord.told(discord.tamsin, "entity list")
        assert "colour" not in await discord.told(discord.dm, "fact show", about="Vaelith")


async def test_decision_is_kept_though_discord_takes_no_answer(discord: DiscordServer) -> None:
    discord.env.inject_error("*", "/webhooks/*", status=400, times=None)
    await discord.dm.slash(discord.channel, "fact add", subject="Vaelith", predicate="colour", value="blue")
    discord.env.backend.faults.clear()
    assert "blue" in await discord.told(discord.dm, "fact show", about="Vaelith")


async def test_bug_in_a_command_costs_one_line(discord: DiscordServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def crash(*_: object) -> None:
        raise ZeroDivisionError("of the secret")

    monkeypatch.setattr("glyphoxa.plugins.discord.commands.desk_of", crash)
    told = await discord.told(discord.dm, "review")
    assert told == "That failed because of a bug in Glyphoxa; its log says more."
    monkeypatch.undo()
    assert "need review" in await discord.told(discord.dm, "review")


async def test_names_are_shown_as_they_are_and_mention_nobody(discord: DiscordServer) -> None:
    name = "@everyone **bold** ~~x~~ [link](https://evil.example)"
    await discord.told(discord.dm, "entity add", name=name, type="item")
    result = await discord.dm.slash(discord.channel, "entity list", type="item")
    sent = messages_of(result)[0].content
    assert r"\*\*bold\*\*" in sent and r"\~\~x\~\~" in sent
    told = [each.json for each in discord.env.http_requests if each.json and "everyone" in str(each.json)]
    assert all(each.get("allowed_mentions") == {"parse": []} for each in told)


async def test_answer_that_is_too_long_for_a_message_is_also_a_file(discord: DiscordServer) -> None:
    spires = with_entities(*(f"Spire of the {n}th Winter Moon, location" for n in range(200)))
    result = await discord.dm.slash(discord.channel, "campaign load", file=("saltmere.yaml", spires))
    [message] = messages_of(result)
    assert len(message.content) <= 2_000
    [file] = message.attachments
    assert "Spire of the 199th Winter Moon" in (await file.read()).decode()


async def test_another_tools_world_waits_for_review(discord: DiscordServer) -> None:
    actor = {
        "_id": "aaaaaaaaaaaaaaaa",
        "name": "Old Bess",
        "type": "npc",
        "system": {"details": {"biography": {"value": "<p>She rows the ferry.</p>"}}},
        "_stats": {"systemId": "dnd5e", "coreVersion": "13.345", "exportSource": {"worldId": "saltmere"}},
        "prototypeToken": {},
        "items": [],
    }
    before = await world_of(discord)
    file = ("fvtt-Actor-old-bess.json", json.dumps(actor).encode())
    told = await discord.told(discord.dm, "campaign load", file=file, tool="foundry")
    assert "1 new and 0 changed documents" in told and "need review" in told
    n, [waiting] = await discord.bot.services.source.imports().waiting()
    assert (n, waiting.document.name) == (1, "Old Bess")
    assert await world_of(discord) == before
    vault = io.BytesIO()
    with zipfile.ZipFile(vault, "w") as notes:
        notes.writestr("Places/Gull Rock.md", "---\ntype: location\n---\nA bare rock.\n")
    file = ("notes.zip", vault.getvalue())
    assert "1 new and 0" in await discord.told(discord.dm, "campaign load", file=file, tool="markdown")
    wrong = await discord.told(discord.dm, "campaign load", file=("notes.zip", b"PK\x03\x04 damaged"), tool="foundry")
    assert "notes.zip" in wrong and "/tmp" not in wrong
