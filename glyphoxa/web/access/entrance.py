"""How a table is entered: what a server is told of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from glyphoxa.web.access.audit import AuditKind
from glyphoxa.web.access.authenticator import Authenticator, OpenAccess
from glyphoxa.web.access.consents import ConsentRegister
from glyphoxa.web.ice import IceServer


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
