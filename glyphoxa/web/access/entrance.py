"""How a table is entered: from what a browser shows to what it may do."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from glyphoxa.domain.campaign import Campaign
from glyphoxa.web.access.consent import ConsentRegister
from glyphoxa.web.access.links import COOKIE_GOOD_FOR_S, BadInvitation, InvitationRegister
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import EVERYTHING, Grant, Grants
from glyphoxa.web.sound import IceServer


@dataclass(frozen=True, slots=True)
class Cookie:
    """
    Attributes:
        max_age_s: After so many seconds a browser forgets it.
    """

    name: str
    value: str
    max_age_s: int = COOKIE_GOOD_FOR_S


class Authenticator(Protocol):
    """What a server asks about whoever asks it."""

    def grants(self, cookies: Mapping[str, str]) -> Grants:
        """What a browser with these cookies may do now."""
        ...

    def redeem(self, token: str) -> tuple[Grant, Cookie]:
        """
        Raises:
            BadInvitation: The link is not good.
        """
        ...


class OpenAccess:
    """An `Authenticator` for a table that one tries alone: whoever reaches it may do everything."""

    def grants(self, cookies: Mapping[str, str]) -> Grants:
        return EVERYTHING

    def redeem(self, token: str) -> tuple[Grant, Cookie]:
        raise BadInvitation  # nobody was sent one


class InvitedOnly:
    """An `Authenticator` that lets in whoever came by a link.

    Args:
        now_s: The time in seconds (Unix).
    """

    def __init__(
        self, campaign: Campaign, register: InvitationRegister, *, now_s: Callable[[], float] = time.time
    ) -> None:
        self._register = register
        self._now_s = now_s
        self._players = frozenset(player.id for player in campaign.players)
        # Cookies know no ports: two tables of one machine must not take each other's.
        self._prefix = f"glyphoxa_{sha256(campaign.id.encode()).hexdigest()[:12]}_"

    def grants(self, cookies: Mapping[str, str]) -> Grants:
        invitations = self._register.current()
        now_s = int(self._now_s())
        shown = (value for name, value in cookies.items() if name.startswith(self._prefix))
        found = (invitations.grant_of(value, now_s=now_s) for value in shown)
        return Grants(frozenset(grant for grant in found if grant is not None and self._is_known(grant)))

    def redeem(self, token: str) -> tuple[Grant, Cookie]:
        now_s = int(self._now_s())
        # A player's link changes nothing: whoever tries many makes no file be written.
        invitations = self._register.current()
        after, grant = invitations.redeemed(token, now_s=now_s)
        if not self._is_known(grant):
            raise BadInvitation
        if after is not invitations:
            grant = self._register.change(lambda current: current.redeemed(token, now_s=now_s))
        name = sha256(grant.key.encode()).hexdigest()[:12]
        return grant, Cookie(f"{self._prefix}{name}", invitations.cookie(grant, now_s=now_s))

    def _is_known(self, grant: Grant) -> bool:
        """A player who left the campaign's file has no seat any more."""
        return grant.player is None or grant.player in self._players


class Record(Protocol):
    """As `AuditLog.record`."""

    def __call__(self, kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None: ...


def _nowhere(kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class Entrance:
    """Who is let in, and where it is written down.

    Attributes:
        authenticator: The default lets everybody in, as the game master.
        allowed_hosts: DNS names, besides localhost and addresses, under which the page may be opened.
        consents: Who agreed to be heard; None: nobody is asked, at a table that stores and sends nothing.
        ice_servers: By which sound finds a way between homes.
        is_secure: Whether pages are opened over https, so that their cookies are for https alone.
    """

    authenticator: Authenticator = field(default_factory=OpenAccess)
    allowed_hosts: Collection[str] = ()
    is_secure: bool = False
    ice_servers: tuple[IceServer, ...] = ()
    record: Record = _nowhere
    consents: ConsentRegister | None = None
