"""Every command that a document shows is one that exists, with arguments and options that it takes."""

from __future__ import annotations

import argparse
import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest

from glyphoxa.cli.main import _options, parser
from glyphoxa.cli.main import commands as verbs
from tests.structure.test_documents import DOCUMENTS, ROOT

VERBS = list(verbs())
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
TOOL = re.compile(
    r"(?:\w+=\S+ )*(?:docker compose exec table )?(?:\.venv/bin/)?"
    r"((?:glyphoxa|make|pip install|(?:python -m )?pytest|python -m benchmarks\.\w+)(?: .*)?)$"
)
"""A command, also behind a variable or in a container."""
SERVED = re.compile(r"docker compose run .* table (serve .*)")
PLACEHOLDERS = {"N": "1", "NUMBER": "1", "METHOD": "hybrid"}
"""Words for which a command wants a number or one of several words."""
TARGETS = set(re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)[0].split())
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


def blocks(text: str) -> Iterator[str]:
    """The commands in a document's blocks of shell, without comments."""
    for language, block in BLOCK.findall(text):
        if language in ("", "sh", "bash", "console"):
            for line in block.replace("\\\n", " ").splitlines():
                yield from commands(re.split(r"\s#", line)[0].strip().removeprefix("$ "))


def spans(text: str) -> Iterator[str]:
    """The commands in sentences and tables. Some documents leave out `glyphoxa`."""
    for span in SPAN.findall(BLOCK.sub("", text)):
        words = " ".join(span.split())
        yield from commands(f"glyphoxa {words}" if re.match(rf"({'|'.join(VERBS)}) [a-z-]", words) else words)


def commands(line: str) -> Iterator[str]:
    for part in line.split(" && "):
        if match := SERVED.match(part):
            yield f"glyphoxa {match[1]}"
        elif match := TOOL.match(part):
            yield match[1]


def shown(find: Any) -> list[Any]:
    return [
        pytest.param(command, id=f"{path.relative_to(ROOT)}: {command}")
        for path in DOCUMENTS
        for command in dict.fromkeys(find(path.read_text("utf-8")))
    ]


@pytest.mark.parametrize("command", shown(blocks))
def test_command_in_a_block_is_valid(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    why = wrong(command, monkeypatch)
    assert not why, why


@pytest.mark.parametrize("command", shown(spans))
def test_command_in_a_sentence_exists(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    why = wrong(command, monkeypatch)
    is_short = command.startswith("glyphoxa") and re.search("arguments are required|expected (at least )?one arg", why)
    assert not why or is_short, why


def test_every_action_of_the_live_table_is_in_the_guide() -> None:
    [verbs] = [each for each in parser("table")._actions if isinstance(each, argparse._SubParsersAction)]
    [actions] = [each for each in verbs.choices["table"]._actions if isinstance(each, argparse._SubParsersAction)]
    guide = (ROOT / "docs" / "running-a-table.md").read_text("utf-8")
    assert set(actions.choices) == set(re.findall(r"^(?:\$ )?glyphoxa table (\w+)", guide, re.MULTILINE))


def arguments_of(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, own in action.choices.items():
                yield from arguments_of(own, f"{path} {name}")
        else:
            yield f"{path} {'/'.join(action.option_strings) or action.metavar}", action


def test_every_argument_and_option_has_a_help_text() -> None:
    assert [name for name, action in arguments_of(parser(), "glyphoxa") if not action.help] == []


def wrong(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why a command cannot be typed like this; empty if it can."""
    tool, *words = [PLACEHOLDERS.get(word, word) for word in shlex.split(re.sub(r"[\[\]]|\.\.\.", "", command))]
    if tool == "glyphoxa":
        return wrong_verb(words, monkeypatch)
    if tool == "make":
        unknown = [word for word in words if "=" not in word and word not in TARGETS]
        return f"no such target: {unknown}" if unknown else ""
    if tool == "python" and words[1].startswith("benchmarks"):
        return wrong_benchmark(words[1], words[2:], monkeypatch)
    missing = [word for word in words if "/" in word and "*" not in word and not (ROOT / word).exists()]
    extras = [extra for extra in re.findall(r"glyphoxa\[(.*?)\]", command) if extra not in (*EXTRAS, "EXTRA")]
    return f"missing: {missing + extras}" if missing + extras else ""


def wrong_verb(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    if not words or words[0].startswith("-") or words[0] in ("VERB", "bell"):  # the plug-in of docs/building.md
        return ""
    if words[0] not in VERBS:
        return f"no such verb: {words[0]}"
    known, taken = options_of(words)
    if unknown := [word for word in words if word.startswith("--") and word not in known and not taken]:
        return f"no such option: {unknown}"
    return refused(lambda: _options(words), monkeypatch)


def options_of(words: list[str]) -> tuple[set[str], bool]:
    """Return the options of an action and its verb, and whether it takes any other one."""
    [verbs] = [each for each in parser(words[0])._actions if isinstance(each, argparse._SubParsersAction)]
    at: argparse.ArgumentParser = verbs.choices[words[0]]
    known = set(at._option_string_actions)
    for action in at._actions:
        if isinstance(action, argparse._SubParsersAction):
            at = next((action.choices[word] for word in words[1:] if word in action.choices), at)
    return known | set(at._option_string_actions), bool(at._defaults.get("takes_any_option"))


class Parsed(Exception):
    """The arguments were read, and nothing was run."""


def wrong_benchmark(module: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    parse = argparse.ArgumentParser.parse_args

    def read(parser: argparse.ArgumentParser, *arguments: Any) -> None:
        parse(parser, *arguments)
        raise Parsed

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", read)
        return refused(lambda: import_module(module).main(words), monkeypatch)


def refused(run: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a command's parser; return its error."""
    said: list[str] = []

    def error(_: argparse.ArgumentParser, message: str) -> None:
        said.append(message)
        raise SystemExit(2)

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "error", error)
        with suppress(SystemExit, Parsed):
            run()
    return " ".join(said)
