"""What a page asks over HTTP: the table as its reader may know it, pictures of NPCs, and consent to be heard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.npc.table import Table
from glyphoxa.web.access.consent import ConsentText, sends_sound, sitter
from glyphoxa.web.access.entrance import Authenticator, Entrance
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Action, Grants
from glyphoxa.web.events import Json, memory_json, scene_json, whole_scene_json
from glyphoxa.web.page_socket import MAX_TEXT_LENGTH, Rationed
from glyphoxa.web.requests import address_of, content_of, error_answer
from glyphoxa.web.seats import Seats


class TableView:
    """The table as a page is told of it: of everything only what its reader may know."""

    def __init__(self, table: Table, seats: Seats) -> None:
        self._table = table
        self._seats = seats

    def described(self, grants: Grants) -> Json:
        """Scenes, and what the game master wrote of them, are for the game master alone."""
        table, campaign = self._table, self._table.campaign
        sees_all = grants.may(Action.DIRECT)
        return {
            "campaign": {"id": campaign.id, "name": campaign.name, "language": campaign.language},
            "session": table.session,
            "role": grants.role,
            "scene": whole_scene_json(table.scene, campaign)
            if sees_all
            else scene_json(table.scene, campaign, table.may_show),
            "scenes": [whole_scene_json(scene, campaign) for scene in campaign.scenes] if sees_all else [],
            "players": self.players(),
            "seats": [player.id for player in campaign.players if grants.may(Action.PLAY, player.id)],
            "memory": memory_json(table.health),
            "is_paused": table.is_paused,
            "max_text_length": MAX_TEXT_LENGTH,
        }

    def players(self) -> list[Json]:
        taken = self._seats.taken
        return [{"id": p.id, "name": p.name, "taken": p.id in taken} for p in self._table.campaign.players]


class PortraitDoor:
    """Pictures of NPCs. Players get those of the scene they are in: whom they have not met, they do not see."""

    def __init__(self, table: Table, authenticator: Authenticator) -> None:
        self._table = table
        self._authenticator = authenticator

    async def get(self, request: Request) -> Response:
        """The route. An NPC that is elsewhere, one without a picture and one that never was have the same answer."""
        grants = self._authenticator.grants(request.cookies)
        grants.need(Action.WATCH)
        wanted = NpcId(request.path_params["npc"])
        there = next((npc for npc in self._table.campaign.npcs if npc.id == wanted), None)
        may_see = wanted in self._table.scene.npcs or grants.may(Action.DIRECT)
        if there is None or there.portrait is None or not may_see:
            return error_answer("not_found", "there is no such picture here", status=404)
        return Response(there.portrait.content, media_type=there.portrait.content_type)


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
        self._record(kind, who=sitter(grants, player), what=what, address=address_of(request))
