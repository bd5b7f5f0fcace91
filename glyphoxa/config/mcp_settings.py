"""Servers of tools for NPCs, which the settings name and a campaign file may not: a command runs a program.

A campaign file is passed on and opened by others, and runs nothing. The settings are of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from glyphoxa.config.sections import KeyVariable, Section, empty_section
from glyphoxa.config.yaml_surprises import short

_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,23}")
_TAKEN: Final = "memory"


class McpServerSettings(Section):
    """A server of tools by the Model Context Protocol, under a name of its own; see [MCP](mcp.md). It has a `command`
    or a `url`.

    Attributes:
        command: The program to start and its arguments.
        env: Environment variables that the program is given besides PATH, HOME and the like.
        url: Where it is served over streamable HTTP.
        token_env: The environment variable with the token to send there.
        tools: Its only tools that are offered; left out, all.
        npcs: The ids of the NPCs that have them; left out, all.
        usual_ms: What a call usually takes. An NPC whose tier allows less time does not have its tools.
    """

    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    url: str | None = None
    token_env: KeyVariable = None
    tools: tuple[str, ...] | None = None
    npcs: tuple[str, ...] | None = None
    usual_ms: Annotated[int, Field(ge=1, le=60_000)] = 300


class McpSettings(Section):
    """
    Attributes:
        servers: Servers whose tools NPCs are given, by name; each is a block as below.
    """

    servers: Annotated[dict[str, McpServerSettings], BeforeValidator(empty_section)] = Field(default_factory=dict)


def mcp_contradictions(settings: McpSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each with where it stands in the file."""
    for name, server in settings.servers.items():
        at = ("mcp", "servers", name)
        if not _NAME.fullmatch(name) or name == _TAKEN:
            yield at, f"mcp.servers: {short(name)!r} is no name: lower-case letters and digits, and not `memory`"
        if bool(server.command) == (server.url is not None):
            yield at, f"mcp.servers.{name} needs a command or a url, and not both"
        if server.url is not None and not _is_url(server.url):
            yield (*at, "url"), f"mcp.servers.{name}.url must begin with http:// or https://, and name a host"
        if server.token_env is not None and server.url is None:
            yield (*at, "token_env"), f"mcp.servers.{name}.token_env is sent to a url; a command gets it by `env`"
        for variable in server.env:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", variable):
                yield (*at, "env"), f"mcp.servers.{name}.env lists names of environment variables, and no values"


def missing_variables(settings: McpSettings, environ: Mapping[str, str]) -> list[str]:
    """What is not set of what the servers need."""
    return [
        f"{name}: environment variable {variable} is not set"
        for name, server in settings.servers.items()
        for variable in (*server.env, *filter(None, [server.token_env]))
        if not environ.get(variable, "").strip()
    ]


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
