"""How somebody came to know something, and how sure it is, in words for the DM. See `glyphoxa.world.wording`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from glyphoxa.dm.resolver import NameResolver
from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.ids import FactId, SessionId
from glyphoxa.domain.knowledge import Fact, Knower, Validity
from glyphoxa.domain.recalled import Signal
from glyphoxa.world.api import moment

_DIGITS = 8


def knower_in_words(knower: Knower, resolver: NameResolver) -> str:
    """How one NPC came to know something."""
    match knower.how:
        case "witnessed":
            how = "was there when it was said"
        case "told":
            how = "was told" if knower.by is None else f"was told by {resolver.person(knower.by)}"
        case "secret":
            how = "is in the secret"
        case _:
            assert_never(knower.how)
    when = f", {moment(knower.at_ms)}" if knower.at_ms is not None else ""
    where = f" (utterance {knower.utterance_id})" if knower.utterance_id is not None else ""
    return f"{resolver.person(knower.npc)} {how}{when}{where}"


def certainty_in_words(fact: Fact) -> str:
    """Such as: 0.55 inferred; 1.00 stated, confirmed."""
    told = f"{fact.provenance.confidence:.2f} {fact.provenance.source}"
    return f"{told}, confirmed" if fact.provenance.dm_confirmed else told


def short(fact: FactId) -> str:
    """Enough of an id to find the fact by; a fact of a claim that another had first needs all of it."""
    return fact if "-" in fact else fact[:_DIGITS]


def place(session: SessionId | None, ordinal: int | None) -> str:
    """Such as: s1, ordinal 12."""
    if session is None:
        return ""
    return session if ordinal is None else f"{session}, ordinal {ordinal}"


def learned_from(fact: Fact) -> str:
    """Where it was said; who wrote it, if nobody said it."""
    provenance = fact.provenance
    return place(provenance.session_id, provenance.ordinal) or provenance.origin.replace("_", " ")


def validity_in_words(validity: Validity, calendar: StoryCalendar | None) -> str:
    """Such as: since 2026-11-22 19:30, until 12 Hammer 1492; empty for what always holds.

    Args:
        calendar: Of the story; None if it counts no days.
    """
    parts = []
    if validity.from_ms is not None:
        parts.append(f"since {moment(validity.from_ms)}")
    if validity.to_ms is not None:
        parts.append(f"until {moment(validity.to_ms)}")
    if validity.story_from is not None:
        parts.append(f"since {_day_in_words(validity.story_from, calendar)}")
    if validity.story_to is not None:
        parts.append(f"until {_day_in_words(validity.story_to, calendar)}")
    return ", ".join(parts)


def _day_in_words(day: int, calendar: StoryCalendar | None) -> str:
    return f"day {day} of the story" if calendar is None or not calendar.months else calendar.in_words(day)


def signals_in_words(signals: Mapping[Signal, float]) -> str:
    """What the ranking says for and against, the most first: "meaning 1.94, words 1.57, asks -1.09"."""
    order = sorted(signals.items(), key=lambda each: (-abs(each[1]), each[0]))
    return ", ".join(f"{name.replace('_', ' ')} {share:.2f}" for name, share in order if round(share, 2))
