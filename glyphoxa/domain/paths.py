"""Who hears what is public at a place.

    a place reaches     who is at it, or at a place inside it: LOCATED_AT, as often as it takes
                        whoever knows, is a member of, or is allied with one whom it reaches so

A place that contains two towns reaches both; a town does not reach the other. A path leads over what the one at its end
may know, and what is accepted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set
from typing import Final

from glyphoxa.domain.campaign import Npc, Relationship
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import AUTO_ACCEPT

_BOTH_WAYS: Final = frozenset(("KNOWS", "ALLIED_WITH"))
_ONE_WAY: Final = frozenset(("MEMBER_OF",))


def reached_from(places: Set[EntityId], npcs: Iterable[Npc], relationships: Iterable[Relationship]) -> list[NpcId]:
    """The NPCs with a path to one of these places; a group is as good as a place.

    Args:
        relationships: Of the whole campaign.
    """
    accepted = [one for one in relationships if not one.hidden and _is_accepted(one)]
    return [npc.id for npc in npcs if _has_path(npc, places, accepted)]


def _is_accepted(one: Relationship) -> bool:
    return one.dm_confirmed or one.confidence >= AUTO_ACCEPT


def _has_path(npc: Npc, places: Set[EntityId], relationships: Iterable[Relationship]) -> bool:
    is_at: defaultdict[EntityId, set[EntityId]] = defaultdict(set)
    tied = {npc.entity_id}
    for one in relationships:
        if one.known_by and npc.id not in one.known_by:
            continue
        if one.type == "LOCATED_AT":
            is_at[one.source].add(one.target)
        if one.source == npc.entity_id and one.type in _BOTH_WAYS | _ONE_WAY:
            tied.add(one.target)
        if one.target == npc.entity_id and one.type in _BOTH_WAYS:
            tied.add(one.source)
    seen, edge = set(tied), list(tied)
    while edge:
        further = is_at[edge.pop()] - seen
        seen |= further
        edge.extend(further)
    return not seen.isdisjoint(places)
