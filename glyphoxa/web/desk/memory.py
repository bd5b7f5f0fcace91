"""The desk's pages of the memory graph: a table for each type of node, the timeline, and the types themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from fastapi import Request

from glyphoxa.app.desk import Desk
from glyphoxa.chronicle.timeline import EventNode
from glyphoxa.domain.campaign import DEFAULT_TYPES, TYPE_TEMPLATES
from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import DM
from glyphoxa.language.facts import known_to_in_words
from glyphoxa.web.desk.frame import DeskFrame, Pages, Shown, paged, viewer_of

PAGES: Final = Pages()
PER_PAGE: Final = 100
_LEVELS: Final = 3
"""Tiers that a page shows below a node; a link opens those below."""
_Parts = Mapping[EntityId | None, Sequence[EventNode]]


@PAGES.get("/desk/memory", "memory")
async def memory(frame: DeskFrame, request: Request) -> Shown:
    """Show one page of nodes, of a `type` or as far as one `npc` may know them, in a table for each type.

    Raises:
        NotFound: There is no such type or NPC.
        InvalidInput: There is no such page.
    """
    desk, asked = await frame.desk(), request.query_params
    viewer, views = viewer_of(desk, asked.get("npc", ""))
    of_type, schema = asked.get("type", ""), desk.resolver.schema
    found = desk.entities_like("", of_type, viewer)
    found.sort(key=lambda each: schema.name_of(each.entity.type))
    rows, pages = paged(found, asked.get("page", ""), most=PER_PAGE)
    groups = groupby(await desk.nodes(rows, viewer), key=lambda node: node.type)
    return {
        **views,
        **pages,
        "tables": [(type_, schema.of_entity(type_).fields, [*group]) for type_, group in groups],
        "type": of_type,
        "types": sorted({schema.name_of(each) for each in desk.resolver.types}),
        "prompt": None if viewer is DM else await _last_prompt(desk, NpcId(str(viewer))),
    }


async def _last_prompt(desk: Desk, npc: NpcId) -> Shown | None:
    """Return the parts of an NPC's last prompt, what it recalled and left out; None if five turns had none."""
    for turn in await desk.turns.latest(npc=npc, limit=5):
        record = await desk.turns.find(turn.id, npc=npc)
        if record.prompt.parts:
            explained = await desk.turns.explain_prompt(record.prompt, npc)
            return {"turn": record, "lines": explained.told()}
    return None


@PAGES.get("/desk/memory/timeline", "timeline")
async def timeline(frame: DeskFrame, request: Request) -> Shown:
    """Show the event nodes that nothing sums up, the highest tier first, or one `node`; each with what it sums up.

    Raises:
        NotFound: There is no such node or NPC.
        InvalidInput: There is no such page.
    """
    desk, asked = await frame.desk(), request.query_params
    viewer, views = viewer_of(desk, asked.get("npc", ""))
    stored = await desk.store.episodes.read(desk.campaign, viewer)
    wanted, root = asked.get("node", ""), stored.node(EntityId(asked.get("node", "")))
    if wanted and root is None:
        raise NotFound(f"no event node {wanted!r} in campaign {desk.campaign!r}")
    parts: defaultdict[EntityId | None, list[EventNode]] = defaultdict(list)
    for node in stored.nodes:
        parts[node.parent].append(node)
    roots = sorted(parts[None], key=lambda node: -node.tier) if root is None else [root]
    rows, pages = paged(roots, asked.get("page", ""), most=PER_PAGE)
    return {
        **views,
        **pages,
        "node": wanted,
        "roots": rows,
        "parts": parts,
        "levels": _LEVELS,
        "called": desk.resolver.called,
        "known_to": lambda fact: known_to_in_words(fact, desk.resolver),
        "lines": await desk.lines_of(node for node in _down(rows, parts, _LEVELS) if node.id not in parts),
    }


def _down(nodes: Sequence[EventNode], parts: _Parts, levels: int) -> Iterator[EventNode]:
    """Yield nodes, each before those that it sums up."""
    for node in nodes:
        yield node
        if levels:
            yield from _down(parts.get(node.id, ()), parts, levels - 1)


@PAGES.get("/desk/memory/types", "types")
async def types(frame: DeskFrame, _: Request) -> Shown:
    """Show all types of nodes with their settings: the campaign's own, the default ones and the templates."""
    schema = (await frame.desk()).resolver.schema
    names = dict.fromkeys((*schema.types, *map(schema.name_of, schema.entity_types), *TYPE_TEMPLATES))
    return {
        "types": {name: schema.named(name) for name in names},
        "origins": {"template": TYPE_TEMPLATES, "default": DEFAULT_TYPES, "own": schema.declared},
        "has_file": frame.memory().settings.campaign is not None,
    }
