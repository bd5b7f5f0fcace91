"""Who may do what at a table: one table, for the server and for the documents. And how a page is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import PlayerId


class Role(StrEnum):
    """The role of somebody at a table. A stranger has none."""

    DM = "dm"
    PLAYER = "player"
    SPECTATOR = "spectator"


class Action(StrEnum):
    """An action that needs a role."""

    WATCH = "read the table and what is said at it"
    PLAY = "sit in a seat, speak, type and hear"
    MOVE = "move the table to another scene"
    DIRECT = "see and do what only the game master may"


WHO_MAY: Mapping[Action, frozenset[Role]] = {
    Action.WATCH: frozenset(Role),
    Action.PLAY: frozenset({Role.DM, Role.PLAYER}),
    Action.MOVE: frozenset({Role.DM}),
    Action.DIRECT: frozenset({Role.DM}),
}


class Refusal(InvalidInput):
    """A refusal that a page can show in its reader's language.

    Attributes:
        code: One word for a page to know it by.
        status: Status of the HTTP response.
        values: Values in the page's own words for it: see `error.` in `glyphoxa/web/static/words`.
    """

    code: ClassVar[str] = "invalid"
    status: ClassVar[int] = 400

    def __init__(self, message: str, **values: str | int) -> None:
        super().__init__(message)
        self.values = values


class NotInvited(Refusal):
    """Somebody without a role asked for something that needs one."""

    code = "not_invited"
    status = 401

    def __init__(self) -> None:
        super().__init__("this table is by invitation only; open the link that your game master sent you")


class Forbidden(Refusal):
    """Somebody asked for something that their role does not allow."""

    code = "forbidden"
    status = 403

    def __init__(self, action: Action) -> None:
        super().__init__(f"your link does not allow you to {action.value}")


@dataclass(frozen=True, slots=True)
class Grant:
    """One role; for a player, with the player.

    Attributes:
        player: None unless the role is PLAYER.
    """

    role: Role
    player: PlayerId | None = None

    @property
    def key(self) -> str:
        """Return the grant's name: `dm`, `spectator`, `player:mira`."""
        return self.role.value if self.player is None else f"{self.role.value}:{self.player}"


@dataclass(frozen=True, slots=True)
class Grants:
    """All roles that one browser holds: a person may have several links."""

    held: frozenset[Grant]

    def may(self, action: Action, player: PlayerId | None = None) -> bool:
        """
        Args:
            player: Whose seat it is about. A player has only their own; the DM has all.
        """
        return any(
            grant.role in WHO_MAY[action] and (grant.role is not Role.PLAYER or player in (None, grant.player))
            for grant in self.held
        )

    @property
    def who(self) -> str:
        """Return the names of the grants, for the audit log; "" of a stranger."""
        return " ".join(sorted(grant.key for grant in self.held))

    @property
    def role(self) -> Role | None:
        """Return the role that allows most."""
        held = {grant.role for grant in self.held}
        return next((role for role in Role if role in held), None)


EVERYTHING = Grants(frozenset({Grant(Role.DM)}))
