"""Links that admit users to one table, and the cookies that browsers get for them.

A link contains a token: a grant and a number, which `itsdangerous` signs with the table's own key (HMAC-SHA256) and
compares in constant time. Each grant has a number. Revoking a link increases it, which invalidates all earlier tokens
and cookies of the grant. So a link stays valid on later evenings and can be shown again, without a list of links.

The DM's link is valid once: it contains a code, whose digest is stored until the link is used.
"""

from __future__ import annotations

import fcntl
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

from loguru import logger
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from glyphoxa.config.settings import HERE
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.files import PRIVATE, open_private, replace_file
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.table_interface import IceServer
from glyphoxa.web.access.records import AuditKind, ConsentRegister, links_path
from glyphoxa.web.access.roles import EVERYTHING, Action, Forbidden, Grant, Grants, NotInvited, Refusal, Role

if TYPE_CHECKING:
    from itsdangerous import URLSafeSerializer
    from starlette.requests import HTTPConnection

KEY_BYTES = 32
CODE_VALID_S = 24 * 3_600
COOKIE_VALID_S = 90 * 24 * 3_600
_MAX_TOKEN_CHARS = 500
_LOCAL_ONLY = (
    "These links work on this machine only. For players on your network, open the table with --host 0.0.0.0 "
    "--tls-self-signed; for players in other homes, with --public-url https://table.example/ behind a proxy with https"
)
_NO_MICROPHONE = (
    "WARNING: browsers allow the microphone only on localhost and https pages. On another machine players can "
    "listen and type; to let them talk, use --tls-self-signed, --tls-cert, or a proxy with https"
)


class BadInvitation(Refusal):
    """The link is forged, expired or revoked."""

    code = "forbidden"
    status = 403

    def __init__(self) -> None:
        super().__init__("this link is no longer valid; ask your game master for a new one")


class Invitations(BaseModel):
    """The stored state of a campaign's links.

    Attributes:
        key: `KEY_BYTES` random bytes.
        numbers: How often each grant was revoked, by the grant's `key`; 0 if it is missing.
        codes: Digests of unused DM codes, each with its expiry (Unix time in seconds).
        url: The address at which the table was last served, with a trailing slash; "" if it was never served.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, ser_json_bytes="hex", val_json_bytes="hex", hide_input_in_errors=True
    )

    key: bytes
    numbers: dict[str, int] = Field(default_factory=dict)
    codes: dict[str, int] = Field(default_factory=dict)
    url: str = ""

    def token(self, grant: Grant, purpose: Literal["link", "calendar"] = "link") -> str:
        """Return a token that lasts until it is revoked: of the link of a player or a spectator, or of the address of a
        user's calendar, which opens no table.
        """
        return self._signed(purpose, grant, "")

    def with_dm_code(self, code: str, *, now_s: int) -> tuple[Invitations, str]:
        """Return invitations with this code and without expired ones, and the token of the DM's link.

        Args:
            code: Random, at least 128 bits in letters and digits.
        """
        codes = {digest: expiry_s for digest, expiry_s in self.codes.items() if expiry_s > now_s}
        codes[_digest(code)] = now_s + CODE_VALID_S
        return self.model_copy(update={"codes": codes}), self._signed("link", Grant(Role.DM), code)

    def redeemed(self, token: str, *, now_s: int) -> tuple[Invitations, Grant]:
        """Return what a link grants, and invitations without its code if it is the DM's.

        Raises:
            BadInvitation: The link is forged or revoked, or is the DM's and was used or has expired.
        """
        grant, code = self._verified("link", token)
        if grant.role is not Role.DM:
            return self, grant
        digest = _digest(code)
        if self.codes.get(digest, 0) <= now_s:
            raise BadInvitation
        unused = {other: expiry_s for other, expiry_s in self.codes.items() if other != digest}
        return self.model_copy(update={"codes": unused}), grant

    def cookie(self, grant: Grant, *, now_s: int) -> str:
        """Return the value of a browser's cookie."""
        return self._signed("cookie", grant, now_s)

    def grant_of(self, cookie: str, *, now_s: int) -> Grant | None:
        """Return what a cookie grants; None if it is forged, revoked or expired."""
        try:
            grant, issued = self._verified("cookie", cookie)
        except BadInvitation:
            return None
        return grant if issued + COOKIE_VALID_S > now_s else None

    def calendar_reader(self, token: str) -> Grant:
        """Return whose calendar address has this token. Raises: BadInvitation: It is forged or revoked."""
        return self._verified("calendar", token)[0]

    def revoked(self, grant: Grant) -> Invitations:
        """Return invitations in which every existing link and cookie of the grant is revoked."""
        numbers = {**self.numbers, grant.key: self._number(grant) + 1}
        return self.model_copy(update={"numbers": numbers, "codes": {} if grant.role is Role.DM else self.codes})

    def _number(self, grant: Grant) -> int:
        return self.numbers.get(grant.key, 0)

    def _signed(self, purpose: str, grant: Grant, extra: str | int) -> str:
        return self._serializer(purpose).dumps([grant.role.value, grant.player, self._number(grant), extra])

    def _verified(self, purpose: str, text: str) -> tuple[Grant, Any]:
        """Return the grant and the extra value. Raises: BadInvitation."""
        from itsdangerous import BadData

        if len(text) > _MAX_TOKEN_CHARS or not text.isascii():
            raise BadInvitation
        try:
            role, player, number, extra = self._serializer(purpose).loads(text)
        except BadData:
            raise BadInvitation from None
        grant = Grant(Role(role), None if player is None else PlayerId(player))
        if number != self._number(grant):
            raise BadInvitation
        return grant, extra

    def _serializer(self, purpose: str) -> URLSafeSerializer:
        """Return a signer whose key depends on the purpose, so that a link cannot be used as a cookie.

        It verifies before it decodes.
        """
        from itsdangerous import URLSafeSerializer

        using = {"key_derivation": "hmac", "digest_method": sha256}
        return URLSafeSerializer(self.key, salt=f"glyphoxa.{purpose}", signer_kwargs=using)


