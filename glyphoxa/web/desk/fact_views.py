"""What the desk shows of one fact: who knows it and through whom, what it rests on, and all that happened to it."""

from __future__ import annotations

from collections.abc import Sequence

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.dm import wording
from glyphoxa.domain.ids import FactId
from glyphoxa.domain.knowledge import EndedFact, Fact
from glyphoxa.web.desk.views import Shown, evidence_of, fact_shown
from glyphoxa.world.api import Words, moment


async def fact(desk: Desk, wanted: str) -> Shown:
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
