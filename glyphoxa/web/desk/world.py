"""The desk's pages of the world: entities, the facts and relations of one, changes, nodes of the memory graph.

And of the campaign file that describes it: its text, forms that add to it, and a preview of the changes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import PlainTextResponse, Response

from glyphoxa.adapters.local.hibari_voice import PRESETS
from glyphoxa.app.campaign_editor import CampaignDraft, CampaignEditor, npc_form
from glyphoxa.app.desk import Desk
from glyphoxa.chronicle.timeline_writer import EventNode
from glyphoxa.config.campaign_edit import type_form
from glyphoxa.dm.actions import actions_of, chosen
from glyphoxa.dm.campaign_diff import CampaignChanges
from glyphoxa.domain.campaign import DEFAULT_SCHEMA, DEFAULT_TYPES, TYPE_TEMPLATES
from glyphoxa.domain.errors import InvalidInput, NotFound, counted
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import DM, Fact, Viewer
from glyphoxa.language.facts import Names, known_to, known_to_in_words, visibility_in_words
from glyphoxa.web.desk.frame import DeskFrame, Done, Form, Pages, Shown, number_in, paged, scene_of, viewer_of
from glyphoxa.web.desk.review import MOST_FACTS, fact_shown
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


# -- nodes of the memory graph: a table for each type, the timeline, and the types themselves

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


# -- changes

_ACTIONS: Final = actions_of("form", "entities") | {"state": actions_of("form", "facts")["state"]}


@PAGES.post("/desk/world")
async def add_entity(frame: DeskFrame, _: Request, form: Form) -> Done:
    """Add an entity of `name` and `type`.

    Raises:
        InvalidInput: There is one of that name, or the type is unknown and `new_type` is not set.
    """
    desk = await frame.desk()
    events = await _ACTIONS["add"].run(desk, form)
    return Done("; ".join(desk.in_words(events)), _page_of(events[0].event.entity))


@PAGES.post("/desk/world/{entity:path}")
async def change_entity(frame: DeskFrame, request: Request, form: Form) -> Done:
    """
    Args:
        form: `do`, and the parameters of that action but for its first, which is the entity.

    Raises:
        NotFound: There is no such entity any more, or none of a name in the form.
        InvalidInput: It cannot be changed so.
    """
    entity, what = EntityId(request.path_params["entity"]), form.get("do", "")
    given = {name: value.strip() for name, value in form.items() if value.strip()}
    match form.get("known_to", ""):  # everybody, nobody, or an NPC
        case "":
            scope = "reveal"
        case "-":
            scope, given["hidden"] = "hide", "on"
        case npc:
            scope, given["known_by"] = "secret", npc
    action = chosen(scope if what == "scope" else what, _ACTIONS, "action on an entity")
    desk = await frame.desk()
    given[action.options[0].name] = entity
    done = "; ".join(desk.in_words(await action.run(desk, given))) or "already known"
    return Done(done, "/desk/world" if what == "remove" else _page_of(entity))


# -- the campaign file

MOST_LISTED: Final = 100
"""Lines of one kind. A new campaign can have thousands."""


@PAGES.get("/desk/campaign", "campaign")
async def campaign_file(frame: DeskFrame, request: Request) -> Shown:
    """Show the campaign file, with a filled form: `speak` lets this entity speak, `type` changes or adds this type."""
    editor = CampaignEditor(frame.memory())
    draft = await editor.begin()
    wanted, type_ = request.query_params.get("speak", ""), request.query_params.get("type", "")
    if not (wanted or type_) or draft.campaign is None:
        return _campaign_page(editor, draft)
    if type_:
        return _campaign_page(editor, draft, filled=("type", type_form(type_, draft.campaign.schema.named(type_))))
    form = await npc_form(await frame.desk(), wanted, draft.campaign, scene=frame.table.scene.id)
    return _campaign_page(editor, draft, filled=("person", form))


@PAGES.get("/desk/campaign.yaml")
async def download_campaign(frame: DeskFrame, _: Request) -> Response:
    return PlainTextResponse(
        CampaignEditor(frame.memory()).file.read(),
        media_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="campaign.yaml"'},
    )


@PAGES.post("/desk/campaign")
async def change_campaign(frame: DeskFrame, _request: Request, form: Form) -> Done | Response:
    """Check, extend or store the campaign file. The edited text travels with the form; nothing else is stored."""
    editor = CampaignEditor(frame.memory())
    draft = await editor.check(form.get("text", ""), base=form.get("base", ""))
    what, _, kind = form.get("do", "").partition(" ")
    # `person-name` is the name of a person.
    fields = {name.removeprefix(f"{kind}-"): value for name, value in form.items() if name.startswith(f"{kind}-")}
    refused = ""
    try:
        match what:
            case "check":
                pass
            case "add":
                draft, fields = await editor.add(draft, {**fields, "add": kind}), {}
            case "save":
                changes = await editor.save(draft, shown=form.get("shown", ""))
                text = f"the campaign file is saved, with {counted(changes.n, 'change')} to the campaign"
                return Done(text, "/desk/campaign")
            case _:
                raise InvalidInput(f"unknown action {what!r} on the campaign file; valid: check, add, save")
    except InvalidInput as error:
        if what not in ("add", "save"):
            raise
        refused = str(error)
    return frame.page("campaign", None, **_campaign_page(editor, draft, refused=refused, filled=(kind, fields)))


def changes_shown(changes: CampaignChanges) -> list[Shown]:
    return [
        {"title": title, "lines": told[:MOST_LISTED], "n_more": max(0, len(told) - MOST_LISTED)}
        for title, told in (
            ("New", changes.added),
            ("Changed", changes.changed),
            ("Removed", changes.removed),
            ("Notes", changes.remarks),
        )
        if told
    ]


def _campaign_page(
    editor: CampaignEditor,
    draft: CampaignDraft,
    *,
    refused: str = "",
    filled: tuple[str, Shown] = ("", {}),
) -> Shown:
    """
    Args:
        refused: The error of the last action.
        filled: A kind of form, and the values of its fields.
    """
    lines = draft.text.split("\n")
    described, changes = draft.campaign, draft.changes
    return {
        "file": editor.file.path.name,
        "can_be_written": editor.file.can_be_written,
        "text": draft.text,
        "is_changed": draft.is_changed,
        "base": draft.base,
        "shown": draft.shown,
        "problems": [
            {"line": each.line, "text": each.text, "stands": lines[each.line - 1] if each.line <= len(lines) else ""}
            for each in draft.problems[:MOST_LISTED]
        ],
        "warnings": draft.warnings[:MOST_LISTED],
        "changes": [] if changes is None else changes_shown(changes),
        "refused": refused,
        "filled": {filled[0]: filled[1]} if filled[0] else {},
        "voices": sorted(PRESETS),
        "types": sorted((DEFAULT_SCHEMA if described is None else described.schema).entity_types),
        "names": [] if described is None else sorted(each.name for each in described.entities),
        "npcs": [] if described is None else [each.name for each in described.npcs],
        "scenes": [] if described is None else [scene_of(scene, described) for scene in described.scenes],
    }


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
    fullest = max((n / ring for ring, n in Counter(depths.values()).items() if ring), default=0)
    step = max(RING, fullest * _ROOM / math.tau)
    n_leaves = sum(not below[node] for node in depths)
    found: dict[str, Point] = {}

    def place(node: str, first: int) -> int:
        """Place a node in the middle of the leaves below it, of which this is the first; return the next leaf."""
        after = first
        for child in below[node]:
            after = place(child, after)
        after = max(after, first + 1)  # a leaf is its own
        angle, radius = math.tau * (first + after) / 2 / n_leaves, depths[node] * step
        found[node] = Point(round(radius * math.cos(angle), 1), round(radius * math.sin(angle), 1))
        return after

    place(middle, 0)
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