def _digest(code: str) -> str:
    return sha256(code.encode()).hexdigest()


T = TypeVar("T")


class Links:
    """The links of one campaign's users, and the cookies that browsers get for them.

    The file is `access/CAMPAIGN.json` in the data directory, readable by this user only.

    Args:
        data_dir: The user's data directory.
        now_s: The time in seconds (Unix).

    Attributes:
        players: Names by id.
    """

    def __init__(self, campaign: Campaign, data_dir: Path, *, now_s: Callable[[], float] = time.time) -> None:
        self.players = {player.id: player.name for player in campaign.players}
        self._path = links_path(data_dir, campaign.id)
        self._now_s = now_s
        # Cookies ignore ports, so the tables of one machine need different names.
        self._prefix = f"glyphoxa_{sha256(campaign.id.encode()).hexdigest()[:12]}_"
        self._cached: tuple[tuple[int, int] | None, Invitations] | None = None
        self._reported: tuple[object, ...] = ()

    def current(self) -> Invitations:
        """Return the current invitations. The file is read again only after it changed.

        If the file becomes unreadable or is deleted, its last content stays in force.

        Raises:
            InvalidInput: The file could never be read.
        """
        try:
            with self._naming_disk_errors():
                stamp = self._stamp()
                if self._cached is None or stamp not in (None, self._cached[0]):
                    invitations = self.change(lambda now: (now, now)) if stamp is None else self._read()
                    self._cached = stamp or self._stamp(), invitations
        except InvalidInput as error:
            if self._cached is None:
                raise
            if error.args != self._reported:
                self._reported = error.args
                logger.warning("{}; the links that were read before stay valid", error)
        return self._cached[1]

    def change(self, change: Callable[[Invitations], tuple[Invitations, T]]) -> T:
        """Replace the invitations atomically.

        Args:
            change: Takes the current invitations and returns new ones with a result. If it raises, nothing changes.

        Returns: The result of `change`.

        Raises:
            InvalidInput: The file cannot be read or written.
        """
        with self._naming_disk_errors(), open_private(self._path.with_suffix(".lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = Invitations(key=secrets.token_bytes(KEY_BYTES)) if self._stamp() is None else self._read()
            after, returned = change(before)
            replace_file(self._path, after.model_dump_json().encode(), mode=PRIVATE)
        return returned

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _read(self) -> Invitations:
        try:
            return Invitations.model_validate_json(self._path.read_bytes())
        except ValidationError as error:
            raise InvalidInput(
                f"{self._path} does not contain invitations; delete it, and all links are created again"
            ) from error

    @contextmanager
    def _naming_disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InvalidInput(f"{error.filename or self._path}: {error.strerror}") from error

    def served_at(self, url: str) -> None:
        """Set the address of all links, with a trailing slash."""
        if self.url != url:
            self.change(lambda now: (now.model_copy(update={"url": url}), None))

    @property
    def url(self) -> str:
        """Return the address of all links; empty if the table was never served."""
        return self.current().url

    @property
    def lasting(self) -> list[Grant]:
        """Return the grants of those who get a lasting link: each player, then spectators."""
        return [*(Grant(Role.PLAYER, player) for player in self.players), Grant(Role.SPECTATOR)]

    @property
    def remark(self) -> str:
        """Return what players on other machines cannot do with these links, and the remedy; empty if nothing."""
        where = urlsplit(self.url)
        if where.hostname in HERE:
            return _LOCAL_ONLY
        return _NO_MICROPHONE if where.scheme == "http" else ""

    def dm_link(self) -> str:
        """Return a new link for the game master, valid once."""
        code, now_s = secrets.token_hex(16), int(self._now_s())
        return self._link(self.change(lambda now: now.with_dm_code(code, now_s=now_s)))

    def link(self, grant: Grant) -> str:
        """Return the link of a player or a spectator: the same as before, unless it was revoked."""
        return self._link(self.current().token(grant))

    def calendar(self, grant: Grant) -> str:
        """Return the address of a user's calendar of sessions."""
        return f"{self.url}calendar.ics?token={self.current().token(grant, 'calendar')}"

    def revoke(self, grant: Grant) -> None:
        """Revoke existing links and disconnect their users."""
        self.change(lambda now: (now.revoked(grant), None))

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

    def grants(self, cookies: Mapping[str, str]) -> Grants:
        """Return what a browser with these cookies may do now."""
        invitations = self.current()
        now_s = int(self._now_s())
        own = (value for name, value in cookies.items() if name.startswith(self._prefix))
        found = (invitations.grant_of(value, now_s=now_s) for value in own)
        return Grants(frozenset(grant for grant in found if grant is not None and self._is_known(grant)))

    def redeem(self, token: str) -> tuple[Grant, str, str]:
        """Return what a link grants, with name and value of its cookie. Raises: BadInvitation: It is not valid."""
        now_s = int(self._now_s())
        # Only the DM's link writes the file; repeated attempts with others cause no disk writes.
        invitations = self.current()
        after, grant = invitations.redeemed(token, now_s=now_s)
        if not self._is_known(grant):
            raise BadInvitation
        if after is not invitations:
            grant = self.change(lambda current: current.redeemed(token, now_s=now_s))
        name = sha256(grant.key.encode()).hexdigest()[:12]
        return grant, f"{self._prefix}{name}", invitations.cookie(grant, now_s=now_s)

    def calendar_reader(self, token: str) -> Grant:
        """Return whose calendar address has this token. Raises: BadInvitation: It is forged or revoked."""
        grant = self.current().calendar_reader(token)
        if not self._is_known(grant):
            raise BadInvitation
        return grant

    def _is_known(self, grant: Grant) -> bool:
        """Return whether the campaign still has the player."""
        return grant.player is None or grant.player in self.players

    def _link(self, token: str) -> str:
        return f"{self.url}join#{token}"


class Record(Protocol):
    """The signature of `AuditLog.record`."""

    def __call__(self, kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None: ...


def _record_nothing(kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class Entrance:
    """Access to a table, and its audit log.

    Attributes:
        links: None: everybody who can reach the table is its game master. For trying it alone.
        allowed_hosts: DNS names of the page, besides localhost and IP addresses.
        consents: Consents to be heard; None at a table that stores and sends nothing, and so asks for none.
        ice_servers: STUN and TURN servers.
        is_secure: Pages use https, so their cookies are sent over https only.
    """

    links: Links | None = None
    allowed_hosts: Collection[str] = ()
    is_secure: bool = False
    ice_servers: tuple[IceServer, ...] = ()
    record: Record = _record_nothing
    consents: ConsentRegister | None = None

    def visitor(self, connection: HTTPConnection) -> Visitor:
        """Return who sent a request or opened a websocket."""
        address = connection.client.host if connection.client else ""
        return Visitor(self, dict(connection.cookies), address)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody whose browser asks for something.

    Attributes:
        cookies: Those of the browser.
        address: Where it asks from; "" if unknown.
    """

    entrance: Entrance
    cookies: Mapping[str, str]
    address: str

    @property
    def grants(self) -> Grants:
        """Return what they may do now: a link can be revoked while its page is open."""
        return EVERYTHING if self.entrance.links is None else self.entrance.links.grants(self.cookies)

    def admit(self, action: Action, player: PlayerId | None = None) -> Grants:
        """Return what they may do now, if that includes the action.

        Raises:
            NotInvited: They have no role. Like the next, it is written to the audit log.
            Forbidden: None of their roles allows the action.
        """
        grants = self.grants
        if not grants.may(action, player):
            self.record(AuditKind.REFUSED, grants.who, action.value)
            raise Forbidden(action) if grants.held else NotInvited
        return grants

    def record(self, kind: AuditKind, who: str = "", what: str = "") -> None:
        """Add an entry about them to the audit log."""
        self.entrance.record(kind, who=who, what=what, address=self.address)
