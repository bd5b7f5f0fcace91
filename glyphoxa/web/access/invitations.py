"""Invitations of one table: what a link carries, and what a browser is given for it.

A link carries a token: a grant and a number, which `itsdangerous` signs with the table's own key (HMAC-SHA256) and
compares in constant time. The number belongs to the grant; it grows when the link is revoked, which voids every earlier
token and cookie. So a link stays good from one evening to the next, and can be shown again, though no list is kept.

The DM's link is good once: it carries a code, of which a digest is kept until it is used.

Plain objects: the time is an argument, and the key comes from whoever makes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from itsdangerous import BadData, URLSafeSerializer

from glyphoxa.domain.ids import PlayerId
from glyphoxa.web.access.roles import Grant, Refusal, Role

KEY_BYTES = 32
CODE_GOOD_FOR_S = 24 * 3_600
COOKIE_GOOD_FOR_S = 90 * 24 * 3_600
_LONGEST = 500


class BadInvitation(Refusal):
    """A link that is not, or no longer, good."""

    code = "forbidden"
    status = 403

    def __init__(self) -> None:
        super().__init__("this link is not good any more; ask your game master for a new one")


@dataclass(frozen=True, slots=True)
class Invitations:
    """
    Attributes:
        key: `KEY_BYTES` random bytes.
        numbers: Of each grant's `key`, how often it was revoked; 0 if it is not there.
        codes: Digests of DM codes that were not used yet, each with the second (Unix time) until which it is good.
        url: Where the table was opened last, with a slash at its end; "" if it never was.
    """

    key: bytes
    numbers: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    codes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    url: str = ""

    def token(self, grant: Grant) -> str:
        """What the link of a player or a spectator carries: always the same until it is revoked."""
        return self._signed("link", grant, "")

    def with_dm_code(self, code: str, *, now_s: int) -> tuple[Invitations, str]:
        """
        Args:
            code: Random, at least 128 bits in letters and digits.

        Returns: Invitations that know of the code, and the token for the DM's link. Codes that are too old are gone.
        """
        codes = {digest: until for digest, until in self.codes.items() if until > now_s}
        codes[_digest(code)] = now_s + CODE_GOOD_FOR_S
        return replace(self, codes=codes), self._signed("link", Grant(Role.DM), code)

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
        return replace(self, codes={each: until for each, until in self.codes.items() if each != digest}), grant

    def cookie(self, grant: Grant, *, now_s: int) -> str:
        """What a browser shows from now on."""
        return self._signed("cookie", grant, now_s)

    def grant_of(self, cookie: str, *, now_s: int) -> Grant | None:
        """None: it was not made here, was revoked, or is too old."""
        try:
            grant, issued = self._verified("cookie", cookie)
        except BadInvitation:
            return None
        return grant if issued + COOKIE_GOOD_FOR_S > now_s else None

    def revoked(self, grant: Grant) -> Invitations:
        """Every link and cookie of it that there is becomes void."""
        codes: Mapping[str, int] = {} if grant.role is Role.DM else self.codes
        return replace(self, numbers={**self.numbers, grant.key: self._number(grant) + 1}, codes=codes)

    def _number(self, grant: Grant) -> int:
        return self.numbers.get(grant.key, 0)

    def _signed(self, purpose: str, grant: Grant, extra: str | int) -> str:
        return self._serializer(purpose).dumps([grant.role.value, grant.player, self._number(grant), extra])

    def _verified(self, purpose: str, text: str) -> tuple[Grant, Any]:
        """Raises: BadInvitation."""
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
        """A key of its own for each purpose, so that a link is no cookie. It decodes nothing before it is verified."""
        using = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        return URLSafeSerializer(self.key, salt=f"glyphoxa.{purpose}", signer_kwargs=using)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
