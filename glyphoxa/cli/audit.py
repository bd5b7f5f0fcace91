"""`glyphoxa audit`: who came to a campaign's table, was refused, moved it or left."""

from __future__ import annotations

import argparse
from collections import deque

from glyphoxa.cli.invite import CAMPAIGN, campaign_of
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, at_once, limit
from glyphoxa.web.access.records import AuditKind, audit_path, read_audit
from glyphoxa.world.api import moment

VERB = Verb(at_once)


@VERB.itself(
    limit(50),
    *CAMPAIGN,
    text="Who came to the table, by whose link, from where; who was refused and why; who moved the table; which links "
    "were made and revoked; who agreed to be heard. Newest last.",
)
def run(options: argparse.Namespace) -> int:
    settings, campaign = campaign_of(options)
    entries = deque(read_audit(audit_path(settings.data_directory, campaign.id)), maxlen=options.limit)
    if not entries:
        print(f"nobody has come to the table of {campaign.name} yet")
        return 0
    table = a_table("when", "who", "what", "of what", "from")
    for entry in entries:
        stranger = "a stranger" if entry.kind is AuditKind.REFUSED else ""
        table.add_row(moment(entry.at_ms), entry.who or stranger, entry.kind.value, entry.what, entry.address)
    show(table)
    return 0
