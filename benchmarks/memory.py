"""How long memory takes to answer when there is much of it, and how fast it is filled.

    python -m benchmarks.memory [--turns 100000] [--campaigns 10] [--entities 2000] [--relationships 10000]

An embedded server with the program's own settings is filled with invented campaigns; one of them has all the turns,
entities and relationships, and is measured. The last line printed is a JSON object: for each operation `p50_ms`,
`p95_ms` and `p99_ms`, and how much it found. What all of it means stands in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.memory_cpu import CpuClock
from benchmarks.memory_figures import missed, summary, timed
from benchmarks.memory_load import learn, load
from benchmarks.memory_operations import MORE, REQUIRED, Operations
from benchmarks.memory_recall import filtered_recall
from benchmarks.memory_vectors import Embeddings
from benchmarks.memory_world import InventedCampaign, Size, invented_campaigns
from benchmarks.turn import STOPPED, positive, stoppable
from benchmarks.turn_world import a_directory
from glyphoxa.adapters.local import native_env
from glyphoxa.adapters.postgres.server.embedded import SETTINGS
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.observability import log
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.spool import Spool

_WARM_UP = 30
_RECALL_QUESTIONS = 100
_FLUSH_MS = 60_000
_RECALL = "filtered_recall"
_LOADED = "loaded.json"


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    native_env.prepare()
    log.set_up(level="WARNING")
    try:
        growth = {}
        for turns in options.growth:
            _tell(f"-- {turns} turns")
            with a_directory() as directory:
                growth[str(turns)] = asyncio.run(stoppable(measure(options, directory, turns=turns)))
        with a_directory() as directory:
            where = options.data_dir or directory
            figures = asyncio.run(stoppable(measure(options, where, turns=options.turns)))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    for complaint in missed(figures):
        _tell(f"missed: {complaint}")
    print(json.dumps({**figures, **({"growth": growth} if growth else {})}))
    return 0


async def measure(options: argparse.Namespace, directory: Path, *, turns: int) -> dict[str, Any]:
    size = Size(turns, options.entities, options.relationships)
    campaigns = invented_campaigns(options.campaigns, size, other_share=options.other_share, seed=options.seed)
    embeddings = Embeddings.load(options.embeddings, seed=options.seed)
    server = {**SETTINGS, **dict(options.server)}
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(
            open_store(options.dsn, data_dir=directory, embedder=embeddings.embedder, server_settings=server)
        )
        await store.database.open()
        figures = await _load_once(store, campaigns, embeddings, directory / _LOADED)
        figures["db_mb"] = await _size_mb(store)
        figures.update(turns=turns, embeddings=embeddings.kind, load_average=[round(n, 2) for n in os.getloadavg()])
        figures.update(await _measured(store, campaigns[0], embeddings, directory, options))
        return figures


async def _load_once(
    store: Store, campaigns: Sequence[InventedCampaign], embeddings: Embeddings, note: Path
) -> dict[str, Any]:
    """A data directory that is kept is filled once."""
    sizes = [[c.size.turns, c.size.entities, c.size.relationships] for c in campaigns]
    if (noted := _read(note)) is not None:
        if noted.pop("sizes") != sizes:
            raise InvalidInput(f"{note.parent} holds campaigns of other sizes: empty it, or name another --data-dir")
        learn(embeddings, campaigns[0])
        return noted
    began = perf_counter()
    loaded = await load(store, campaigns, embeddings, tell=_tell)
    figures = {"load_s": round(perf_counter() - began, 1), **loaded.figures()}
    _write(note, {"sizes": sizes, **figures})
    return figures


def _read(note: Path) -> dict[str, Any] | None:
    return dict(json.loads(note.read_text())) if note.exists() else None


def _write(note: Path, values: dict[str, Any]) -> None:
    note.write_text(json.dumps(values))


async def _measured(
    store: Store, campaign: InventedCampaign, embeddings: Embeddings, directory: Path, options: argparse.Namespace
) -> dict[str, Any]:
    async def embed_new() -> None:
        await store.chunks.fill_missing(campaign.id)

    journal = Journal(Spool(directory / "spool"), store.log, after_append=embed_new)
    draining = asyncio.create_task(journal.deliver())
    # As a table does it before it opens: what is asked while talk is still being read has no answer in time.
    await store.past_talk.refresh(campaign.id)
    try:
        asked = Operations(store, campaign, embeddings, journal=journal, vectors=options.samples)
        operations = {**asked.by_name(), "hot_context": await asked.hot_context()}
        gc.collect()
        gc.freeze()  # as a table does it when it is open
        figures: dict[str, Any] = {}
        wanted = options.only or (*MORE, *REQUIRED, _RECALL)
        for name in [name for name in wanted if name in operations]:
            cpu = await CpuClock.of(store, campaign.id)
            timings = await timed(operations[name], samples=options.samples, warm_up=_WARM_UP, cpu=cpu)
            figures[name] = summary(timings)
            _tell(f"{name}: {figures[name]}")
        if _RECALL in wanted:
            figures.update(await filtered_recall(store, campaign, list(embeddings.invented(_RECALL_QUESTIONS))))
        figures["hot_context_late"] = asked.late
        await journal.flush(_FLUSH_MS)
        return figures
    finally:
        gc.unfreeze()
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        await journal.close()


async def _size_mb(store: Store) -> float:
    async with store.database.use(None) as connection:
        return round(int(await connection.fetchval("SELECT pg_database_size(current_database())")) / 2**20, 1)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, not {text!r}")
    return name, value


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="Memory under load.")
    parser.add_argument("--turns", type=positive, default=100_000, help="of the measured campaign")
    parser.add_argument("--campaigns", type=positive, default=10, help="the measured one and others")
    parser.add_argument("--entities", type=positive, default=2_000)
    parser.add_argument("--relationships", type=positive, default=10_000)
    parser.add_argument("--other-share", type=float, default=0.1, help="how large each other campaign is")
    parser.add_argument("--samples", type=positive, default=600, help="timed calls of each operation")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--embeddings", choices=("real", "invented"), help="by default real if the model is here")
    parser.add_argument("--growth", type=positive, nargs="*", default=[], help="measure with so many turns too")
    parser.add_argument("--only", nargs="+", choices=(*REQUIRED, *MORE, _RECALL), metavar="OPERATION")
    parser.add_argument("--data-dir", type=Path, help="kept, and not filled again in the next run")
    parser.add_argument("--server", type=_setting, nargs="*", default=[], metavar="NAME=VALUE", help="of the server")
    parser.add_argument("--dsn", help="another server than the embedded one; an empty database")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
