"""The desk's review pages: facts and names, one fact with its history, who knows what, and decisions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from fastapi import Request
from fastapi.responses import Response

from glyphoxa.desk import Desk, NamesDesk
from glyphoxa.dm import wording
from glyphoxa.dm.entities import json_or_text
from glyphoxa.dm.facts import Decision
from glyphoxa.dm.timeline import of_state
from glyphoxa.dm.wording import certainty_in_words, knower_in_words, learned_from, short
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import FactId, NpcId
from glyphoxa.domain.knowledge import DM, EndedFact, Fact
from glyphoxa.names.wrong_forms import LearnedName
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.desk.frame import DeskFrame, Page, Shown, form_of, see_other
from glyphoxa.world.wording import Words, moment, visibility_in_words

MOST_FACTS: Final = 200
_GROUPS: Final = (
    ("pending", "Waits for your word"),
    ("conflict", "Disagrees with what is accepted"),
    ("stale", "Rests on what is no longer so"),
)


class ReviewPages:
    """The review queue, who knows what, one fact, and what is decided of facts."""

    def __init__(self, frame: DeskFrame) -> None:
        self._frame = frame
        self.looked_at = {
            "/desk/review": self.review,
            "/desk/knowledge": self.knowledge,
            "/desk/facts/{fact}": self.fact,
            "/desk/secrets": self.secrets,
        }
        self.posted: dict[str, Page] = {"/desk/facts": self.decide}

    async def review(self, request: Request) -> Response:
        return self._frame.page("review", request, groups=await review_page(await self._frame.desk()))

    async def knowledge(self, request: Request) -> Response:
        asked = request.query_params
        return self._frame.page(
            "knowledge",
            request,
            **await knowledge_page(
                await self._frame.desk(), asked.get("npc"), asked.get("about", ""), asked.get("as_of", "").strip()
            ),
        )

    async def fact(self, request: Request) -> Response:
        shown = await fact_page(await self._frame.desk(), request.path_params["fact"])
        return self._frame.page("fact", request, **shown)

    async def secrets(self, request: Request) -> Response:
        return self._frame.page("secrets", request, **await secrets_page(await self._frame.desk()))

    async def decide(self, request: Request) -> Response:
        form = await form_of(request)
        desk = await self._frame.desk()
        done = await decide(desk, form)
        self._frame.record(AuditKind.DECIDED, done)
        return see_other(form.get("back", ""), "/desk/review", done)


async def review_page(desk: Desk) -> list[Shown]:
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


async def knowledge_page(desk: Desk, npc: str | None, about: str, as_of: str) -> Shown:
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


async def secrets_page(desk: Desk) -> Shown:
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


async def fact_page(desk: Desk, wanted: str) -> Shown:
    """
    Args:
        wanted: The fact's id, or its first letters.

    Raises:
        NotFound: There never was such a fact.
        InvalidInput: Several ids begin so.
    """
    found = await desk.facts.find_ever(wanted)
    one = found.fact if isinstance(found, EndedFact) else found
    resting = await desk.inspection.resting_on(desk.campaign, one.id)
    ends = [end for end in (one.claim.subject, one.claim.object) if end is not None]
    known = {each.entity.id: each.entity.name for each in desk.seen}
    return {
        "fact": fact_shown(desk, one),
        "ended": _ended(found) if isinstance(found, EndedFact) else "",
        "evidence": await evidence_of(desk, one),
        "reason": one.provenance.reason,
        "holds": wording.validity_in_words(one.validity, desk.days.calendar),
        "entities": [{"id": end, "name": known[end]} for end in ends if end in known],
        "groups": [
            {"title": title, "facts": facts}
            for title, facts in (
                ("It rests on", await _others(desk, one.supports)),
                ("On it rests", [fact_shown(desk, each) for each in resting]),
                ("It disagrees with", await _others(desk, one.disputes)),
            )
            if facts
        ],
        "history": await _history(desk, one),
    }


def _ended(found: EndedFact) -> str:
    return f"{found.ended_as.replace('_', ' ')}, event {found.ended_seq}"


async def _others(desk: Desk, ids: Sequence[FactId]) -> list[Shown]:
    return [fact_shown(desk, each) for each in await desk.inspection.facts(desk.campaign, ids)]


async def _history(desk: Desk, one: Fact) -> list[Shown]:
    happened = await desk.timeline.history_of(one)
    words = {**await desk.facts.in_words([event for event, _ in happened]), one.id: "it"}
    return [
        {
            "seq": recorded.seq,
            "when": moment(recorded.cause.at_ms),
            "by": recorded.cause.by.replace("_", " "),
            "what": recorded.event.in_words(Words(desk.resolver, words)),
            "where": wording.place(recorded.cause.session_id, recorded.cause.ordinal),
            "counts": counts,
        }
        for recorded, counts in happened
    ]


# -- decisions

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


class ChangedMeanwhile(InvalidInput):
    def __init__(self, words: str, *, seen: str, now: str) -> None:
        super().__init__(f"{words!r} has changed meanwhile: you saw {seen!r}, and now it is {now!r}; look at it again")


def state_in_words(desk: Desk, fact: Fact) -> str:
    """All of a fact that a decision changes and its words do not say. A page's forms send it back as they showed it."""
    certainty = "confirmed" if fact.provenance.dm_confirmed else certainty_in_words(fact)
    return f"{fact.status}, {certainty}, {visibility_in_words(fact.visibility, desk.resolver)}"


def need_unchanged(desk: Desk, fact: Fact, seen: str) -> None:
    """
    Args:
        seen: As `state_in_words` made it for whoever decides; "" is from a page that does not say.

    Raises:
        ChangedMeanwhile: It is not so any more.
    """
    now = state_in_words(desk, fact)
    if seen and seen != now:
        raise ChangedMeanwhile(desk.facts.words(fact), seen=seen, now=now)


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
