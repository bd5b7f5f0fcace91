"""MCP tools for the DM: facts and who knows them, sessions, transcripts, and why an NPC said what it said.

All tools are read-only and show the DM's view, including secrets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, get_args

from glyphoxa.desk import Desk
from glyphoxa.dm.turns import LAST, RecalledThen, short
from glyphoxa.dm.wording import certainty_in_words, knower_in_words, learned_from, reason_in_words
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.domain.knowledge import DM, Fact, Status
from glyphoxa.domain.turn import Stage, TurnRecord
from glyphoxa.mcp_server.offered import OfferedTool
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.transcript.ports import TalkFilter
from glyphoxa.world.wording import known_to_in_words, moment

_MOST: Final = 100
_USUAL: Final = 20

Arguments = Mapping[str, object]


def _text(description: str) -> dict[str, object]:
    return {"type": "string", "description": description}


_LIMIT: Final[dict[str, object]] = {
    "type": "integer",
    "minimum": 1,
    "maximum": _MOST,
    "description": f"Maximum number of results; {_USUAL} by default",
}
_SESSION: Final = _text("Only this session: its id, as returned by dm_sessions")
_NPC: Final = _text("Only this NPC: its name")

_Found = Sequence[object]
_Ask = Callable[[Desk, Arguments], Awaitable[_Found]]

_TOOLS: Final[list[tuple[ToolSpec, _Ask]]] = []
_TYPICAL_MS: Final = 100


def _tool(
    name: str, description: str, *, required: tuple[str, ...] = (), **parameters: dict[str, object]
) -> Callable[[_Ask], _Ask]:
    """Declare a tool, with the JSON schema of each argument."""

    def declare(ask: _Ask) -> _Ask:
        _TOOLS.append((ToolSpec(name, description, parameters, required, _TYPICAL_MS), ask))
        return ask

    return declare


def dm_tools(open_desk: Callable[[], Awaitable[Desk]]) -> list[OfferedTool]:
    """
    Args:
        open_desk: Opens the campaign's current state for one call.
    """

    def offered(spec: ToolSpec, tool: _Ask) -> OfferedTool:
        async def ask(arguments: Arguments) -> Mapping[str, object]:
            found = await tool(await open_desk(), arguments)
            return {"found": list(found)} if found else {"found": [], "note": "nothing found"}

        return OfferedTool(spec, ask)

    return [offered(spec, ask) for spec, ask in _TOOLS]


@_tool("dm.sessions", "List the sessions and the number of utterances in each.")
async def _sessions(desk: Desk, _arguments: Arguments) -> _Found:
    talk = await desk.inspection.entries_per_session(desk.campaign)
    return [
        {
            "session": each.id,
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
    session=_text("The session: its id, as returned by dm_sessions; the last by default"),
    view=_text('Only this view: "dm" or an NPC\'s name'),
)
async def _session_state(desk: Desk, arguments: Arguments) -> _Found:
    sessions = await desk.inspection.sessions(desk.campaign)
    session = await _session(desk, arguments) or (sessions[-1].id if sessions else None)
    if session is None:
        return []
    views = await desk.session_views(session, _given(arguments, "view"))
    return [
        {
            "session": session,
            "view": each.name,
            "summary": each.state.text,
            "glossary": dict(each.terms),
            "flags": [name for name, is_set in each.state.flags.items() if is_set],
            "summarised to utterance": each.state.last_ordinal,
            **each.lists,
        }
        for each in views
    ]


@_tool(
    "dm.said",
    "Search the transcripts. Without words: the latest utterances.",
    words=_text("Words to search for; any of them matches"),
    speaker=_text("Only what this player or NPC said"),
    heard_by=_text("Only what this NPC heard"),
    session=_SESSION,
    limit=_LIMIT,
)
async def _said(desk: Desk, arguments: Arguments) -> _Found:
    speaker, heard_by = _given(arguments, "speaker"), _given(arguments, "heard_by")
    wanted = TalkFilter(
        _given(arguments, "words"),
        session=await _session(desk, arguments),
        speaker=desk.resolver.speaker(speaker) if speaker else None,
        limit=_limit(arguments),
    )
    found = await desk.talk.search(desk.campaign, desk.resolver.npc(heard_by) if heard_by else DM, wanted)
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


@_tool(
    "dm.threads",
    "List promises, plans and questions that nothing later continues, latest first.",
    session=_SESSION,
    limit=_LIMIT,
)
async def _threads(desk: Desk, arguments: Arguments) -> _Found:
    session = await _session(desk, arguments)
    found = await desk.atoms.open_threads(desk.campaign, session, limit=_limit(arguments))
    return [{"when": moment(each.at_ms), "session": each.session, "thread": each.summary} for each in found]


@_tool(
    "dm.facts",
    "List facts with their status and who knows them. With known_by: everything that one NPC knows.",
    about=_text("Only facts of this person, place, thing or group"),
    known_by=_text("Only facts that this NPC knows"),
    status={
        **_text("Only facts with this status; pending facts need the DM's review"),
        "enum": list(get_args(Status)),
    },
    limit=_LIMIT,
)
async def _facts(desk: Desk, arguments: Arguments) -> _Found:
    status, known_by, about = (_given(arguments, key) for key in ("status", "known_by", "about"))
    viewer = desk.resolver.npc(known_by) if known_by else DM
    entity = desk.resolver.entity(about).id if about else None
    # Search a status among all facts: pending facts are few and may come after many others.
    most = _limit(arguments)
    facts, _ = await desk.timeline.known(viewer, about=entity, limit=most if not status else 100_000)
    return [_fact_in_short(desk, fact) for fact in facts if status in ("", fact.status)][:most]


@_tool(
    "dm.fact",
    "Show one fact: who knows it and how, its source, and the facts it was derived from.",
    id=_text("The fact's id or the beginning of it, as returned by dm_facts"),
    required=("id",),
)
async def _fact(desk: Desk, arguments: Arguments) -> _Found:
    found = await desk.facts.explain(_given(arguments, "id"))
    fact, said, reason = found.fact, found.said, found.fact.provenance.reason
    return [
        {
            **_fact_in_short(desk, fact),
            **({"no longer held": found.ended.ended_as} if found.ended is not None else {}),
            "who knows it": [knower_in_words(each, desk.resolver) for each in fact.visibility.knowers],
            **({"because": reason} if reason else {}),
            **({"said": f"{said.speaker_name}: {said.text}"} if said is not None else {}),
            **({"rests on": [desk.facts.words(each) for each in found.supports]} if found.supports else {}),
        }
    ]


def _fact_in_short(desk: Desk, fact: Fact) -> dict[str, object]:
    return {
        "id": fact.id,
        "fact": desk.facts.words(fact),
        "status": fact.status,
        "certainty": certainty_in_words(fact),
        "known to": known_to_in_words(fact, desk.resolver),
        "from": learned_from(fact, desk.resolver),
    }


@_tool(
    "dm.turns",
    "List the latest turns: what was heard, which NPC was addressed, and the outcome.",
    npc=_NPC,
    session=_SESSION,
    limit=_LIMIT,
)
async def _turns(desk: Desk, arguments: Arguments) -> _Found:
    latest = await desk.turns.latest(
        session=await _session(desk, arguments), npc=_npc(desk, arguments), limit=_limit(arguments)
    )
    return [_turn_in_short(desk, turn) for turn in latest]


@_tool(
    "dm.turn",
    "Show why an NPC said what it said: what it recalled in one turn and what it looked up.",
    turn=_text("The turn's id, as returned by dm_turns; the latest by default"),
    npc=_NPC,
)
async def _turn(desk: Desk, arguments: Arguments) -> _Found:
    turn = await desk.turns.find(_given(arguments, "turn") or LAST, npc=_npc(desk, arguments))
    explained = await desk.turns.explain(turn)
    return [
        {
            **_turn_in_short(desk, turn),
            "in its prompt": [_recalled(desk, one) for one in explained.selected],
            "recalled and left out": [_recalled(desk, one) for one in explained.rejected],
            "parts left out": list(turn.omitted),
            "looked up": [
                {"tool": one.tool, "arguments": dict(one.arguments), "found": dict(one.found), "ms": one.took_ms}
                for one in turn.looked_up
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
        "why it may know": reason_in_words(one.recalled, desk.resolver),
        **({"why left out": one.why_rejected} if one.why_rejected else {}),
        **({"since then": one.since} if one.since else {}),
    }


async def _session(desk: Desk, arguments: Arguments) -> SessionId | None:
    wanted = _given(arguments, "session")
    return (await desk.timeline.session(wanted)).session.id if wanted else None


def _npc(desk: Desk, arguments: Arguments) -> NpcId | None:
    name = _given(arguments, "npc")
    return desk.resolver.npc(name) if name else None


def _given(arguments: Arguments, key: str) -> str:
    return str(arguments.get(key, "")).strip()


def _limit(arguments: Arguments) -> int:
    given = arguments.get("limit")
    return given if isinstance(given, int) else _USUAL
