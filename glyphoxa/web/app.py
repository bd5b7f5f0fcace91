"""The page and what it talks to. See `docs/web.md` for the messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse, JSONResponse
from loguru import logger
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.staticfiles import StaticFiles

from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, Unavailable
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.table import Table
from glyphoxa.web.events import Json, memory_json, scene_json
from glyphoxa.web.guard import Guard
from glyphoxa.web.hub import Hub, PageOutbox, Shut
from glyphoxa.web.page_socket import MAX_TEXT_LENGTH, PageSocket, Pulse, Rationed, error_code, first_problem, in_words
from glyphoxa.web.peer import ConnectPeer, Offer
from glyphoxa.web.ration import SeatRations
from glyphoxa.web.seats import Deadlines, SeatClaim, Seats, SeatTaken, TakenSeat

STATIC = Path(__file__).parent / "static"
MAX_OFFER_BYTES = 64 * 1024
BODY_WITHIN_MS = 10_000

CLOSE_CODES = {
    "invalid": 4404,
    "not_found": 4404,
    "seat_taken": 4409,
    "superseded": Shut.TAKEN_OVER.code,
    "unavailable": Shut.CLOSED.code,
    "rationed": Shut.CLOSED.code,
}
"""Of a websocket that is refused, by what its message says."""


class OfferBody(BaseModel):
    """What the page posts. `ticket` is the one its websocket was welcomed with."""

    model_config = ConfigDict(extra="forbid")

    player: str = Field(min_length=1, max_length=200)
    sdp: str = Field(min_length=1)
    type: str = Field(pattern="^offer$")
    ticket: str | None = Field(default=None, max_length=200)


def create_app(
    table: Table,
    *,
    connect: ConnectPeer,
    allowed_hosts: Collection[str] = (),
    deadlines: Deadlines | None = None,
    pulse: Pulse | None = None,
) -> FastAPI:
    """
    Args:
        connect: Answers WebRTC offers for this table.
        allowed_hosts: DNS names, besides localhost and addresses, under which the page may be opened.
        deadlines: Of what is done with a seat.
        pulse: How a page and the server notice that they have lost each other.
    """
    web = _Web(table, connect, deadlines, pulse or Pulse())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with web.watching():
            yield

    app = FastAPI(title="Glyphoxa", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard, allowed_hosts=allowed_hosts)
    app.add_exception_handler(InvalidInput, _on_invalid_input)
    app.add_exception_handler(Unavailable, _on_unavailable)
    app.add_api_route("/", _page, methods=["GET"])
    app.add_api_route("/healthz", web.health, methods=["GET"])
    app.add_api_route("/readyz", web.ready, methods=["GET"])
    app.add_api_route("/api/table", web.describe, methods=["GET"])
    app.add_api_route("/api/offer", web.offer, methods=["POST"])
    app.add_api_websocket_route("/ws", web.socket)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


class _Web:
    def __init__(self, table: Table, connect: ConnectPeer, deadlines: Deadlines | None, pulse: Pulse) -> None:
        self._table = table
        self._pulse = pulse
        self._rations = {player.id: SeatRations() for player in table.campaign.players}
        self._hub = Hub(table)
        self._seats = Seats(table, connect, on_change=self._tell_seats, deadlines=deadlines)
        self._is_watching = False

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
            self._hub.shut()

    async def ready(self) -> JSONResponse:
        if not self._is_watching:
            return _error("not_ready", "the table is not open", status=503)
        if blocked := self._seats.blocked:
            return _error("not_ready", "; ".join(blocked), status=503)
        return JSONResponse({"ready": True, "session": self._table.session})

    async def health(self) -> Json:
        """The process lives. It does so without its memory too, so that nobody restarts it for that."""
        trouble = [*self._seats.blocked, *self._seats.hanging]
        return {"ok": not trouble, "trouble": trouble, "memory": memory_json(self._table.health)}

    async def describe(self) -> Json:
        return self._description()

    def _description(self) -> Json:
        campaign = self._table.campaign
        return {
            "campaign": {"id": campaign.id, "name": campaign.name, "language": campaign.language},
            "session": self._table.session,
            "scene": scene_json(self._table.scene, campaign),
            "scenes": [scene_json(scene, campaign) for scene in campaign.scenes],
            "players": self._players(),
            "npcs": [{"id": npc.id, "name": npc.name} for npc in campaign.npcs],
            "memory": memory_json(self._table.health),
            "max_text_length": MAX_TEXT_LENGTH,
        }

    async def offer(self, request: Request) -> JSONResponse:
        content = bytearray()
        try:
            async with asyncio.timeout(BODY_WITHIN_MS / 1_000):
                async for chunk in request.stream():
                    content += chunk
                    if len(content) > MAX_OFFER_BYTES:
                        return _error("too_large", f"an offer has at most {MAX_OFFER_BYTES} bytes", status=413)
        except TimeoutError:
            return _error("too_slow", f"the offer did not arrive within {BODY_WITHIN_MS} ms", status=408)
        try:
            body = OfferBody.model_validate_json(bytes(content))
        except ValidationError as error:
            return _error("invalid_request", first_problem(error), status=422)
        player = PlayerId(body.player)
        if wait_ms := self._rations_of(player).offers.take(at_ms=_now_ms()):
            return _error("rationed", f"too many offers for this seat; try again in {wait_ms} ms", status=429)
        host = request.client.host if request.client else ""
        place, sdp = await self._seats.connect_peer(player, Offer(body.sdp, host), ticket=body.ticket or "")
        return JSONResponse({"sdp": sdp, "type": "answer", "ticket": place.ticket})

    async def socket(self, socket: WebSocket) -> None:
        await socket.accept()
        player = PlayerId(socket.query_params.get("player", ""))
        outbox = PageOutbox()
        try:
            if wait_ms := self._rations_of(player).sittings.take(at_ms=_now_ms()):
                raise Rationed("this seat is asked for", wait_ms=wait_ms)
            place = await self._sit(socket, player, outbox)
        except GlyphoxaError as error:
            await _refuse(socket, error)
            return
        except (WebSocketDisconnect, RuntimeError):
            logger.debug("the page had gone before it was seated")
            return
        try:
            # Nothing is awaited between the two, so no event falls between the history and what follows.
            outbox.put_json(self._welcome(place))
            with self._hub.joined(outbox, place.player.id):
                rations = self._rations_of(place.player.id)
                await PageSocket(socket, self._table, place, outbox, rations=rations, pulse=self._pulse).serve()
        finally:
            # A server that stops cancels us here; the seat must be left all the same.
            await asyncio.shield(self._seats.stand(place, outbox=outbox))

    async def _sit(self, socket: WebSocket, player: PlayerId, outbox: PageOutbox) -> TakenSeat:
        """As `Seats.sit`, with beats meanwhile: an ear may take longer to open than a page waits in silence."""
        sitting = asyncio.create_task(self._seats.sit(player, _claim(socket), outbox=outbox))
        try:
            while not (await asyncio.wait({sitting}, timeout=self._pulse.every_ms / 1_000))[0]:
                await socket.send_json({"type": "beat"})
        except BaseException:  # also of a player who is gone: the seat is taken by then, or will be
            sitting.cancel()
            for place in await asyncio.gather(sitting, return_exceptions=True):
                if isinstance(place, TakenSeat):
                    await self._seats.stand(place, outbox=outbox)
            raise
        return sitting.result()

    def _welcome(self, place: TakenSeat) -> Json:
        return {
            "type": "welcome",
            "player": {"id": place.player.id, "name": place.player.name},
            "ticket": place.ticket,
            "lost_after_ms": self._pulse.page_waits_ms,
            "table": self._description(),
            "history": self._hub.history(place.player.id),
        }

    def _rations_of(self, player: PlayerId) -> SeatRations:
        return self._rations[self._table.campaign.player(player).id]

    def _players(self) -> list[Json]:
        taken = self._seats.taken
        return [{"id": p.id, "name": p.name, "taken": p.id in taken} for p in self._table.campaign.players]

    def _tell_seats(self) -> None:
        self._hub.tell({"type": "seats", "players": self._players()})


def _claim(socket: WebSocket) -> SeatClaim:
    asked = socket.query_params
    attempt = asked.get("attempt", "")
    return SeatClaim(asked.get("ticket", ""), int(attempt) if attempt.isdecimal() and len(attempt) < 10 else 0)


async def _refuse(socket: WebSocket, error: GlyphoxaError) -> None:
    code = error_code(error)
    try:
        await socket.send_json({"type": "refused", "code": code, "message": in_words(error)})
        await socket.close(CLOSE_CODES[code], reason=code)
    except (WebSocketDisconnect, RuntimeError):
        logger.debug("the page had gone before it was refused")


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1_000)


async def _page() -> FileResponse:
    return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")


async def _on_invalid_input(_: Request, error: Exception) -> JSONResponse:
    status = 409 if isinstance(error, SeatTaken) else 404 if isinstance(error, NotFound) else 400
    return _error(error_code(error), str(error), status=status)


async def _on_unavailable(_: Request, error: Exception) -> JSONResponse:
    return _error("unavailable", in_words(error), status=503)


def _error(code: str, message: str, *, status: int) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)
