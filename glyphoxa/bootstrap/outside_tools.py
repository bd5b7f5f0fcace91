"""The tools of servers outside that the settings give to NPCs. Without any, nothing of MCP is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loguru import logger

from glyphoxa.bootstrap.closing import STEP_MS, ClosingStack
from glyphoxa.config.sections import McpServerSettings, McpSettings, missing_variables
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.toolbox import OutsideTool
from glyphoxa.providers.extras import need

if TYPE_CHECKING:
    from glyphoxa.adapters.mcp.servers import ServerRow

OutsideTools = Mapping[NpcId, Sequence[OutsideTool]]


async def open_outside_tools(
    settings: McpSettings, campaign: Campaign, stack: ClosingStack, *, environ: Mapping[str, str] = os.environ
) -> OutsideTools:
    """What each NPC has. A server that is not there is no reason not to play. Closed by `stack`.

    Raises:
        InvalidInput: The SDK is not installed, or an environment variable that a server needs is not set.
    """
    if not settings.servers:
        return {}
    need("mcp", by="mcp.servers", extra="mcp")
    if missing := missing_variables(settings, environ):
        raise InvalidInput(f"mcp.servers.{missing[0]}")
    _warn_of_strangers(settings, campaign)
    from glyphoxa.adapters.mcp.servers import McpServers

    servers = McpServers([_row(name, server, environ) for name, server in settings.servers.items()])
    stack.push_step("servers of tools", STEP_MS, servers.close)
    await servers.open()
    return {
        npc.id: [
            tool
            for name, server in settings.servers.items()
            if server.npcs is None or npc.id in server.npcs
            for tool in servers.tools(name)
        ]
        for npc in campaign.npcs
    }


def _row(name: str, settings: McpServerSettings, environ: Mapping[str, str]) -> ServerRow:
    from glyphoxa.adapters.mcp.servers import ServerRow

    return ServerRow(
        name=name,
        command=settings.command,
        env={variable: environ[variable] for variable in settings.env},
        url=settings.url or "",
        token=environ[settings.token_env].strip() if settings.token_env is not None else "",
        allowed=None if settings.tools is None else frozenset(settings.tools),
        usual_ms=settings.usual_ms,
    )


def _warn_of_strangers(settings: McpSettings, campaign: Campaign) -> None:
    """The same settings may serve several campaigns."""
    known = {npc.id for npc in campaign.npcs}
    for name, server in settings.servers.items():
        for npc in server.npcs or ():
            if NpcId(npc) not in known:
                logger.warning("mcp.servers.{}: no NPC {!r} in this campaign: {}", name, npc, did_you_mean(npc, known))
