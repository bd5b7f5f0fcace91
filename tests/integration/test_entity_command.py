from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command_line import a_settings_file, run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def settings_file(tmp_path: Path, campaign_dsn: str) -> Path:
    return a_settings_file(tmp_path, campaign_dsn)


async def entity(settings_file: Path, *arguments: object) -> int:
    return await run("entity", *arguments, "--config", settings_file)


async def told(capsys: Capture, settings_file: Path, *arguments: object) -> str:
    """What a verb that succeeds prints."""
    capsys.readouterr()
    assert await entity(settings_file, *arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


async def shown_of(capsys: Capture, settings_file: Path, name: str) -> str:
    """What `glyphoxa show entity` prints."""
    capsys.readouterr()
    assert await run("show", "entity", name, "--config", settings_file) == 0, capsys.readouterr().err
    return capsys.readouterr().out


async def listed(capsys: Capture, settings_file: Path, *of_type: str) -> str:
    """What `glyphoxa show entities` prints."""
    capsys.readouterr()
    assert await run("show", "entities", *of_type, "--config", settings_file) == 0, capsys.readouterr().err
    return capsys.readouterr().out


async def test_an_entity_is_registered_with_attributes(settings_file: Path, capsys: Capture) -> None:
    attributes = '{"level": 9, "trait": ["old", "lame"]}'
    shown = await told(capsys, settings_file, "add", "Korvald the Grey", "npc", "--attributes", attributes)
    assert shown == "added Korvald the Grey (npc, id korvald-the-grey)\n"
    shown = await shown_of(capsys, settings_file, "korvald THE grey")
    for fact in ("level: 9", "trait: old", "trait: lame"):
        assert re.search(rf"Korvald the Grey {fact} +confirmed +public +dm", shown)


async def test_an_unknown_option_is_an_attribute(settings_file: Path, capsys: Capture) -> None:
    options = ["--personality", "paranoid wizard", "--level=9", "--speaking-style", "in riddles", "--hp", "-3"]
    await told(capsys, settings_file, "add", "Korvald", "npc", *options, "--attributes", '{"home": "tower"}')
    shown = await shown_of(capsys, settings_file, "Korvald")
    for fact in ("personality: paranoid wizard", "level: 9", "speaking_style: in riddles", "home: tower", "hp: -3"):
        assert f"Korvald {fact} " in shown


async def test_a_location_that_names_an_entity_offers_the_relation(settings_file: Path, capsys: Capture) -> None:
    await told(capsys, settings_file, "add", "Korvald", "npc", "--location", "the anvil")
    shown = await shown_of(capsys, settings_file, "Korvald")
    assert re.search(r"Korvald location: the anvil +accepted", shown)
    assert re.search(r"Korvald LOCATED_AT The Anvil +pending", shown)


async def test_entities_are_listed_all_or_by_type(settings_file: Path, capsys: Capture) -> None:
    shown = await listed(capsys, settings_file)
    assert re.search(r"^npc +Grimjaw +the smith, master smith +grimjaw .*public$", shown, re.MULTILINE)
    assert "The Anvil" in shown
    shown = await listed(capsys, settings_file, "location")
    assert "The Anvil" in shown and "Grimjaw" not in shown


async def test_an_entity_is_removed_with_what_is_known_of_it(settings_file: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert await entity(settings_file, "remove", "vaelith") == 1
    asked = capsys.readouterr()
    assert "This removes Vaelith and with it " in asked.err and "Grimjaw OWNS Vaelith" in asked.err
    assert "Use --yes to do it without a question" in asked.err
    assert await told(capsys, settings_file, "remove", "the blue blade", "--yes") == "removed Vaelith\n"
    assert "Vaelith" not in await listed(capsys, settings_file)
    assert "OWNS" not in await shown_of(capsys, settings_file, "Grimjaw")
    assert await run("facts", "undo", "--config", settings_file) == 0
    assert "OWNS" in await shown_of(capsys, settings_file, "Grimjaw")


async def test_two_that_are_one_are_merged_and_split_again(settings_file: Path, capsys: Capture) -> None:
    await told(capsys, settings_file, "add", "The Cold Blade", "item", "--owner", "unknown")
    assert (
        await told(capsys, settings_file, "merge", "Vaelith", "the cold blade")
        == "merged The Cold Blade into Vaelith\n"
    )
    shown = await shown_of(capsys, settings_file, "The Cold Blade")
    assert shown.startswith("Vaelith (item, id vaelith)") and "owner: unknown" in shown and "The Cold Blade" in shown
    assert "undone: merged The Cold Blade into" in await told(capsys, settings_file, "split", "The Cold Blade")
    shown = await shown_of(capsys, settings_file, "The Cold Blade")
    assert shown.startswith("The Cold Blade (item, ") and "owner: unknown" in shown
    assert "owner" not in await shown_of(capsys, settings_file, "Vaelith")


async def test_aliases_come_and_go(settings_file: Path, capsys: Capture) -> None:
    shown = await told(capsys, settings_file, "alias", "Elowen", "Mother Tide")
    assert shown == "Elowen is also called Mother Tide\n"
    assert "Elowen (npc, " in await shown_of(capsys, settings_file, "mother tide")
    assert await told(capsys, settings_file, "unalias", "Elowen", "mother tide") == "Elowen is not called Mother Tide\n"


async def test_a_name_and_a_type_are_changed(settings_file: Path, capsys: Capture) -> None:
    await told(capsys, settings_file, "change", "Vaelith", "--name", "Vaelith Reforged", "--type", "concept")
    shown = await shown_of(capsys, settings_file, "vaelith")
    assert shown.startswith("Vaelith Reforged (concept, id vaelith)")
    assert "also called: the blue blade, Vaelith" in shown


async def test_that_there_is_such_a_thing_may_be_a_secret(tmp_path: Path, evenings_dsn: str, capsys: Capture) -> None:
    settings_file = a_settings_file(tmp_path, evenings_dsn)

    async def grimjaw_knows() -> bool:
        capsys.readouterr()
        assert await run("show", "facts", "--as", "Grimjaw", "--limit", "500", "--config", settings_file) == 0
        return "Elowen fears" in capsys.readouterr().out

    assert await grimjaw_knows()
    assert await told(capsys, settings_file, "secret", "Elowen", "--known-by", "Elowen") == "Elowen is secret: Elowen\n"
    assert not await grimjaw_knows()
    assert re.search(r"Elowen .*secret: Elowen$", await listed(capsys, settings_file, "npc"), re.MULTILINE)
    await told(capsys, settings_file, "secret", "Elowen", "--known-by", "the smith", "Elowen")
    assert await grimjaw_knows()
    assert await told(capsys, settings_file, "hide", "Elowen") == "Elowen is hidden\n"
    assert not await grimjaw_knows()
    assert await told(capsys, settings_file, "reveal", "Elowen") == "Elowen is public\n"
    assert await grimjaw_knows()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "Korvald", "npd"), "unknown entity type 'npd': did you mean 'npc'?"),
        (("add", "grim jaw", "npc"), "Grimjaw is called 'grim jaw'; if this is another one, give it an id of its own"),
        (("add", "...", "npc"), "'...' holds no letter or digit: it is no name"),
        (("add", "Korvald", "npc", "--mood"), "--mood has no value; an attribute is written --name VALUE"),
        (("add", "Korvald", "npc", "--mood", "--level", "3"), "--mood has no value"),
        (("add", "Korvald", "npc", "grey"), "'grey' belongs to no option; an attribute is written --name VALUE"),
        (("add", "Korvald", "npc", "--attributes", "{"), "--attributes is no JSON: "),
        (("add", "Korvald", "npc", "--attributes", "[1]"), "--attributes is an object, such as "),
        (("add", "Korvald", "npc", "--x", "NaN"), "is no value that JSON can hold"),
        (("remove", "Grimjow", "--yes"), "no entity 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
        (("merge", "Vaelith", "Grimjaw"), "Grimjaw is an NPC that is played: merge the other one into it instead"),
        (("merge", "Vaelith", "the blue blade"), "'Vaelith' and 'the blue blade' are the same entity: Vaelith"),
        (("split", "Vaelith"), "nothing was merged into Vaelith"),
        (("alias", "Elowen", "the smith"), "Grimjaw is called 'the smith' already"),
        (("unalias", "Grimjaw", "the smit"), "Grimjaw has no alias 'the smit': did you mean 'the smith'?"),
        (("change", "Grimjaw"), "say what is to change: a name or a type"),
        (("secret", "Vaelith", "--known-by", "Tamsin"), "no NPC 'Tamsin' in campaign 'saltmere'"),
    ],
)
async def test_a_mistake_is_one_line_and_changes_nothing(
    settings_file: Path, arguments: tuple[str, ...], said: str, capsys: Capture
) -> None:
    before = await listed(capsys, settings_file)
    assert await entity(settings_file, *arguments) == 1
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert await listed(capsys, settings_file) == before


async def test_other_verbs_know_no_unknown_options(settings_file: Path, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        await entity(settings_file, "remove", "Grimjaw", "--personality", "gruff")
    assert "unrecognized arguments: --personality gruff" in capsys.readouterr().err
