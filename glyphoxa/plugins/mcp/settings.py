"""The settings of tool servers for NPCs, their checks, and what they open with a table.

Servers run programs. The settings name them, and a campaign file may not: it is passed on and opened by others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

from loguru import logger
from pydantic import BeforeValidator, Field

from glyphoxa.config.check import Finding, lacks
from glyphoxa.config.located_yaml import Wrong, short
from glyphoxa.config.sections import VARIABLE, KeyVariable, Section, or_empty
from glyphoxa.config.settings import Settings, host_of
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import NpcId
from glyphoxa.providers.extras import need

if TYPE_CHECKING:
    from glyphoxa.actors.deadline import ClosingStack
    from glyphoxa.app.table import OutsideTools

_TOOL_SERVER: Final = re.compile(r"[a-z][a-z0-9]{0,23}")
_TAKEN_SERVER: Final = "memory"


class McpServerSettings(Section):
    """A tool server of the Model Context Protocol, under a name that you choose. Set either `command` or `url`. See
    [MCP](../configuration.md#mcp).

    Attributes:
        command: The program to start, with its arguments.
        env: Environment variables that are passed to the program, besides PATH, HOME and the like.
        url: Address of a server that uses streamable HTTP.
        token_env: The environment variable with the token to send to `url`.
        tools: Tools to offer. Default: all of the server's tools.
        npcs: Ids of the NPCs that get the tools. Default: all NPCs.
        usual_ms: How long a call usually takes. NPCs whose tier allows less time do not get the tools.
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
        servers: Servers with tools for NPCs, by name; each is a block as below.
    """

    servers: Annotated[dict[str, McpServerSettings], BeforeValidator(or_empty)] = Field(default_factory=dict)

    def recipients(self) -> Mapping[str, Collection[str]]:
        return {"mcp.servers": self.servers}

    def contradictions(self) -> Wrong:
        for name, server in self.servers.items():
            at = ("servers", name)
            if not _TOOL_SERVER.fullmatch(name) or name == _TAKEN_SERVER:
                yield (
                    at,
                    f"mcp.servers: {short(name)!r} is not a valid name: use letters a to z and digits, not `memory`",
                )
            if bool(server.command) == (server.url is not None):
                yield at, f"mcp.servers.{name} needs a command or a url, and not both"
            is_web = (server.url or "").casefold().startswith(("http://", "https://"))
            if server.url is not None and not (is_web and host_of(server.url)):
                yield (*at, "url"), f"mcp.servers.{name}.url must begin with http:// or https://, and name a host"
            if server.token_env is not None and server.url is None:
                yield (*at, "token_env"), f"mcp.servers.{name}.token_env is only for a url; for a command, use `env`"
            if not all(map(VARIABLE.fullmatch, server.env)):
                yield (*at, "env"), f"mcp.servers.{name}.env must list names of environment variables, not values"


def _missing_variables(settings: McpSettings, environ: Mapping[str, str]) -> list[str]:
    """Return which environment variables of the servers are not set."""
    return [
        f"{name}: environment variable {variable} is not set"
        for name, server in settings.servers.items()
        for variable in (*server.env, *filter(None, [server.token_env]))
        if not environ.get(variable, "").strip()
    ]


def check(settings: Settings, environ: Mapping[str, str], has_module: Callable[[str], bool]) -> Iterator[Finding]:
    """Report which servers are used, and what they lack."""
    chosen = settings.section(McpSettings)
    if chosen.servers and not has_module("mcp"):
        yield lacks("mcp", "mcp.servers", ["mcp"], "mcp")
    missing = _missing_variables(chosen, environ)
    yield from (Finding("error", "mcp", each) for each in missing)
    if chosen.servers and not missing:
        yield Finding("ok", "mcp", f"tools of {', '.join(chosen.servers)}, for models that can call tools")


# What the settings open with a table. Without a server, the SDK is not imported.


async def open_tools(settings: Settings, campaign: Campaign, stack: ClosingStack) -> OutsideTools:
    """Open the external tools of each NPC. An unreachable server is skipped. `stack` closes them.

    Raises:
        InvalidInput: The SDK is not installed, or a server's environment variable is not set.
    """
    chosen = settings.section(McpSettings)
    if not chosen.servers:
        return {}
    need("mcp", by="mcp.servers", extra="mcp")
    if missing := _missing_variables(chosen, os.environ):
        raise InvalidInput(f"mcp.servers.{missing[0]}")
    _warn_of_unknown_npcs(chosen, campaign)
    from glyphoxa.actors.deadline import STEP_MS
    from glyphoxa.judgement.safety import topics_of
    from glyphoxa.plugins.mcp.client import McpServers

    servers = McpServers(chosen.servers, os.environ)
    stack.push_step("tool servers", STEP_MS, servers.close)
    await servers.open()
    return {
        npc.id: [
            replace(tool, safety=topics_of(campaign))
            for name, server in chosen.servers.items()
            if server.npcs is None or npc.id in server.npcs
            for tool in servers.tools(name)
        ]
        for npc in campaign.npcs
    }


def _warn_of_unknown_npcs(settings: McpSettings, campaign: Campaign) -> None:
    """Warn about unknown NPCs, but do not fail: the same settings may serve several campaigns."""
    known = {npc.id for npc in campaign.npcs}
    for name, server in settings.servers.items():
        for npc in server.npcs or ():
            if NpcId(npc) not in known:
                logger.warning("mcp.servers.{}: no NPC {!r} in this campaign: {}", name, npc, did_you_mean(npc, known))
