"""Let people enter one table by links: what a link carries, the cookie a browser gets for it, and what that allows.

A link carries a token: a grant and a number, which `itsdangerous` signs with the table's own key (HMAC-SHA256) and
compares in constant time. The number belongs to the grant; it grows when the link is revoked, which voids every earlier
token and cookie. So a link stays good from one evening to the next, and can be shown again, though no list is kept.

The DM's link is good once: it carries a code, of which a digest is kept until it is used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from loguru import logger
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from glyphoxa.config.sections import LOCAL_HOSTS
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.files import PRIVATE, replace_file
from glyphoxa.domain.ids import CampaignId, PlayerId
from glyphoxa.web.access.consent import ConsentRegister
from glyphoxa.web.access.records import AuditKind, links_path, private_directory
from glyphoxa.web.access.roles import EVERYTHING, Grant, Grants, Refusal, Role
from glyphoxa.web.sound import IceServer

if TYPE_CHECKING:
    from itsdangerous import URLSafeSerializer

KEY_BYTES = 32
CODE_GOOD_FOR_S = 24 * 3_600
COOKIE_GOOD_FOR_S = 90 * 24 * 3_600
_LONGEST = 500
_LOCAL_ONLY = (
    "These links work on this machine only. For players on your network, open the table with --host 0.0.0.0 "
    "--tls-self-signed; for players in other homes, with --public-url https://table.example/ behind a proxy with https"
)
_NO_MICROPHONE = (
    "WARNING: browsers allow the microphone only on localhost and https pages. On another machine players can "
    "listen and type; to let them talk, use --tls-self-signed, --tls-cert, or a proxy with https"
)


class BadInvitation(Refusal):
    """A link that is not valid, or no longer."""

    code = "forbidden"
    status = 403

    def __init__(self) -> None:
        super().__init__("this link is no longer valid; ask your game master for a new one")


class Invitations(BaseModel):
    """The links of a campaign, as its file holds them.

    Attributes:
        key: `KEY_BYTES` random bytes.
        numbers: Of each grant's `key`, how often it was revoked; 0 if it is not there.
        codes: Digests of DM codes that were not used yet, each with the second (Unix time) until which it is good.
        url: Where the table was opened last, with a slash at its end; "" if it never was.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, ser_json_bytes="hex", val_json_bytes="hex", hide_input_in_errors=True
    )

    key: bytes
    numbers: dict[str, int] = Field(default_factory=dict)
    codes: dict[str, int] = Field(default_factory=dict)
    url: str = ""

    def token(self, grant: Grant) -> str:
        """Return what the link of a player or a spectator carries: the same until it is revoked."""
        return self._signed("link", grant, "")

    def with_dm_code(self, code: str, *, now_s: int) -> tuple[Invitations, str]:
        """
        Args:
            code: Random, at least 128 bits in letters and digits.

        Returns: Invitations that know of the code, and the token for the DM's link. Codes that are too old are gone.
        """
        codes = {digest: until for digest, until in self.codes.items() if until > now_s}
        codes[_digest(code)] = now_s + CODE_GOOD_FOR_S
        return self.model_copy(update={"codes": codes}), self._signed("link", Grant(Role.DM), code)

    def redeemed(self, token: str, *, now_s: int) -> tuple[Invitations, Grant]:
        """
        Returns: Invitations in which a DM's code is used up, and what the link grants.

        Raises:
            BadInvitation: The link was not made here, was revoked, or was the DM's and is used up or too old.
        """
        grant, code = self._verified("link", token)
        if grant.role is not Role.DM:
            return self, grant
        digest = _digest(code)
        if self.codes.get(digest, 0) <= now_s:
            raise BadInvitation
        unused = {each: until for each, until in self.codes.items() if each != digest}
        return self.model_copy(update={"codes": unused}), grant

    def cookie(self, grant: Grant, *, now_s: int) -> str:
        """Return the value that a browser shows from now on."""
        return self._signed("cookie", grant, now_s)

    def grant_of(self, cookie: str, *, now_s: int) -> Grant | None:
        """Return what a cookie grants; None if it is forged, revoked or too old."""
        try:
            grant, issued = self._verified("cookie", cookie)
        except BadInvitation:
            return None
        return grant if issued + COOKIE_GOOD_FOR_S > now_s else None

    def calendar_token(self, grant: Grant) -> str:
        """Return what the calendar address of somebody carries. It opens no table, and is revoked with their link."""
        return self._signed("calendar", grant, "")

    def calendar_reader(self, token: str) -> Grant:
        """Raises: BadInvitation: The address was not made here, or was revoked."""
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
        """Raises: BadInvitation."""
        from itsdangerous import BadData

        if len(text) > _LONGEST or not text.isascii():
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
        """Return a signer with a key of its own per purpose, so that a link is no cookie. It decodes nothing before
        verification.
        """
        from itsdangerous import URLSafeSerializer

        using = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        return URLSafeSerializer(self.key, salt=f"glyphoxa.{purpose}", signer_kwargs=using)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


T = TypeVar("T")


