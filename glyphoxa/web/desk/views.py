"""What the pages of the desk show, as plain values. No markup is made here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.dm import turn_told
from glyphoxa.dm.sessions import SessionDesk
from glyphoxa.dm.turns import short as short_turn
from glyphoxa.dm.wording import certainty_in_words, knower_in_words, learned_from, short
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.errors import NotFound, did_you_mean
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.domain.knowledge import DM, Fact
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.transcript.api import TalkFilter
from glyphoxa.web.access.links import Links
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.world.api import moment, visibility_in_words

Shown = dict[str, Any]
"""Of one thing: what a template names."""

MOST_FACTS: Final = 200
MOST_LINES: Final = 2_000
MOST_TURNS: Final = 50
_GROUPS: Final = (
    ("pending", "Waits for your word"),
    ("conflict", "Disagrees with what is accepted"),
    ("stale", "Rests on what is no longer so"),
)


def scene_of(scene: Scene, campaign: Campaign) -> Shown:
    place = campaign.entity(scene.location).name
    return {"id": scene.id, "name": ", ".join(each for each in (place, scene.time_of_day) if each)}


async def review(desk: Desk) -> list[Shown]:
    """What waits, each with the line that proves it."""
    groups = []
    for status, title in _GROUPS:
        find = desk.inspection.pending if status == "pending" else _of_status(desk, status)
        facts = await find(desk.campaign, limit=MOST_FACTS)
        groups.append({"title": title, "status": status, "facts": [await _reviewed(desk, fact) for fact in facts]})
    return groups


def _of_status(desk: Desk, status: Any) -> Any:
    return lambda campaign, *, limit: desk.inspection.of_status(campaign, status, limit=limit)


async def _reviewed(desk: Desk, fact: Fact) -> Shown:
    disputed = await desk.inspection.facts(desk.campaign, fact.disputes) if fact.disputes else []
    return {
        **fact_shown(desk, fact),
        "evidence": await _evidence(desk, fact),
        "reason": fact.provenance.reason,
        "disputes": [desk.facts.words(each) for each in disputed],
    }


def fact_shown(desk: Desk, fact: Fact) -> Shown:
    """A fact with who knows it, how sure it is and where it is from."""
    return {
        "id": fact.id,
        "short": short(fact.id),
        "words": desk.facts.words(fact),
        "status": fact.status,
        "certainty": "confirmed" if fact.provenance.dm_confirmed else certainty_in_words(fact),
        "known_to": visibility_in_words(fact.visibility, desk.resolver),
        "from": learned_from(fact),
        "knowers": [knower_in_words(knower, desk.resolver) for knower in fact.visibility.knowers],
    }


async def _evidence(desk: Desk, fact: Fact) -> Shown | None:
    """The words it rests on, where they were said."""
    if fact.provenance.utterance_id is None:
        return None
    said = await desk.inspection.said(desk.campaign, fact.provenance.utterance_id)
    if said is None:
        return None
    return {
        "speaker": said.speaker_name,
        "text": said.text,
        "session": said.session_id,
        "ordinal": said.ordinal,
        "when": moment(said.at_ms),
        "is_retracted": said.is_retracted,
    }


async def knowledge(desk: Desk, npc: str | None, about: str) -> Shown:
    """The world as one NPC sees it; without one, as the game master does."""
    viewer = DM if not npc else desk.resolver.npc(npc)
    entity = desk.resolver.entity(about) if about else None
    facts = await desk.inspection.current(
        desk.campaign, viewer, about=None if entity is None else entity.id, limit=MOST_FACTS
    )
    return {
        "npcs": [{"id": each.id, "name": each.name} for each in desk.resolver.npcs],
        "npc": None if viewer is DM else viewer,
        "about": "" if entity is None else entity.name,
        "entities": sorted({each.entity.name for each in desk.seen}),
        "facts": [fact_shown(desk, fact) for fact in facts],
        "is_cut": len(facts) == MOST_FACTS,
    }


async def secrets(desk: Desk) -> Shown:
    """Everything that not everybody knows, and which NPC does."""
    npcs = desk.resolver.npcs
    facts = [
        fact
        for fact in await desk.inspection.current(desk.campaign, DM, about=None, limit=MOST_FACTS * 5)
        if fact.visibility.scope != "public"
    ]
    rows = [{**fact_shown(desk, fact), "who": [_how(fact, npc.id) for npc in npcs]} for fact in facts[:MOST_FACTS]]
    return {"npcs": [{"id": npc.id, "name": npc.name} for npc in npcs], "rows": rows, "is_cut": len(facts) > MOST_FACTS}


def _how(fact: Fact, npc: NpcId) -> str:
    """How this NPC knows it; empty if it does not."""
    if not fact.visibility.is_visible_to(npc):
        return ""
    knower = next((each for each in fact.visibility.knowers if each.npc == npc), None)
    return "knows" if knower is None else knower.how


async def sessions(desk: Desk) -> list[Shown]:
    """The latest first."""
    found = await desk.inspection.entries_per_session(desk.campaign)
    desks = _session_desk(desk)
    shown = []
    for each in reversed(found):
        kept = await desks.summary(each.id)
        shown.append(
            {
                "id": each.id,
                "began": moment(each.started_ms),
                "n": each.n_entries,
                "summary": "" if kept is None else kept.text,
            }
        )
    return shown


async def session(desk: Desk, wanted: SessionId) -> Shown:
    """
    Raises:
        NotFound: Nothing was said in such a session.
    """
    ids = [each.id for each in await desk.inspection.entries_per_session(desk.campaign)]
    if wanted not in ids:
        raise NotFound(f"no session {wanted!r} in campaign {desk.campaign!r}: {did_you_mean(wanted, ids)}")
    at = ids.index(wanted)
    lines = [
        {
            "ordinal": entry.said.ordinal,
            "when": moment(entry.said.at_ms),
            "who": entry.said.speaker_name,
            "text": entry.said.text,
            "raw": entry.raw_text if entry.raw_text != entry.said.text else "",
            "is_retracted": entry.said.is_retracted,
        }
        for entry in reversed(await desk.inspection.recent(desk.campaign, wanted, limit=MOST_LINES))
    ]
    kept = await _session_desk(desk).summary(wanted)
    return {
        "id": wanted,
        "lines": lines,
        "is_cut": len(lines) == MOST_LINES,
        "summary": "" if kept is None else kept.text,
        "known_to": "" if kept is None else visibility_in_words(kept.visibility, desk.resolver),
        "before": ids[at - 1] if at else None,
        "after": ids[at + 1] if at + 1 < len(ids) else None,
    }


async def transcript_as_markdown(desk: Desk, wanted: SessionId) -> str:
    """A session to keep elsewhere: its summary and what was said, without what was retracted."""
    found = await session(desk, wanted)
    lines = [f"# Session {wanted}", ""]
    if found["summary"]:
        lines += [_escaped(found["summary"]), ""]
    lines += [
        f"**{_escaped(line['who'])}:** {_escaped(line['text'])}  "
        for line in found["lines"]
        if not line["is_retracted"]
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """As text in Markdown, in one line."""
    return "".join(f"\\{each}" if each in r"\`*_{}[]<>#|" else each for each in " ".join(text.split()))


async def summarise(desk: Desk, wanted: SessionId, text: str) -> None:
    """Keep the game master's words of a session, for the NPCs that heard any of it."""
    await session(desk, wanted)
    heard = TalkFilter("", session=wanted, limit=1)
    npcs = [npc.id for npc in desk.resolver.npcs]
    known_by = [npc for npc in npcs if await desk.talk.search(desk.campaign, npc, heard)]
    await _session_desk(desk).summarise(wanted, text, known_by)


