"""What the game master may decide of a fact with one press, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.dm.facts import Decision
from glyphoxa.domain.errors import InvalidInput, did_you_mean

_DO: Final[Mapping[str, Callable[[Desk, str, Mapping[str, str]], Awaitable[Decision]]]] = {
    "confirm": lambda desk, fact, _: desk.facts.confirm([fact]),
    "reject": lambda desk, fact, _: desk.facts.reject([fact]),
    "hide": lambda desk, fact, _: desk.facts.hide(fact),
    "reveal": lambda desk, fact, _: desk.facts.reveal(fact),
    "tell": lambda desk, fact, form: desk.facts.tell(fact, [form.get("to", "")], by="dm"),
    "keep_from": lambda desk, fact, form: _keep_from(desk, fact, form.get("from", "")),
    "edit": lambda desk, fact, form: desk.facts.edit(fact, value=form.get("value", "")),
}

DECISIONS: Final[Mapping[str, str]] = {
    "confirm": "It is true",
    "reject": "It never was so",
    "hide": "Nobody knows it",
    "reveal": "Everybody knows it",
}
"""Those that need no more than the fact, each with the words of its button."""

_DONE: Final[Mapping[str, str]] = {
    "confirm": "confirmed",
    "reject": "rejected",
    "hide": "known to nobody",
    "reveal": "known to everybody",
    "tell": "told",
    "keep_from": "kept from one NPC more",
    "edit": "put right",
}


async def _keep_from(desk: Desk, fact: str, npc: str) -> Decision:
    """This NPC does not know it any more; who else knows it, does."""
    kept_from, found = desk.resolver.npc(npc), await desk.facts.find(fact)
    left = [each.npc for each in found.visibility.knowers if each.npc != kept_from]
    return await desk.facts.keep_secret(found.id, left) if left else await desk.facts.hide(found.id)


async def decide(desk: Desk, form: Mapping[str, str]) -> str:
    """
    Args:
        form: `do`, and the `fact`; `undo` needs none.

    Returns: What was done, in a line.

    Raises:
        NotFound: There is no such fact any more.
        InvalidInput: It cannot be decided so.
    """
    what = form.get("do", "")
    if what == "undo":
        taken = await desk.timeline.undo()
        return f"undone: {len(taken)} {'event' if len(taken) == 1 else 'events'}"
    if what not in _DO:
        raise InvalidInput(f"nothing can be decided by {what!r}: {did_you_mean(what, [*_DO, 'undo'])}")
    found = await desk.facts.find(form.get("fact", ""))
    words = desk.facts.words(found)
    made = await _DO[what](desk, found.id, form)
    ended = f"; {len(made.ended)} no longer held" if made.ended and what == "confirm" else ""
    return f"{_DONE[what]}: {words}{ended}"
