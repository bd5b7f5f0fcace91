"""The desk's pages of answers: the turns of the table, why an NPC said what it said, and what it would be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fastapi import Request
from fastapi.responses import Response

from glyphoxa.desk import Desk, DeskSource
from glyphoxa.dm import turns as turn_told
from glyphoxa.dm.turns import composed_shown
from glyphoxa.dm.turns import short as short_turn
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.npc.table import Table
from glyphoxa.web.desk.frame import DeskFrame, Page, Shown

MOST_TURNS: Final = 50
LONGEST: Final = 500
"""Characters of a question."""
_SOMEBODY: Final = Player(PlayerId("guest"), "Somebody")


class TurnPages:
    """The turns of the table, one of them, and a question that nobody has asked yet."""

    def __init__(self, frame: DeskFrame) -> None:
        self._frame = frame
        self.looked_at = {"/desk/turns": self.turns, "/desk/turns/{turn}": self.turn, "/desk/ask": self.ask}
        self.posted: dict[str, Page] = {}

    async def turns(self, request: Request) -> Response:
        return self._frame.page("turns", request, turns=await turns_shown(await self._frame.desk()))

    async def turn(self, request: Request) -> Response:
        return self._frame.page(
            "turn", request, **await turn_page(await self._frame.desk(), request.path_params["turn"])
        )

    async def ask(self, request: Request) -> Response:
        shown = await ask_page(self._frame.memory(), self._frame.table, request.query_params)
        return self._frame.page("ask", request, **shown)


async def turns_shown(desk: Desk) -> list[Shown]:
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


async def turn_page(desk: Desk, wanted: str) -> Shown:
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


async def ask_page(source: DeskSource, table: Table, asked: Mapping[str, str]) -> Shown:
    """
    Args:
        asked: `npc`, `player` and what is said, `say`; without that nothing is asked.

    Raises:
        InvalidInput: There is no such NPC or player, or the question is too long.
        Unavailable: The database is away.
    """
    campaign, line = table.campaign, asked.get("say", "").strip()
    npcs = {each.id: each.name for each in campaign.npcs}
    players = {each.id: each for each in campaign.players} or {_SOMEBODY.id: _SOMEBODY}
    npc = NpcId(_one_of(npcs, asked.get("npc", ""), "NPC"))
    player = players[PlayerId(_one_of(players, asked.get("player", ""), "player"))]
    if len(line) > LONGEST:
        raise InvalidInput(f"the question has {len(line)} characters; at most {LONGEST} are asked")
    composed = await source.rehearse(table, npc, player, line) if line else None
    return {
        "npcs": [{"id": each, "name": name} for each, name in npcs.items()],
        "players": [{"id": each.id, "name": each.name} for each in players.values()],
        "npc": npc,
        "npc_name": npcs[npc],
        "player": player.id,
        "say": line,
        "longest": LONGEST,
        "told": [] if composed is None else [(each.text, each.depth) for each in composed_shown(composed)],
        "prompt": "" if composed is None else composed.text,
    }


def _one_of(
    known: Mapping[str, object] | Mapping[NpcId, str] | Mapping[PlayerId, Player], wanted: str, what: str
) -> str:
    """The first if none is wanted."""
    names = [str(each) for each in known]
    if not wanted and names:
        return names[0]
    if wanted not in names:
        raise InvalidInput(f"no {what} {wanted!r} at this table: {did_you_mean(wanted, names)}")
    return wanted