def _session_desk(desk: Desk) -> SessionDesk:
    return SessionDesk(desk.campaign, desk.facts.world, desk.inspection, desk.facts.now_ms)


async def turns(desk: Desk) -> list[Shown]:
    """The latest first."""
    return [_turn(desk, each) for each in await desk.turns.latest(limit=MOST_TURNS)]


def _turn(desk: Desk, turn: TurnRecord) -> Shown:
    return {
        "id": turn.id,
        "short": short_turn(turn.id),
        "when": turn_told.when(turn),
        "speaker": turn.speaker_name,
        "text": turn.text,
        "npc": "" if turn.npc_id is None else desk.resolver.person(turn.npc_id),
        "reply": turn.reply_heard,
        "outcome": turn_told.outcome(turn),
        "why": turn.address_reason,
    }


async def turn(desk: Desk, wanted: str) -> Shown:
    """
    Raises:
        NotFound: There is no such turn.
    """
    record = await desk.turns.find(wanted)
    explained = await desk.turns.explain(record)
    told: Sequence[tuple[str, int]] = [
        (line.text, line.depth) for line in turn_told.told(explained, desk.resolver, desk.days.calendar)
    ]
    return {"turn": _turn(desk, record), "told": told, "prompt": record.prompt_text}


def links(found: Links) -> list[Shown]:
    """One for each who may come; the game master's own is made on the command line, as it is good once."""
    named = [(name, Grant(Role.PLAYER, player)) for player, name in found.players.items()]
    named.append(("whoever only reads along", Grant(Role.SPECTATOR)))
    return [{"name": name, "who": grant.player or grant.role.value, "url": found.link(grant)} for name, grant in named]
