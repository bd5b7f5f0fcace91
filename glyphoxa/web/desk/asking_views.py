"""What the desk shows of a question that nobody has asked yet: what an NPC would have in mind when it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from glyphoxa.bootstrap.desk import DeskSource
from glyphoxa.dm.prompt_told import composed_shown
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.npc.table import Table
from glyphoxa.web.desk.views import Shown

LONGEST: Final = 500
"""Characters of a question."""
_SOMEBODY: Final = Player(PlayerId("guest"), "Somebody")


async def asking(source: DeskSource, table: Table, asked: Mapping[str, str]) -> Shown:
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
