"""The desk's pages of the world: entities, the facts about one, a drawing of its relations, and changes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from fastapi import Request

from glyphoxa.app.desk import Desk
from glyphoxa.dm.entities import json_or_text
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Fact, Viewer
from glyphoxa.language.facts import Names, known_to, known_to_in_words, visibility_in_words
from glyphoxa.web.desk.frame import DeskFrame, Done, Form, Pages, Shown, number_in, paged, viewer_of
from glyphoxa.web.desk.review import MOST_FACTS, fact_shown
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import WorldEvent
from glyphoxa.world.graph import Reached

PAGES: Final = Pages()


def _page_of(entity: EntityId) -> str:
    return f"/desk/world/{quote(entity, safe='')}"


# -- what the pages show

PER_PAGE: Final = 100
MOST_DRAWN: Final = 60
"""Entities in a drawing: more are unreadable, and the table beside it names all."""
MOST_HOPS: Final = 3
_MOST_RELATIONS: Final = 500
_MOST_LABELLED: Final = 30  # relations in a drawing of which each says what it is
_MARGIN: Final = 90


@PAGES.get("/desk/world", "world")
async def world_page(frame: DeskFrame, request: Request) -> Shown:
    """Show one page of entities by name, of a `type` or whose `name` contains a text.

    Raises:
        InvalidInput: There is no such page.
    """
    desk, asked = await frame.desk(), request.query_params
    of_type, name = asked.get("type", ""), asked.get("name", "")
    rows, pages = paged(desk.entities_like(name, of_type), asked.get("page", ""), most=PER_PAGE)
    return {
        **pages,
        "rows": [(each.entity, visibility_in_words(each.visibility, desk.resolver)) for each in rows],
        "type": of_type,
        "name": name,
        "types": desk.resolver.types,
    }


@PAGES.get("/desk/world/{entity:path}", "entity")
async def entity_page(frame: DeskFrame, request: Request) -> Shown:
    """Show an entity as the DM or one `npc` knows it, with a drawing up to `hops` relations away.

    Raises:
        NotFound: There is no such entity or NPC.
        InvalidInput: `hops` is no such number.
    """
    desk, asked = await frame.desk(), request.query_params
    entity = desk.resolver.entity(request.path_params["entity"])
    viewer, views = viewer_of(desk, asked.get("npc", ""))
    depth = number_in(asked.get("hops") or "1", "hops", most=MOST_HOPS)
    facts = await desk.inspection.current(desk.campaign, viewer, about=entity.id, limit=MOST_FACTS)
    return {
        "entity": entity,
        "known_to": visibility_in_words(desk.resolver.visibility_of(entity.id), desk.resolver),
        "documents": [each.words for each in await desk.imports.documents_of(entity.id)],
        "facts": [{**fact_shown(desk, fact), "other": _other_end(desk, fact, entity.id)} for fact in facts],
        "is_cut": len(facts) == MOST_FACTS,
        "around": await _around(desk, viewer, entity.id, depth),
        "hops": depth,
        "most_hops": MOST_HOPS,
        **views,
        "names": sorted(each.entity.name for each in desk.seen if each.entity.id != entity.id),
        "types": desk.resolver.types,
        "can_speak": entity.type == "npc"
        and desk.settings.campaign is not None
        and all(each.entity_id != entity.id for each in desk.resolver.npcs),
    }


async def _around(desk: Desk, viewer: Viewer, middle: EntityId, depth: int) -> Shown:
    """Return everything up to so many relations away, as a drawing and a table."""
    world = await desk.store.world_memory(desk.campaign).refresh()
    reached = world.reach(viewer, middle, depth=depth, limit=MOST_DRAWN + 1)
    drawn = reached[:MOST_DRAWN]
    ids = [each.entity.id for each in drawn]
    relations = await desk.inspection.relations_among(desk.campaign, viewer, ids, limit=_MOST_RELATIONS)
    return {
        "drawing": _drawing(drawn, relations, desk.resolver) if len(drawn) > 1 else None,
        "is_cut": len(reached) > MOST_DRAWN,
        "n": len(drawn),
        "relations": [(fact.claim, known_to_in_words(fact, desk.resolver)) for fact in relations],
        "names": desk.resolver,
    }


def _drawing(reached: Sequence[Reached], relations: Sequence[Fact], names: Names) -> Shown:
    edges = [(fact.claim.subject, fact.claim.object, fact) for fact in relations if fact.claim.object is not None]
    at = radial({each.entity.id: each.depth for each in reached}, [(one, other) for one, other, _ in edges])
    left, right = min(each.x for each in at.values()) - _MARGIN, max(each.x for each in at.values()) + _MARGIN
    top, bottom = min(each.y for each in at.values()) - _MARGIN / 2, max(each.y for each in at.values()) + _MARGIN / 2
    labelled = len(edges) <= _MOST_LABELLED
    return {
        "box": f"{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}",
        "nodes": [(each.entity, each.depth, at[each.entity.id]) for each in reached],
        "edges": [
            {
                "from": at[one],
                "to": at[other],
                "label": names.relations.between(fact.claim.predicate) if labelled else "",
                "x": (at[one].x + at[other].x) / 2,
                "y": (at[one].y + at[other].y) / 2,
                "is_secret": known_to(fact, names).scope != "public",
            }
            for one, other, fact in edges
        ],
    }


def _other_end(desk: Desk, fact: Fact, entity: EntityId) -> Shown | None:
    """Return the other entity of a relation."""
    other = fact.claim.object if fact.claim.subject == entity else fact.claim.subject
    return None if other is None or other == entity else {"id": other, "name": desk.resolver.called(other)}


# -- changes

EVERYBODY: Final = ""
NOBODY: Final = "-"
"""Values of a form's `known_to` besides an NPC."""


