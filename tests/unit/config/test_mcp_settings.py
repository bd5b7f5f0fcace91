"""Servers of tools in the settings: what they may say, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.config.check import Finding, check
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.settings import Settings, read_settings


def read(directory: Path, servers: str) -> Settings:
    path = directory / "glyphoxa.yaml"
    path.write_text(f"mcp:\n  servers:\n{servers}")
    return read_settings(path)


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("    dice: {}\n", "3: mcp.servers.dice needs a command or a url, and not both"),
        ("    dice: {command: [x], url: 'http://a'}\n", "3: mcp.servers.dice needs a command or a url, and not both"),
        ("    Dice!: {command: [x]}\n", "3: mcp.servers: 'Dice!' is no name: lower-case letters and digits"),
        ("    memory: {command: [x]}\n", "3: mcp.servers: 'memory' is no name"),
        ("    dice: {url: ftp://a}\n", "3: mcp.servers.dice.url must begin with http:// or https://"),
        ("    dice: {command: [x], token_env: A}\n", "is sent to a url; a command gets it by `env`"),
        ("    dice: {url: 'http://a', token_env: sk-1234}\n", "must be the name of an environment variable"),
        ("    dice: {command: [x], env: [A=b]}\n", "lists names of environment variables, and no values"),
        ("    dice: {command: [x], usual_ms: 0}\n", "mcp.servers.dice.usual_ms"),
        ("    dice: {comand: [x]}\n", "comand"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, server: str, why: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        read(tmp_path, server)
    assert why in str(caught.value)


def test_the_check_says_which_servers_are_used_and_what_is_missing(tmp_path: Path) -> None:
    settings = read(
        tmp_path, "    dice: {command: [glyphoxa, mcp, dice]}\n    maps: {url: 'http://a/mcp', token_env: MAPS}\n"
    )

    def of_mcp(environ: dict[str, str], *, has_sdk: bool = True) -> list[Finding]:
        found = check(
            settings,
            has_weights=lambda _: True,
            environ=environ,
            has_module=lambda name: has_sdk or name != "mcp",
            is_port_free=lambda *_: True,
        )
        return [each for each in found if each.subject == "mcp"]

    assert of_mcp({"MAPS": "x"}) == [Finding("ok", "mcp", "tools of dice, maps, for models that can call tools")]
    assert of_mcp({}) == [Finding("error", "mcp", "maps: environment variable MAPS is not set")]
    assert of_mcp({"MAPS": "x"}, has_sdk=False)[0].level == "error"
