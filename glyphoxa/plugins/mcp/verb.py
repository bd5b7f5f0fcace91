"""`glyphoxa mcp`: memory for other programs, over the Model Context Protocol (MCP)."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from glyphoxa.cli.scope import CAMPAIGN, desk_at, embedder_or_words, opened_store, settings_with_memory
from glyphoxa.cli.verb import Argument, Verb, argument, in_a_loop
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.extras import need

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.store import Store
    from glyphoxa.app.desk import Desk
    from glyphoxa.npc.tool_spec import CallableTool

_THIS_MACHINE: Final = "127.0.0.1"

VERB = Verb(in_a_loop)

_HTTP: Final[tuple[Argument, ...]] = (
    argument("--http", help="serve streamable HTTP at /mcp, with a token; default: standard input and output"),
    argument("--host", metavar="ADDRESS", default=_THIS_MACHINE, help=f"with --http; default {_THIS_MACHINE}"),
    argument("--port", type=int, metavar="N", default=7870, help="with --http; default 7870; 0: any free port"),
)


@VERB.itself(
    argument("--npc", metavar="NPC", help="serve the four memory tools of this NPC"),
    argument("--dm", help="also serve the DM's tools, which see everything; needs GLYPHOXA_MCP_DM_TOKEN"),
    *_HTTP,
    *CAMPAIGN,
    text="Serve an NPC's memory, or what the DM can look up, to another program over the Model Context Protocol. "
    "Over HTTP a caller sends a token: that of GLYPHOXA_MCP_TOKEN gives the NPC's tools, that of "
    "GLYPHOXA_MCP_DM_TOKEN also the DM's.",
)
async def _serve(options: argparse.Namespace) -> int:
    _need_sdk()
    from glyphoxa.plugins.mcp.server import DM_TOKEN, NPC_TOKEN, PATIENT, token_from

    if options.npc is None and not options.dm:
        raise InvalidInput("choose whose tools to serve: --npc NAME, or --dm for the DM's tools")
    dm_token = token_from(os.environ, DM_TOKEN) if options.dm else ""
    npc_token = token_from(os.environ, NPC_TOKEN) if options.http and options.npc is not None else ""
    if dm_token and dm_token == npc_token:
        raise InvalidInput(f"{DM_TOKEN} and {NPC_TOKEN} hold the same token: whoever has the NPC's would be the DM")

    settings = settings_with_memory(options.config, to_hold="talk or facts")
    async with (
        embedder_or_words(settings) as embedder,
        opened_store(settings, embedder=embedder, recall=PATIENT) as store,
    ):
        desk = await desk_at(store, settings, options.campaign)
        of_npc = [] if options.npc is None else await _npc_tools(store, desk, options.npc)
        of_dm: list[CallableTool] = []
        if options.dm:
            from glyphoxa.plugins.mcp.dm_tools import dm_tools

            of_dm = dm_tools(lambda: desk_at(store, settings, desk.campaign))
        if not options.http:
            return await _on_stdio([*of_npc, *of_dm])
        by_token = {npc_token: of_npc} if npc_token else {}
        return await _on_http(by_token | ({dm_token: [*of_npc, *of_dm]} if dm_token else {}), options)


@VERB.action("serve one tool that rolls dice: an example of a tool server for NPCs", *_HTTP)
async def _dice(options: argparse.Namespace) -> int:
    _need_sdk()
    from glyphoxa.plugins.mcp.server import NPC_TOKEN, dice_tools, token_from

    if not options.http:
        return await _on_stdio(dice_tools())
    return await _on_http({token_from(os.environ, NPC_TOKEN): dice_tools()}, options)


async def _npc_tools(store: Store, desk: Desk, name: str) -> list[CallableTool]:
    from glyphoxa.app.background import memory_of
    from glyphoxa.plugins.mcp.server import memory_tools

    npc = desk.resolver.npc(name)
    campaign = await store.campaigns.get(desk.campaign)
    await store.read(desk.campaign)
    return memory_tools(memory_of(store, campaign, npc))


async def _on_stdio(tools: list[CallableTool]) -> int:
    from glyphoxa.plugins.mcp.server import ToolOffer, serve_stdio, server_of

    serving = asyncio.create_task(serve_stdio(server_of("glyphoxa", ToolOffer(tools))))
    _on_signals(serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving
    return 0


async def _on_http(by_token: dict[str, list[CallableTool]], options: argparse.Namespace) -> int:
    from glyphoxa.plugins.mcp.server import PATH, ToolOffer, app_of, guarded, server_of
    from glyphoxa.web.serving import Server, bind, url_of

    apps = {
        token: app_of(server_of("glyphoxa", ToolOffer(tools)), host=options.host) for token, tools in by_token.items()
    }
    with bind(options.host, options.port) as listener:
        server = Server(guarded(apps))
        _on_signals(server.stop)
        listener.listen()
        print(f"MCP is served at {url_of(listener).rstrip('/')}{PATH}   (Ctrl-C ends it)", file=sys.stderr, flush=True)
        await server.listen(listener)
    return 0


def _on_signals(stop: Callable[[], object]) -> None:
    """Stop in order on Ctrl-C, and on SIGTERM, by which clients end a server."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)


def _need_sdk() -> None:
    need("mcp", "uvicorn", by="`glyphoxa mcp`", extra="mcp")
