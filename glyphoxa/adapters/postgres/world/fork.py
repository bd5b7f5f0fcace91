from __future__ import annotations

from typing import TYPE_CHECKING, Final

from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

COPIED: Final = (
    "campaign_documents",
    "campaign_times",
    "story_days",
    "sessions",
    "session_entries",
    "talk_to_embed",
    "corrections",
    "turns",
    "chunks",
    "learned_name_events",
    "learned_names",
    "world_events",
    "entities",
    "entity_merges",
    "slot_rules",
    "relationships",
    "attribute_facts",
    "fact_supports",
    "fact_history",
    "retracted_talk",
    "table_controls",
    "chronicle_progress",
    "chronicle_rereads",
)
"""Tables that belong to a campaign: what others refer to comes first. Snapshots are made again when they are needed.

A command to an open table is not copied: a table of the fork must not obey what was said to another.
"""


async def fork_campaign(connection: Connection, campaign: CampaignId, into: CampaignId, *, name: str) -> None:
    """Give a new campaign a copy of all that another has, vectors included.

    Args:
        connection: In a transaction whose queries all see the same state, and which lets them take their time.

    Raises:
        InvalidInput: There is a campaign of the name `into`.
    """
    sql = load_queries("world/fork")
    if not into:
        raise InvalidInput("the new campaign needs an id")
    if await connection.fetchval(sql["new_campaign"], campaign, into, name) is None:
        raise InvalidInput(f"there is a campaign {into!r} already: fork into another id")
    for table in COPIED:
        await connection.execute(sql["copy_rows"], table, campaign, into)
    await connection.execute(sql["fork_document"], into, name)
