"""`glyphoxa discord`: commands for a campaign and its table in Discord."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from contextlib import closing, suppress

from glyphoxa.cli.scope import CAMPAIGN, declared_in, file_named, opened_store, settings_with_memory, stored_campaign
from glyphoxa.cli.verb import Verb, in_a_loop
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, PlayerId
from glyphoxa.observability import set_up_logs
from glyphoxa.plugins.discord.access import DiscordSettings
from glyphoxa.providers.extras import need
from glyphoxa.web.access.links import Links
from glyphoxa.web.access.records import AuditKind, AuditLog, audit_path
from glyphoxa.web.access.roles import Grant, Role

VERB = Verb(in_a_loop)


@VERB.itself(
    *CAMPAIGN,
    text="Answer commands in one Discord server: entities, facts, review, recap, the open table, personal links. "
    "The settings `discord` say who may do what; docs/discord.md describes the set-up.",
)
async def _serve(options: argparse.Namespace) -> int:
    need("discord", by="`glyphoxa discord`", extra="discord")
    from glyphoxa.adapters.postgres.transcript.table_commands import PostgresTableCommands
    from glyphoxa.app.scope import Scope
    from glyphoxa.plugins.discord.bot import Bot, serve
    from glyphoxa.plugins.discord.commands import Services

    settings = settings_with_memory(options.config, to_hold="campaigns")
    chosen = settings.section(DiscordSettings)
    if missing := chosen.missing(os.environ):
        raise InvalidInput(f"{'; '.join(missing)} (docs/discord.md)")
    set_up_logs(level=settings.logging.level, form=settings.logging.form)
    async with opened_store(settings) as store:
        campaign = await store.campaigns.get(await stored_campaign(store, options.campaign, settings))
        _check_players(chosen, campaign)
        links = Links(campaign, settings.data_directory)
        audit = AuditLog(audit_path(settings.data_directory, campaign.id))
        services = Services(
            Scope(store, await _with_file(settings, options.campaign, campaign.id), campaign.id),
            PostgresTableCommands(store.database, store.listener),
            lambda player: _link(links, audit, player),
        )
        bot = Bot(services, chosen)
        serving = asyncio.create_task(serve(bot, os.environ[chosen.token_env].strip()))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        print(f"the bot serves {campaign.name} in Discord   (Ctrl-C ends it)", file=sys.stderr, flush=True)
        with closing(audit), suppress(asyncio.CancelledError):
            await serving
    return 0


def _check_players(settings: DiscordSettings, campaign: Campaign) -> None:
    known = [player.id for player in campaign.players]
    for user, player in settings.players.items():
        if player not in known:
            raise NotFound(
                f"discord.players: user {user} is {player!r}, which is no player of {campaign.name}: "
                f"{did_you_mean(player, known)}"
            )


async def _with_file(settings: Settings, wanted: str | None, campaign: CampaignId) -> Settings:
    file = file_named(wanted) or settings.campaign
    with suppress(InvalidInput):
        if file is not None and await declared_in(file) == campaign:
            return settings.model_copy(update={"campaign": file})
    return settings.model_copy(update={"campaign": None})


def _link(links: Links, audit: AuditLog, player: PlayerId | None) -> str:
    need("itsdangerous", by="a link", extra="voice")
    if not links.url:
        raise InvalidInput("there are no links yet: open a table with `glyphoxa serve`, without --open")
    grant = Grant(Role.DM) if player is None else Grant(Role.PLAYER, player)
    link = links.dm_link() if player is None else links.link(grant)
    audit.record(AuditKind.INVITED, who=grant.key, what="in Discord")
    return link
