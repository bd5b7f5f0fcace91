"""How the server answers: the plan of a query, as the program's own role and under its rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.ids import CampaignId

Node = dict[str, Any]


def nodes_of(plan: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes_of(below)


async def answered_by(store: Store, campaign: CampaignId, query: str, *arguments: object, table: str) -> list[Node]:
    """The nodes of the plan by which a query was answered.

    Args:
        table: It has the rules that keep campaigns apart.
    """
    async with store.database.use(campaign) as connection:
        assert await connection.fetchval("SELECT row_security_active($1::text)", table)
        [(text,)] = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", campaign, *arguments)
    return list(nodes_of(json.loads(text)[0]["Plan"]))


async def indexes_of(store: Store, nodes: Iterable[Node], *, whole: frozenset[str] = frozenset()) -> set[str]:
    """The indexes of a plan, named like those of whole tables; nothing may read all of a table but of `whole`."""
    found = list(nodes)
    read = [n["Relation Name"] for n in found if n["Node Type"] == "Seq Scan" and "Relation Name" in n]
    assert [name for name in read if name not in whole] == []
    names = {n["Index Name"] for n in found if "Index Name" in n}
    async with store.database.administer() as connection:
        rows = await connection.fetch(
            "SELECT inhrelid::regclass::text AS part, inhparent::regclass::text AS whole FROM pg_inherits "
            "WHERE inhrelid::regclass::text = ANY ($1)",
            list(names),
        )
    return {dict(map(tuple, rows)).get(name, name) for name in names}
