"""Tools of other programs' servers, as configured. Without any, the SDK is not imported."""

from __future__ import annotations

import os
from dataclasses import replace

from loguru import logger

from glyphoxa.actors.deadline import STEP_MS, ClosingStack
from glyphoxa.app.table import OutsideTools
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import NpcId
from glyphoxa.judgement.safety import topics_of
from glyphoxa.plugins.mcp.settings import McpSettings, missing_variables
from glyphoxa.providers.extras import need


async def open_tools(settings: Settings, campaign: Campaign, stack: ClosingStack) -> OutsideTools:
    """Open the external tools of each NPC. An unreachable server is skipped. `stack` closes them.

    Raises:
        InvalidInput: The SDK is not installed, or a server's environment variable is not set.
    """
    chosen = settings.section(McpSettings)
    if not chosen.servers:
        return {}
    need("mcp", by="mcp.servers", extra="mcp")
    if missing := missing_variables(chosen, os.environ):
        raise InvalidInput(f"mcp.servers.{missing[0]}")
    _warn_of_unknown_npcs(chosen, campaign)
    from glyphoxa.plugins.mcp.servers import McpServers

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
