"""Imports: what other tools wrote, for review on the command line and on the desk."""

from glyphoxa.plugin import Command, Plugin

PLUGIN = Plugin(
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
