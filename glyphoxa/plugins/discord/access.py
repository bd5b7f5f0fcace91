"""Who may use the bot, decided for each command, suggestion and button. Roles in Discord play no part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from glyphoxa.actors.limits import RateLimit
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import PlayerId
from glyphoxa.plugins.discord.settings import DiscordSettings

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
