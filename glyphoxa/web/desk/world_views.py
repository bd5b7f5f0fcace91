"""What the desk shows of a campaign's world: its entities, and one with all that is known of it and around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.domain.campaign import ENTITY_TYPES, Entity
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import DM, Fact, Viewer
from glyphoxa.speech.language.words import fold
from glyphoxa.web.desk.graph_layout import radial
from glyphoxa.web.desk.views import MOST_FACTS, Shown, fact_shown
from glyphoxa.world.api import Reached, Walk, visibility_in_words

PER_PAGE: Final = 100
MOST_DRAWN: Final = 60
"""Entities in a drawing: more are unreadable, and the table beside it names all."""
MOST_HOPS: Final = 3
_MOST_RELATIONS: Final = 500
_MOST_LABELLED: Final = 30  # relations in a drawing of which each says what it is
_NAME_LENGTH: Final = 22
_MARGIN: Final = 90


def entities(desk: Desk, of_type: str, name: str, page: str) -> Shown:
    """One page of the entities, by name.

    Args:
        of_type: Empty: of all types.
        name: A part of a name or of another name; empty: all.
        page: From 1.

    Raises:
        InvalidInput: There is no such page.
    """
    wanted = fold(name)
    found = [
        each
        for each in desk.seen
        if of_type in ("", each.entity.type)
        and any(wanted in fold(called) for called in (each.entity.name, *each.entity.aliases))
    ]
    found.sort(key=lambda each: (fold(each.entity.name), each.entity.id))
    n_pages = max(1, -(-len(found) // PER_PAGE))
    at = _number(page or "1", "page", most=n_pages)
    return {
        "rows": [
            {**_entity(each.entity), "known_to": visibility_in_words(each.visibility, desk.resolver)}
            for each in found[(at - 1) * PER_PAGE : at * PER_PAGE]
        ],
        "n": len(found),
        "at": at,
        "n_pages": n_pages,
        "type": of_type,
        "name": name,
        "types": sorted({*ENTITY_TYPES, *(each.entity.type for each in desk.seen)}),
    }


async def entity(desk: Desk, wanted: str, hops: str, npc: str) -> Shown:
    """One entity as the DM, or one NPC, knows it.

    Args:
        hops: How far the drawing goes, 1 to `MOST_HOPS`.
        npc: Empty: the DM.

    Raises:
        NotFound: There is no such entity or NPC.
        InvalidInput: `hops` is no such number.
    """
    seen = {each.entity.id: each for each in desk.seen}
    if EntityId(wanted) not in seen:
        raise NotFound(f"no entity has the id {wanted!r}: {did_you_mean(wanted, list(seen))}")
    one = seen[EntityId(wanted)]
    viewer = desk.resolver.npc(npc) if npc else DM
    depth = _number(hops or "1", "hops", most=MOST_HOPS)
    facts = await desk.inspection.current(desk.campaign, viewer, about=one.entity.id, limit=MOST_FACTS)
    return {
        **_entity(one.entity),
        "known_to": visibility_in_words(one.visibility, desk.resolver),
        "facts": [{**fact_shown(desk, fact), "other": _other_end(desk, fact, one.entity.id)} for fact in facts],
        "is_cut": len(facts) == MOST_FACTS,
        "around": await _around(desk, viewer, one.entity.id, depth),
        "hops": depth,
        "most_hops": MOST_HOPS,
        "npc": "" if viewer is DM else viewer,
        "npcs": [{"id": each.id, "name": each.name} for each in desk.resolver.npcs],
        "names": sorted(each.entity.name for each in desk.seen if each.entity.id != one.entity.id),
        "types": sorted({*ENTITY_TYPES, *(each.entity.type for each in desk.seen)}),
    }


async def _around(desk: Desk, viewer: Viewer, middle: EntityId, depth: int) -> Shown:
    """What is at most so many relations away: to draw, and as a table."""
    walk = Walk(depth=depth, limit=MOST_DRAWN + 1)
    reached = await desk.graph.traverse(desk.campaign, viewer, middle, walk)
    drawn = reached[:MOST_DRAWN]
    ids = [each.entity.id for each in drawn]
    relations = await desk.inspection.relations_among(desk.campaign, viewer, ids, limit=_MOST_RELATIONS)
    return {
        "drawing": _drawing(drawn, relations) if len(drawn) > 1 else None,
        "is_cut": len(reached) > MOST_DRAWN,
        "n": len(drawn),
        "relations": [
            {
                "from": {"id": fact.claim.subject, "name": desk.resolver.called(fact.claim.subject)},
                "what": _spoken(fact),
                "to": {"id": fact.claim.object, "name": desk.resolver.called(fact.claim.object)},
                "known_to": visibility_in_words(fact.visibility, desk.resolver),
            }
            for fact in relations
            if fact.claim.object is not None
        ],
    }


def _drawing(reached: Sequence[Reached], relations: Sequence[Fact]) -> Shown:
    edges = [(fact.claim.subject, fact.claim.object, fact) for fact in relations if fact.claim.object is not None]
    at = radial({each.entity.id: each.depth for each in reached}, [(one, other) for one, other, _ in edges])
    left, right = min(each.x for each in at.values()) - _MARGIN, max(each.x for each in at.values()) + _MARGIN
    top, bottom = min(each.y for each in at.values()) - _MARGIN / 2, max(each.y for each in at.values()) + _MARGIN / 2
    labelled = len(edges) <= _MOST_LABELLED
    return {
        "box": f"{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}",
        "nodes": [
            {
                "id": each.entity.id,
                "type": each.entity.type,
                "name": _shortened(each.entity.name),
                "depth": each.depth,
                "at": at[each.entity.id],
            }
            for each in reached
        ],
        "edges": [
            {
                "from": at[one],
                "to": at[other],
                "label": _spoken(fact) if labelled else "",
                "x": (at[one].x + at[other].x) / 2,
                "y": (at[one].y + at[other].y) / 2,
                "is_secret": fact.visibility.scope != "public",
            }
            for one, other, fact in edges
        ],
    }


def _spoken(fact: Fact) -> str:
    return fact.claim.predicate.replace("_", " ").lower()


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"


def _entity(found: Entity) -> Shown:
    return {"id": found.id, "name": found.name, "type": found.type, "aliases": found.aliases}


def _other_end(desk: Desk, fact: Fact, entity: EntityId) -> Shown | None:
    """Whom else it is about."""
    other = fact.claim.object if fact.claim.subject == entity else fact.claim.subject
    return None if other is None or other == entity else {"id": other, "name": desk.resolver.called(other)}


def _number(text: str, what: str, *, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most):
        raise InvalidInput(f"{what} {text!r}: a number from 1 to {most} is wanted")
    return int(text)