@PAGES.post("/desk/world")
async def add_entity(frame: DeskFrame, _: Request, form: Form) -> Done:
    """Add an entity of `name` and `type`.

    Raises:
        InvalidInput: There is one of that name, or the type is unknown and `new_type` is not set.
    """
    entities = (await frame.desk()).entities
    entity = Entity(EntityId(""), form.get("type", ""), form.get("name", ""))
    events = await entities.add(entity, is_new_type=bool(form.get("new_type")))
    added = events[0].event
    if not isinstance(added, EntityAdded):
        raise TypeError(f"adding an entity begins with {EntityAdded.__name__}, not {added!r}")
    return Done(f"added: {added.name}", _page_of(added.entity))


@PAGES.post("/desk/world/{entity:path}")
async def change_entity(frame: DeskFrame, request: Request, form: Form) -> Done:
    """
    Args:
        form: `do`, and what that needs.

    Raises:
        NotFound: There is no such entity any more, or none of a name in the form.
        InvalidInput: It cannot be changed so.
    """
    entity, what = EntityId(request.path_params["entity"]), form.get("do", "")
    if what not in (*_DO, _STATE):
        raise InvalidInput(f"unknown action {what!r} on an entity: {did_you_mean(what, [*_DO, _STATE])}")
    desk = await frame.desk()
    if what == _STATE:
        done = await _state(desk, entity, form)
    else:
        done = "; ".join(each.event.in_words(desk.resolver) for each in await _DO[what](desk, entity, form))
    return Done(done, "/desk/world" if what == "remove" else _page_of(entity))


async def _change(desk: Desk, entity: EntityId, form: Form) -> Sequence[WorldEvent]:
    old = desk.resolver.entity(entity)
    name, of_type = form.get("name", "").strip() or None, form.get("type") or None
    changed = await desk.entities.change(
        entity, name=None if name == old.name else name, type=None if of_type == old.type else of_type
    )
    return changed[:1]


async def _scope(desk: Desk, entity: EntityId, form: Form) -> Sequence[WorldEvent]:
    match form.get("known_to", EVERYBODY):
        case "":
            return await desk.entities.reveal(entity)
        case "-":
            return await desk.entities.hide(entity)
        case npc:
            return await desk.entities.keep_secret(entity, [npc])


