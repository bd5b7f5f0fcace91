"""Consent at the page: a seat is told what happens with its voice, agrees or withdraws, and is not heard without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import PlayerId
from glyphoxa.web.access.audit import AuditKind
from glyphoxa.web.access.consents import sends_sound, sitter
from glyphoxa.web.access.entrance import Entrance
from glyphoxa.web.access.roles import Action, Grants
from glyphoxa.web.answers import content_of, error_answer
from glyphoxa.web.events import Json
from glyphoxa.web.seats import Seats


class ConsentBody(BaseModel):
    """What the page posts. `text` is the digest of the text that was shown; a withdrawal needs none."""

    model_config = ConfigDict(extra="forbid")

    player: str = Field(min_length=1, max_length=200)
    agrees: bool
    text: str = Field(default="", max_length=64)


class ConsentDoor:
    """Lets nobody be heard who has not agreed. Where `entrance.consents` is None nobody is asked.

    Args:
        offers_wait_ms: Takes one of a seat's ration of offers; 0, or in how many milliseconds there is another.
    """

    def __init__(self, entrance: Entrance, seats: Seats, *, offers_wait_ms: Callable[[PlayerId], int]) -> None:
        self._consents = entrance.consents
        self._authenticator = entrance.authenticator
        self._record = entrance.record
        self._seats = seats
        self._offers_wait_ms = offers_wait_ms

    def described(self, grants: Grants, player: PlayerId) -> Json | None:
        """As the welcome holds it."""
        if self._consents is None:
            return None
        text = self._consents.text
        return {
            "text": text.digest,
            "language": text.language,
            "title": text.title,
            "lines": list(text.lines),
            "agree": text.agree,
            "decline": text.decline,
            "given_at_ms": self._consents.given_at_ms(grants, player),
        }

    def may_offer(self, grants: Grants, player: PlayerId, sdp: str) -> bool:
        """Whether this offer sends no sound, or its sender has agreed that it is heard."""
        if self._consents is None or not sends_sound(sdp):
            return True
        return self._consents.given_at_ms(grants, player) is not None

    async def refuse(self, player: PlayerId) -> JSONResponse:
        """Nothing more is heard of that seat."""
        await self._seats.hang_up(player)
        text = "the sound of this seat is heard after its player has agreed; until then listen and type"
        return error_answer("no_consent", text, status=403)

    async def post(self, request: Request) -> JSONResponse:
        """The route."""
        grants = self._authenticator.grants(request.cookies)
        grants.need(Action.PLAY)
        body = ConsentBody.model_validate_json(await content_of(request))
        player = PlayerId(body.player)
        grants.need(Action.PLAY, player)
        wait_ms = self._offers_wait_ms(player)  # an unknown player is refused here
        if self._consents is None:
            raise InvalidInput("this table asks nobody for consent")
        if body.agrees:
            if body.text != self._consents.text.digest:
                return error_answer("changed", "the text has changed; load the page again to read it", status=409)
            if wait_ms:
                return error_answer("rationed", f"too often for this seat; try again in {wait_ms} ms", status=429)
        await self._decide(grants, player, agrees=body.agrees, address=request.client.host if request.client else "")
        return JSONResponse({"consent": self.described(grants, player)})

    async def _decide(self, grants: Grants, player: PlayerId, *, agrees: bool, address: str) -> None:
        consents = self._consents
        if consents is None or (consents.given_at_ms(grants, player) is not None) is agrees:
            return  # as it is: whoever asks often makes no file grow
        if not agrees:
            consents.withdraw_nowait(grants, player)
            await self._seats.hang_up(player)
        await asyncio.to_thread(consents.decide, grants, player, agrees=agrees)
        kind = AuditKind.AGREED if agrees else AuditKind.WITHDREW
        what = f"to be heard at the seat of {player} (text {consents.text.digest[:12]})"
        self._record(kind, who=sitter(grants, player), what=what, address=address)
