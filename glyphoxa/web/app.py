"""The page's server: routes and websocket. See `docs/reference/messages.md` for the messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse, JSONResponse, Response
from loguru import logger
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.staticfiles import StaticFiles

from glyphoxa.actors.deadline import end_tasks
from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable, counted
from glyphoxa.domain.ids import CampaignId, PlayerId, SessionId, SpeakerId, UtteranceId
from glyphoxa.npc.table_interface import ConnectPeer, Offer, OfferedServer, Table
from glyphoxa.web.access.links import COOKIE_VALID_S, BadInvitation, Entrance, Visitor
from glyphoxa.web.access.records import AuditKind, sends_sound, sitter
from glyphoxa.web.access.roles import Action, Forbidden, Grant, Grants, NotInvited, Role
from glyphoxa.web.events import (
    CloseReason,
    Hub,
    Json,
    PageOutbox,
    PageReader,
    memory_json,
    scene_json,
    whole_scene_json,
)
from glyphoxa.web.page_socket import MAX_TEXT_LENGTH, PageSocket, SeatLimits
from glyphoxa.web.requests import Guard, PageProblem, content_of, on_error, problem_of
from glyphoxa.web.seats import DEADLINES, Deadlines, SeatClaim, Seats, TakenSeat
from glyphoxa.world.event_log import Cause
from glyphoxa.world.graph import ConsentChange, WorldHistory

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.world.inspection import PostgresInspection

STATIC = Path(__file__).parent / "static"

TABLE = "table"
"""The user name of the server's own end of a connection at a TURN server."""

CLOSE_CODES = {
    "invalid": 4404,
    "not_found": 4404,
    "seat_taken": 4409,
    "superseded": CloseReason.TAKEN_OVER.code,
    "unavailable": CloseReason.CLOSED.code,
    "rationed": CloseReason.CLOSED.code,
    "not_invited": CloseReason.NOT_INVITED.code,
    "forbidden": CloseReason.NOT_INVITED.code,
}
"""The close code of a refused websocket, by the code of its message."""


class SeatBody(BaseModel):
    """A request from the page of a seat."""

    model_config = ConfigDict(extra="forbid")

    player: str = Field(min_length=1, max_length=200)


B = TypeVar("B", bound=SeatBody)


class OfferBody(SeatBody):
    """A posted offer. `ticket` is the one its websocket was welcomed with."""

    sdp: str = Field(min_length=1)
    type: str = Field(pattern="^offer$")
    ticket: str | None = Field(default=None, max_length=200)


class ConsentBody(SeatBody):
    """A posted consent. `text` is the digest of the text that was shown; a withdrawal needs none."""

    agrees: bool
    text: str = Field(default="", max_length=64)


class RememberBody(SeatBody):
    """A player's decision about one line, or about all lines of this session so far."""

    remember: bool
    line: str | None = Field(default=None, min_length=1, max_length=200)
    session: bool = False


class JoinBody(BaseModel):
    """The posted token of a link."""

    model_config = ConfigDict(extra="forbid")

    token: str = Field(min_length=1, max_length=500)


def create_app(
    table: Table,
    *,
    connect: ConnectPeer,
    entrance: Entrance | None = None,
    deadlines: Deadlines = DEADLINES,
    remembered: OwnLinesOfTable | None = None,
) -> FastAPI:
    """
    Args:
        connect: Answers WebRTC offers for this table.
        entrance: None admits everybody on this machine.
        remembered: Players' earlier utterances; None without long-term memory.
    """
    entrance = entrance or Entrance()
    web = _Web(table, connect, entrance, deadlines, remembered)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with web.watching():
            yield

    app = FastAPI(title="Glyphoxa", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard, allowed_hosts=entrance.allowed_hosts)
    for kind in (InvalidInput, ValidationError, Unavailable):
        app.add_exception_handler(kind, on_error)
    app.add_api_route("/", _page, methods=["GET"])
    app.add_api_route("/join", _join_page, methods=["GET"])
    app.add_api_route("/healthz", web.health, methods=["GET"])
    app.add_api_route("/readyz", web.ready, methods=["GET"])
    app.add_api_route("/api/join", web.join, methods=["POST"])
    app.add_api_route("/api/table", web.describe, methods=["GET"])
    app.add_api_route("/api/portraits/{npc}", web.portrait, methods=["GET"])
    app.add_api_route("/api/offer", web.offer, methods=["POST"])
    app.add_api_route("/api/consent", web.consent, methods=["POST"])
    app.add_api_route("/api/remembered", web.remembered, methods=["GET"])
    app.add_api_route("/api/remembered", web.remember, methods=["POST"])
    app.add_api_websocket_route("/ws", web.socket)
    app.state.whole_health = web.whole_health
    app.state.tell_in_force = web.tell_in_force
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


