"""Measure what an import of a Foundry world finds, hides, proposes again and costs.

    python -m benchmarks.imports [--documents 10000] [--store leveldb|nedb|json]
    python -m benchmarks.imports --world PATH --truth FILE [--kind foundry]

Without `--world`, a world is invented (see `benchmarks.foundry_worlds`). `FILE` is a JSON array of what should be
found, objects with `name`, `type` and, where known, `hidden`. benchmarks/README.md describes the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final, get_args

from benchmarks.foundry_worlds import FOR_ALL, FOR_GM, STORES
from benchmarks.runner import command, percent, positive, rss_mb, run, tell, write_rows
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.dm.imported import EVERYTHING, ImportKind, SourceDocument, SourceWorld
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.knowledge import PUBLIC
from glyphoxa.language.words import fold
from glyphoxa.plugins.imports.readers import read_source
from glyphoxa.world.state import WorldState

_CAMPAIGN: Final = CampaignId("measured")


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    if (options.world is None) != (options.truth is None):
        raise InvalidInput("--world and --truth belong together")
    source, expected = options.world, options.truth
    if source is None:
        source, expected = directory / "world", directory / "truth.json"
        invent = [sys.executable, "-m", "benchmarks.foundry_worlds", str(source), str(expected)]
        # In a process of its own, whose memory is not counted.
        done = await asyncio.create_subprocess_exec(
            *invent, "--documents", str(options.documents), "--store", options.store, "--seed", str(options.seed)
        )
        if await done.wait():
            raise InvalidInput("no world could be invented; see above")
    truth = json.loads(expected.read_text("utf-8"))
    before_mb = rss_mb()
    began = perf_counter()
    world = await asyncio.to_thread(read_source, options.kind, source)
    read_s = perf_counter() - began
    figures, failures = compared(world, truth)
    figures = {"documents": len(world.documents), **figures, "read_s": round(read_s, 1)}
    tell(f"{figures}")
    figures.update(await _reviewed(world, directory, read_s))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures["peak_rss_mb"] = round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024))
    figures["rss_before_mb"] = round(before_mb)
    if options.failures is not None:
        write_rows(options.failures, failures)
    return figures


def compared(world: SourceWorld, truth: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return figures, and what was missed, found twice, invented or shown."""
    found = Counter((fold(each.name), each.type) for each in world.documents)
    wanted = {(fold(each["name"]), each["type"]) for each in truth}
    missed, twice = sorted(wanted - found.keys()), sorted(each for each, n in found.items() if n > 1)
    more = sorted(found.keys() - wanted)
    shown_to_all = {(fold(each.name), each.type) for each in world.documents if not each.hidden}
    shown = sorted(each for each in shown_to_all if each in _hidden(truth))
    leaks = [word for document in world.documents for word in _visible_words(document) if FOR_GM in word]
    texts = [word for document in world.documents for text in document.texts for word in _words((text.text,), FOR_ALL)]
    visible = [word for document in world.documents for word in _visible_words(document) if FOR_ALL in word]
    figures: dict[str, Any] = {
        "expected": len(wanted),
        "recall": percent(len(wanted & found.keys()), len(wanted)),
        "duplicates": sum(n - 1 for n in found.values()),
        "unexpected": len(more),
        "hidden_leaks": len(shown) + len(leaks),
        "visible_texts": len(set(visible)),
        "wrongly_hidden_texts": len(set(texts) - set(visible)),
    }
    failures = [
        {"failure": kind, "name": each[0], "type": each[1]}
        for kind, of_kind in (("missed", missed), ("twice", twice), ("unexpected", more), ("shown", shown))
        for each in of_kind
    ]
    return figures, [*failures, *({"failure": "leak", "word": word} for word in leaks)]


def _hidden(truth: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    return {(fold(each["name"]), each["type"]) for each in truth if each.get("hidden")}


def _visible_words(document: SourceDocument) -> list[str]:
    """Return marked words in what players could read of a document."""
    if document.hidden:
        return []
    texts = (text.text for text in document.texts if not text.hidden)
    return _words((document.name, *document.aliases, *document.attributes.values(), *texts), FOR_GM, FOR_ALL)


def _words(texts: Iterable[str], *marks: str) -> list[str]:
    return [word.strip(".,") for text in texts for word in text.split() if any(mark in word for mark in marks)]


async def _reviewed(world: SourceWorld, directory: Path, read_s: float) -> dict[str, Any]:
    """Return how long the review takes, and what the same world proposes again."""
    async with open_store(EmbeddedPostgres(directory / "postgres")) as store:
        await store.database.open()
        async with store.database.use(_CAMPAIGN) as connection:
            await connection.execute("INSERT INTO campaigns (id, name, language) VALUES ($1, $1, 'en')", _CAMPAIGN)
        desk = store.imports(_CAMPAIGN)
        began = perf_counter()
        await desk.take_in(world)
        n_waiting, _page = await desk.waiting()
        review_s = perf_counter() - began
        before_accepting = await desk.take_in(world)
        began = perf_counter()
        await desk.accept(EVERYTHING)
        accept_s = perf_counter() - began
        again = await desk.take_in(world)
        left, _ = await desk.waiting()
        return {
            "waiting": n_waiting,
            "to_review_s": round(read_s + review_s, 1),
            "accept_s": round(accept_s, 1),
            "proposed_again": before_accepting.n_changed + again.n_new + again.n_changed + left,
            "accepted_leaks": _leaks(await store.world.now(_CAMPAIGN)),
        }


def _leaks(state: WorldState) -> int:
    """Return how many public names, aliases and facts have words for the GM alone."""
    public = [each for each in state.entities.values() if each.visibility == PUBLIC]
    names = [name for each in public for name in (each.name, *each.aliases)]
    values = [str(fact.claim.content) for fact in state.facts.values() if fact.visibility == PUBLIC]
    return sum(FOR_GM in text for text in (*names, *values))


def _options() -> argparse.ArgumentParser:
    parser = command("imports", __doc__)
    parser.add_argument("--documents", type=positive, default=10_000, help="of an invented world")
    parser.add_argument("--store", choices=STORES, default="leveldb", help="how the invented world is stored")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=get_args(ImportKind), default="foundry")
    parser.add_argument("--world", type=Path, help="read this instead")
    parser.add_argument("--truth", type=Path, help="what is in that world")
    parser.add_argument("--failures", type=Path, help="write what was missed, found twice or shown")
    return parser


if __name__ == "__main__":
    sys.exit(main())
