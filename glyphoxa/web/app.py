"""The page and what it talks to. See `docs/web.md` for the messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse, JSONResponse
from loguru import logger
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.staticfiles import StaticFiles

from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, Unavailable
from glyphoxa.domain.ids import PlayerId, SceneId
from glyphoxa.npc.table import Table
from glyphoxa.web.events import Json, memory_json, scene_json
from glyphoxa.web.guard import Guard
from glyphoxa.web.hub import Hub, Outbox, Shut
from glyphoxa.web.peer import ConnectPeer, Offer
from glyphoxa.web.seats import Claim, Deadlines, Place, Seats, SeatTaken, Superseded

STATIC = Path(__file__).parent / "static"
MAX_OFFER_BYTES = 64 * 1024
MAX_TEXT_LENGTH = 600

CLOSE_CODES = {
    "invalid": 4404,
    "not_found": 4404,
    "seat_taken": 4409,
    "superseded": Shut.TAKEN_OVER.code,
    "unavailable": Shut.CLOSED.code,
}
"""Of a websocket that is refused, by what its message says."""


class OfferBody(BaseModel):
    """What the page posts. `ticket` is the one its websocket was welcomed with."""

    model_config = ConfigDict(extra="forbid")

    player: str = Field(min_length=1, max_length=200)
    sdp: str = Field(min_length=1)
    type: str = Field(pattern="^offer$")
    ticket: str | None = Field(default=None, max_length=200)


class PageMessage(BaseModel):
    """What the page sends over its websocket: exactly one of the two."""

    model_config = ConfigDict(extra="forbid")

    say: str | None = Field(default=None, max_length=MAX_TEXT_LENGTH)
    move: str | None = Field(default=None, max_length=200)


def create_app(
    table: Table,
    *,
    connect: ConnectPeer,
    allowed_hosts: Collection[str] = (),
    deadlines: Deadlines | None = None,
) -> FastAPI:
    """
    Args:
        connect: Answers WebRTC offers for this table.
        allowed_hosts: DNS names, besides localhost and addresses, under which the page may be opened.
        deadlines: Of what is done with a seat.
    """
    web = _Web(table, connect, deadlines)

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
    def __init__(self, table: Table, connect: ConnectPeer, deadlines: Deadlines | None) -> None:
        self._table = table
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
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_OFFER_BYTES:
                return _error("too_large", f"an offer has at most {MAX_OFFER_BYTES} bytes", status=413)
        try:
            body = OfferBody.model_validate_json(bytes(content))
        except ValidationError as error:
            return _error("invalid_request", _first_problem(error), status=422)
        host = request.client.host if request.client else ""
        place, sdp = await self._seats.connect_peer(
            PlayerId(body.player), Offer(body.sdp, host), ticket=body.ticket or ""
        )
        return JSONResponse({"sdp": sdp, "type": "answer", "ticket": place.ticket})

    async def socket(self, socket: WebSocket) -> None:
        await socket.accept()
        player = PlayerId(socket.query_params.get("player", ""))
        outbox = Outbox()
        try:
            place = await self._seats.sit(player, _claim(socket), outbox=outbox)
        except GlyphoxaError as error:
            await _refuse(socket, error)
            return
        try:
            # Nothing is awaited between the two, so no event falls between the history and what follows.
            outbox.put_json(self._welcome(place))
            with self._hub.joined(outbox):
                await self._serve(socket, place, outbox)
        finally:
            # A server that stops cancels us here; the seat must be left all the same.
            await asyncio.shield(self._seats.stand(place, outbox=outbox))

    async def _serve(self, socket: WebSocket, place: Place, outbox: Outbox) -> None:
        reading = asyncio.create_task(self._read(socket, place, outbox))
        writing = asyncio.create_task(_write(socket, outbox))
        try:
            await asyncio.wait((reading, writing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)

    async def _read(self, socket: WebSocket, place: Place, outbox: Outbox) -> None:
        while True:
            try:
                await self._obey(await socket.receive_text(), place)
            except (WebSocketDisconnect, RuntimeError):
                # Starlette raises RuntimeError when the socket was closed from our side meanwhile.
                return
            except KeyError:
                outbox.put_json({"type": "error", "code": "invalid_message", "message": "messages are JSON text"})
            except GlyphoxaError as error:
                outbox.put_json({"type": "error", "code": _code(error), "message": str(error)})

    async def _obey(self, text: str, place: Place) -> None:
        try:
            message = PageMessage.model_validate_json(text)
        except ValidationError as error:
            raise InvalidInput(_first_problem(error)) from None
        match message:
            case PageMessage(say=str(words), move=None) if words.strip():
                self._table.say(place.player.id, words.strip())
            case PageMessage(say=None, move=str(scene)):
                await self._table.move(SceneId(scene))
            case _:
                raise InvalidInput('a message is either {"say": "some text"} or {"move": "a scene"}')

    def _welcome(self, place: Place) -> Json:
        return {
            "type": "welcome",
            "player": {"id": place.player.id, "name": place.player.name},
            "ticket": place.ticket,
            "table": self._description(),
            "history": self._hub.history,
        }

    def _players(self) -> list[Json]:
        taken = self._seats.taken
        return [{"id": p.id, "name": p.name, "taken": p.id in taken} for p in self._table.campaign.players]

    def _tell_seats(self) -> None:
        self._hub.tell({"type": "seats", "players": self._players()})


async def _write(socket: WebSocket, outbox: Outbox) -> None:
    while (message := await outbox.next()) is not None:
        try:
            await socket.send_text(message)
        except (WebSocketDisconnect, RuntimeError):
            return
    why = outbox.why_shut or Shut.CLOSED
    try:
        await socket.close(why.code, reason=why.reason)
    except (WebSocketDisconnect, RuntimeError):
        logger.debug("the page had gone before it was told to")


def _claim(socket: WebSocket) -> Claim:
    asked = socket.query_params
    attempt = asked.get("attempt", "")
    return Claim(asked.get("ticket", ""), int(attempt) if attempt.isdecimal() and len(attempt) < 10 else 0)


async def _refuse(socket: WebSocket, error: GlyphoxaError) -> None:
    code = _code(error)
    try:
        await socket.send_json({"type": "refused", "code": code, "message": str(error)})
        await socket.close(CLOSE_CODES[code], reason=code)
    except (WebSocketDisconnect, RuntimeError):
        logger.debug("the page had gone before it was refused")


async def _page() -> FileResponse:
    return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")


async def _on_invalid_input(_: Request, error: Exception) -> JSONResponse:
    status = 409 if isinstance(error, SeatTaken) else 404 if isinstance(error, NotFound) else 400
    return _error(_code(error), str(error), status=status)


async def _on_unavailable(_: Request, error: Exception) -> JSONResponse:
    logger.warning("a page was refused: {}", error)
    return _error("unavailable", "something that the table needs is away; the DM's log says what", status=503)


def _code(error: Exception) -> str:
    names = (SeatTaken, "seat_taken"), (Superseded, "superseded"), (NotFound, "not_found"), (Unavailable, "unavailable")
    return next((name for kind, name in names if isinstance(error, kind)), "invalid")


def _error(code: str, message: str, *, status: int) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)


def _first_problem(error: ValidationError) -> str:
    problem: dict[str, Any] = dict(error.errors(include_url=False, include_input=False)[0])
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])
