"""The desk's page of names: which wrong forms are corrected, and which suggestions need review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastapi import Request
from fastapi.responses import Response

from glyphoxa.desk import NamesDesk
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.speech.learning.wrong_forms import LearnedName
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.desk.frame import DeskFrame, Page, Shown, form_of, see_other

MOST_SUGGESTED: Final = 50
MOST_NAMES: Final = 500


class NamePages:
    """Names with what is heard instead of them."""

    def __init__(self, frame: DeskFrame) -> None:
        self._frame = frame
        self.looked_at = {"/desk/names": self.names}
        self.posted: dict[str, Page] = {"/desk/names": self.decide_name}

    async def names(self, request: Request) -> Response:
        return self._frame.page("names", request, **await names_page(await self._frame.memory().names()))

    async def decide_name(self, request: Request) -> Response:
        form = await form_of(request)
        done = await decide_name(await self._frame.memory().names(), form)
        self._frame.record(AuditKind.DECIDED, done)
        return see_other("", "/desk/names", done)


async def names_page(desk: NamesDesk) -> Shown:
    """Names with what is heard instead of them, and the suggestions that wait."""
    pairs = [each for each in await desk.kept.statuses(desk.campaign) if each.status.state != "undone"]
    waiting = [each for each in pairs if each.status.state == "suggested"][:MOST_SUGGESTED]
    reasons = await desk.kept.reasons(desk.campaign, [each.heard for each in waiting])
    heard: dict[str, list[Shown]] = {}
    for pair in pairs:
        heard.setdefault(pair.entity_id, []).append({"heard": pair.heard, "state": pair.status.state})
    return {
        "suggestions": [
            {"heard": pair.heard, "name": _called(pair), "n": pair.status.count, "why": "; ".join(why)}
            for pair, why in zip(waiting, reasons, strict=True)
        ],
        "rows": [
            {"name": entry.name, "type": entry.entity_type, "heard": heard.get(entry.entity_id, [])}
            for entry in sorted(desk.entries, key=lambda each: (each.entity_id not in heard, each.name))[:MOST_NAMES]
        ],
        "is_cut": len(desk.entries) > MOST_NAMES,
        "names": sorted({entry.name for entry in desk.entries}),
    }


async def decide_name(desk: NamesDesk, form: Mapping[str, str]) -> str:
    """
    Args:
        form: `do`: `confirm` or `reject` with what was `heard` and the `name` it means; `undo`. `sure` confirms what
            ordinary talk holds, too.

    Returns: What was done, in a line.

    Raises:
        NotFound: There is no such name, or nothing to undo.
        InvalidInput: It must not be learned, or the form says nothing of it.
    """
    match form.get("do", ""):
        case "undo":
            taken = await desk.learning.undo()
            return f"undone: {taken.step.kind} {taken.heard} = {taken.name or taken.step.entity_id}"
        case "confirm":
            return await _confirm(desk, form)
        case "reject":
            entry = desk.entity(form.get("name", ""))
            pair = await desk.learning.reject(form.get("heard", ""), entry.entity_id)
            return f"{pair.heard} does not mean {entry.name}, and will not be suggested again"
        case what:
            raise InvalidInput(
                f"nothing can be decided of a name by {what!r}: {did_you_mean(what, ['confirm', 'reject', 'undo'])}"
            )


async def _confirm(desk: NamesDesk, form: Mapping[str, str]) -> str:
    entry, heard = desk.entity(form.get("name", "")), form.get("heard", "")
    warned = await desk.learning.before_confirming(heard, entry.entity_id, desk.names)
    if warned is not None and not form.get("sure"):
        raise InvalidInput(f'{warned}. Mark "even so" if that is what you want')
    pair = await desk.learning.confirm(heard, entry.entity_id, desk.names)
    return f"{pair.heard} means {entry.name} from now on"


def _called(pair: LearnedName) -> str:
    return pair.name or pair.entity_id
