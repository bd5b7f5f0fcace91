"""The links of a table, for whoever runs it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import NotFound, did_you_mean
from glyphoxa.domain.ids import PlayerId
from glyphoxa.web.access.register import InvitationRegister
from glyphoxa.web.access.roles import Grant, Role


@dataclass(frozen=True, slots=True)
class Links:
    """What whoever runs the table sends to others.

    Attributes:
        players: Ids with names.
    """

    register: InvitationRegister
    players: Mapping[PlayerId, str]

    def served_at(self, url: str) -> None:
        """From now on links lead there.

        Args:
            url: With a slash at its end.
        """
        if self.url != url:
            self.register.change(lambda now: (replace(now, url=url), None))

    @property
    def url(self) -> str:
        """Where links lead; empty as long as the table was never served."""
        return self.register.current().url

    def dm_link(self, *, now_s: int) -> str:
        """A new one, good once."""
        code = secrets.token_hex(16)
        return self._link(self.register.change(lambda now: now.with_dm_code(code, now_s=now_s)))

    def link(self, grant: Grant) -> str:
        """Of a player or a spectator: the same as before, unless it was revoked."""
        return self._link(self.register.current().token(grant))

    def revoke(self, grant: Grant) -> None:
        """Nobody comes in by the links of before, and who has come is put out."""
        self.register.change(lambda now: (now.revoked(grant), None))

    def grant_named(self, who: str) -> Grant:
        """
        Raises:
            NotFound: The campaign has no such player.
        """
        if who in (Role.DM.value, Role.SPECTATOR.value):
            return Grant(Role(who))
        player = PlayerId(who)
        if player not in self.players:
            valid = [*self.players, Role.DM.value, Role.SPECTATOR.value]
            raise NotFound(f"no player {who!r} in this campaign: {did_you_mean(who, valid)}")
        return Grant(Role.PLAYER, player)

    def _link(self, token: str) -> str:
        return f"{self.url}join#{token}"


def links_of(campaign: Campaign, data_dir: Path) -> Links:
    register = InvitationRegister(data_dir, campaign.id)
    return Links(register, {player.id: player.name for player in campaign.players})
