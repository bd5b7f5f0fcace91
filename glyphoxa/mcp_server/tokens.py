"""Who may call over HTTP: whoever shows a token, and each token has an app of its own.

A caller without one is told nothing of what is served. The app behind one token does not know those behind another.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from glyphoxa.domain.errors import InvalidInput

NPC_TOKEN: Final = "GLYPHOXA_MCP_TOKEN"  # noqa: S105 - a variable's name
DM_TOKEN: Final = "GLYPHOXA_MCP_DM_TOKEN"  # noqa: S105 - likewise
_SHORTEST: Final = 16
_HOW: Final = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"


def token_from(environ: Mapping[str, str], variable: str) -> str:
    """
    Raises:
        InvalidInput: It is not set, or too easily guessed.
    """
    token = environ.get(variable, "").strip()
    if not token:
        raise InvalidInput(f"environment variable {variable} is not set: it holds the token of who may call; {_HOW}")
    if len(token) < _SHORTEST:
        raise InvalidInput(
            f"the token in {variable} has {len(token)} characters; at least {_SHORTEST} are needed; {_HOW}"
        )
    return token


def guarded(apps: Mapping[str, Starlette]) -> Starlette:
    """One app for all.

    Args:
        apps: By their tokens.
    """

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    return Starlette(routes=[Mount("/", _Gate(apps))], lifespan=lifespan)


class _Gate:
    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = [(_digest(token), app) for token, app in apps.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        shown = _digest(token.strip() if scheme.lower() == "bearer" else "")
        app: ASGIApp = JSONResponse(
            {"error": "no token, or a wrong one: send `Authorization: Bearer TOKEN`"},
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
        for known, its_app in self._apps:
            if hmac.compare_digest(shown, known):
                app = its_app
        await app(scope, receive, send)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
