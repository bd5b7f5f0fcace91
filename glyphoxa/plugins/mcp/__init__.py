"""The Model Context Protocol (MCP): memory for other programs, and other programs' tools for NPCs."""

from glyphoxa.plugin import Command, Plugin

PLUGIN = Plugin(
    settings={"mcp": "glyphoxa.plugins.mcp.settings:McpSettings"},
    checks=["glyphoxa.plugins.mcp.settings:check"],
    tools=["glyphoxa.plugins.mcp.outside:open_tools"],
    commands={
        "mcp": Command(
            "memory",
            "glyphoxa.plugins.mcp.verb:VERB",
            "serve an NPC's memory to another program, over MCP",
            "mcp --npc Korvald --config glyphoxa.yaml",
        )
    },
)
