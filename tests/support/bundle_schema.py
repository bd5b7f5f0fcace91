"""Write the JSON schema of a bundle, `docs/reference/bundle.schema.json`, from the tables of a database.

`python -m tests.support.bundle_schema` writes it, from a database of its own.
`tests/integration/test_campaign_bundle.py` fails where the file differs from what this writes.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.bundle import BUNDLED, EARLIER, EMBEDDED, LATER, Column, columns_of
from glyphoxa.dm.campaign_bundle import FORMAT, VERSION
from tests.support.postgres import TestServer, a_test_server

SCHEMA: Final = Path(__file__).parents[2] / "docs" / "reference" / "bundle.schema.json"
_TYPES: Final[dict[str, dict[str, Any]]] = {
    "text": {"type": "string"},
    "regconfig": {"type": "string"},
    "timestamptz": {"type": "string", "format": "date-time"},
    "bool": {"type": "boolean"},
    "int4": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "int8": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "float8": {"type": "number"},
    "_text": {"type": "array", "items": {"type": "string"}},
    "vector": {"type": "string"},
    "jsonb": {},
}


async def schema(store: Store) -> str:
    async with store.database.use(None) as connection:
        tables = {table: await columns_of(connection, table) for table in (*BUNDLED, *EMBEDDED)}
    found = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A campaign of Glyphoxa",
        "description": "See docs/writing-a-campaign.md. Tables are in the order in which they refer to each other.",
        "type": "object",
        "additionalProperties": False,
        "required": ["format", "version", "campaign", "tables"],
        "properties": {
            "format": {"const": FORMAT},
            "version": {"enum": list(range(1, VERSION + 1))},
            "campaign": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "name", "language"],
                "properties": {name: {"type": "string", "minLength": 1} for name in ("id", "name", "language")},
            },
            "tables": {
                "type": "object",
                "additionalProperties": False,
                "required": [table for table in BUNDLED if table not in LATER],
                "properties": {table: _table(columns) for table, columns in tables.items()}
                | {table: {"type": "array", "items": {"type": "object"}} for table in EARLIER},
            },
        },
    }
    return json.dumps(found, indent=1) + "\n"


def _table(columns: dict[str, Column]) -> dict[str, Any]:
    row = {
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, column in columns.items() if column.required],
        "properties": {name: _column(column) for name, column in columns.items()},
    }
    return {"type": "array", "items": row}


def _column(column: Column) -> dict[str, Any]:
    found = _TYPES[column.type]
    return found if column.needed or not found else {"anyOf": [found, {"type": "null"}]}


async def _write(server: TestServer) -> None:
    async with open_store(server.server.dsn(await server.create())) as store:
        SCHEMA.write_text(await schema(store))


if __name__ == "__main__":
    with a_test_server() as server:
        asyncio.run(_write(server))
