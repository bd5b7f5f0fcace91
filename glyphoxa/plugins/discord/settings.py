"""The settings of the bot, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from glyphoxa.config.check import Finding, lacks
from glyphoxa.config.sections import Section, Variable, or_empty
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import counted

DiscordId = Annotated[int, Field(ge=1, lt=1 << 64)]


class DiscordSettings(Section):
    """The bot of `glyphoxa discord`. Who may do what is set here: roles and permissions in Discord change nothing. See
    [Discord](../discord.md).

    Attributes:
        token_env: The environment variable that holds the bot's token.
        guild: Id of the server (Discord: guild) in which the bot answers.
        dm: Ids of the users who are game master.
        players: Ids of the users who play, each with the id of the player in the campaign file.
    """

    token_env: Variable = "DISCORD_TOKEN"  # noqa: S105 - a variable's name
    guild: DiscordId | None = None
    dm: tuple[DiscordId, ...] = ()
    players: Annotated[dict[DiscordId, str], BeforeValidator(or_empty)] = Field(default_factory=dict)

    @property
    def is_set(self) -> bool:
        return bool(self.model_fields_set)

    def missing(self, environ: Mapping[str, str]) -> list[str]:
        """Return what the bot cannot start without."""
        found = []
        if self.guild is None:
            found.append("discord.guild is not set: it must be the id of your Discord server")
        if not self.dm:
            found.append("discord.dm is empty: it must list your own Discord user id")
        if not environ.get(self.token_env, "").strip():
            found.append(f"environment variable {self.token_env} is not set: it must hold the bot's token")
        return found

    def recipients(self) -> Mapping[str, Collection[str]]:
        return {"discord": ["Discord"] if self.is_set else ()}


def check(settings: Settings, environ: Mapping[str, str], has_module: Callable[[str], bool]) -> Iterator[Finding]:
    """Report whether the bot can start, if it has settings."""
    chosen = settings.section(DiscordSettings)
    if not chosen.is_set:
        return
    if not has_module("discord"):
        yield lacks("discord", "the bot", ["discord"], "discord")
    missing = chosen.missing(environ)
    yield from (Finding("error", "discord", each) for each in missing)
    if not missing:
        who = f"{counted(len(chosen.dm), 'game master')} and {counted(len(chosen.players), 'player')}"
        yield Finding("ok", "discord", f"server {chosen.guild}, {who}, token from {chosen.token_env}")
