"""`glyphoxa recall --around`: what an NPC heard of somebody, and of who and what is related to that one."""

from __future__ import annotations

import argparse

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli.recall_shown import Shown, listing
from glyphoxa.dm.resolver import NameResolver
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.recall.api import RecallAround
from glyphoxa.world.api import Passage

_SELECTED = "when it looks for it (tier DEEP)"


async def answer_around(desk: Desk, graph: object, question: str, options: argparse.Namespace) -> int:
    """Print it.

    Args:
        graph: Asked for talk, if it can be.

    Raises:
        InvalidInput: It cannot.
        NotFound: There is no such NPC or entity.
    """
    npc, entity = desk.resolver.npc(options.npc), desk.resolver.entity(options.around)
    around = RecallAround.of(graph, desk.past_talk.vectors)
    if around is None:
        raise InvalidInput("--around: this memory cannot be searched by who is related to whom; leave it out")
    found = await around.recall_around(desk.campaign, npc, question, around=entity.id, limit=options.limit)
    if found:
        listing(
            [Shown(one.recalled, _path(one, entity, desk.resolver), selected=_SELECTED) for one in found],
            explain=options.explain,
        )
    else:
        print(f"{desk.resolver.person(npc)} has heard nothing of {entity.name}, or of who is related, that bears on it")
    return 0


def _path(passage: Passage, around: Entity, resolver: NameResolver) -> str:
    """As "names Joren, 1 relation from the Watch"."""
    names = ", ".join(resolver.called(entity) for entity in passage.entity_ids)
    if not passage.depth:
        return f"names {names}"
    return f"names {names}, {passage.depth} relation{'s' if passage.depth > 1 else ''} from {around.name}"
