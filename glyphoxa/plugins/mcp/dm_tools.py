"""MCP tools for the DM: nodes, facts and who knows them, sessions, transcripts, and why an NPC said what it said.

All tools show the DM's view, including secrets. All are read-only but `memory_compact_nodes`, which adds a node,
and the actions of `glyphoxa.dm.actions` that name a tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Annotated, Final, get_args

from glyphoxa.app.background import timeline_writer
from glyphoxa.app.desk import Desk
from glyphoxa.chronicle.timeline_writer import EventNode
from glyphoxa.dm.actions import DmAction, actions_of
from glyphoxa.dm.entities import MAX_FACTS
from glyphoxa.dm.turns import LAST, RecalledThen, short
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.domain.knowledge import DM, Status
from glyphoxa.domain.turn_record import Stage, TurnRecord
from glyphoxa.language.facts import fact_row, known_to_in_words, moment
from glyphoxa.npc.tool_spec import CallableTool, Found, Run, Tools, ToolSpec, nothing, text, tool
from glyphoxa.transcript.ports import TalkFilter
from glyphoxa.transcript.sessions import SummarySentence

_MOST: Final = 100
_USUAL: Final = 20

Session = Annotated[str, text("Only this session: its id, as returned by dm_sessions")]
NpcName = Annotated[str, text("Only this NPC: its name")]
Limit = Annotated[
    int,
    {
        "type": "integer",
        "minimum": 1,
        "maximum": _MOST,
        "description": f"Maximum number of results; {_USUAL} by default",
    },
]

_Rows = Sequence[object]

_TOOLS: Final[Tools[_Rows]] = {}
_tool = partial(tool, _TOOLS, estimated_ms=100)


def dm_tools(open_desk: Callable[[], Awaitable[Desk]]) -> list[CallableTool]:
    """
    Args:
        open_desk: Opens the campaign's current state for one call.
    """

    def offered(spec: ToolSpec, run: Run[_Rows]) -> CallableTool:
        async def ask(arguments: Mapping[str, object]) -> Found:
            found = await run(await open_desk(), **arguments)
            return {"found": list(found)} if found else nothing("nothing found")

        return CallableTool(spec, ask)

    actions = [(_spec(name, action), action) for name, action in actions_of("tool").items()]
    return [*starmap(offered, _TOOLS.values()), *(offered(spec, partial(_act, action)) for spec, action in actions)]


def _spec(name: str, action: DmAction) -> ToolSpec:
    """Return the tool of an action; see `glyphoxa.dm.actions`."""
    kinds = {bool: "boolean", int: "integer", str: "string"}
    parameters = {each.name: {"type": kinds[each.kind], "description": each.meaning} for each in action.options}
    required = tuple(each.name for each in action.options if each.is_required)
    return ToolSpec(name, f"{action.meaning}.", parameters, required, 100, writes=True)


async def _act(action: DmAction, desk: Desk, **given: object) -> _Rows:
    return desk.in_words(await action.run(desk, given))


@_tool("dm.sessions", "List the sessions and the number of utterances in each.")
async def _sessions(desk: Desk) -> _Rows:
    talk = await desk.inspection.entries_per_session(desk.campaign)
    return [
        {
            "session": each.id,
            "title": each.title,
            "began": moment(each.started_ms),
            "last said": moment(each.last_at_ms),
            "utterances": each.n_entries,
            "rolled back": each.n_retracted,
        }
        for each in talk
    ]


@_tool(
    "dm.session_state",
    "Show what the DM and each NPC have in mind of a session: summary, terms, events, threads and belongings.",
)
async def _session_state(
    desk: Desk,
    *,
    session: Annotated[str, text("The session: its id, as returned by dm_sessions; the last by default")] = "",
    view: Annotated[str, text('Only this view: "dm" or an NPC\'s name')] = "",
) -> _Rows:
    sessions = await desk.inspection.sessions(desk.campaign)
    wanted = await _session(desk, session) or (sessions[-1].id if sessions else None)
    if wanted is None:
        return []
    views = await desk.session_views(wanted, view)
    return [
        {
            "session": wanted,
            "view": each.name,
            "summary": each.state.text,
            "glossary": dict(each.terms),
            "flags": [name for name, is_set in each.state.flags.items() if is_set],
            "summarised to utterance": each.state.last_ordinal,
            **each.lists,
        }
        for each in views
    ]


@_tool("dm.said", "Search the transcripts. Without words: the latest utterances.")
async def _said(  # noqa: PLR0913 - each is an argument of the tool
    desk: Desk,
    *,
    words: Annotated[str, text("Words to search for; any of them matches")] = "",
    speaker: Annotated[str, text("Only what this player or NPC said")] = "",
    heard_by: Annotated[str, text("Only what this NPC heard")] = "",
    session: Session = "",
    limit: Limit = _USUAL,
) -> _Rows:
    wanted = TalkFilter(
        words,
        session=await _session(desk, session),
        speaker=desk.resolver.speaker(speaker) if speaker else None,
        limit=limit,
    )
    found = await desk.store.talk_search.search(desk.campaign, desk.resolver.npc(heard_by) if heard_by else DM, wanted)
    return [
        {
            "session": each.utterance.session_id,
            "ordinal": each.ordinal,
            "when": moment(each.utterance.at_ms),
            "who": each.utterance.speaker_name,
            "said": each.utterance.text,
        }
        for each in found
    ]


@_tool("dm.threads", "List promises, plans and questions that nothing later continues, latest first.")
async def _threads(desk: Desk, *, session: Session = "", limit: Limit = _USUAL) -> _Rows:
    found = await desk.store.atoms.open_threads(desk.campaign, await _session(desk, session), limit=limit)
    return [{"when": moment(each.at_ms), "session": each.session, "thread": each.summary} for each in found]


@_tool("dm.facts", "List facts with their status and who knows them. With known_by: everything that one NPC knows.")
async def _facts(
    desk: Desk,
    *,
    about: Annotated[str, text("Only facts of this person, place, thing or group")] = "",
    known_by: Annotated[str, text("Only facts that this NPC knows")] = "",
    status: Annotated[
        str,
        {
            **text("Only facts with this status; pending facts need the DM's review"),
            "enum": list(get_args(Status)),
        },
    ] = "",
    limit: Limit = _USUAL,
) -> _Rows:
    viewer = desk.resolver.npc(known_by) if known_by else DM
    entity = desk.resolver.entity(about).id if about else None
    # Search a status among all facts: pending facts are few and may come after many others.
    facts, _ = await desk.timeline.known(viewer, about=entity, limit=limit if not status else 100_000)
    return [fact_row(fact, desk.resolver) for fact in facts if status in ("", fact.status)][:limit]


@_tool("dm.fact", "Show one fact: who knows it and how, its source, and the facts it was derived from.")
async def _fact(
    desk: Desk,
    *,
    id: Annotated[str, text("The fact's id or the beginning of it, as returned by dm_facts")],  # noqa: A002
) -> _Rows:
    return [desk.facts.explained_in_words(await desk.facts.explain(id), desk.days.calendar)]


@_tool("dm.nodes", "List nodes of the memory graph: type, title, fields, and the last utterance about each (floor).")
async def _nodes(
    desk: Desk,
    *,
    type: Annotated[str, text("Only nodes of this type, such as character_sheet, event or location")] = "",  # noqa: A002
    words: Annotated[str, text("Only nodes whose name or alias contains this")] = "",
    npc: Annotated[str, text("Only what this NPC may know")] = "",
    limit: Limit = _USUAL,
) -> _Rows:
    viewer = _npc(desk, npc) or DM
    return [each.as_json() for each in await desk.nodes(desk.entities_like(words, type, viewer)[:limit], viewer)]


@_tool("dm.node", "Show one node, its relations, the nodes that it sums up, and the lines that its summary rests on.")
async def _node(
    desk: Desk,
    *,
    node: Annotated[str, text("The node's id, as returned by dm_nodes, or its title")],
    npc: Annotated[str, text("Only what this NPC may know")] = "",
) -> _Rows:
    viewer, entity = _npc(desk, npc) or DM, desk.resolver.entity(node)
    seen = [each for each in desk.entities_like(viewer=viewer) if each.entity.id == entity.id]
    about = await desk.inspection.current(desk.campaign, viewer, about=entity.id, limit=MAX_FACTS)
    related = [fact for fact in about if fact.claim.object is not None and fact.status == "accepted"]
    timeline = await desk.store.episodes.read(desk.campaign, viewer)
    event = timeline.node(entity.id)
    lines = [] if event is None else (await desk.lines_of([event]))[event.id]
    return [
        {
            **each.as_json(),
            "relations": [*map(desk.facts.words, related)],
            **({} if event is None else {"tier": event.tier, "part of": event.parent}),
            "children": [_event_in_short(desk, child) for child in timeline.nodes if child.parent == entity.id],
            "lines": [
                {"session": said.session_id, "ordinal": said.ordinal, "who": said.speaker_name, "said": said.text}
                for said in lines
            ],
        }
        for each in await desk.nodes(seen, viewer)
    ]


@_tool("memory.compaction_candidates", "List groups of event nodes that a node of the next tier may sum up now.")
async def _compaction_candidates(desk: Desk) -> _Rows:
    writer = await timeline_writer(desk.store, desk.campaign)
    return [{"nodes": [_event_in_short(desk, node) for node in group]} for group in await writer.candidates()]


@_tool(
    "memory.compact_nodes",
    "Sum up event nodes of one tier by a new node, which replaces them in prompts.",
    writes=True,
)
async def _compact_nodes(
    desk: Desk,
    *,
    nodes: Annotated[str, text("The nodes' ids or titles, separated by commas")],
    summary: Annotated[
        str, text("Your words (keep, fold, drop), for NPCs that heard all lines of the nodes; default: selected lines")
    ] = "",
) -> _Rows:
    wanted = [desk.resolver.entity(each.strip()).id for each in nodes.split(",")]
    own = [SummarySentence(summary, ())] if summary else []
    made = await (await timeline_writer(desk.store, desk.campaign)).compact(wanted, own)
    node = (await desk.store.episodes.read(desk.campaign)).node(made)
    return [] if node is None else [_event_in_short(desk, node)]


def _event_in_short(desk: Desk, node: EventNode) -> dict[str, object]:
    return {
        "id": node.id,
        "title": desk.resolver.called(node.id),
        "tier": node.tier,
        "summaries": [
            {"summary": fact.claim.content, "known to": known_to_in_words(fact, desk.resolver)}
            for fact in node.summaries
        ],
    }


@_tool("dm.turns", "List the latest turns: what was heard, which NPC was addressed, and the outcome.")
async def _turns(desk: Desk, *, npc: NpcName = "", session: Session = "", limit: Limit = _USUAL) -> _Rows:
    latest = await desk.turns.latest(session=await _session(desk, session), npc=_npc(desk, npc), limit=limit)
    return [_turn_in_short(desk, turn) for turn in latest]


@_tool("dm.turn", "Show why an NPC said what it said: what it recalled in one turn and what it looked up.")
async def _turn(
    desk: Desk,
    *,
    turn: Annotated[str, text("The turn's id, as returned by dm_turns; the latest by default")] = "",
    npc: NpcName = "",
) -> _Rows:
    found = await desk.turns.find(turn or LAST, npc=_npc(desk, npc))
    explained = await desk.turns.explain(found)
    return [
        {
            **_turn_in_short(desk, found),
            "in its prompt": [_recalled(desk, one) for one in explained.prompt.selected],
            "recalled and left out": [_recalled(desk, one) for one in explained.prompt.rejected],
            "parts left out": list(found.prompt.omitted),
            "looked up": [
                {"tool": one.tool, "arguments": dict(one.arguments), "found": dict(one.found), "ms": one.took_ms}
                for one in found.looked_up
            ],
        }
    ]


def _turn_in_short(desk: Desk, turn: TurnRecord) -> dict[str, object]:
    return {
        "turn": short(turn.id),
        "session": turn.session_id,
        "when": moment(turn.stages.get(Stage.SPEECH_END)),
        "heard": f"{turn.speaker_name}: {turn.text}",
        "to": "nobody" if turn.npc_id is None else desk.resolver.person(turn.npc_id),
        "outcome": turn.outcome,
        "why addressed": turn.address_reason,
        "answered": turn.reply_heard,
        **({"error": turn.error} if turn.error else {}),
    }


def _recalled(desk: Desk, one: RecalledThen) -> dict[str, object]:
    return {
        "text": one.recalled.text,
        "why it may know": one.reason(desk.resolver),
        **({"why left out": one.why_rejected} if one.why_rejected else {}),
        **({"since then": one.since} if one.since else {}),
    }


async def _session(desk: Desk, wanted: str) -> SessionId | None:
    return (await desk.timeline.session(wanted)).session.id if wanted else None


def _npc(desk: Desk, name: str) -> NpcId | None:
    return desk.resolver.npc(name) if name else None
