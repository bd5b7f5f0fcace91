"""Requirements for requests to the table: from our own page, small and fast. And errors, in the page's format.

A page of another origin may send requests to a server on this machine, and by rebinding a DNS name it may even
look like the same origin. So a request that changes something must come from our own page (Origin equals Host),
and Host must be a name that no stranger can point here: an IP address, localhost, or one that was allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import JSONResponse
from loguru import logger
from pydantic import ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.web.access.roles import Refusal
from glyphoxa.web.seats import NotNow

_T = TypeVar("_T")

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "X-Content-Type-Options": "nosniff",
    # To this page's own server alone: with "no-referrer" a browser posts forms with the origin "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    # A browser asks again on a connection that it kept, also on one that died with its network: answers never come.
    "Connection": "close",
}


def is_allowed_host(host: str, *, allowed: Collection[str]) -> bool:
    """Return whether a Host header names this server in a way that cannot be rebound. Ports do not matter."""
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    if name is None:
        return False
    if name == "localhost" or name.endswith(".localhost") or name in allowed:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_same_origin(origin: str | None, host: str) -> bool:
    if origin is None:
        return False
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


class Guard:
    """ASGI middleware: refuses foreign hosts and origins, and adds the security headers to every response."""

    def __init__(self, app: ASGIApp, *, allowed_hosts: Collection[str] = ()) -> None:
        self._app = app
        self._allowed_hosts = frozenset(name.lower() for name in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = ""
        changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD", "OPTIONS")
        if not is_allowed_host(host, allowed=self._allowed_hosts):
            refusal = f"host {host!r} is not served here; use the address the server printed, or --allow-host"
        elif changes and not is_same_origin(headers.get("origin"), host):
            refusal = f"origin {headers.get('origin')!r} is not this page ({host})"
        if not refusal:
            await self._app(scope, receive, send_with_headers)
        elif scope["type"] == "http":
            response = JSONResponse({"error": {"code": "foreign_origin", "message": refusal}}, status_code=403)
            await response(scope, receive, send_with_headers)
        else:
            # Closing before accepting is answered to the browser as HTTP 403.
            await receive()
            await send({"type": "websocket.close", "code": 4403, "reason": "foreign origin"})


MAX_BODY_BYTES = 64 * 1024
BODY_WITHIN_MS = 10_000


class TooSlow(Refusal):
    status = 408

    def __init__(self) -> None:
        super().__init__(f"the request did not arrive within {BODY_WITHIN_MS} ms")


class TooLarge(Refusal):
    status = 413

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"a request may have at most {most_bytes} bytes")


async def content_of(request: Request, *, most_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Raises: InvalidInput: It is too long, or too slow to come."""
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN_MS / 1_000):
            async for chunk in request.stream():
                content += chunk
                if len(content) > most_bytes:
                    raise TooLarge(most_bytes)
    except TimeoutError:
        raise TooSlow from None
    return bytes(content)


async def receive_file(request: Request, path: Path, *, most_bytes: int) -> None:
    """Write the body of a request into a new file, piece by piece.

    Raises:
        InvalidInput: It is too long, a piece is too slow to come, or the sender has gone.
        Unavailable: The file cannot be written.
    """
    pieces, n_bytes = request.stream(), 0
    try:
        with path.open("xb") as file:
            while True:
                async with asyncio.timeout(BODY_WITHIN_MS / 1_000):
                    piece = await anext(pieces, b"")
                if not piece:
                    return
                n_bytes += len(piece)
                if n_bytes > most_bytes:
                    raise TooLarge(most_bytes)
                await asyncio.to_thread(file.write, piece)
    except TimeoutError:
        raise TooSlow from None
    except ClientDisconnect:
        raise InvalidInput("the upload was cancelled") from None
    except OSError as error:
        raise Unavailable(f"the file cannot be stored for reading: {error.strerror or error}") from None


async def while_connected(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of work, which is cancelled if the sender of a received body leaves or the server stops.

    Raises:
        InvalidInput: It was cancelled.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())  # after its body, nothing comes of a request but its end
    leaving.add_done_callback(lambda _: working.cancel())
    try:
        return await working
    except asyncio.CancelledError:
        raise InvalidInput("the upload was cancelled") from None
    finally:
        leaving.cancel()


@dataclass(frozen=True, slots=True)
class PageProblem:
    """An error as a page is told it.

    Attributes:
        code: One word.
        status: Status of the HTTP response.
        values: Those of a `Refusal`.
    """

    code: str
    message: str
    status: int
    values: dict[str, str | int] = field(default_factory=dict)

    def answer(self) -> JSONResponse:
        error = {"code": self.code, "message": self.message, "values": self.values}
        return JSONResponse({"error": error}, status_code=self.status)


_KINDS: Final = (
    (NotFound, "not_found", 404),
    (ValidationError, "invalid_request", 422),
    (Unavailable, "unavailable", 503),
    (Exception, "invalid", 400),
)


def problem_of(error: Exception) -> PageProblem:
    """Describe an error for a page."""
    if isinstance(error, Refusal):
        return PageProblem(error.code, str(error), error.status, error.values)
    code, status = next((code, status) for kind, code, status in _KINDS if isinstance(error, kind))
    return PageProblem(code, in_words(error), status)


async def on_error(_: HTTPConnection, error: Exception) -> JSONResponse:
    """Answer a request that failed."""
    return problem_of(error).answer()


def in_words(error: Exception) -> str:
    """Describe an error for players. Answers of providers and the database are for the DM, and are logged."""
    if isinstance(error, InvalidInput | NotNow):
        return str(error)
    if isinstance(error, ValidationError):
        return first_problem(error)
    logger.warning("a page was refused: {}", error)
    return "something the table needs is unavailable; see the DM's log"


def first_problem(error: ValidationError) -> str:
    """Describe the first mistake of a request."""
    problem = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])