@dataclass(eq=False)
class _Web:
    _table: Table
    _connect: ConnectPeer
    _entrance: Entrance
    _deadlines: Deadlines
    _remembered: OwnLinesOfTable | None
    _is_watching: bool = False

    def __post_init__(self) -> None:
        self._consents = self._entrance.consents
        self._limits = {player.id: SeatLimits() for player in self._table.campaign.players}
        self._spectators = SeatLimits()
        self._hub = Hub(self._table)
        self._seats = Seats(self._table, self._connect, on_change=self._tell_seats, deadlines=self._deadlines)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        unsubscribe = self._table.subscribe(self._hub.on)
        self._is_watching = True
        try:
            yield
        finally:
            self._is_watching = False
            unsubscribe()
            await self._seats.close()
            self._hub.close()

    async def ready(self) -> JSONResponse:
        if not self._is_watching:
            return PageProblem("not_ready", "the table is not open", 503).answer()
        if self._seats.blocked:
            return PageProblem("not_ready", "a seat cannot be taken or left", 503).answer()
        return JSONResponse({"ready": True})

    async def health(self, request: Request) -> Json:
        """Report that the process lives. Missing memory does not count, so that nobody restarts it for that."""
        told = await self.whole_health()
        may_read = self._entrance.visitor(request).grants.may(Action.DIRECT)
        return told if may_read else {"ok": told["ok"]}

    async def whole_health(self) -> Json:
        """Report health with problems in words, which name players."""
        trouble = [*self._seats.blocked, *self._seats.unclosed]
        return {"ok": not trouble, "trouble": trouble, "memory": memory_json(self._table.health)}

    async def join(self, request: Request) -> JSONResponse:
        """Exchange a link for a cookie that no script can read."""
        body, visitor = JoinBody.model_validate_json(await content_of(request)), self._entrance.visitor(request)
        try:
            if self._entrance.links is None:
                raise BadInvitation
            # The game master's code is marked as used on disk, which may be slow.
            grant, name, cookie = await asyncio.to_thread(self._entrance.links.redeem, body.token)
        except BadInvitation:
            visitor.record(AuditKind.REFUSED, what="an invalid link")
            raise
        visitor.record(AuditKind.JOINED, grant.key)
        response = JSONResponse({"role": grant.role, "player": grant.player})
        response.set_cookie(
            name,
            cookie,
            max_age=COOKIE_VALID_S,
            path="/",
            secure=self._entrance.is_secure,
            httponly=True,
            samesite="strict",
        )
        return response

    async def describe(self, request: Request) -> Json:
        return self._described(self._entrance.visitor(request).admit(Action.WATCH))

    async def portrait(self, request: Request, npc: str) -> Response:
        """Return an NPC's picture. Players see only those of the current scene. An NPC elsewhere, one without a picture
        and an unknown one get the same answer.
        """
        grants = self._entrance.visitor(request).admit(Action.WATCH)
        there = next((each for each in self._table.campaign.npcs if each.id == npc), None)
        may_see = npc in self._table.scene.npcs or grants.may(Action.DIRECT)
        if there is None or there.portrait is None or not may_see:
            return PageProblem("not_found", "there is no such picture", 404).answer()
        return Response(there.portrait.content, media_type=there.portrait.content_type)

    async def offer(self, request: Request) -> JSONResponse:
        body, player, visitor, grants = await self._posted(request, OfferBody)
        self._limits_of(player).need_request()
        if not self._may_be_heard(grants, player, body.sdp):
            return await self._refuse_sound(player)
        place, sdp = await self._seats.connect_peer(
            player, Offer(body.sdp, visitor.address, self._ice_for(TABLE)), ticket=body.ticket or ""
        )
        if not self._may_be_heard(grants, player, body.sdp):  # withdrawn meanwhile
            return await self._refuse_sound(player)
        return JSONResponse({"sdp": sdp, "type": "answer", "ticket": place.ticket})

    async def consent(self, request: Request) -> JSONResponse:
        """Store that a player agrees to be heard, or withdraws that."""
        body, player, visitor, grants = await self._posted(request, ConsentBody)
        limits = self._limits_of(player)  # an unknown player is refused here
        if self._consents is None:
            raise InvalidInput("this table does not ask for consent")
        if body.agrees:
            if self._consents.text_of(body.text) is None:
                return PageProblem("changed", "the text has changed; reload the page to read it", 409).answer()
            limits.need_request()
        text = self._consents.text_of(body.text) or self._consents.text
        if (self._consents.given_at_ms(grants, player) is not None) is not body.agrees:
            # A repeated decision adds no line to the file.
            shown = text if body.agrees else self._consents.text
            if not body.agrees:
                self._consents.withdraw_nowait(grants, player)
                await self._seats.hang_up(player)
            await asyncio.to_thread(self._consents.decide, grants, player, agrees=body.agrees, text=shown)
            kind = AuditKind.AGREED if body.agrees else AuditKind.WITHDREW
            what = f"to be heard at the seat of {player} (text {shown.digest[:12]})"
            visitor.record(kind, sitter(grants, player), what)
        return JSONResponse({"consent": self._consent_json(grants, player, language=text.language)})

    async def remembered(self, request: Request, player: str = "", before: str | None = None) -> Json:
        """List what the player of a seat said, and whether it is remembered."""
        seat = PlayerId(player)
        self._entrance.visitor(request).admit(Action.PLAY, seat)
        return await self._memory_of(seat).lines(seat, before=before)

    async def remember(self, request: Request) -> JSONResponse:
        """Withhold a player's lines from memory, or allow them again. Only the player may allow it, not the DM."""
        body, player, visitor, grants = await self._posted(request, RememberBody)
        is_invited = self._entrance.links is not None
        if body.remember and is_invited and Grant(Role.PLAYER, player) not in grants.held:
            raise Forbidden(Action.PLAY)
        n_changed = await self._memory_of(player).decide(player, body)
        kind = AuditKind.AGREED if body.remember else AuditKind.WITHDREW
        what = f"to be remembered at the seat of {player}: {counted(n_changed, 'line')}"
        visitor.record(kind, grants.who, what)
        return JSONResponse({"changed": n_changed})

    def _memory_of(self, player: PlayerId) -> OwnLinesOfTable:
        self._limits_of(player).need_request()
        if self._remembered is None:
            raise InvalidInput("this table has no long-term memory")
        return self._remembered

    async def _posted(self, request: Request, kind: type[B]) -> tuple[B, PlayerId, Visitor, Grants]:
        """Return what the page of a seat posted, whose seat that is, who sent it and what they may do.

        The body is read for those who may play, so that a stranger uses no memory.
        """
        visitor = self._entrance.visitor(request)
        visitor.admit(Action.PLAY)
        body = kind.model_validate_json(await content_of(request))
        player = PlayerId(body.player)
        return body, player, visitor, visitor.admit(Action.PLAY, player)

    async def socket(self, socket: WebSocket) -> None:
        asked, visitor = socket.query_params, self._entrance.visitor(socket)
        player = None if "watch" in asked else PlayerId(asked.get("player", ""))
        try:
            grants = visitor.admit(Action.WATCH if player is None else Action.PLAY, player)
        except (NotInvited, Forbidden) as error:
            # Before the websocket opens: our page asks `/api/table` for the reason.
            await socket.send_denial_response(await on_error(socket, error))
            return
        await socket.accept()
        outbox, limits, place = PageOutbox(), SeatLimits(), None
        try:
            if player is None:
                self._spectators.need_request("requests to watch")
            else:
                limits = self._limits_of(player)
                limits.need_request()
                place = await self._sit(socket, player, grants, outbox)
        except GlyphoxaError as error:
            await _refuse(socket, error)
            return
        except (WebSocketDisconnect, RuntimeError):
            logger.debug("the page closed before it had its seat")
            return
        seat = "" if place is None else f"the seat of {place.player.id}"
        visitor.record(_arrival(place), grants.who, seat)
        try:
            # No await between the two, so that no event is lost between the history and what follows.
            outbox.put_json(self._welcome(grants, place, language=asked.get("language", "")))
            with self._hub.joined(outbox, PageReader(player, is_dm=grants.may(Action.DIRECT))):
                await PageSocket(socket, self._table, place, outbox, limits, visitor, self._deadlines.pulse).serve()
        finally:
            if place is not None:
                # A stopping server cancels this task here; the seat must still be left.
                await asyncio.shield(self._seats.stand(place, outbox=outbox))
                visitor.record(AuditKind.LEFT, grants.who, seat)

    async def _sit(self, socket: WebSocket, player: PlayerId, grants: Grants, outbox: PageOutbox) -> TakenSeat:
        """Take a seat as `Seats.sit` does, and send beats meanwhile while an ear opens."""
        claim = _claim(socket, is_owner=Grant(Role.PLAYER, player) in grants.held)
        sitting = asyncio.create_task(self._seats.sit(player, claim, outbox=outbox))
        try:
            while not (await asyncio.wait({sitting}, timeout=self._deadlines.pulse.every_ms / 1_000))[0]:
                await socket.send_json({"type": "beat"})
        except BaseException:  # also if the player is gone: the seat is taken, or will be
            for place in await end_tasks(sitting):
                if isinstance(place, TakenSeat):
                    await self._seats.stand(place, outbox=outbox)
            raise
        return sitting.result()

    def _welcome(self, grants: Grants, place: TakenSeat | None, *, language: str) -> Json:
        player = place.player if place is not None else None
        return {
            "type": "welcome",
            "player": {"id": player.id, "name": player.name} if player is not None else None,
            "ticket": place.ticket if place is not None else "",
            "lost_after_ms": self._deadlines.pulse.page_waits_ms,
            "ice_servers": [server.as_json() for server in self._ice_for(player.id)] if player is not None else [],
            "consent": self._consent_json(grants, player.id, language=language) if player is not None else None,
            "table": self._described(grants),
            "history": self._hub.history(player.id if player is not None else None, is_dm=grants.may(Action.DIRECT)),
        }

    def _ice_for(self, user: str) -> tuple[OfferedServer, ...]:
        return tuple(each.offered_to(user, now_s=int(time.time())) for each in self._entrance.ice_servers)

    def _described(self, grants: Grants) -> Json:
        """Describe the table for a page. Only the game master sees all scenes and their descriptions."""
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
            "players": self._players(),
            "seats": [player.id for player in campaign.players if grants.may(Action.PLAY, player.id)],
            "memory": memory_json(table.health),
            "lists_memory": self._remembered is not None,
            "is_paused": table.is_paused,
            "max_text_length": MAX_TEXT_LENGTH,
        }

    def _players(self) -> list[Json]:
        taken = self._seats.taken
        return [{"id": p.id, "name": p.name, "taken": p.id in taken} for p in self._table.campaign.players]

    def _consent_json(self, grants: Grants, player: PlayerId, *, language: str) -> Json | None:
        """Describe the consent in this language, if there is a text in it. None where nobody is asked."""
        if self._consents is None:
            return None
        text = self._consents.text_in(language)
        return {**asdict(text), "text": text.digest, "given_at_ms": self._consents.given_at_ms(grants, player)}

    def _may_be_heard(self, grants: Grants, player: PlayerId, sdp: str) -> bool:
        """Return whether an offer sends no sound, or its sender has agreed to be heard."""
        if self._consents is None or not sends_sound(sdp):
            return True
        return self._consents.given_at_ms(grants, player) is not None

    async def _refuse_sound(self, player: PlayerId) -> JSONResponse:
        """End the sound of a seat, and answer why."""
        await self._seats.hang_up(player)
        text = "this seat's player has not agreed to be heard; until then, listen and type"
        return PageProblem("no_consent", text, 403).answer()

    def _limits_of(self, player: PlayerId) -> SeatLimits:
        return self._limits[self._table.campaign.player(player).id]

    def tell_in_force(self, in_force: str, done: str) -> None:
        """Tell every page of a game master what another one has commanded."""
        message = {"type": "in_force", "in_force": in_force, "done": done}
        self._hub.send(message, to=lambda reader: reader.is_dm)

    def _tell_seats(self) -> None:
        self._hub.send({"type": "seats", "players": self._players()})


