"""How verbs are declared, and that all of them are."""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path

import pytest

from glyphoxa.cli.main import commands, main, parser
from glyphoxa.cli.verb import Verb, any_option, argument, at_once, one_of


def command_line(verb: Verb, *arguments: str) -> argparse.Namespace:  # type: ignore[type-arg]
    root = argparse.ArgumentParser()
    verb.add_to(root.add_subparsers(), "world", "look at the world")
    return root.parse_known_args(["world", *arguments])[0]


def a_verb() -> Verb:  # type: ignore[type-arg]
    verb = Verb(at_once, common=(argument("--config", metavar="FILE"),))

    deep = argument("--deep", help="all of it")

    @verb.itself(deep)
    @verb.action("what there is", deep, argument("words", nargs="*"))
    def _list(options: argparse.Namespace) -> int:
        return 10 if options.deep else 1

    @verb.action("make one", argument("name"), one_of(argument("--old"), argument("--new")), any_option)
    def _add(options: argparse.Namespace) -> int:
        return 2

    return verb


@pytest.mark.parametrize(
    ("arguments", "code"), [((), 1), (("list",), 1), (("list", "--deep"), 10), (("add", "bell"), 2)]
)
def test_an_act_is_called_by_its_name_or_as_what_the_verb_does_itself(arguments: tuple[str, ...], code: int) -> None:
    options = command_line(a_verb(), *arguments)
    assert options.run(options) == code


@pytest.mark.parametrize(
    ("arguments", "config"),
    [
        (("--config", "a"), "a"),
        (("--config", "a", "list"), "a"),
        (("list", "--config", "b"), "b"),
        (("--config", "a", "list", "--config", "b"), "b"),
        ((), None),
    ],
)
def test_what_is_given_in_front_of_an_action_holds_for_it(arguments: tuple[str, ...], config: str | None) -> None:
    assert command_line(a_verb(), *arguments).config == config


def test_an_act_says_whether_it_takes_options_of_any_name() -> None:
    assert command_line(a_verb(), "add", "bell", "--level", "9").takes_any_option
    assert "takes_any_option" not in command_line(a_verb(), "list")


@pytest.mark.parametrize("name", commands())
def test_every_verb_is_declared_and_all_its_acts_say_what_they_do(name: str) -> None:
    [verbs] = [action for action in parser(name)._actions if isinstance(action, argparse._SubParsersAction)]
    of_verb = verbs.choices[name]
    acts = [action for action in of_verb._actions if isinstance(action, argparse._SubParsersAction)]
    for each in (of_verb, *(act for among in acts for act in among.choices.values())):
        assert each.get_default("run") or acts
        assert each.description


def test_help_groups_at_most_nineteen_verbs_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert len(commands()) <= 19
    for title, rows in groupby(commands().items(), key=lambda item: item[1][1].group):
        verbs = [verb for verb, _ in rows]
        assert [line.split()[0] for line in shown.partition(f"\n{title}:\n")[2].splitlines()[: len(verbs)]] == verbs
    assert max(map(len, shown.splitlines())) <= 80


def test_unknown_option_shows_the_usage_of_its_action(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["privacy", "export", "Nora", "nora.json"])
    told = capsys.readouterr().err
    assert "usage: glyphoxa privacy export" in told and "unrecognized arguments: nora.json" in told


@pytest.mark.parametrize("verb", ["campaign", "entity", "facts", "transcript", "show", "privacy"])
def test_verb_without_an_action_lists_its_actions(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb]) == 2
    assert "actions:" in capsys.readouterr().err


def test_command_line_without_a_verb_lists_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "open a table on a local page" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [("show", "facts"), ("privacy", "export", "x.json"), ("table", "invite"), ("names", "list")]
)
def test_verb_that_reads_creates_no_database(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GLYPHOXA_DATA", str(tmp_path))
    assert main([*arguments]) == 1
    assert f"no campaign is stored in {tmp_path} yet; load one: glyphoxa campaign load FILE" in capsys.readouterr().err
    assert not (tmp_path / "postgres").exists()
