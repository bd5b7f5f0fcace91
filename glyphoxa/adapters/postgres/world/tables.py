from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

import asyncpg

from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.world.rows import (
    ended_of_row,
    entity_of_row,
    fact_of_row,
    json_of,
    row_of_ended,
    row_of_entity,
    row_of_fact,
)
from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS
from glyphoxa.domain.ids import CampaignId, EntityId, FactId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.world import read_set
from glyphoxa.world.api import Changes, StateRows, WorldState
from glyphoxa.world.state import REFUSED, Key

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.connection import Connection

_T = TypeVar("_T")
_BLOCK: Final = 250
"""Rows that are read or written at a time: whoever plays meanwhile waits for one block, a few milliseconds."""


class WorldTables:
    """The projections of one campaign's world, on a connection that is in a transaction."""

    def __init__(self, connection: Connection, campaign: CampaignId) -> None:
        self._connection = connection
        self._campaign = campaign
        self._sql = load_queries("world/tables")

    async def load(self, state: WorldState, keys: Collection[Key]) -> None:
        """Put into a partial state what the keys ask for, and what will be asked of the facts that come with it."""
        await self._load_entities(state, keys)
        facts = await self._load_facts(state, keys)
        if around := await offload(lambda: read_set.of_facts(facts) - set(keys), amount=len(facts)):
            await self._load_facts(state, around)

    async def read(self) -> WorldState:
        """All of it, as it stands in the tables."""
        ended = await self._all("all_ended")
        return await self._read(ended=ended)

    async def read_current(self) -> WorldState:
        """Likewise without what ended, of which there may be much more: only which facts were refused is known."""
        refused = await self._fetch("all_refused", sorted(REFUSED))
        return await self._read(refused=refused)

    async def _read(
        self, *, ended: Sequence[asyncpg.Record] = (), refused: Sequence[asyncpg.Record] = ()
    ) -> WorldState:
        entities, merges, rules, facts = [
            await self._all(name) for name in ("all_entities", "all_merges", "all_rules", "all_facts")
        ]

        def build() -> WorldState:
            state = WorldState()
            state.load(
                (),
                StateRows(
                    entities=map(entity_of_row, entities),
                    merges={EntityId(row["gone_id"]): EntityId(row["kept_id"]) for row in merges},
                    facts=map(fact_of_row, facts),
                    rules={row["predicate"]: row["rule"] for row in rules},
                    refused=(FactId(row["fact_id"]) for row in refused),
                    ended=map(ended_of_row, ended),
                ),
            )
            return state

        return await offload(build, amount=len(facts) + len(ended))

    async def write(self, changes: Changes) -> None:
        """The events that stated these facts are in the log already."""
        moved = [fact.id for fact in changes.facts_put]
        touched: dict[str, None] = {}
        for facts in _blocks([*changes.facts_gone, *moved]):
            touched.update((row["entity_id"], None) for row in await self._fetch("remove_facts", facts))
        await self._put_rows("put_entities", changes.entities_put, row_of_entity)
        await self._put_rows("put_facts", changes.facts_put, row_of_fact, sorted(BIDIRECTIONAL_RELATIONS))
        for entities in _blocks(changes.entities_gone):
            await self._fetch("remove_entities", entities)
        await self._write_history(changes)
        await self._write_words(changes)
        touched.update((fact.claim.subject, None) for fact in changes.facts_put if fact.claim.object is None)
        for owners in _blocks(sorted(touched)):
            await self._fetch("put_attributes", owners)

    async def _write_history(self, changes: Changes) -> None:
        for gone in _blocks(changes.ended_gone):
            await self._fetch("remove_ended", [fact for fact, _ in gone], [seq for _, seq in gone])
        await self._put_rows("put_ended", changes.ended_put, row_of_ended)

    async def _write_words(self, changes: Changes) -> None:
        for gone in _blocks(changes.merges_gone):
            await self._fetch("remove_merges", gone)
        for put in _blocks(changes.merges_put):
            await self._fetch("put_merges", [gone for gone, _ in put], [kept for _, kept in put])
        for predicates in _blocks(changes.rules_gone):
            await self._fetch("remove_rules", predicates)
        for rules in _blocks(changes.rules_put):
            await self._fetch("put_rules", [predicate for predicate, _ in rules], [rule for _, rule in rules])

    async def _put_rows(
        self,
        name: str,
        values: Sequence[_T],
        row_of: Callable[[_T], Mapping[str, object]],
        *more: object,
    ) -> None:
        for block in _blocks(values):
            await self._fetch(name, json_of([row_of(value) for value in block]), *more)

    async def _load_entities(self, state: WorldState, keys: Collection[Key]) -> None:
        known = [key for key in keys if key[0] in ("entity", "refused")]
        if not known:
            return
        entities, facts = ([key[1] for key in known if key[0] == kind] for kind in ("entity", "refused"))
        rows = await self._fetch("load_entities", entities, facts, sorted(REFUSED))

        def put() -> None:
            found: dict[str, list[asyncpg.Record]] = {"there": [], "merged": [], "refused": []}
            for row in rows:
                found[row["found"]].append(row)
            state.load(
                known,
                StateRows(
                    entities=map(entity_of_row, found["there"]),
                    merges={EntityId(row["id"]): EntityId(row["kept_id"]) for row in found["merged"]},
                    refused=(FactId(row["id"]) for row in found["refused"]),
                ),
            )

        await offload(put, amount=len(known))

    async def _load_facts(self, state: WorldState, keys: Iterable[Key]) -> list[Fact]:
        by_kind: dict[str, list[Key]] = {kind: [] for kind in _OF_FACTS}
        for key in keys:
            if key[0] in by_kind:
                by_kind[key[0]].append(key)
        if not any(by_kind.values()):
            return []
        slots, objects = by_kind["slot"], by_kind["object"]
        rows = await self._fetch(
            "load_facts",
            *([key[1] for key in by_kind[kind]] for kind in ("fact", "resting_on", "disputing")),
            [key[1] for key in slots],
            [key[2] for key in slots],
            [key[1] for key in objects],
            [key[2] for key in objects],
            [key[1] for key in by_kind["touching"]],
            *([key[part] for key in by_kind["claim"]] for part in (1, 2, 3, 4)),
        )

        def put() -> list[Fact]:
            facts = [fact_of_row(row) for row in rows]
            state.load((key for of_kind in by_kind.values() for key in of_kind), StateRows(facts=facts))
            return facts

        return await offload(put, amount=len(rows))

    async def _all(self, name: str) -> list[asyncpg.Record]:
        cursor = await self._connection.cursor(self._sql[name], self._campaign)
        rows: list[asyncpg.Record] = []
        while block := await cursor.fetch(_BLOCK):
            rows += block
        return rows

    async def _fetch(self, name: str, *values: object) -> list[asyncpg.Record]:
        return await self._connection.fetch(self._sql[name], self._campaign, *values)


_OF_FACTS: Final = ("fact", "resting_on", "disputing", "slot", "object", "touching", "claim")


def _blocks(values: Iterable[_T]) -> Iterator[list[_T]]:
    waiting = iter(values)
    while block := list(islice(waiting, _BLOCK)):
        yield block
