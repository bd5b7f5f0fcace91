"""Measure how long a large memory takes to answer, and how fast it loads.

    python -m benchmarks.memory [--turns 100000] [--campaigns 10] [--entities 2000] [--relationships 10000]

An embedded server with the program's own settings is filled with invented campaigns. One of them has all the turns,
entities and relationships, and is measured. benchmarks/README.md describes the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any, Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.invented import Embeddings, InventedCampaign, Size, invented_campaigns
from benchmarks.memory_load import learn, load
from benchmarks.memory_operations import MORE, REQUIRED, Operations, Prepare
from benchmarks.runner import command, filled_once, percentiles, positive, run, tell
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.spool import Spool
from glyphoxa.world.graph import Neighbourhood

_WARM_UP = 30
_RECALL_QUESTIONS = 100
_FLUSH_MS = 60_000
_RECALL = "filtered_recall"
_TOP: Final = 10
_DEPTH: Final = 2
_EXACT_DEADLINE_MS: Final = 60_000
_EVERY_ONE: Final = """
    WITH scope AS MATERIALIZED (
        SELECT array_agg(l.id) AS ids FROM glyphoxa_walk($1, $2, $4, $5) w CROSS JOIN LATERAL unnest(w.level) AS l (id))
    SELECT min(embedding <=> $3::vector) AS distance FROM chunks
     WHERE campaign_id = $1 AND $2 = ANY (knowers) AND entity_ids && (SELECT ids FROM scope)
     GROUP BY utterance_id ORDER BY 1, utterance_id LIMIT 10"""
_TIE: Final = 1e-6


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    directory = options.data_dir or directory
    size = Size(options.turns, options.entities, options.relationships)
    campaigns = invented_campaigns(options.campaigns, size, other_share=options.other_share, seed=options.seed)
    embeddings = Embeddings.load(options.embeddings, seed=options.seed)
    async with AsyncExitStack() as stack:
        server = options.dsn or EmbeddedPostgres(directory / "postgres")
        store = await stack.enter_async_context(open_store(server, embedder=embeddings.embedder))
        await store.database.open()
        figures = await _load(store, campaigns, embeddings, directory)
        figures["db_mb"] = await _size_mb(store)
        figures.update(turns=options.turns, embeddings=embeddings.kind)
        figures["load_average"] = [round(n, 2) for n in os.getloadavg()]
        figures.update(await _measured(store, campaigns[0], embeddings, directory, options))
        return figures


async def _load(
    store: Store, campaigns: Sequence[InventedCampaign], embeddings: Embeddings, directory: Path
) -> dict[str, Any]:
    """Fill the database, unless the directory has been filled before."""

    async def fill() -> dict[str, Any]:
        began = perf_counter()
        loaded = await load(store, campaigns, embeddings)
        return {"load_s": round(perf_counter() - began, 1), **loaded.figures()}

    sizes = [[c.size.turns, c.size.entities, c.size.relationships] for c in campaigns]
    figures, is_new = await filled_once(directory, sizes, fill)
    if not is_new:
        learn(embeddings, campaigns[0])
    return figures


async def _measured(
    store: Store, campaign: InventedCampaign, embeddings: Embeddings, directory: Path, options: argparse.Namespace
) -> dict[str, Any]:
    journal = Journal(Spool(directory / "spool"), store.log)
    draining = asyncio.create_task(journal.delivery.run())
    # As a table does before it opens: otherwise queries during the read get no answer in time.
    await store.past_talk.transcript(campaign.id).refresh()
    try:
        asked = Operations(store, campaign, embeddings, journal=journal, vectors=options.samples)
        operations = {**asked.by_name(), "hot_context": await asked.hot_context()}
        gc.collect()
        gc.freeze()  # as a table does when it is open
        figures: dict[str, Any] = {}
        wanted = options.only or (*MORE, *REQUIRED, _RECALL)
        for name in [name for name in wanted if name in operations]:
            timings = await timed(operations[name], samples=options.samples, warm_up=_WARM_UP)
            figures[name] = summary(timings)
            tell(f"{name}: {figures[name]}")
        if _RECALL in wanted:
            figures.update(await filtered_recall(store, campaign, list(embeddings.invented(_RECALL_QUESTIONS))))
        figures["hot_context_late"] = asked.late
        await journal.delivery.flush(_FLUSH_MS)
        return figures
    finally:
        gc.unfreeze()
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        await journal.close()


async def _size_mb(store: Store) -> float:
    async with store.database.use(None) as connection:
        return round(int(await connection.fetchval("SELECT pg_database_size(current_database())")) / 2**20, 1)


# -- timing


@dataclass(slots=True)
class Timings:
    """
    Attributes:
        found: How much each call found. A call without results is often quick, so its time means little.
        given_up: Calls without an answer within the product's own deadline; the time until then is counted.
    """

    ms: list[float] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    given_up: int = 0


async def timed(prepare: Prepare, *, samples: int, warm_up: int) -> Timings:
    """Time calls. The first `warm_up` calls fill caches and prepare statements; they are not counted."""
    timings = Timings()
    for n in range(warm_up + samples):
        call = prepare(n)
        began = perf_counter_ns()
        try:
            found = await call()
        except Unavailable:
            found = 0
            timings.given_up += n >= warm_up
        if n >= warm_up:
            timings.ms.append((perf_counter_ns() - began) / 1e6)
            timings.found.append(found)
    return timings


def summary(timings: Timings) -> dict[str, float]:
    """Return percentiles, the number of calls, the mean number of results, the percentage without results, and the
    number without an answer in time.
    """
    if not timings.ms:
        return {}
    found = np.asarray(timings.found)
    return {
        **percentiles(timings.ms, 50, 95, 99),
        "calls": len(timings.ms),
        "found": round(float(found.mean()), 1),
        "empty_percent": round(float((found == 0).mean() * 100), 1),
        "given_up": timings.given_up,
    }


# -- recall of a filtered search


async def filtered_recall(
    store: Store, campaign: InventedCampaign, questions: Sequence[NDArray[float32]]
) -> dict[str, float]:
    """Return the percentage of the ten nearest chunks around an entity that were found, as a mean over the questions.

    `filtered_recall_at_10` is under the scope of the NPC that hears 1 % of the utterances, `wide_...` under that of the
    NPC that hears most.
    """
    narrow, wide = (choose(campaign.shares, key=campaign.shares.__getitem__) for choose in (min, max))
    return {
        "filtered_recall_at_10": await _recall(store, campaign, narrow, questions),
        "wide_recall_at_10": await _recall(store, campaign, wide, questions),
    }


async def _recall(store: Store, campaign: InventedCampaign, npc: NpcId, questions: Sequence[NDArray[float32]]) -> float:
    dice = campaign.dice("filtered recall")
    shares = []
    for question in questions:
        around = campaign.spoken_of(dice).id
        found = await store.graph_rag.query_with_embedding(
            campaign.id, npc, question, around=Neighbourhood(around, _DEPTH), limit=_TOP
        )
        true = await _distances(store, campaign, npc, question, around)
        shares.append(_share([1 - passage.score for passage in found], true))
    return round(float(np.mean(shares)) * 100, 1)


async def _distances(
    store: Store, campaign: InventedCampaign, npc: NpcId, question: NDArray[float32], around: EntityId
) -> list[float]:
    async with store.database.use(campaign.id, deadline_ms=_EXACT_DEADLINE_MS) as connection, connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 60000")
        rows = await connection.fetch(_EVERY_ONE, campaign.id, npc, question, around, _DEPTH)
    return [row["distance"] for row in rows]


def _share(found: Sequence[float], true: Sequence[float]) -> float:
    """Return the share of the truly nearest, by distance: any of several equally distant chunks is right."""
    return sum(distance <= true[-1] + _TIE for distance in found[:_TOP]) / len(true) if true else 1.0


def _options() -> argparse.ArgumentParser:
    parser = command("memory", __doc__)
    parser.add_argument("--turns", type=positive, default=100_000, help="of the measured campaign")
    parser.add_argument("--campaigns", type=positive, default=10, help="the measured one and others")
    parser.add_argument("--entities", type=positive, default=2_000)
    parser.add_argument("--relationships", type=positive, default=10_000)
    parser.add_argument("--other-share", type=float, default=0.1, help="how large each other campaign is")
    parser.add_argument("--samples", type=positive, default=600, help="timed calls of each operation")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--embeddings", choices=("real", "invented"), help="by default real if the model is here")
    parser.add_argument("--only", nargs="+", choices=(*REQUIRED, *MORE, _RECALL), metavar="OPERATION")
    parser.add_argument("--data-dir", type=Path, help="kept, and not filled again in the next run")
    parser.add_argument("--dsn", help="another server than the embedded one; an empty database")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
