"""The desk's review pages: facts and names, one fact with its history, who knows what, and decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from fastapi import Request

from glyphoxa.app.desk import Desk, names_desk_of
from glyphoxa.dm.actions import actions_of, chosen
from glyphoxa.dm.facts import Decision
from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.domain.errors import InvalidInput, counted, did_you_mean
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import DM, Fact, Status
from glyphoxa.language.facts import (
    ended_in_words,
    fact_row,
    knower_in_words,
    known_to,
    place,
    validity_in_words,
    why_known,
)
from glyphoxa.transcript.sessions import episode_of
from glyphoxa.web.desk.frame import DeskFrame, Done, Form, Pages, Shown, page_of_desk, session_names, viewer_of

MOST_FACTS: Final = 200
_GROUPS: Final[Sequence[tuple[Status, str]]] = (
    ("pending", "Needs review"),
    ("conflict", "Contradicts accepted facts"),
    ("stale", "Depends on facts that are no longer true"),
)


PAGES: Final = Pages()


@PAGES.get("/desk/review", "review")
async def review_page(frame: DeskFrame, _: Request) -> Shown:
    """Show facts that need review, each with the line that proves it."""
    desk = await frame.desk()
    groups = []
    for status, title in _GROUPS:
        facts = await desk.inspection.of_status(desk.campaign, status, limit=MOST_FACTS)
        shown = [await _reviewed(desk, fact) for fact in facts]
        groups.append({"title": title, "status": status, "facts": shown})
    return {"groups": groups}


async def _reviewed(desk: Desk, fact: Fact) -> Shown:
    said, disputed = await desk.facts.evidence(fact)
    return {
        **fact_shown(desk, fact),
        "evidence": _evidence(desk, said),
        "reason": fact.provenance.reason,
        "disputes": [*map(desk.facts.line, disputed)],
    }


def fact_shown(desk: Desk, fact: Fact) -> Shown:
    """Describe a fact: who knows it, how certain it is, where it is from."""
    row = fact_row(fact, desk.resolver)
    return {
        **row,
        "words": row["fact"],
        "known_to": row["known to"],
        "state": desk.facts.state_in_words(fact),
        "can": _decisions_that_change(fact),
        "value": None if fact.claim.value is None else _typed(json.loads(fact.claim.value)),
        "knowers": [knower_in_words(knower, desk.resolver) for knower in fact.visibility.knowers],
    }


def _decisions_that_change(fact: Fact) -> list[str]:
    is_sure = fact.status == "accepted" and fact.provenance.dm_confirmed
    scope = fact.visibility.scope
    no_effect = {"confirm": is_sure, "hide": scope == "hidden", "reveal": scope == "public", "reject": False}
    return [what for what, is_so in no_effect.items() if not is_so]


def _typed(value: object) -> str:
    """Return a value as a DM would type it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _evidence(desk: Desk, said: CitedUtterance | None) -> Shown | None:
    """Describe the utterance that a fact depends on."""
    return None if said is None else {"said": said, "place": place(said.session_id, said.ordinal, desk.resolver)}


@PAGES.get("/desk/knowledge", "knowledge")
async def knowledge_page(frame: DeskFrame, request: Request) -> Shown:
    """Show the world as one NPC sees it, or the game master; now or `as_of` a time."""
    desk, asked = await frame.desk(), request.query_params
    npc, about, as_of = asked.get("npc", ""), asked.get("about", ""), asked.get("as_of", "").strip()
    named = session_names(desk)
    numbered = {name.removeprefix("session "): each for each, name in named.items()}
    as_of = numbered.get(as_of.removeprefix("session "), as_of)
    viewer, views = viewer_of(desk, npc)
    entity = desk.resolver.entity(about) if about else None
    of = None if entity is None else entity.id
    facts, _ = await desk.timeline.known(viewer, about=of, as_of=as_of, limit=MOST_FACTS)
    return {
        "as_of": as_of,
        "sessions": [{"id": each, "name": name} for each, name in reversed([*named.items()])],
        **views,
        "about": "" if entity is None else entity.name,
        "entities": sorted({each.entity.name for each in desk.seen}),
        "facts": [fact_shown(desk, fact) for fact in facts],
        "is_cut": len(facts) == MOST_FACTS,
    }


@PAGES.get("/desk/secrets", "secrets")
async def secrets_page(frame: DeskFrame, _: Request) -> Shown:
    """Show every fact that is not public, and which NPCs know it. Summaries of sessions are left out."""
    desk = await frame.desk()
    npcs = desk.resolver.npcs
    summaries = {episode_of(session) for session in desk.resolver.sessions}
    facts = [
        fact
        for fact in await desk.inspection.current(desk.campaign, DM, about=None, limit=MOST_FACTS * 5)
        if known_to(fact, desk.resolver).scope != "public" and summaries.isdisjoint(fact.claim.ends)
    ]
    rows = [
        {**fact_shown(desk, fact), "who": [_how(desk, fact, npc.id) for npc in npcs]} for fact in facts[:MOST_FACTS]
    ]
    return {"npcs": [{"id": npc.id, "name": npc.name} for npc in npcs], "rows": rows, "is_cut": len(facts) > MOST_FACTS}


def _how(desk: Desk, fact: Fact, npc: NpcId) -> str:
    """Say how this NPC knows a fact; empty if it does not."""
    seen = known_to(fact, desk.resolver)
    return why_known(seen, npc, person=desk.resolver.person) if seen.is_visible_to(npc) else ""


