"""What the game master may decide of a fact with one press, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.dm.facts import Decision
from glyphoxa.dm.stating import json_or_text
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.web.desk.meanwhile import need_unchanged

_DO: Final[Mapping[str, Callable[[Desk, str, Mapping[str, str]], Awaitable[Decision]]]] = {
    "confirm": lambda desk, fact, _: desk.facts.confirm([fact]),
    "reject": lambda desk, fact, _: desk.facts.reject([fact]),
    "hide": lambda desk, fact, _: desk.facts.hide(fact),
    "reveal": lambda desk, fact, _: desk.facts.reveal(fact),
    "tell": lambda desk, fact, form: desk.facts.tell(fact, [form.get("to", "")], by="dm"),
    "keep_from": lambda desk, fact, form: _keep_from(desk, fact, form.get("from", "")),
    "edit": lambda desk, fact, form: desk.facts.edit(fact, value=json_or_text(form.get("value", ""))),
}

MARKED: Final = "fact:"
"""What the name of a box begins with that marks a fact; its id follows."""
_BOX: Final = "on"
"""What a box holds that does not say what was seen."""
_OF_SEVERAL: Final[Mapping[str, Callable[[Desk, Sequence[str]], Awaitable[Decision]]]] = {
    "confirm_marked": lambda desk, facts: desk.facts.confirm(facts),
    "reject_marked": lambda desk, facts: desk.facts.reject(facts),
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


async def _decide_several(desk: Desk, what: str, marked: Mapping[str, str]) -> str:
    """All of them, or none.

    Args:
        marked: What was seen of each fact.
    """
    if not marked:
        raise InvalidInput("no fact is marked: mark those that you decide on")
    for fact, seen in marked.items():
        need_unchanged(desk, await desk.facts.find(fact), "" if seen == _BOX else seen)
    made = await _OF_SEVERAL[what](desk, list(marked))
    done = _DONE[what.removesuffix("_marked")]
    ended = f"; {len(made.ended)} no longer held" if made.ended and what == "confirm_marked" else ""
    return f"{done}: {len(marked)} {'fact' if len(marked) == 1 else 'facts'}{ended}"


def _marked(form: Mapping[str, str]) -> dict[str, str]:
    return {name[len(MARKED) :]: seen for name, seen in form.items() if name.startswith(MARKED)}


async def _keep_from(desk: Desk, fact: str, npc: str) -> Decision:
    """This NPC does not know it any more; who else knows it, does."""
    kept_from, found = desk.resolver.npc(npc), await desk.facts.find(fact)
    left = [each.npc for each in found.visibility.knowers if each.npc != kept_from]
    return await desk.facts.keep_secret(found.id, left) if left else await desk.facts.hide(found.id)


async def decide(desk: Desk, form: Mapping[str, str]) -> str:
    """
    Args:
        form: `do`, the `fact`, and what was `seen` of it (see `need_unchanged`); those of several have a name
            `MARKED` and the id for each; `undo` needs none.

    Returns: What was done, in a line.

    Raises:
        NotFound: There is no such fact any more.
        ChangedMeanwhile: It is not as it was seen.
        InvalidInput: It cannot be decided so.
    """
    what = form.get("do", "")
    if what == "undo":
        taken = await desk.timeline.undo()
        return f"undone: {len(taken)} {'event' if len(taken) == 1 else 'events'}"
    if what in _OF_SEVERAL:
        return await _decide_several(desk, what, _marked(form))
    if what not in _DO:
        raise InvalidInput(f"nothing can be decided by {what!r}: {did_you_mean(what, [*_DO, *_OF_SEVERAL, 'undo'])}")
    found = await desk.facts.find(form.get("fact", ""))
    need_unchanged(desk, found, form.get("seen", ""))
    words = desk.facts.words(found)
    made = await _DO[what](desk, found.id, form)
    ended = f"; {len(made.ended)} no longer held" if made.ended and what == "confirm" else ""
    return f"{_DONE[what]}: {words}{ended}"