def _arrival(place: TakenSeat | None) -> AuditKind:
    if place is None:
        return AuditKind.WATCHES
    return AuditKind.SAT_DOWN if place.attempt <= 1 else AuditKind.CAME_BACK


def _claim(socket: WebSocket, *, is_owner: bool) -> SeatClaim:
    asked = socket.query_params
    attempt = asked.get("attempt", "")
    number = int(attempt) if attempt.isdecimal() and len(attempt) < 10 else 0
    return SeatClaim(asked.get("ticket", ""), number, is_owner)


async def _refuse(socket: WebSocket, error: GlyphoxaError) -> None:
    problem = problem_of(error)
    told = {"type": "refused", "code": problem.code, "message": problem.message, "values": problem.values}
    try:
        await socket.send_json(told)
        await socket.close(CLOSE_CODES[problem.code], reason=problem.code)
    except (WebSocketDisconnect, RuntimeError):
        logger.debug("the page closed before it was refused")


async def _join_page() -> FileResponse:
    """Return the page of a link. Browsers do not send the token after the `#`, so no log or preview contains it."""
    return FileResponse(STATIC / "join.html", media_type="text/html; charset=utf-8")


async def _page() -> FileResponse:
    return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")


# What is remembered of a player


LINES_PER_PAGE: Final = 30


