"""What the verbs for a campaign's facts and entities work on."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.turns import PostgresTurns
from glyphoxa.adapters.postgres.world.campaign_times import PostgresCampaignTimes
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection, SeenEntity
from glyphoxa.cli.opened import opened_store, settings_with_memory, stored_campaign
from glyphoxa.cli.verb import argument
from glyphoxa.config.settings import Settings
from glyphoxa.dm.entities import EntityDesk
from glyphoxa.dm.facts import FactDesk
from glyphoxa.dm.resolver import NameResolver
from glyphoxa.dm.timeline import Timeline
from glyphoxa.dm.turns import TurnDesk
from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.recall.api import Recall
from glyphoxa.transcript.api import TalkSearch
from glyphoxa.world.api import KnowledgeGraph


@dataclass(frozen=True, slots=True)
class Desk:
    """One campaign, as a DM sees and changes it.

    Attributes:
        seen: Its entities with who may know of them.
        past_talk: By words alone, unless it was opened with a model.
        days: How it tells the time, as it was when the desk was opened; `times` keeps it.
    """

    campaign: CampaignId
    settings: Settings
    resolver: NameResolver
    seen: tuple[SeenEntity, ...]
    inspection: PostgresInspection
    talk: TalkSearch
    facts: FactDesk
    entities: EntityDesk
    timeline: Timeline
    language: str
    graph: KnowledgeGraph
    past_talk: Recall
    turns: TurnDesk
    times: PostgresCampaignTimes
    days: CampaignTimes


YES: Final = argument("--yes", help="do not ask")
Act = Callable[[Desk, argparse.Namespace], Awaitable[int]]


def run_at_desk(options: argparse.Namespace, act: Act) -> int:
    """Open memory as the options of `CAMPAIGN` say, and act on its campaign."""
    return asyncio.run(_at_desk(options, act))


async def _at_desk(options: argparse.Namespace, act: Act) -> int:
    settings = settings_with_memory(options.config, to_hold="talk or facts")
    async with opened_store(settings) as store:
        return await act(await desk_at(store, settings, options.campaign), options)


async def desk_at(store: Store, settings: Settings, wanted: CampaignId | None) -> Desk:
    """A desk in an open store.

    Raises:
        GlyphoxaError: As `stored_campaign`.
    """
    campaign = await stored_campaign(store, wanted, settings)
    inspection, world = PostgresInspection(store.database), store.world
    seen = await inspection.entities(campaign)
    stored = await store.campaigns.get(campaign)
    resolver = NameResolver.of(stored, (each.entity for each in seen))
    return Desk(
        campaign,
        settings,
        resolver,
        tuple(seen),
        inspection,
        store.talk_search,
        FactDesk(campaign, world, inspection, resolver, _now_ms),
        EntityDesk(campaign, world, inspection, resolver, _now_ms),
        Timeline(campaign, world, inspection, _now_ms),
        stored.language,
        store.graph,
        store.past_talk,
        TurnDesk(campaign, PostgresTurns(store.database), inspection, resolver),
        store.times,
        await store.times.times(campaign),
    )


async def session_of(desk: Desk, wanted: SessionId | None) -> SessionId:
    """
    Args:
        wanted: None is the one in which something was said last.

    Raises:
        NotFound: Nothing was said in such a session.
    """
    if wanted is None:
        talk = await desk.inspection.entries_per_session(desk.campaign)
        if not talk:
            raise NotFound(f"nothing was said in campaign {desk.campaign!r} yet")
        return max(talk, key=lambda each: each.last_at_ms or 0).id
    known = [each.id for each in await desk.inspection.sessions(desk.campaign)]
    if not known:
        raise NotFound(f"no session {wanted!r} in campaign {desk.campaign!r}: nothing was said in it yet")
    if wanted not in known:
        raise NotFound(f"no session {wanted!r} in campaign {desk.campaign!r}: {did_you_mean(wanted, known)}")
    return wanted


async def goes_on(question: str, *, is_sure: bool) -> bool:
    """Whether the DM means it.

    Args:
        is_sure: `--yes` was said: it is not asked.

    Raises:
        InvalidInput: Nobody is there to be asked.
    """
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} Say --yes to do it without being asked")
    answer = await asyncio.to_thread(input, f"{question} Go on? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
