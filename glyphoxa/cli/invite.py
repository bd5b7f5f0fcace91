"""`glyphoxa invite`: the links by which players, spectators and the game master come to a table."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

from glyphoxa.cli.scope import CONFIG, campaign_argument, file_or_stored
from glyphoxa.cli.verb import Verb, argument, at_once
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.web.access.links import Links, links_of
from glyphoxa.web.access.records import AuditKind, AuditLog, audit_path
from glyphoxa.web.access.roles import Grant, Role

VERB = Verb(at_once)

CAMPAIGN = (campaign_argument("--campaign", otherwise="else the file of the settings"), CONFIG)


@VERB.itself(
    argument("who", nargs="*", metavar="WHO", help="players' ids, dm, spectator; default: all players"),
    argument("--revoke", help="make the links of before void, put out who came by them, and show new ones"),
    argument("--qr", help="show each link as a QR code too"),
    *CAMPAIGN,
    text="Shows the links that `glyphoxa serve` showed. A player's stays the same until it is revoked. The game "
    "master's is good once, and within a day: `glyphoxa invite dm` makes another.",
)
def run(options: argparse.Namespace) -> int:
    if options.revoke and not options.who:
        raise InvalidInput("--revoke needs to be told whose: `glyphoxa invite --revoke tamsin`")
    settings, campaign = campaign_of(options)
    links = links_of(campaign, settings.data_directory)
    if not links.register.current().url:
        raise InvalidInput(f"the table of {campaign.name!r} was never opened: links are made by `glyphoxa serve`")
    grants = [links.grant_named(who) for who in options.who or links.players]
    log = AuditLog(audit_path(settings.data_directory, campaign.id))
    try:
        for grant in grants:
            if options.revoke:
                links.revoke(grant)
                log.record(AuditKind.REVOKED, who=grant.key)
            _show(grant, links, with_qr=options.qr)
            log.record(AuditKind.INVITED, who=grant.key)
    finally:
        log.close()
    return 0


def campaign_of(options: argparse.Namespace) -> tuple[Settings, Campaign]:
    """
    Raises:
        InvalidInput: Neither the options nor the settings name a campaign, or it cannot be used.
        NotFound: There is no such file, or no such campaign is stored.
    """
    settings = read_settings(options.config)
    found = asyncio.run(file_or_stored(options.campaign, settings))
    return settings, read_campaign(found).campaign if isinstance(found, Path) else found


def _show(grant: Grant, links: Links, *, with_qr: bool) -> None:
    name = grant.role.value if grant.player is None else links.players[grant.player]
    link = links.dm_link(now_s=int(time.time())) if grant.role is Role.DM else links.link(grant)
    print(f"{name}: {link}")
    if with_qr:
        import segno

        segno.make(link, error="l").terminal(sys.stdout, compact=True)
