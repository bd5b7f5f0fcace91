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
from glyphoxa.web.access.consent_text import ConsentText
from glyphoxa.web.access.consents import sends_sound, sitter
from glyphoxa.web.access.entrance import Entrance
from glyphoxa.web.access.roles import Action, Grants
from glyphoxa.web.answers import content_of, error_answer
from glyphoxa.web.events import Json
from glyphoxa.web.page_socket import Rationed
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
        wait_ms: Counts a request of a seat; 0, or after how many milliseconds it may come.
    """

    def __init__(self, entrance: Entrance, seats: Seats, *, wait_ms: Callable[[PlayerId], int]) -> None:
        self._consents = entrance.consents
        self._authenticator = entrance.authenticator
        self._record = entrance.record
        self._seats = seats
        self._wait_ms = wait_ms

    def described(self, grants: Grants, player: PlayerId, *, language: str = "") -> Json | None:
        """As the welcome holds it: in this language, if there is a text in it."""
        if self._consents is None:
            return None
        text = self._consents.text_in(language)
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
        wait_ms = self._wait_ms(player)  # an unknown player is refused here
        if self._consents is None:
            raise InvalidInput("this table asks nobody for consent")
        if body.agrees:
            if self._consents.text_of(body.text) is None:
                return error_answer("changed", "the text has changed; load the page again to read it", status=409)
            if wait_ms:
                raise Rationed("this seat is asked for", wait_ms=wait_ms)
        text = self._consents.text_of(body.text) or self._consents.text
        await self._decide(grants, player, text if body.agrees else None, request)
        return JSONResponse({"consent": self.described(grants, player, language=text.language)})

    async def _decide(self, grants: Grants, player: PlayerId, text: ConsentText | None, request: Request) -> None:
        """
        Args:
            text: What they agree to; None: they withdraw.
        """
        consents, agrees = self._consents, text is not None
        if consents is None or (consents.given_at_ms(grants, player) is not None) is agrees:
            return  # as it is: whoever asks often makes no file grow
        if not agrees:
            consents.withdraw_nowait(grants, player)
            await self._seats.hang_up(player)
        shown = text or consents.text
        await asyncio.to_thread(consents.decide, grants, player, agrees=agrees, text=shown)
        kind = AuditKind.AGREED if agrees else AuditKind.WITHDREW
        what = f"to be heard at the seat of {player} (text {shown.digest[:12]})"
        address = request.client.host if request.client else ""
        self._record(kind, who=sitter(grants, player), what=what, address=address)
