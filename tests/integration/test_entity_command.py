from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, a_settings_file

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def cli(tmp_path: Path, campaign_dsn: str, capsys: Capture) -> CommandLine:
    return CommandLine(a_settings_file(tmp_path, campaign_dsn), capsys)


async def test_an_entity_is_registered_with_attributes(cli: CommandLine) -> None:
    attributes = '{"level": 9, "trait": ["old", "lame"]}'
    shown = await cli.told("entity", "add", "Korvald the Grey", "npc", "--attributes", attributes)
    assert shown == "added Korvald the Grey (npc, id korvald-the-grey)\n"
    shown = await cli.told("show", "entity", "korvald THE grey")
    for fact in ("level: 9", "trait: old", "trait: lame"):
        assert re.search(rf"Korvald the Grey, {fact} +confirmed +public +dm", shown)


async def test_an_unknown_option_is_an_attribute(cli: CommandLine) -> None:
    options = ["--personality", "paranoid wizard", "--level=9", "--speaking-style", "in riddles", "--hp", "-3"]
    await cli.told("entity", "add", "Korvald", "npc", *options, "--attributes", '{"home": "tower"}')
    shown = await cli.told("show", "entity", "Korvald")
    for fact in ("personality: paranoid wizard", "level: 9", "speaking style: in riddles", "home: tower", "hp: -3"):
        assert f"Korvald, {fact} " in shown


async def test_a_location_that_names_an_entity_offers_the_relation(cli: CommandLine) -> None:
    await cli.told("entity", "add", "Korvald", "npc", "--location", "the anvil")
    shown = await cli.told("show", "entity", "Korvald")
    assert re.search(r"Korvald, location: the anvil +accepted", shown)
    assert re.search(r"Korvald is at The Anvil +pending", shown)


async def test_entities_are_listed_all_or_by_type(cli: CommandLine) -> None:
    shown = await cli.told("show", "entities")
    assert re.search(r"^npc +Grimjaw +the smith, master smith +grimjaw .*public$", shown, re.MULTILINE)
    assert "The Anvil" in shown
    shown = await cli.told("show", "entities", "location")
    assert "The Anvil" in shown and "Grimjaw" not in shown


async def test_an_entity_is_removed_with_what_is_known_of_it(cli: CommandLine) -> None:
    asked = await cli.problem("entity", "remove", "vaelith")
    assert "This removes Vaelith and with it " in asked and "Grimjaw owns Vaelith" in asked
    assert "Use --yes to skip the question" in asked
    assert await cli.told("entity", "remove", "the blue blade", "--yes") == "removed Vaelith\n"
    assert "Vaelith" not in await cli.told("show", "entities")
    assert "Grimjaw owns" not in await cli.told("show", "entity", "Grimjaw")
    await cli.told("facts", "undo")
    assert "Grimjaw owns Vaelith" in await cli.told("show", "entity", "Grimjaw")


async def test_two_that_are_one_are_merged_and_split_again(cli: CommandLine) -> None:
    await cli.told("entity", "add", "The Cold Blade", "item", "--owner", "unknown")
    assert await cli.told("entity", "merge", "Vaelith", "the cold blade") == "merged The Cold Blade into Vaelith\n"
    shown = await cli.told("show", "entity", "The Cold Blade")
    assert shown.startswith("Vaelith (item, id vaelith)") and "owner: unknown" in shown and "The Cold Blade" in shown
    assert "undone: merged The Cold Blade into" in await cli.told("entity", "split", "The Cold Blade")
    shown = await cli.told("show", "entity", "The Cold Blade")
    assert shown.startswith("The Cold Blade (item, ") and "owner: unknown" in shown
    assert "owner" not in await cli.told("show", "entity", "Vaelith")


async def test_aliases_come_and_go(cli: CommandLine) -> None:
    shown = await cli.told("entity", "alias", "Elowen", "Mother Tide")
    assert shown == "Elowen is also called Mother Tide\n"
    assert "Elowen (npc, " in await cli.told("show", "entity", "mother tide")
    assert await cli.told("entity", "unalias", "Elowen", "mother tide") == "Elowen is not called Mother Tide\n"