@PAGES.get("/desk/facts/{fact}", "fact")
async def fact_page(frame: DeskFrame, request: Request) -> Shown:
    """Show a fact, by its id or the beginning of it."""
    desk = await frame.desk()
    found = await desk.facts.explain(request.path_params["fact"])
    one, ended = found.fact, found.ended
    ends = one.claim.ends
    known = {each.entity.id: each.entity.name for each in desk.seen}
    is_import = one.provenance.origin == "import"
    documents = await desk.imports.documents_of(one.claim.subject, stating=one.claim) if is_import else ()
    return {
        "fact": fact_shown(desk, one),
        "ended": "" if ended is None else ended_in_words(ended),
        "evidence": _evidence(desk, found.said),
        "reason": one.provenance.reason,
        "documents": [each.words for each in documents],
        "holds": validity_in_words(one.validity, desk.days.calendar),
        "entities": [{"id": end, "name": known[end]} for end in ends if end in known],
        "groups": {
            "Depends on": [fact_shown(desk, each) for each in found.supports],
            "Facts that depend on it": [fact_shown(desk, each) for each in found.resting],
            "Contradicts": [fact_shown(desk, each) for each in found.disputes],
        },
        "history": await desk.facts.history_in_words(await desk.timeline.history_of(one)),
    }


# -- decisions

_DO: Final = {do: each for do, each in actions_of("form", "facts").items() if each.done}

MARKED: Final = "fact:"
"""Prefix of a checkbox's name; the fact's id follows."""
_BOX: Final = "on"
"""Value of a checkbox that does not contain the state of its fact."""
_OF_SEVERAL: Final = {"confirm_marked": "confirm", "reject_marked": "reject"}


def _marked(form: Form) -> dict[str, str]:
    return {name[len(MARKED) :]: seen for name, seen in form.items() if name.startswith(MARKED)}


@PAGES.post("/desk/facts")
async def decide(frame: DeskFrame, _: Request, form: Form) -> Done:
    """
    Args:
        form: `do`, the `fact`, and what was `seen` of it (see `FactDesk.need_unchanged`); those of several have a name
            `MARKED` and the id for each; `undo` needs none.

    Raises:
        NotFound: There is no such fact any more.
        ChangedMeanwhile: It is not as it was seen.
        InvalidInput: It cannot be decided so.
    """
    return Done(await _decided(await frame.desk(), form), page_of_desk(form.get("back", ""), "/desk/review"))


async def _decided(desk: Desk, form: Form) -> str:
    """Decide on one fact, or on all marked facts or on none."""
    what = form.get("do", "")
    if what == "undo":
        return f"undone: {counted(len(await desk.undo()), 'event')}"
    action = chosen(what, {**_DO, **{several: _DO[one] for several, one in _OF_SEVERAL.items()}}, "decision")
    shown = _marked(form) if what in _OF_SEVERAL else {form.get("fact", ""): form.get("seen", "")}
    if not shown:
        raise InvalidInput("no fact is selected; select at least one")
    found = [await desk.facts.find(fact) for fact in shown]
    for fact, seen in zip(found, shown.values(), strict=True):
        desk.facts.need_unchanged(fact, "" if seen == _BOX else seen)
    words = counted(len(found), "fact") if what in _OF_SEVERAL else desk.facts.words(found[0])
    ids = [fact.id for fact in found]
    made: Decision = await action.run(desk, {**form, "facts": ids, "fact": ids[0]})
    n_ended = len(made.ended) if action is _DO["confirm"] else 0
    return f"{action.done}: {words}" + (f"; ended {counted(n_ended, 'contradicting fact')}" if n_ended else "")


MOST_SUGGESTED: Final = 50
MOST_NAMES: Final = 500


# -- names


@PAGES.get("/desk/names", "names")
async def names_page(frame: DeskFrame, _: Request) -> Shown:
    """Show names with their wrong forms, and suggestions that need review."""
    desk = await names_desk_of(frame.memory())
    heard = await desk.wrong_forms()
    rows = sorted(desk.names.entries, key=lambda each: (each.entity_id not in heard, each.name))[:MOST_NAMES]
    return {
        "suggestions": (await desk.suggestions())[:MOST_SUGGESTED],
        "rows": [(each, heard.get(each.entity_id, [])) for each in rows],
        "is_cut": len(desk.names.entries) > MOST_NAMES,
        "names": sorted({entry.name for entry in desk.names.entries}),
    }


@PAGES.post("/desk/names")
async def decide_name(frame: DeskFrame, _: Request, form: Form) -> Done:
    """
    Args:
        form: `do`: `confirm` or `reject` with what was `heard` and the `name` it means; `undo`. `sure` confirms what
            ordinary talk holds, too.

    Raises:
        NotFound: There is no such name, or nothing to undo.
        InvalidInput: It must not be learned, or the form says nothing of it.
    """
    desk = await names_desk_of(frame.memory())
    heard, name = form.get("heard", ""), form.get("name", "")
    match form.get("do", ""):
        case "undo":
            done = await desk.undo()
        case "confirm":
            unless = None if form.get("sure") else "To accept it all the same, select the box below the names"
            done, _warned = await desk.accept(heard, name, unless=unless)
        case "reject":
            done = await desk.reject(heard, name)
        case what:
            valid = ["confirm", "reject", "undo"]
            raise InvalidInput(f"unknown decision {what!r} on a name: {did_you_mean(what, valid)}")
    return Done(done, "/desk/names")
