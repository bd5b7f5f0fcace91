"""The plug-ins that come with Glyphoxa: what each adds. Its code is imported when it is used."""

from __future__ import annotations

from typing import Final

from glyphoxa.plugin import Command, Plugin

CLOUD: Final = Plugin(providers=["glyphoxa.plugins.cloud_providers:ROWS"])

CLUSTER: Final = Plugin(
    settings={"cluster": "glyphoxa.plugins.cluster.settings:ClusterSettings"},
    commands={
        "cluster": Command(
            "operate",
            "glyphoxa.plugins.cluster.verb:VERB",
            "tables on several machines: nodes, placement, draining",
            "cluster status --config glyphoxa.yaml",
        )
    },
)

DISCORD: Final = Plugin(
    settings={"discord": "glyphoxa.plugins.discord.access:DiscordSettings"},
    checks=["glyphoxa.plugins.discord.access:check"],
    commands={
        "discord": Command(
            "play",
            "glyphoxa.plugins.discord.verb:VERB",
            "answer commands in Discord: facts, review, recap, the open table",
            "discord --config glyphoxa.yaml",
        )
    },
)

EXPORTS: Final = Plugin(
    actions={"campaign": "glyphoxa.plugins.exports:OUT"}, pages=["glyphoxa.plugins.exports:add_calendar"]
)

IMPORTS: Final = Plugin(
    readers=dict.fromkeys(
        ("card", "csv", "foundry", "markdown", "roll20"), "glyphoxa.plugins.imports.readers:read_source"
    ),
    pages=["glyphoxa.plugins.imports.page:add_imports"],
    commands={
        "import": Command(
            "campaign",
            "glyphoxa.plugins.imports.verb:VERB",
            "bring in Foundry, Roll20, Markdown, CSV or cards; review it",
            "import foundry ~/foundrydata/Data/worlds/thornwick",
        )
    },
)

MCP: Final = Plugin(
    settings={"mcp": "glyphoxa.plugins.mcp.settings:McpSettings"},
    checks=["glyphoxa.plugins.mcp.settings:check"],
    tools=["glyphoxa.plugins.mcp.settings:open_tools"],
    commands={
        "mcp": Command(
            "memory",
            "glyphoxa.plugins.mcp.verb:VERB",
            "serve an NPC's memory to another program, over MCP",
            "mcp --npc Korvald --config glyphoxa.yaml",
        )
    },
)

# All of it is off by default.
MEMORY_GRAPH: Final = Plugin(recall=["glyphoxa.plugins.memory_graph.deep_recall:open_deep_recall"])

MONITORING: Final = Plugin(
    settings={"observability": "glyphoxa.plugins.monitoring.settings:ObservabilitySettings"},
    observers=["glyphoxa.plugins.monitoring.settings:open_metrics", "glyphoxa.plugins.monitoring.settings:open_traces"],
    pages=["glyphoxa.plugins.monitoring.settings:serve_metrics"],
)
