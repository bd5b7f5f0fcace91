"""What the desk's palette finds by words: an entity, a session, an NPC's view of the world."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.speech.language.words import fold
from glyphoxa.web.desk.views import Shown

LONGEST: Final = 200
MOST_FOUND: Final = 12


async def found(desk: Desk, words: str) -> list[Shown]:
    """Pages, the best first: a name that begins so, then one that holds it.

    Args:
        words: A part of a name; empty: nothing is found.
    """
    wanted = fold(words.strip())
    if not wanted:
        return []
    ranked: list[tuple[int, str, Shown]] = []
    for npc in desk.resolver.npcs:
        title = f"What {npc.name} knows"
        _rank(ranked, wanted, (npc.name,), title, "/desk/knowledge?" + urlencode({"npc": npc.id}))
    for each in desk.seen:
        entity = each.entity
        url = f"/desk/world/{quote(entity.id, safe='')}"
        _rank(ranked, wanted, (entity.name, *entity.aliases), f"{entity.name}, {entity.type}", url)
    for session in await desk.inspection.sessions(desk.campaign):
        title, url = f"Session {session.id}", f"/desk/sessions/{quote(session.id, safe='')}"
        _rank(ranked, wanted, (session.id,), title, url)
    return [shown for _, _, shown in sorted(ranked, key=lambda each: each[:2])[:MOST_FOUND]]


def _rank(ranked: list[tuple[int, str, Shown]], wanted: str, called: tuple[str, ...], title: str, url: str) -> None:
    places = [at for each in called if (at := fold(each).find(wanted)) >= 0]
    if places:
        ranked.append((0 if min(places) == 0 else 1, title, {"title": title, "url": url}))
