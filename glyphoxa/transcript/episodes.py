"""How a session's summary is kept: as an entity like others, so that it has a scope, a history and a place in
the graph.

It is of the type `event` with two attribute facts: `kind`, which is "episode", and `summary`, the text.
"""

from __future__ import annotations

from typing import Final

from glyphoxa.domain.ids import EntityId, SessionId

EPISODE: Final = "episode"


def episode_of(session: SessionId) -> EntityId:
    """The entity that sums up the session: one a session, found without a search."""
    return EntityId(f"{EPISODE}-{session}")