class InvitationRegister:
    """The invitations of one campaign.

    Args:
        data_dir: The user's data directory; the file is `access/CAMPAIGN.json` in it, for this user alone.
    """

    def __init__(self, data_dir: Path, campaign: CampaignId) -> None:
        self._path = links_path(data_dir, campaign)
        self._known: tuple[tuple[int, int] | None, Invitations] | None = None
        self._complained: tuple[object, ...] = ()

    def current(self) -> Invitations:
        """As they are now. Cheap: the file is read again only when it has changed. One that cannot be read any more, or
        is gone, puts nobody out: what it held stays in force.

        Raises:
            InvalidInput: The file cannot be read, and never could.
        """
        try:
            stamp = self._stamp()
            if self._known is None or stamp not in (None, self._known[0]):
                invitations = self.change(lambda now: (now, now)) if stamp is None else self._read()
                self._known = stamp or self._stamp(), invitations
        except InvalidInput as error:
            if self._known is None:
                raise
            if error.args != self._complained:
                self._complained = error.args
                logger.warning("{}; the links that were read before stay valid", error)
        return self._known[1]

    def change(self, change: Callable[[Invitations], tuple[Invitations, T]]) -> T:
        """Replace the invitations atomically.

        Args:
            change: From the invitations as they are; what it raises leaves them so.

        Returns: What `change` returned beside the new ones.

        Raises:
            InvalidInput: The file cannot be read or written.
        """
        with self._locked():
            before = Invitations(key=secrets.token_bytes(KEY_BYTES)) if self._stamp() is None else self._read()
            after, returned = change(before)
            self._write(after)
        return returned

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInput(f"{self._path}: {error.strerror}") from error
        return found.st_ino, found.st_mtime_ns

    def _read(self) -> Invitations:
        try:
            return Invitations.model_validate_json(self._path.read_bytes())
        except OSError as error:
            raise InvalidInput(f"{self._path}: {error.strerror}") from error
        except ValidationError as error:
            raise InvalidInput(
                f"{self._path} does not hold invitations; remove it, and every link is made again"
            ) from error

    def _write(self, invitations: Invitations) -> None:
        try:
            replace_file(self._path, invitations.model_dump_json().encode(), mode=PRIVATE)
        except OSError as error:
            raise InvalidInput(f"{self._path}: {error.strerror}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self._path.parent
        try:
            private_directory(folder)
            lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InvalidInput(f"{folder}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


@dataclass(frozen=True, slots=True)
class Links:
    """The links that are sent to people, and where they lead.

    Attributes:
        players: Ids with names.
    """

    register: InvitationRegister
    players: Mapping[PlayerId, str]

    def served_at(self, url: str) -> None:
        """Set where links lead from now on.

        Args:
            url: With a slash at its end.
        """
        if self.url != url:
            self.register.change(lambda now: (now.model_copy(update={"url": url}), None))

    @property
    def url(self) -> str:
        """Return where links lead; empty if the table was never served."""
        return self.register.current().url

    @property
    def remark(self) -> str:
        """Return what players on other machines cannot do with these links, and the remedy; empty if nothing."""
        where = urlsplit(self.url)
        if where.hostname in LOCAL_HOSTS:
            return _LOCAL_ONLY
        return _NO_MICROPHONE if where.scheme == "http" else ""

    def dm_link(self, *, now_s: int) -> str:
        """Return a new link for the game master, valid once."""
        code = secrets.token_hex(16)
        return self._link(self.register.change(lambda now: now.with_dm_code(code, now_s=now_s)))

    def link(self, grant: Grant) -> str:
        """Return the link of a player or a spectator: the same as before, unless it was revoked."""
        return self._link(self.register.current().token(grant))

    def calendar(self, grant: Grant) -> str:
        """Return the address of the calendar of sessions, for somebody's calendar program."""
        return f"{self.url}calendar.ics?token={self.register.current().calendar_token(grant)}"

    def revoke(self, grant: Grant) -> None:
        """Revoke existing links and disconnect their users."""
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
    """Says what a request's sender may do."""

    def grants(self, cookies: Mapping[str, str]) -> Grants:
        """Return what a browser with these cookies may do now."""
        ...

    def redeem(self, token: str) -> tuple[Grant, Cookie]:
        """
        Raises:
            BadInvitation: The link is not good.
        """
        ...

    def calendar_reader(self, token: str) -> Grant:
        """Return whose calendar address has this token. Raises: BadInvitation: Nobody's."""
        ...


class OpenAccess:
    """Allows everything to everybody who reaches the table, to try it alone."""

    def grants(self, cookies: Mapping[str, str]) -> Grants:
        return EVERYTHING

    def redeem(self, token: str) -> tuple[Grant, Cookie]:
        raise BadInvitation  # nobody was sent one

    def calendar_reader(self, token: str) -> Grant:
        return Grant(Role.DM)


class InvitedOnly:
    """Admits the users of a link.

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

    def calendar_reader(self, token: str) -> Grant:
        grant = self._register.current().calendar_reader(token)
        if not self._is_known(grant):
            raise BadInvitation
        return grant

    def _is_known(self, grant: Grant) -> bool:
        """Return whether the campaign still has the player."""
        return grant.player is None or grant.player in self._players


class Record(Protocol):
    """As `AuditLog.record`."""

    def __call__(self, kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None: ...


def _nowhere(kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class Entrance:
    """Who is admitted, and where that is recorded.

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
