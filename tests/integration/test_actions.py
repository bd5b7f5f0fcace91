"""The game master's actions on their surfaces: the command line, Discord, MCP and the desk, on a real database."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.scope import Scope
from glyphoxa.cli.scope import desk_at
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.dm.actions import ACTIONS, actions_of
from glyphoxa.plugins.mcp.dm_tools import dm_tools
from glyphoxa.web.access.roles import Grant, Role
from tests.support.command_line import BAKER, CAMPAIGN_FILE, DEBT, SALTMERE, SCARED, WENT, CommandLine
from tests.support.discord_server import a_discord_server
from tests.support.mcp import a_client, answered
from tests.support.web_door import a_door
from tests.support.web_table import TwinTable

BELL, GATE = "The Night of the Bell", "The Gate"


@pytest.fixture
async def store(evenings_dsn: str) -> AsyncIterator[Store]:
    async with open_store(evenings_dsn) as store:
        yield store


# The command line

DONE: dict[str, list[tuple[list[str], str]]] = {
    "facts accept": [
        ([DEBT.fact_id[:6]], "Elowen, debt: 40: accepted"),
        ([BAKER.fact_id], "no longer held: Grimjaw, occupation: blacksmith (superseded)"),
    ],
    "facts reject": [([DEBT.fact_id, SCARED.fact_id], "no longer held: Elowen, debt: 40 (rejected)")],
    "facts correct": [
        ([DEBT.fact_id, "--value", "60"], "Elowen, debt: 60: accepted, 0.40 inferred, confirmed, witnessed: Grimjaw"),
        ([BAKER.fact_id, "--predicate", "note", "--value", '["bakes"]'], "Grimjaw, note: bakes: accepted"),
    ],
    "facts retcon": [
        ([WENT.fact_id, "--object", "the drowned lantern"], "Elowen is at The Drowned Lantern: accepted"),
        ([SCARED.fact_id], "(retconned)"),
    ],
    "facts close": [([SCARED.fact_id, "--day", "12"], "no longer held: Elowen, fears: the sea (closed)")],
    "facts rollback": [(["s1", "2", "--yes"], "rolled back; to undo it: glyphoxa facts undo ")],
    "facts secret": [([SCARED.fact_id, "--known-by", "the smith", "Elowen"], "secret: Elowen, Grimjaw")],
    "facts hide": [([SCARED.fact_id], "Elowen, fears: the sea: accepted, 0.90 inferred, hidden")],
    "facts reveal": [([SCARED.fact_id], "public"), ([SCARED.fact_id, "--to", "Elowen"], "witnessed: Elowen, Grimjaw")],
    "facts tell": [([SCARED.fact_id, "--to", "Elowen", "--by", "tamsin"], "witnessed: Elowen, Grimjaw")],
    "facts state": [
        (
            ["Elowen", "KNOWS", "--object", "the silent bell"],
            "Elowen knows The Silent Bell: accepted, confirmed, public",
        ),
        (["Elowen", "note", "--value", "sings", "--known-by", "Grimjaw"], "accepted, confirmed, secret: Grimjaw"),
        (["Elowen", "note", "--value", "is a spy", "--hidden"], "Elowen, note: is a spy: accepted, confirmed, hidden"),
        (["Grimjaw", "occupation", "--value", "spy"], "; to end that one: glyphoxa facts accept "),
    ],
    "entity add": [
        (
            ["Korvald the Grey", "npc", "--attributes", '{"level": 9}', "--speaking-style", "in riddles", "--hp=-3"],
            "added Korvald the Grey (npc, id korvald-the-grey)",
        ),
        (["Smaug", "dragon", "--new-type", "--alias", "Worm", "--alias", "Wyrm"], "added Smaug (dragon, id smaug)"),
    ],
    "entity remove": [(["the blue blade", "--yes"], "removed Vaelith")],
    "entity change": [(["Vaelith", "--name", "Vaelith Reforged", "--type", "concept"], "Vaelith Reforged")],
    "entity merge": [(["Vaelith", "The Silent Bell"], "merged The Silent Bell into Vaelith")],
    "entity alias": [(["Elowen", "Mother Tide"], "Elowen is also called Mother Tide")],
    "entity unalias": [(["Grimjaw", "the SMITH"], "Grimjaw is not called the smith")],
    "entity secret": [(["Elowen", "--known-by", "Elowen"], "Elowen is secret: Elowen")],
    "entity hide": [(["Elowen"], "Elowen is hidden")],
    "entity reveal": [(["Elowen"], "Elowen is public")],
    "transcript retract": [(["s1-3", "--yes"], "no longer known: Grimjaw, occupation: baker")],
    "transcript correct": [(["s1-3", "He is a smith.", "--yes"], "instead: He is a smith.")],
    "transcript title": [(["1", BELL], f"session s1 is called {BELL!r}"), (["s1"], "session s1 has no title")],
}
"""For each action of the command line, arguments and what they print."""
NOT_UNDONE = {"transcript title"}


async def test_every_action_of_the_command_line_says_what_it_did_and_can_be_undone(cli: CommandLine) -> None:
    assert DONE.keys() | {"entity split", "facts undo"} == {each.verb for each in ACTIONS if each.verb}
    for verb, cases in DONE.items():
        for arguments, said in cases:
            assert said in await cli.told(*verb.split(), *arguments), (verb, arguments)
            if verb not in NOT_UNDONE:
                assert "undone: " in await cli.told("facts", "undo"), (verb, arguments)
    assert "there is no decision to undo" in await cli.problem("facts", "undo")


# tests/unit/dm tries what an action itself refuses.
MISTAKES: list[tuple[str, list[str], str]] = [
    ("facts accept", ["xyz"], "no fact 'xyz' in campaign 'saltmere': nearest: "),
    ("facts accept", [""], "no fact '' in campaign 'saltmere'"),
    ("facts state", ["Elowin", "note", "--value", "x"], "no entity 'Elowin' in campaign 'saltmere': did you mean"),
    ("facts state", ["Elowen", "note", "--value", '"a\\u0000b"'], "'note' of 'elowen': text cannot hold NUL"),
    ("facts secret", [DEBT.fact_id, "--known-by", "Vaelith"], "no NPC 'Vaelith' in campaign 'saltmere': valid: "),
    ("facts tell", [DEBT.fact_id, "--to", "Elowen", "--by", "nobody"], "no speaker 'nobody' in campaign"),
    ("entity add", ["Korvald", "npc", "--mood"], "--mood has no value; an attribute is written --name VALUE"),
    ("entity add", ["Korvald", "npc", "--mood", "--level", "3"], "--mood has no value"),
    ("entity add", ["Korvald", "npc", "grey"], "'grey' belongs to no option; an attribute is written --name VALUE"),
    ("entity add", ["Korvald", "npc", "--attributes", "{"], "attributes are not JSON: "),
    ("entity add", ["Korvald", "npc", "--attributes", "[1]"], "attributes are an object, such as "),
    ("entity add", ["Korvald", "npc", "--x", "NaN"], "is not a value that JSON can hold"),
    ("entity remove", ["Grimjow", "--yes"], "no entity 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
    ("entity change", ["Grimjaw"], "give a new name or type"),
    ("transcript title", ["s3", BELL], "no session 's3' in campaign 'saltmere': valid: 1 (s1), 2 (s2), last"),
    ("transcript title", ["last", "x" * 101], "the title has 101 characters: at most 100 allowed"),
]


async def test_a_mistake_is_one_line_and_changes_nothing(cli: CommandLine) -> None:
    before = await cli.told("show", "history")
    for verb, arguments, said in MISTAKES:
        assert said in await cli.problem(*verb.split(), *arguments), (verb, arguments)
    assert await cli.told("show", "history") == before


async def test_an_entity_has_its_attributes_and_is_merged_and_split_again(cli: CommandLine) -> None:
    await cli.told("entity", "add", "The Cold Blade", "item", "--owner", "un known", "--attributes", '{"hp": -3}')
    shown = await cli.told("show", "entity", "The Cold Blade")
    assert "owner: un known" in shown and "hp: -3" in shown
    await cli.told("entity", "merge", "Vaelith", "the cold blade")
    assert "owner: un known" in await cli.told("show", "entity", "Vaelith")
    assert "undone: merged The Cold Blade into" in await cli.told("entity", "split", "The Cold Blade")
    assert "owner" not in await cli.told("show", "entity", "Vaelith")
    assert "nothing was merged into Vaelith" in await cli.problem("entity", "split", "Vaelith")


async def test_a_removal_is_shown_and_asked_for_before_it_is_done(cli: CommandLine) -> None:
    code, shown, asked = await cli.run("entity", "remove", "vaelith")
    assert (code, asked) == (1, "glyphoxa: This removes Vaelith (item). Use --yes to skip the question\n")
    assert "with it ends: Grimjaw owns Vaelith" in shown


async def test_an_npc_knows_facts_only_of_entities_that_it_may_know(cli: CommandLine) -> None:
    for arguments, is_known in (
        (["secret", "Elowen", "--known-by", "Elowen"], False),
        (["secret", "Elowen", "--known-by", "the smith", "Elowen"], True),
        (["hide", "Elowen"], False),
        (["reveal", "Elowen"], True),
    ):
        await cli.told("entity", *arguments)
        known = await cli.told("show", "facts", "--as", "Grimjaw", "--limit", "500")
        assert ("Elowen, fears" in known) == is_known, arguments


async def test_only_one_action_takes_options_of_any_name(cli: CommandLine) -> None:
    with pytest.raises(SystemExit):
        await cli.run("entity", "remove", "Grimjaw", "--personality", "gruff")
    assert "unrecognized arguments: --personality gruff" in cli.capsys.readouterr().err


# An action on all surfaces


@pytest.mark.parametrize("surface", ["command line", "discord", "mcp", "desk"])
async def test_title_set_on_one_surface_is_shown_on_all(
    cli: CommandLine, store: Store, evenings_dsn: str, tmp_path: Path, surface: str
) -> None:
    shutil.copy(CAMPAIGN_FILE, tmp_path / "campaign.yaml")
    campaign = read_campaign(CAMPAIGN_FILE).campaign
    table = TwinTable(campaign)
    desk = Scope(store, Settings(campaign=tmp_path / "campaign.yaml"), SALTMERE)
    tools = dm_tools(lambda: desk_at(store, read_settings(cli.settings), SALTMERE))
    async with (
        a_discord_server(evenings_dsn, tmp_path) as discord,
        a_client(tools) as client,
        a_door(tmp_path, table, desk=desk) as door,
    ):
        dm = await door.invited(Grant(Role.DM))
        if surface == "command line":
            said = await cli.told("transcript", "title", "1", BELL)
        elif surface == "discord":
            said = await discord.told(discord.dm, "session title", title=BELL, session="1")
        elif surface == "mcp":
            said = str((await answered(client, "dm_title_session", title=BELL, session="s1"))["found"])
        else:
            form = {"do": "title", "title": BELL}
            said = (await dm.http.post("/desk/sessions/s1", data=form, follow_redirects=True)).text
        assert re.search(rf"ession s1 is called .*{BELL}", said)
        assert BELL in await cli.told("show", "sessions")
        assert BELL in await discord.told(discord.dm, "recap", session=1, dm=True)
        assert BELL in str((await answered(client, "dm_sessions"))["found"])
        for page in ("/desk/sessions", "/desk/sessions/s1"):
            assert BELL in (await dm.http.get(page)).text
        public = await discord.tamsin.slash(discord.channel, "recap", session=1)
        assert BELL not in str(public), "players do not see it"
        refused = await discord.told(discord.tamsin, "session title", session="last", title=GATE)
        assert refused == "Only the game master may do that."
        player = await door.invited(Grant(Role.PLAYER, campaign.players[0].id))
        assert (await player.http.post("/desk/sessions/s1", data={"do": "title", "title": GATE})).status_code == 403
        assert GATE not in await cli.told("show", "sessions")
        odd = await dm.http.post("/desk/sessions/s1", data={"do": "title", "title": "a\0b"})
        assert odd.status_code == 303, "what the database cannot hold is replaced"


def test_only_named_actions_reach_discord_and_mcp() -> None:
    assert actions_of("discord").keys() == {"entity add", "entity remove", "fact add", "session title"}
    assert actions_of("tool").keys() == {"dm.title_session"}
    for each in actions_of("discord").values():
        assert max(map(len, (each.meaning, *(option.meaning for option in each.options)))) <= 100, "Discord's limit"
