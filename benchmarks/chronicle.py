"""How fast talk becomes knowledge, by rules, on an embedded database of the benchmark's own.

    python -m benchmarks.chronicle [DIR] [--utterances 5000] [--wakes 100]

`DIR/turns.jsonl` is talk as of `benchmarks.recall`; without it, the scenes of `benchmarks/data/extraction` are said
again and again. All of it is one session.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice, pairwise
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.recall_data import Turn, campaign_of, read_turns, utterances_of
from benchmarks.turn_world import a_directory
from glyphoxa.adapters.postgres.chronicle.log import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.bootstrap.chronicle import chronicle_worker
from glyphoxa.chronicle.ports import Unread
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.domain.utterance import Utterance

OWN = Path(__file__).parent / "data" / "extraction" / "tune"
CAMPAIGN, SESSION, LIVE = CampaignId("talk"), SessionId("long"), SessionId("live")
_WITHIN_S = 60.0


def talk_of(turns: Sequence[Turn], n: int) -> list[Utterance]:
    said = islice(cycle(utterances_of(turns)), n)
    return [
        replace(each, id=UtteranceId(f"u{number}"), campaign_id=CAMPAIGN, session_id=SESSION, at_ms=number * 3_000)
        for number, each in enumerate(said, start=1)
    ]


async def caught_up(store: Store, talk: Sequence[Utterance]) -> dict[str, object]:
    """A session that was said before there was a worker."""
    for at in range(0, len(talk), 500):
        await store.log.append(talk[at : at + 500])
    began = perf_counter()
    await chronicle_worker(store).read_what_is_new(CAMPAIGN)
    took = perf_counter() - began
    told = await _told(store)
    return {
        "utterances": len(talk),
        "caught_up_s": round(took, 2),
        "utterances_per_s": round(len(talk) / took, 1),
        "events": len(told),
        "order_violations": sum(a is not None and b is not None and a > b for a, b in pairwise(told)),
    }


async def _told(store: Store) -> list[int | None]:
    """The line of each event that was learned from talk, in the order of the log."""
    told: list[int | None] = []
    after = 0
    while events := await store.world.events(CAMPAIGN, after=after):
        told += [event.cause.ordinal for event in events if event.cause.by == "talk"]
        after = events[-1].seq
    return told


class _Watched(PostgresChronicleLog):
    """Notes when talk is read."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database, store.world)
        self.was_read = asyncio.Event()

    async def unread(self, campaign: CampaignId, session: SessionId, *, after: int, limit: int) -> Unread | None:
        found = await super().unread(campaign, session, after=after, limit=limit)
        if found is not None:
            self.was_read.set()
        return found


async def woken(store: Store, n: int) -> dict[str, object]:
    """From the commit of an utterance to the worker that has read it."""
    log = _Watched(store)
    working = asyncio.create_task(chronicle_worker(store, CAMPAIGN, log=log).run())
    took: list[float] = []
    try:
        await asyncio.sleep(1)  # the worker listens, and has found nothing
        for number in range(n):
            log.was_read.clear()
            line = replace(
                talk_of([_A_TURN], 1)[0], id=UtteranceId(f"live{number}"), session_id=LIVE, at_ms=10**9 + number
            )
            await store.log.append([line])
            began = perf_counter()
            async with asyncio.timeout(_WITHIN_S):
                await log.was_read.wait()
            took.append((perf_counter() - began) * 1_000)
            await asyncio.sleep(0.05)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    return {
        "start_p50_ms": round(float(np.percentile(took, 50)), 1),
        "start_p95_ms": round(float(np.percentile(took, 95)), 1),
    }


_A_TURN = Turn(CAMPAIGN, "live", "T1", "Tamsin", "Hm, let me think about that.", 0)


async def run(turns: Sequence[Turn], *, n: int, wakes: int) -> dict[str, object]:
    with a_directory() as directory:
        async with open_store(None, data_dir=directory) as store:
            await store.database.open()
            await store.campaigns.load(replace(campaign_of(CAMPAIGN, turns), id=CAMPAIGN))
            figures = await caught_up(store, talk_of(turns, n))
            return figures | (await woken(store, wakes) if wakes else {})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, nargs="?", default=OWN, metavar="DIR")
    parser.add_argument("--utterances", type=int, default=5_000)
    parser.add_argument("--wakes", type=int, default=100, help="how often it is measured how soon a worker starts")
    options = parser.parse_args()
    try:
        said = [turn for turns in read_turns(options.directory / "turns.jsonl").values() for turn in turns]
        print(json.dumps(asyncio.run(run(said, n=options.utterances, wakes=options.wakes))))
    except (GlyphoxaError, OSError) as error:
        print(f"benchmarks.chronicle: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
