"""An `ToolOffer` spoken over MCP, with the official SDK: on standard input and output, or as an ASGI app.

The SDK takes a second to import: only who serves or is served imports this module.
"""

from __future__ import annotations

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

from glyphoxa.mcp_server.offered import ToolOffer
from glyphoxa.npc.tool_spec import ToolSpec

PATH: Final = "/mcp"
_MOST_BYTES: Final = 64 * 1024
"""Of one request."""


def server_of(name: str, offer: ToolOffer, *, instructions: str = "") -> Server[Any]:
    """
    Args:
        instructions: What a model that uses the tools is told of them.
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
    """Until standard input ends. Standard output is the protocol's meanwhile."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def app_of(server: Server[Any], *, host: str) -> Starlette:
    """Streamable HTTP at `PATH`. Each request stands alone: nothing is kept between two of them.

    Args:
        host: Where it is served. On this machine only, names that a page could have pointed here are refused.
    """
    app: Starlette = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=_MOST_BYTES,
        host=host,
    )
    return app


def _declared(spec: ToolSpec) -> Tool:
    return Tool(
        name=spec.wire_name,
        description=spec.description,
        input_schema={
            "type": "object",
            "properties": {name: dict(schema) for name, schema in spec.parameters.items()},
            "required": list(spec.required),
            "additionalProperties": False,
        },
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
