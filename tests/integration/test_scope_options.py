"""Every action of every verb takes a campaign, and a session, by the same names."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from glyphoxa.cli.main import commands, parser
from glyphoxa.dm.actions import ACTIONS
from tests.support.command_line import CAMPAIGN_FILE, a_settings_file, run
from tests.support.forked import forked_command

Capture = pytest.CaptureFixture[str]
IN_A_PROCESS = ("serve",)
"""Verbs that take signals, which only a main thread can."""
TAKES_A_FILE = (("serve",), ("table", "invite"), ("table", "audit"), ("show", "context"))
"""Acts for which the file of a campaign is enough: nothing of it has to be stored."""
REPORTS = ("doctor",)
"""Verbs to which a file that is missing is a finding like others, and no refusal."""
AUDIT = ("table", "audit")
ALSO = {
    ("mcp",): ["--npc", "grimjaw"],
    ("serve",): ["--port", "0"],
    ("recall",): ["--lexical"],
    ("campaign", "import"): ["--bind", "latest"],
}
DISCORD = "discord: {guild: 1, dm: [2]}\n"
NEW = "campaign: {name: The Mill, id: mill}\n"

DECLARED = {each.verb for each in ACTIONS}

Act = tuple[tuple[str, ...], argparse.ArgumentParser]


def acts_of(verb: str) -> list[Act]:
    """The verb itself if it does something, and each of its actions."""

    def choices(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
        found = [each for each in of._actions if isinstance(each, argparse._SubParsersAction)]
        return {name: parser for each in found for name, parser in each.choices.items()}

    itself = choices(parser(verb))[verb]
    alone = [((verb,), itself)] if itself.get_default("run") else []
    return [*alone, *(((verb, name), act) for name, act in choices(itself).items())]


def argument_of(act: argparse.ArgumentParser, dest: str) -> argparse.Action | None:
    return next((each for each in act._actions if each.dest == dest and each.metavar is not None), None)


def command(act: Act, table: Path, **named: object) -> list[str]:
    """The act with all that it requires, and with `campaign` or `session` if they are named."""
    words, of = act
    given = [*words]
    for each in of._actions:
        if isinstance(each, argparse._SubParsersAction | argparse._HelpAction):
            continue
        required = each.required and each.nargs not in ("?", "*")
        value = {"file": table, "npc": "Grimjaw", **named}.get(each.dest, "1")
        if each.dest in named or required:
            given += [*each.option_strings[:1], str(value)]
    return [*given, *ALSO.get(words, [])]


async def refused(arguments: list[str], settings: Path, capsys: Capture) -> str:
    """Return the error of an act that cannot be done."""
    arguments = [*arguments, "--config", str(settings)]
    if arguments[0] in IN_A_PROCESS:
        code, _, said = await asyncio.to_thread(forked_command, *arguments)
    else:
        capsys.readouterr()
        code, said = await run(*arguments), capsys.readouterr().err
    assert code == 1, (arguments, said)
    return said


def acts_with(dest: str) -> Iterator[tuple[str, list[Act]]]:
    for verb in sorted(commands().keys() - {"doctor"}):  # which reports a file that is not there among its findings
        found = [act for act in acts_of(verb) if argument_of(act[1], dest) is not None]
        if found:
            yield verb, found


WITH_CAMPAIGN = dict(acts_with("campaign"))
WITH_SESSION = dict(acts_with("session"))


@pytest.fixture
def settings(tmp_path: Path, evenings_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISCORD_TOKEN", "none")
    (tmp_path / "entities.csv").write_text("name,type\nThe Weir,location\n")
    (tmp_path / "new.yaml").write_text(NEW)
    (tmp_path / "none.yaml").write_text("entities: []\n")
    file = a_settings_file(tmp_path, evenings_dsn)
    file.write_text(f"{file.read_text()}{DISCORD}")
    return file


def test_most_verbs_take_a_campaign_and_many_a_session() -> None:
    assert len(WITH_CAMPAIGN) > 10
    assert len(WITH_SESSION) > 6
    assert not [act for verb in WITH_SESSION for act in WITH_SESSION[verb] if argument_of(act[1], "campaign") is None]


@pytest.mark.parametrize("verb", [verb for verb in WITH_CAMPAIGN if verb not in REPORTS])
async def test_a_campaign_is_named_by_its_file_or_by_its_id(verb: str, settings: Path, capsys: Capture) -> None:
    """Each act refuses an unknown id; one act of each verb is asked for a missing and for a new file, too."""
    table, new, gone = (settings.with_name(name) for name in ("entities.csv", "new.yaml", "gone.yaml"))
    first = WITH_CAMPAIGN[verb][0]
    assert f"no such file: {gone}" in await refused(command(first, table, campaign=gone), settings, capsys)
    for act in WITH_CAMPAIGN[verb]:
        if act is not first and " ".join(act[0]) in DECLARED:
            continue  # the declared actions of a verb are all called in one way
        said = await refused(command(act, table, campaign="nosuch"), settings, capsys)
        assert "no campaign 'nosuch' here: stored: saltmere" in said, act[0]
    asks_the_store = [act for act in WITH_CAMPAIGN[verb] if act[0] not in TAKES_A_FILE]
    for act in asks_the_store[:1]:
        said = await refused(command(act, table, campaign=new), settings, capsys)
        assert f"campaign 'mill' of {new} is not stored yet" in said, act[0]


@pytest.mark.parametrize("verb", WITH_SESSION)
async def test_a_session_of_no_known_number_is_refused_with_those_there_are(
    verb: str, settings: Path, capsys: Capture
) -> None:
    table = settings.with_name("entities.csv")
    for act in WITH_SESSION[verb]:
        said = await refused(command(act, table, campaign="saltmere", session="9"), settings, capsys)
        assert "no session '9' in campaign 'saltmere': valid: 1 (s1), 2 (s2), last" in said, act[0]


@pytest.mark.parametrize(
    "words",
    [
        ("show", "transcript", "SESSION"),
        ("show", "said", "--session", "SESSION"),
        ("transcript", "summary", "SESSION"),
        ("show", "recap", "SESSION", "--dm"),
        ("show", "facts", "--as-of", "SESSION"),
        ("show", "turns", "--session", "SESSION"),
    ],
    ids=" ".join,
)
async def test_a_number_last_and_the_id_are_the_same_session(
    settings: Path, capsys: Capture, words: tuple[str, ...]
) -> None:
    shown: dict[str, str] = {}
    for name in ("1", "s1", "2", "last"):
        capsys.readouterr()
        asked = [name if word == "SESSION" else word for word in words]
        assert await run(*asked, "--campaign", CAMPAIGN_FILE, "--config", settings) == 0, capsys.readouterr().err
        shown[name] = capsys.readouterr().out
    assert shown["1"] == shown["s1"]
    assert shown["2"] == shown["last"]
    if words[1] in ("said", "facts"):
        assert shown["1"] != shown["2"]


async def test_the_numbers_are_those_that_the_table_of_sessions_shows(settings: Path, capsys: Capture) -> None:
    for words in (
        ("show", "sessions"),
        ("show", "coverage"),
        ("worker", "status"),
    ):
        capsys.readouterr()
        assert await run(*words, "--config", settings) == 0
        _, *rows = capsys.readouterr().out.splitlines()
        assert [row.split()[:2] for row in rows] == [["1", "s1"], ["2", "s2"]], words


@pytest.mark.parametrize("campaign", ["saltmere", str(CAMPAIGN_FILE)])
async def test_a_file_and_an_id_show_the_same(settings: Path, capsys: Capture, campaign: str) -> None:
    for words in (("show", "facts"), ("campaign", "show", campaign), AUDIT, ("show", "entities"), ("names", "list")):
        option = () if campaign in words else ("--campaign", campaign)
        capsys.readouterr()
        assert await run(*words, *option, "--config", settings) == 0, capsys.readouterr().err
        assert "Grimjaw" in capsys.readouterr().out or words == AUDIT


async def test_a_file_without_a_campaign_is_refused_at_its_line(settings: Path, capsys: Capture) -> None:
    none = settings.with_name("none.yaml")
    assert f"{none}:1: 'campaign' is missing" in await refused(
        ["show", "facts", "--campaign", str(none)], settings, capsys
    )


async def test_a_file_that_is_named_like_an_id_is_pointed_out(
    settings: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(settings.parent)
    settings.with_name("town").write_text(NEW)
    said = await refused(["show", "facts", "--campaign", "town"], settings, capsys)
    assert "no campaign 'town' here: stored: saltmere; for the file of that name: --campaign ./town" in said


async def test_an_id_that_is_misspelt_is_named_with_the_nearest(settings: Path, capsys: Capture) -> None:
    said = await refused(["show", "facts", "--campaign", "saltmer"], settings, capsys)
    assert "no campaign 'saltmer' here: did you mean 'saltmere'? stored: saltmere" in said
