"""Who may use the bot: the settings, their checks, and admission for each command, suggestion and button.

Roles in Discord play no part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from glyphoxa.actors.limits import RateLimit
from glyphoxa.config.check import Finding, lacks
from glyphoxa.config.sections import Section, Variable, or_empty
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput, counted
from glyphoxa.domain.ids import PlayerId

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


Asked = Literal["command", "suggestion"]
"""A suggestion is what Discord asks for while somebody types."""

_STRANGERS: Final = 0
"""All strangers together have one allowance, so that many of them cost no more than one."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who belongs to the table; `player` is None for the game master."""

    user: int
    player: PlayerId | None

    @property
    def is_dm(self) -> bool:
        return self.player is None

    def need_dm(self) -> None:
        """Raises: Refused: It is a player."""
        if not self.is_dm:
            raise Refused("Only the game master may do that.")


class Refused(InvalidInput):
    """Somebody may not do this, or not now. An empty message is not to be answered at all."""


@dataclass(slots=True)
class Door:
    """Admits the users that the settings name, in one server, at a limited rate."""

    settings: DiscordSettings
    _limits: dict[tuple[int, Asked], RateLimit] = field(default_factory=dict)

    def admit(self, user: int, guild: int | None, *, asked: Asked, at_ms: int) -> Caller:
        """Raises: Refused: The user is not one of those, asks elsewhere, or asks too often."""
        player, caller = self.settings.players.get(user), None
        if guild is not None and guild == self.settings.guild:
            is_dm = user in self.settings.dm
            caller = Caller(user, None) if is_dm else Caller(user, PlayerId(player)) if player is not None else None
        key = (_STRANGERS if caller is None else user, asked)
        limit = self._limits.setdefault(key, RateLimit(10, 2_000) if asked == "command" else RateLimit(40, 250))
        wait_ms = limit.take(at_ms=at_ms)
        if caller is None:
            raise Refused("" if wait_ms else "Sorry, I answer only the people who play at my table.")
        if wait_ms:
            raise Refused(f"That was too fast; try again in {-(-wait_ms // 1_000)} s.")
        return caller
