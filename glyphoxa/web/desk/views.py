"""What the pages of the desk show, as plain values. No markup is made here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.dm import turn_told
from glyphoxa.dm.past_knowledge import of_state
from glyphoxa.dm.turns import short as short_turn
from glyphoxa.dm.wording import certainty_in_words, knower_in_words, learned_from, short
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import DM, Fact
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.web.access.consents import ConsentRegister
from glyphoxa.web.access.links import Links
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.desk.meanwhile import state_in_words
from glyphoxa.world.api import moment, visibility_in_words

Shown = dict[str, Any]
"""Of one thing: what a template names."""

MOST_FACTS: Final = 200
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
        "evidence": await evidence_of(desk, fact),
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
        "state": state_in_words(desk, fact),
        "value": None if fact.claim.value is None else _typed(json.loads(fact.claim.value)),
        "certainty": "confirmed" if fact.provenance.dm_confirmed else certainty_in_words(fact),
        "known_to": visibility_in_words(fact.visibility, desk.resolver),
        "from": learned_from(fact),
        "knowers": [knower_in_words(knower, desk.resolver) for knower in fact.visibility.knowers],
    }


def _typed(value: object) -> str:
    """A value as a DM would type it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


async def evidence_of(desk: Desk, fact: Fact) -> Shown | None:
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


async def knowledge(desk: Desk, npc: str | None, about: str, as_of: str) -> Shown:
    """The world as one NPC sees it; without one, as the game master does.

    Args:
        as_of: As `Timeline.as_of`; empty: now.

    Raises:
        NotFound: There is no such NPC, entity or time.
    """
    viewer = DM if not npc else desk.resolver.npc(npc)
    entity = desk.resolver.entity(about) if about else None
    of = None if entity is None else entity.id
    if as_of:
        facts = of_state(await desk.timeline.as_of(as_of), viewer, about=of)[:MOST_FACTS]
    else:
        facts = await desk.inspection.current(desk.campaign, viewer, about=of, limit=MOST_FACTS)
    return {
        "as_of": as_of,
        "sessions": [each.id for each in reversed(await desk.inspection.sessions(desk.campaign))],
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


def consents(register: ConsentRegister | None, campaign: Campaign) -> list[Shown]:
    """Who agreed to be heard, or withdrew it, at each seat that the campaign still has."""
    names = {player.id: player.name for player in campaign.players}
    return [
        {
            "name": names[each.player],
            "who": each.who,
            "at": moment(each.at_ms),
            "state": "agreed" if register.holds(each) else "asked anew" if each.agrees else "withdrew",
            "text": each.text,
        }
        for each in (register.current() if register is not None else ())
        if register is not None and each.player in names
    ]
