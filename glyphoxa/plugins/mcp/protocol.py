"""Serves a `ToolOffer` over MCP with the official SDK: on standard input and output, or as an ASGI app.

The SDK takes a second to import, so only modules that need a server or client import this one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.plugins.mcp.offered import ToolOffer

PATH: Final = "/mcp"
_MAX_BYTES: Final = 64 * 1024
"""Maximum size of one request."""


def server_of(name: str, offer: ToolOffer, *, instructions: str = "") -> Server[Any]:
    """
    Args:
        instructions: Instructions for models that use the tools.
    """

    async def list_tools(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_declared(spec) for spec in offer.specs])

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        answered = await offer.call(params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=answered.text)], is_error=answered.is_error)

    return Server(
        name,
        version=version("glyphoxa"),
        instructions=instructions or None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until standard input ends. Standard output carries only the protocol."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def app_of(server: Server[Any], *, host: str) -> Starlette:
    """Streamable HTTP at `PATH`. Stateless: nothing is kept between requests.

    Args:
        host: Address of the server. On a loopback address, other Host headers are refused (DNS rebinding).
    """
    app: Starlette = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=_MAX_BYTES,
        host=host,
    )
    return app


def _declared(spec: ToolSpec) -> Tool:
    return Tool(
        name=spec.wire_name,
        description=spec.description,
        input_schema={**spec.schema, "additionalProperties": False},
        annotations=ToolAnnotations(read_only_hint=not spec.writes, open_world_hint=False),
    )


# Access over HTTP: callers need a token, and each token has its own app.
#
# A caller without a token learns nothing of what is served. The apps of different tokens are independent.


NPC_TOKEN: Final = "GLYPHOXA_MCP_TOKEN"  # noqa: S105 - a variable's name
DM_TOKEN: Final = "GLYPHOXA_MCP_DM_TOKEN"  # noqa: S105 - a command, not a password
_SHORTEST: Final = 16
_HOW: Final = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))' creates one"


def token_from(environ: Mapping[str, str], variable: str) -> str:
    """
    Raises:
        InvalidInput: It is not set, or too easily guessed.
    """
    token = environ.get(variable, "").strip()
    if not token:
        raise InvalidInput(f"environment variable {variable} is not set: it must hold the token for callers; {_HOW}")
    if len(token) < _SHORTEST:
        raise InvalidInput(
            f"the token in {variable} has {len(token)} characters; at least {_SHORTEST} are needed; {_HOW}"
        )
    return token


def guarded(apps: Mapping[str, Starlette]) -> Starlette:
    """Combine the apps into one that checks tokens.

    Args:
        apps: Apps by token.
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
            {"error": "missing or invalid token: send `Authorization: Bearer TOKEN`"},
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
        for known, its_app in self._apps:
            if hmac.compare_digest(shown, known):
                app = its_app
        await app(scope, receive, send)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
