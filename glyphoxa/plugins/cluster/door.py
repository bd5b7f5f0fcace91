"""The door: the one address of all tables. Any node answers there, so an ordinary load balancer may spread them.

A player's link names the campaign once (`/t/CAMPAIGN/join#...`); a cookie names it from then on, and the door passes
pages and messages to the node that has the table. It places a table that nobody has. Sound goes straight between the
browser and the node (WebRTC), never through the door. When a node is lost, the page reconnects to the same address,
and finds the table on another node.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp import web
from loguru import logger
from multidict import CIMultiDict
from yarl import URL

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId

COOKIE: Final = "glyphoxa_table"
OPENS_WITHIN_S: Final = 20.0
"""A request waits so long for a table that is being opened, or whose node was lost; then the page asks again."""
_POLL_S: Final = 0.2
_KNOWN_S: Final = 10.0
"""Another table may have the port of one that was closed."""
_COOKIE_S: Final = 90 * 24 * 3_600
_CAMPAIGN: Final = re.compile(r"[\w.-]{1,200}")
_HOP: Final = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade")
)
"""Headers for the next hop only: RFC 9110, section 7.6.1."""
_MAX_BYTES: Final = 64 * 1024 * 1024
_CONNECT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=100)

Find = Callable[[CampaignId], Awaitable[str]]
"""Returns the address of a campaign's table, with a trailing slash, and places it if nobody has it; "" while it is
being opened. Raises a GlyphoxaError if no node takes it."""


class Door:
    """An aiohttp application: `web.AppRunner(Door(find).app())`."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._known: dict[CampaignId, tuple[str, float]] = {}
        """Addresses, each with the time until which the directory is not asked again, unless one fails."""

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BYTES)
        app.router.add_get("/doorz", _health)
        app.router.add_get("/t/{campaign}/{page:.*}", self._knock)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        app.cleanup_ctx.append(self._client)
        return app

    async def _client(self, app: web.Application):  # type: ignore[no-untyped-def] # an async generator of aiohttp's own kind
        async with aiohttp.ClientSession(
            timeout=_CONNECT, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            self._session = session
            yield

    async def _knock(self, request: web.Request) -> web.StreamResponse:
        """Remember the campaign of a link in a cookie. The browser keeps the part after # through the redirect."""
        campaign = request.match_info["campaign"]
        if not _CAMPAIGN.fullmatch(campaign):
            return _problem(HTTPStatus.NOT_FOUND, "There is no such table.")
        response = web.HTTPSeeOther(f"/{request.match_info['page']}")
        is_secure = request.headers.get("X-Forwarded-Proto", request.scheme) == "https"
        response.set_cookie(COOKIE, campaign, max_age=_COOKIE_S, httponly=True, samesite="Lax", secure=is_secure)
        return response

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        campaign = CampaignId(request.cookies.get(COOKIE, ""))
        if not _CAMPAIGN.fullmatch(campaign):
            return _problem(HTTPStatus.NOT_FOUND, "Open the link that your game master sent you.")
        body = await request.read()
        until_s = time.monotonic() + OPENS_WITHIN_S
        while True:
            try:
                base = await self._address(campaign)
            except GlyphoxaError as error:
                logger.warning("{}", error)
                return _problem(HTTPStatus.SERVICE_UNAVAILABLE, "The table cannot be opened now; try again soon.")
            if not base:
                return _problem(HTTPStatus.SERVICE_UNAVAILABLE, "The table is being opened; try again in a moment.")
            try:
                if request.headers.get("Upgrade", "").lower() == "websocket":
                    return await self._socket(request, base)
                return await self._answer(request, base, body)
            except (aiohttp.ClientConnectionError, TimeoutError) as error:
                self._known.pop(campaign, None)
                # The node may have acted on what it took: only what it cannot have taken is sent again.
                is_repeatable = request.method == "GET" or isinstance(error, aiohttp.ClientConnectorError)
                if not is_repeatable or time.monotonic() > until_s:
                    return _problem(HTTPStatus.BAD_GATEWAY, "The table does not answer; try again in a moment.")
                await asyncio.sleep(_POLL_S)  # its node was lost, and the lease has not run out yet

    async def _address(self, campaign: CampaignId) -> str:
        if (known := self._known.get(campaign)) is not None and known[1] > time.monotonic():
            return known[0]
        until_s = time.monotonic() + OPENS_WITHIN_S
        while True:
            try:
                if found := await self._find(campaign):
                    self._known[campaign] = found, time.monotonic() + _KNOWN_S
                    return found
            except GlyphoxaError:  # a node that was lost may be about to return
                if time.monotonic() > until_s:
                    raise
            if time.monotonic() > until_s:
                return ""
            await asyncio.sleep(_POLL_S)

    async def _answer(self, request: web.Request, base: str, body: bytes) -> web.StreamResponse:
        url, headers = _at(base, request), _forwarded(request)
        async with self._session.request(
            request.method, url, headers=headers, data=body, allow_redirects=False
        ) as answer:
            passed = CIMultiDict((name, value) for name, value in answer.headers.items() if name.lower() not in _HOP)
            response = web.StreamResponse(status=answer.status, headers=passed)
            await response.prepare(request)
            try:
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                await response.write_eof()
            except aiohttp.ClientError:  # the browser sees that the answer is cut off
                if request.transport is not None:
                    request.transport.abort()
        return response

    async def _socket(self, request: web.Request, base: str) -> web.StreamResponse:
        own = {name for name in request.headers if name.lower().startswith("sec-websocket")}
        headers = CIMultiDict((name, value) for name, value in _forwarded(request).items() if name not in own)
        async with self._session.ws_connect(_at(base, request), headers=headers, max_msg_size=_MAX_BYTES) as node:
            page = web.WebSocketResponse(max_msg_size=_MAX_BYTES)
            await page.prepare(request)
            directions = [asyncio.create_task(_relay(page, node)), asyncio.create_task(_relay(node, page))]
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for each in directions:
                each.cancel()
            code = node.close_code
            # 1006 says that no closing message came: the node is lost, and the page may come back at once.
            await page.close(code=1012 if code is None or code == 1006 else code)
        return page


Socket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse


async def _relay(source: Socket, target: Socket) -> None:
    async for message in source:
        if message.type is aiohttp.WSMsgType.TEXT:
            await target.send_str(message.data)
        elif message.type is aiohttp.WSMsgType.BINARY:
            await target.send_bytes(message.data)


def _at(base: str, request: web.Request) -> URL:
    """Return the address of a request at the node, as it was written: a path may hold a quoted slash."""
    return URL(f"{base.rstrip('/')}{request.raw_path}", encoded=True)


def _forwarded(request: web.Request) -> CIMultiDict[str]:
    headers = CIMultiDict((name, value) for name, value in request.headers.items() if name.lower() not in _HOP)
    before = request.headers.get("X-Forwarded-For")
    headers["X-Forwarded-For"] = f"{before}, {request.remote}" if before else str(request.remote)
    headers.setdefault("X-Forwarded-Proto", request.scheme)
    return headers


def _problem(status: HTTPStatus, text: str) -> web.Response:
    return web.Response(status=status, text=text, headers={"Retry-After": "1", "Cache-Control": "no-store"})


async def _health(_request: web.Request) -> web.Response:
    return web.Response(text="ok")