@dataclass(frozen=True, slots=True)
class OwnLinesOfTable:
    """Players' own lines on their pages, and their decisions which of them are kept in memory.

    A player sees only their own lines, as they were heard, because a corrected name may be a secret.

    Attributes:
        now_ms: Unix time.
    """

    campaign: CampaignId
    session: SessionId
    transcript: PostgresInspection
    world: WorldHistory
    now_ms: Callable[[], int]

    async def lines(self, player: PlayerId, *, before: str | None) -> Json:
        """Return a page of a player's lines, newest first.

        Args:
            before: The last line of the previous page; None for the first page.
        """
        last = UtteranceId(before) if before else None
        found = await self.transcript.own_lines(self.campaign, SpeakerId(player), before=last, limit=LINES_PER_PAGE + 1)
        lines = [
            {"id": line.utterance_id, "at_ms": line.at_ms, "text": line.text, "state": _state(line)}
            for line in found[:LINES_PER_PAGE]
        ]
        return {"lines": lines, "has_more": len(found) > LINES_PER_PAGE}

    async def decide(self, player: PlayerId, body: RememberBody) -> int:
        """Withhold a player's own lines from memory, or allow them again. Returns the number of changed lines.

        Raises:
            InvalidInput: The body names neither a line nor the session, or both.
            Unavailable: The database cannot be reached; nothing changed.
        """
        if (body.line is None) is not body.session:
            raise InvalidInput("name either a line or the session")
        change = ConsentChange(
            SpeakerId(player),
            "given" if body.remember else "withheld",
            () if body.line is None else (UtteranceId(body.line),),
            self.session if body.session else None,
        )
        return len(await self.world.consent(self.campaign, change, Cause("player", self.now_ms())))


def _state(line: CitedUtterance) -> str:
    if line.is_withheld:
        return "withheld"
    return "retracted" if line.is_retracted else "given"
