"""Offers tools to other programs over the Model Context Protocol (MCP): on standard input and output, or over HTTP.

Every call gets a response: the result, or one sentence that describes the error. Request and response sizes are
limited. No response contains a traceback or an error text of a server or database.

The SDK takes a second to import, so only what serves tools imports this module.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version
from itertools import takewhile
from typing import Any, Final

from loguru import logger
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

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, Unavailable, did_you_mean
from glyphoxa.language.sentences import RoomLeft, shortened
from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.tool_spec import CallableTool, Found, ToolSpec
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.recall.recall import RecallSettings

_DEADLINE_MS: Final = 10_000
MAX_ANSWERED: Final = 40_000
"""Maximum characters of one response."""
_LONGEST_ERROR: Final = 1_000
_LONGEST_NAME: Final = 80


class ToolOffer:
    """The tools of one caller. All other tools are invisible to it.

    Args:
        deadline_ms: Time limit of one call.
    """

    def __init__(self, tools: Sequence[CallableTool], *, deadline_ms: int = _DEADLINE_MS) -> None:
        self._tools = {tool.spec.wire_name: tool for tool in tools}
        self._deadline_ms = deadline_ms

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    async def call(self, name: str, arguments: Mapping[str, object]) -> CallToolResult:
        """Call a tool. Never raises, never exceeds the deadline. The text is JSON; of an error, a sentence."""
        try:
            async with asyncio.timeout(self._deadline_ms / 1_000):
                return _result(_fitting(await self._tool(name, arguments).call(arguments)))
        except TimeoutError:
            return _wrong(f"{name} took too long; ask for less or try later")
        except InvalidInput as wrong:
            return _wrong(str(wrong))
        except Unavailable as away:
            logger.warning("MCP tool {}: {}", name, away)
        except GlyphoxaError as failed:
            logger.error("MCP tool {} failed: {}", name, failed)
        except Exception as broken:
            # The boundary between tool and caller: a bug costs this response, never the server.
            logger.opt(exception=broken).error("MCP tool {} crashed", name)
        return _wrong("memory cannot be reached now; try again later")

    def _tool(self, name: str, arguments: Iterable[str]) -> CallableTool:
        if name not in self._tools:
            raise NotFound(f"no tool {shortened(name, _LONGEST_NAME)!r}: {did_you_mean(name, self._tools)}")
        tool = self._tools[name]
        if unknown := [key for key in arguments if key not in tool.spec.parameters]:
            known = did_you_mean(unknown[0], tool.spec.parameters)
            raise InvalidInput(f"{name} has no argument {shortened(unknown[0], _LONGEST_NAME)!r}: {known}")
        return tool


def _fitting(found: Mapping[str, object]) -> str:
    """A response as JSON, with fewer entries if all of them are too long."""
    entries = found.get("found")
    text = json.dumps(found, ensure_ascii=False)
    if len(text) <= MAX_ANSWERED or not isinstance(entries, list):
        return text if len(text) <= MAX_ANSWERED else json.dumps({"found": [], "note": "too long to return"})
    room = RoomLeft(MAX_ANSWERED)
    kept = [*takewhile(lambda entry: room.takes(len(json.dumps(entry, ensure_ascii=False)) + 2), entries)]
    note = f"{len(entries) - len(kept)} more did not fit: ask for less"
    return json.dumps({**found, "found": kept, "note": note}, ensure_ascii=False)


def _wrong(sentence: str) -> CallToolResult:
    return _result(sentence[:_LONGEST_ERROR], is_error=True)


def _result(text: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)


# An NPC's memory tools for external callers: the functions that its own model calls, with the NPC as viewer.


_TIER: Final[BudgetTier] = "DEEP"
"""No player waits for these answers."""

PATIENT: Final = RecallSettings(
    deadline_ms=3_000, patient_embed_deadline_ms=2_000, refresh_deadline_ms=10_000, summaries_deadline_ms=2_000
)
"""Within the limit of a tool of that tier; the first question reads years of transcripts."""


def memory_tools(memory: NpcMemory) -> list[CallableTool]:
    """All four memory tools. The viewer is fixed here; no argument of a call changes it."""
    tools = Toolbox(memory, tier=_TIER)
    return [CallableTool(spec, partial(tools.ask, spec.name)) for spec in tools.declared]


# The example server of `glyphoxa mcp dice`: one tool that rolls dice.


_DICE: Final = re.compile(r"([0-9]{0,3})\s*[dwDW]\s*([0-9]{1,4}|%)\s*(?:([+-])\s*([0-9]{1,4}))?")
_MAX_DICE: Final = 100
_MAX_SIDES: Final = 1_000

ROLL: Final = ToolSpec(
    "roll",
    "Roll dice and get the result. Use it whenever a roll is asked for; never make up a result.",
    {"dice": {"type": "string", "description": "Which dice: d20, 2d6, 3d8+4 or d100"}},
    ("dice",),
    50,
)


def roll(dice: str, *, die: Callable[[int], int]) -> Found:
    """
    Args:
        die: Rolls one die with so many sides: a number from 1.

    Raises:
        InvalidInput: The text is not dice notation.
    """
    read = _DICE.fullmatch(dice.strip())
    if read is None:
        raise InvalidInput(f"{dice[:80]!r} is not dice notation; valid: d20, 2d6, 3d8+4 or d100")
    n_dice = int(read[1] or 1)
    n_sides = 100 if read[2] == "%" else int(read[2])
    if not 1 <= n_dice <= _MAX_DICE or not 2 <= n_sides <= _MAX_SIDES:
        raise InvalidInput(f"{dice[:80]!r}: 1 to {_MAX_DICE} dice with 2 to {_MAX_SIDES:,} sides can be rolled")
    rolled = [die(n_sides) for _ in range(n_dice)]
    added = int(f"{read[3]}{read[4]}") if read[3] else 0
    return {"found": [{"dice": dice.strip(), "rolled": rolled, "total": sum(rolled) + added}]}


def dice_tools() -> list[CallableTool]:
    chance = random.SystemRandom()

    async def ask(arguments: Mapping[str, object]) -> Found:
        return roll(str(arguments["dice"]), die=lambda sides: chance.randint(1, sides))

    return [CallableTool(ROLL, ask)]


# The protocol: a `ToolOffer` with the official SDK, on standard input and output, or as an ASGI app.


PATH: Final = "/mcp"
_MAX_REQUEST_BYTES: Final = 64 * 1024
"""Maximum size of one request."""


def server_of(name: str, offer: ToolOffer) -> Server[Any]:
    async def list_tools(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_declared(spec) for spec in offer.specs])

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        return await offer.call(params.name, params.arguments or {})

    return Server(name, version=version("glyphoxa"), on_list_tools=list_tools, on_call_tool=call_tool)


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
        max_request_body_size=_MAX_REQUEST_BYTES,
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
    by_digest = [(_digest(token), app) for token, app in apps.items()]

    async def gate(scope: Scope, receive: Receive, send: Send) -> None:
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        shown = _digest(token.strip() if scheme.lower() == "bearer" else "")
        app: ASGIApp = JSONResponse(
            {"error": "missing or invalid token: send `Authorization: Bearer TOKEN`"},
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
        for known, its_app in by_digest:
            if hmac.compare_digest(shown, known):
                app = its_app
        await app(scope, receive, send)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    return Starlette(routes=[Mount("/", gate)], lifespan=lifespan)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
