from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.config.campaign_file import CampaignFile, read_campaign
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    campaign = verbs.add_parser("campaign", help="check, load and show campaigns")
    actions = campaign.add_subparsers(title="actions", metavar="ACTION", required=True)

    checking = actions.add_parser("check", help="read a campaign file and say what is wrong with it")
    checking.add_argument("file", type=Path)
    checking.set_defaults(run=run_check)

    loading = actions.add_parser("load", help="make the stored campaign equal to a file")
    loading.add_argument("file", type=Path)
    loading.add_argument("--yes", action="store_true", help="do not ask before entities are removed")
    loading.add_argument("--config", type=Path, metavar="FILE", help="settings file (YAML)")
    loading.set_defaults(run=run_load)

    showing = actions.add_parser("show", help="list the stored campaigns, or show one")
    showing.add_argument("id", nargs="?", type=CampaignId)
    showing.add_argument("--config", type=Path, metavar="FILE", help="settings file (YAML)")
    showing.set_defaults(run=run_show)


def run_check(options: argparse.Namespace) -> int:
    _say(read_campaign(options.file))
    return 0


def run_load(options: argparse.Namespace) -> int:
    file = read_campaign(options.file)
    settings = _with_memory(options.config)
    return asyncio.run(_load(file, settings, ask=not options.yes))


def run_show(options: argparse.Namespace) -> int:
    settings = _with_memory(options.config)
    return asyncio.run(_show(options.id, settings))


def _with_memory(path: Path | None) -> Settings:
    settings = read_settings(path)
    if not settings.has_memory:
        raise InvalidInput("memory.postgres_dsn is none: there is no long-term memory to hold campaigns")
    return settings


async def _load(file: CampaignFile, settings: Settings, *, ask: bool) -> int:
    campaign = file.campaign
    async with open_store(
        settings.memory.postgres_dsn,
        data_dir=settings.data_directory,
        embedding_dimensions=settings.memory.embedding_dimensions,
    ) as store:
        await store.database.open()
        leaving = await _leaving(store, campaign)
        if leaving and ask and not await asyncio.to_thread(_confirmed, campaign, leaving):
            print("nothing was changed")
            return 1
        await store.graph.load(campaign)
    _say(file)
    return 0


async def _leaving(store: Store, campaign: Campaign) -> list[str]:
    """Names of the stored entities that came from a file and are no longer in it."""
    try:
        before = await store.graph.campaign(campaign.id)
    except NotFound:
        return []
    kept = {entity.id for entity in campaign.entities}
    return [entity.name for entity in before.entities if entity.id not in kept]


def _confirmed(campaign: Campaign, leaving: list[str]) -> bool:
    print(f"No longer in the file, and so removed from {campaign.name}, with their relationships: {', '.join(leaving)}")
    if not sys.stdin.isatty():
        raise InvalidInput("this removes entities: say --yes to do it without being asked")
    return input("Go on? [y/N] ").strip().lower() in ("y", "yes")


async def _show(campaign: CampaignId | None, settings: Settings) -> int:
    async with open_store(
        settings.memory.postgres_dsn,
        data_dir=settings.data_directory,
        embedding_dimensions=settings.memory.embedding_dimensions,
    ) as store:
        await store.database.open()
        if campaign is None:
            for known in await store.graph.campaigns():
                print(f"{known}  ({await store.log.count(known)} utterances)")
            return 0
        stored = await store.graph.campaign(campaign)
        entities = await store.graph.entities(campaign)
    names = {entity.id: entity.name for entity in entities}
    table = Table(title=Text(stored.name), title_justify="left", box=None, pad_edge=False)
    for heading in ("type", "name", "related to"):
        table.add_column(heading)
    for entity in entities:
        related = [f"{r.type} {names.get(r.target, r.target)}" for r in stored.relationships if r.source == entity.id]
        table.add_row(entity.type, Text(entity.name), Text(", ".join(related)))
    Console().print(table)
    return 0


def _say(file: CampaignFile) -> None:
    campaign = file.campaign
    for warning in file.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(
        f"{campaign.name} ({campaign.id}): {len(campaign.entities)} entities, {len(campaign.relationships)} "
        f"relationships, {len(campaign.npcs)} NPCs, {len(campaign.players)} players, {len(campaign.scenes)} scenes, "
        f"{len(campaign.secrets)} secrets"
    )