async def test_a_name_and_a_type_are_changed(cli: CommandLine) -> None:
    await cli.told("entity", "change", "Vaelith", "--name", "Vaelith Reforged", "--type", "concept")
    shown = await cli.told("show", "entity", "vaelith")
    assert shown.startswith("Vaelith Reforged (concept, id vaelith)")
    assert "also called: the blue blade, Vaelith" in shown


async def test_existence_of_an_entity_can_be_secret(tmp_path: Path, evenings_dsn: str, capsys: Capture) -> None:
    cli = CommandLine(a_settings_file(tmp_path, evenings_dsn), capsys)

    async def grimjaw_knows() -> bool:
        return "Elowen, fears" in await cli.told("show", "facts", "--as", "Grimjaw", "--limit", "500")

    assert await grimjaw_knows()
    assert await cli.told("entity", "secret", "Elowen", "--known-by", "Elowen") == "Elowen is secret: Elowen\n"
    assert not await grimjaw_knows()
    assert re.search(r"Elowen .*secret: Elowen$", await cli.told("show", "entities", "npc"), re.MULTILINE)
    await cli.told("entity", "secret", "Elowen", "--known-by", "the smith", "Elowen")
    assert await grimjaw_knows()
    assert await cli.told("entity", "hide", "Elowen") == "Elowen is hidden\n"
    assert not await grimjaw_knows()
    assert await cli.told("entity", "reveal", "Elowen") == "Elowen is public\n"
    assert await grimjaw_knows()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "Korvald", "npd"), "unknown entity type 'npd': did you mean 'npc'?"),
        (
            ("add", "grim jaw", "npc"),
            "Grimjaw is already called 'grim jaw'; if this is a different entity, give it its own id",
        ),
        (("add", "...", "npc"), "'...' is not a name: it has no letter or digit"),
        (("add", "Korvald", "npc", "--mood"), "--mood has no value; an attribute is written --name VALUE"),
        (("add", "Korvald", "npc", "--mood", "--level", "3"), "--mood has no value"),
        (("add", "Korvald", "npc", "grey"), "'grey' belongs to no option; an attribute is written --name VALUE"),
        (("add", "Korvald", "npc", "--attributes", "{"), "attributes are not JSON: "),
        (("add", "Korvald", "npc", "--attributes", "[1]"), "attributes are an object, such as "),
        (("add", "Korvald", "npc", "--x", "NaN"), "is not a value that JSON can hold"),
        (("remove", "Grimjow", "--yes"), "no entity 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
        (("merge", "Vaelith", "Grimjaw"), "Grimjaw is an NPC of the campaign: merge the other one into it instead"),
        (("merge", "Vaelith", "the blue blade"), "'Vaelith' and 'the blue blade' are the same entity: Vaelith"),
        (("split", "Vaelith"), "nothing was merged into Vaelith"),
        (("alias", "Elowen", "the smith"), "Grimjaw is already called 'the smith'"),
        (("unalias", "Grimjaw", "the smit"), "Grimjaw has no alias 'the smit': did you mean 'the smith'?"),
        (("change", "Grimjaw"), "give a new name or type"),
        (("secret", "Vaelith", "--known-by", "Tamsin"), "no NPC 'Tamsin' in campaign 'saltmere'"),
    ],
)
async def test_a_mistake_is_one_line_and_changes_nothing(
    cli: CommandLine, arguments: tuple[str, ...], said: str
) -> None:
    before = await cli.told("show", "entities")
    assert said in await cli.problem("entity", *arguments)
    assert await cli.told("show", "entities") == before


async def test_other_verbs_know_no_unknown_options(cli: CommandLine) -> None:
    with pytest.raises(SystemExit):
        await cli.run("entity", "remove", "Grimjaw", "--personality", "gruff")
    assert "unrecognized arguments: --personality gruff" in cli.capsys.readouterr().err
