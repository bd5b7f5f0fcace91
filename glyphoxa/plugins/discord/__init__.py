"""Commands in Discord: adapters over the services that desk and command line use."""

from glyphoxa.plugin import Command, Plugin

PLUGIN = Plugin(
    settings={"discord": "glyphoxa.plugins.discord.settings:DiscordSettings"},
    checks=["glyphoxa.plugins.discord.settings:check"],
    commands={
        "discord": Command(
            "play",
            "glyphoxa.plugins.discord.verb:VERB",
            "answer commands in Discord: facts, review, recap, the open table",
            "discord --config glyphoxa.yaml",
        )
    },
)
