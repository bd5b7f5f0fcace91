"""Keeps other sites' pages away from the table.

A page of another origin may send requests to a server on this machine, and by rebinding a DNS name it may even
look like the same origin. So a request that changes something must come from our own page (Origin equals Host),
and Host must be a name that no stranger can point here: an IP address, localhost, or one that was allowed.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Whether a Host header names this server in a way that cannot be rebound. Ports do not matter."""
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
