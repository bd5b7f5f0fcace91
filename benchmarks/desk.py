"""How long the pages of the desk take in a campaign that was played for years, on a database of the benchmark's own.

    python -m benchmarks.desk [--entities 2000] [--facts 10000] [--utterances 100000] [--times 20]

The pages are asked of the application itself, without a network. The database has the application's settings.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import httpx
import numpy as np
from fastapi import FastAPI

from benchmarks.turn_world import a_directory
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.bootstrap.desk import DeskSource
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Provenance, Visibility, witnessed_by
from glyphoxa.domain.utterance import Utterance
from glyphoxa.web.access.entrance import Entrance
from glyphoxa.web.desk.frame import CommandedTable, DeskParts
from glyphoxa.web.desk.live import add_desk
from glyphoxa.world.api import Cause, EntityAdded, Event, FactStated

if TYPE_CHECKING:
    from glyphoxa.domain.commands import TableCommand

CAMPAIGN, SESSIONS = CampaignId("years"), 40
NPCS = [NpcId(f"npc{n}") for n in range(5)]
PAGES = (
    "/desk",
    "/desk/review",
    "/desk/knowledge",
    "/desk/knowledge?npc=npc0",
    "/desk/knowledge?about=Name0",
    "/desk/secrets",
    "/desk/world",
    "/desk/world?name=Name1&page=2",
    "/desk/world/e0?hops=1",
    "/desk/world/e0?hops=3",
    "/desk/sessions",
    "/desk/sessions/s7",
    "/desk/sessions/s7?words=Name77",
    "/desk/sessions/s7/recap",
    "/desk/ask?say=Who+is+Name7",
    "/desk/turns",
)
_BATCH = 500


@dataclass(frozen=True, slots=True)
class _NobodysTable:
    """A table at which nobody sits."""

    campaign: Campaign
    session: SessionId
    scene: Scene

    async def obey(self, command: TableCommand) -> str:
        return f"{command}"


def a_campaign() -> Campaign:
    places = Entity(EntityId("inn"), "location", "The Inn")
    played = [Entity(EntityId(npc), "npc", f"Person {npc}") for npc in NPCS]
    return Campaign(
        CAMPAIGN,
        "Years",
        "en",
        entities=(places, *played),
        relationships=(),
        npcs=tuple(Npc(npc, EntityId(npc), f"Person {npc}", "You are gruff.") for npc in NPCS),
        players=(Player(PlayerId("p"), "Tamsin"),),
        scenes=(Scene(SceneId("inn"), EntityId("inn"), tuple(NPCS)),),
    )


def the_world(n_entities: int, n_facts: int) -> Iterator[Event]:
    """Half of the facts relate two entities; a tenth is known to one NPC, a fiftieth waits for the DM."""
    chance = random.Random(7)
    for n in range(n_entities):
        yield EntityAdded(EntityId(f"e{n}"), ("npc", "location", "item", "faction")[n % 4], f"Name{n}")
    for n in range(n_facts):
        one, other = (EntityId(f"e{int(n_entities * chance.random() ** 2)}") for _ in range(2))
        claim = (
            Claim.relation(one, f"KNOWS_{n}", other)
            if n % 2 and one != other
            else Claim.attribute(one, f"trait {n}", n)
        )
        secret: Visibility = witnessed_by([NPCS[n % 5]], at_ms=n)
        sure = 0.4 if n % 50 == 0 else 1.0
        yield FactStated(claim, Provenance(sure, at_ms=n), secret if n % 10 == 0 else PUBLIC)


def talk(n: int) -> Iterator[Utterance]:
    for number in range(n):
        session = SessionId(f"s{number * SESSIONS // n}")
        line = f"We went on to Name{number % 1_999}, and nobody was there but the wind."
        yield Utterance(
            UtteranceId(f"u{number}"),
            CAMPAIGN,
            session,
            SpeakerId("p"),
            "Tamsin",
            line,
            line,
            number * 5_000,
            witnesses=frozenset(NPCS),
        )


async def fill(store: Store, n_entities: int, n_facts: int, n_utterances: int) -> None:
    await store.database.open()
    await store.campaigns.load(a_campaign())
    events = list(the_world(n_entities, n_facts))
    for at in range(0, len(events), _BATCH):
        await store.world.commit(CAMPAIGN, events[at : at + _BATCH], Cause("dm", at))
    said = list(talk(n_utterances))
    for at in range(0, len(said), _BATCH):
        await store.log.append(said[at : at + _BATCH])


async def measured(store: Store, times: int) -> dict[str, object]:
    campaign = a_campaign()
    table = cast("CommandedTable", _NobodysTable(campaign, SessionId("s39"), campaign.scenes[0]))
    app = FastAPI()
    source = DeskSource(store, Settings(), CAMPAIGN)
    add_desk(app, DeskParts(table, source, Entrance(), None))
    figures: dict[str, Any] = {}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        for path in PAGES:
            took = []
            for _ in range(times):
                began = perf_counter()
                answer = await client.get(path)
                took.append((perf_counter() - began) * 1_000)
                answer.raise_for_status()
            figures[path] = {
                "first_ms": round(took[0]),
                "p50_ms": round(float(np.percentile(took, 50))),
                "p95_ms": round(float(np.percentile(took, 95))),
                "kB": len(answer.content) // 1_000,
            }
    return figures


async def run(n_entities: int, n_facts: int, n_utterances: int, times: int) -> dict[str, object]:
    with a_directory() as directory:
        async with open_store(None, data_dir=Path(directory)) as store:
            await fill(store, n_entities, n_facts, n_utterances)
            return await measured(store, times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=2_000)
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--utterances", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=20, help="how often each page is asked for")
    given = parser.parse_args()
    try:
        print(json.dumps(asyncio.run(run(given.entities, given.facts, given.utterances, given.times)), indent=2))
    except (GlyphoxaError, OSError) as error:
        print(f"benchmarks.desk: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