async def _state(desk: Desk, entity: EntityId, form: Form) -> str:
    known_to = form.get("known_to", EVERYBODY)
    value = form.get("value", "").strip()
    claim = desk.facts.claim(
        entity,
        form.get("predicate", ""),
        object=form.get("object", "").strip() or None,
        value=json_or_text(value) if value else None,
    )
    known_by = () if known_to in (EVERYBODY, NOBODY) else [known_to]
    made = await desk.facts.add(claim, known_by=known_by, is_hidden=known_to == NOBODY)
    return "; ".join(f"{desk.facts.words(fact)}: {fact.status}" for fact in made.facts) or "already known"


_DO: Final[Mapping[str, Callable[[Desk, EntityId, Form], Awaitable[Sequence[WorldEvent]]]]] = {
    "change": _change,
    "alias": lambda desk, entity, form: desk.entities.add_alias(entity, form.get("alias", "")),
    "unalias": lambda desk, entity, form: desk.entities.remove_alias(entity, form.get("alias", "")),
    "scope": _scope,
    "merge": lambda desk, entity, form: desk.entities.merge(entity, form.get("gone", "")),
    "remove": lambda desk, entity, _: desk.entities.remove(entity),
}
_STATE: Final = "state"


# -- where entities stand in a drawing

RING: Final = 150.0
"""Units of the drawing between two rings, wider where names would run into each other."""
_ROOM: Final = 62.0  # of the circle's length that a name needs


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the drawing, whose middle is (0, 0); y grows downwards."""

    x: float
    y: float


def radial(depths: Mapping[str, int], edges: Iterable[tuple[str, str]]) -> dict[str, Point]:
    """Place each node by the radial layout of a breadth-first tree (Eades, 1992: "Drawing free trees").

    Args:
        depths: Nodes with their distance from the one in the middle, which alone has 0, the nearest first.
        edges: Pairs of nodes; direction does not matter. A node that no edge joins to a nearer one hangs on the middle.

    Returns:
        The same for the same arguments.
    """
    if not depths:
        return {}
    middle = next(iter(depths))
    below = _tree(depths, edges, middle)
    leaves = _leaves(below, depths)
    step = _step(depths)
    found: dict[str, Point] = {}
    waiting = [(middle, 0.0, math.tau)]
    while waiting:
        node, begin, end = waiting.pop()
        angle, radius = (begin + end) / 2, depths[node] * step
        found[node] = Point(round(radius * math.cos(angle), 1), round(radius * math.sin(angle), 1))
        at = begin
        for child in below[node]:
            share = (end - begin) * leaves[child] / sum(leaves[each] for each in below[node])
            waiting.append((child, at, at + share))
            at += share
    return found


def _tree(depths: Mapping[str, int], edges: Iterable[tuple[str, str]], middle: str) -> Mapping[str, Sequence[str]]:
    """Return each node's children: a node is a child of the first nearer node it is joined to."""
    joined: defaultdict[str, list[str]] = defaultdict(list)
    for one, other in edges:
        joined[one].append(other)
        joined[other].append(one)
    below: defaultdict[str, list[str]] = defaultdict(list)
    for node, depth in depths.items():
        if node != middle:
            above = next((each for each in joined[node] if depths.get(each, depth) < depth), middle)
            below[above].append(node)
    return below


def _leaves(below: Mapping[str, Sequence[str]], depths: Mapping[str, int]) -> dict[str, int]:
    """Return the number of leaves below each node; a leaf counts itself."""
    counted: dict[str, int] = {}
    for node in sorted(depths, key=lambda each: -depths[each]):
        counted[node] = sum(counted[child] for child in below[node]) or 1
    return counted


def _step(depths: Mapping[str, int]) -> float:
    fullest = max(
        (sum(each == ring for each in depths.values()) / ring for ring in set(depths.values()) - {0}), default=0
    )
    return max(RING, fullest * _ROOM / math.tau)
