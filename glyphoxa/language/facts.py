"""Word facts: what is so, who may know it and how, how certain it is, since when, and where it comes from.

A model reads whole sentences in its campaign's language. People read the same sentences without a full stop, with names
in place of ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final, Protocol, assert_never

from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId, FactId, NpcId, SessionId, SpeakerId
from glyphoxa.domain.knowledge import Claim, EndedFact, Fact, Knower, Recalled, Validity, Visibility
from glyphoxa.language.relations import RelationWords, in_words
from glyphoxa.language.sentences import sentences

DESCRIPTION: Final = "description"
SPOKEN_FIRST: Final = (DESCRIPTION, "summary", "lore_text", "common_knowledge")
"""Attributes that describe an entity, the most important first."""
RUMOUR: Final = "rumour"
WHOLE_SENTENCES: Final = (*SPOKEN_FIRST, "secret", "note", RUMOUR)
_LONGEST_VALUE: Final = 400
_DIGITS: Final = 8


class Names(Protocol):
    """Names of a campaign's entities, people, sessions and facts, and its sentences for relations."""

    @property
    def relations(self) -> RelationWords: ...

    def called(self, entity: EntityId) -> str: ...

    def visibility_of(self, entity: EntityId) -> Visibility: ...

    def person(self, who: NpcId | SpeakerId) -> str: ...

    def session(self, session: SessionId) -> str: ...

    def fact(self, fact: FactId) -> str: ...


# What is so.


def value_in_words(value: object, *, with_objects: bool = True) -> str:
    """Return all of a value as text; empty for None.

    Args:
        with_objects: Also JSON objects, which have no spoken form.

    >>> value_in_words(["iron", "salt"]), value_in_words(True), value_in_words({"on_deck": 3, "below": ["rum"]})
    ('iron, salt', 'yes', 'on deck: 3; below: rum')
    """
    match value:
        case str():
            return value.strip()
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(text for each in value if (text := value_in_words(each, with_objects=with_objects)))
        case dict():
            parts = ((in_words(name), value_in_words(each)) for name, each in value.items() if with_objects)
            return "; ".join(f"{name}: {text}" for name, text in parts)
        case _:
            return str(value)


def spoken(fact: Fact) -> str:
    """Return the value of a fact for a model; empty if it has no spoken form (an empty text, a JSON object)."""
    return value_in_words(fact.claim.content, with_objects=False)


def claim_in_words(claim: Claim, names: Names) -> str:
    """Return a claim such as: Grimjaw is at The Anvil; Grimjaw, occupation: blacksmith."""
    other = None if claim.object is None else names.called(claim.object)
    return _stated(claim, names.called(claim.subject), other, _cut(claim.content), names.relations)


def fact_in_words(fact: Fact, names: Names) -> str:
    """Return the claim; of a relation that somebody wrote, also its attributes: A knows B (since: childhood)."""
    claim = claim_in_words(fact.claim, names)
    if fact.claim.object is None or fact.provenance.origin == "talk" or not fact.attributes:
        return claim
    return f"{claim} ({'; '.join(f'{in_words(name)}: {_cut(value)}' for name, value in fact.attributes.items())})"


def fact_text(fact: Fact) -> str:
    """Return all words of a fact but the names of its entities."""
    claim = fact.claim
    return f"{in_words(claim.predicate)}: {value_in_words(claim.content)} {value_in_words(dict(fact.attributes))}"


def fact_sentence(fact: Fact, subject: Entity, other: Entity | None = None, *, words: RelationWords) -> str:
    """Return a fact as one sentence for a model; empty if its value has no spoken form.

    Args:
        subject: The entity that the claim is about.
        other: The entity it is related to; None for an attribute.
        words: The campaign's sentences for relations.
    """
    value = "" if other is not None else spoken(fact)
    if other is None and (not value or fact.claim.predicate in WHOLE_SENTENCES):
        return _about(subject, value) if value else ""
    told, note = _stated(fact.claim, subject.name, None if other is None else other.name, value, words), _note(fact)
    return as_sentence(f"{told}: {note}" if note else told)


def texts_of(
    fact: Fact, subject: Entity, other: Entity | None, *, described: str, words: RelationWords
) -> dict[str, Fact]:
    """Return the texts that are embedded for a fact, so that a question finds it by its meaning.

    A value of two words means little, so the entity's description follows it: "Aurora, schedule: every second Friday.
    Aurora is the boat that brings the mail." Each sentence of a description is a text of its own.

    Args:
        described: The entity's description; empty without one, or if its visibility differs from that of the fact.

    Returns: Each text with the part of the fact that it states.
    """
    claim = fact.claim
    if other is not None:  # without a note, a relation is as near to everything as its names are
        return {fact_sentence(fact, subject, other, words=words): fact} if _note(fact) else {}
    if claim.predicate not in WHOLE_SENTENCES:
        text = fact_sentence(fact, subject, words=words)
        return {f"{text} {described}".strip(): fact} if text else {}
    return {
        one if subject.name in one else f"{subject.name}: {one}": fact.with_(
            claim=Claim.attribute(claim.subject, claim.predicate, one)
        )
        for one in sentences(spoken(fact))
    }


def as_sentence(text: str) -> str:
    """Return the text in one line, with a mark at its end."""
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def is_named_in(text: str, name: str) -> bool:
    """Return whether a text contains a name, also in the genitive or plural: "Bens"."""
    return re.search(rf"\b{re.escape(name)}(?:['’]?s|es|en|n)?\b", text, re.IGNORECASE) is not None


def _stated(claim: Claim, subject: str, other: str | None, value: str, words: RelationWords) -> str:
    if other is not None:
        return words.sentence(claim.predicate, subject, other)
    return f"{subject}, {in_words(claim.predicate)}: {value}"


def _note(fact: Fact) -> str:
    """Return what somebody noted about a relation; empty for an attribute."""
    noted = fact.attributes.get("description") or fact.attributes.get("note")
    return "" if fact.claim.object is None else value_in_words(noted, with_objects=False)


def _about(entity: Entity, text: str) -> str:
    # Most texts do not contain the name at all, and a pattern for each name takes a tenth of a millisecond.
    is_named = any(name.casefold() in text.casefold() and is_named_in(text, name) for name in entity.names)
    return as_sentence(text if is_named else f"{entity.name}: {text}")


def _cut(value: object) -> str:
    text = value_in_words(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} ..."


# Who may know it, and how.


def known_to(fact: Fact, names: Names) -> Visibility:
    """Return who may know a fact: nobody who may not know of its entities."""
    seen = fact.visibility
    for end in fact.claim.ends:
        seen = seen.within(names.visibility_of(end))
    return seen


def known_to_in_words(fact: Fact, names: Names) -> str:
    """Say, such as: public; secret: Grimjaw, Elowen; hidden with Zharothrix, which is hidden itself."""
    guards = (end for end in fact.claim.ends if not fact.visibility.is_within(names.visibility_of(end)))
    return visibility_in_words(known_to(fact, names), names, guarded_by=" and ".join(map(names.called, guards)))


def visibility_in_words(visibility: Visibility, names: Names, *, guarded_by: str = "") -> str:
    """Say, such as: public; secret: Grimjaw, Elowen; hidden with Zharothrix."""
    scope = f"{visibility.scope} with {guarded_by}" if guarded_by else visibility.scope
    knowers = people_in_words((knower.npc for knower in visibility.knowers), names)
    if visibility.scope == "public":
        return "public"
    if visibility.scope == "hidden":
        return f"{scope} (would be known to {knowers})" if knowers else scope
    return f"{scope}: {knowers or 'nobody'}"


def people_in_words(npcs: Iterable[NpcId], names: Names) -> str:
    return ", ".join(names.person(npc) for npc in npcs)


def knower_in_words(knower: Knower, names: Names) -> str:
    """Say how one NPC came to know something."""
    match knower.how:
        case "witnessed":
            how = "was there when it was said"
        case "told":
            how = "was told" if knower.by is None else f"was told by {names.person(knower.by)}"
        case "secret":
            how = "shares the secret"
        case _:
            assert_never(knower.how)
    when = f", {moment(knower.at_ms)}" if knower.at_ms is not None else ""
    where = f" (utterance {knower.utterance_id})" if knower.utterance_id is not None else ""
    return f"{names.person(knower.npc)} {how}{when}{where}"


def why_known(
    seen: Visibility, npc: NpcId, *, person: Callable[[SpeakerId], str] = str, session: SessionId | None = None
) -> str:
    """Return why an NPC may know something: "public", "secret", "witnessed in session s1", "told by tamsin".

    Args:
        person: Returns the name of a speaker.
        session: Where it was said; None: not named.
    """
    knower = None if seen.scope == "public" else next((one for one in seen.knowers if one.npc == npc), None)
    if knower is None:
        return "public"
    match knower.how:
        case "told":
            return f"told by {person(knower.by) if knower.by else 'somebody'}"
        case "witnessed":
            return f"witnessed in session {session}" if session else "witnessed"
        case how:
            return how


def reason_in_words(recalled: Recalled, names: Names) -> str:
    """Say why an NPC may know what it recalls, with names in place of ids."""
    reason, session = recalled.reason, recalled.session_id
    if session is not None:
        reason = reason.replace(f"session {session}", names.session(session))
    told, by, speaker = reason.partition("told by ")
    return f"{told}{by}{names.person(SpeakerId(speaker))}" if by and not told else reason


# How certain it is, when it holds, and where it comes from.


def certainty_in_words(fact: Fact) -> str:
    """Say how certain a fact is, such as: confirmed; 0.55 inferred; 0.55 inferred, confirmed."""
    sure = fact.provenance
    told = f"{sure.confidence:.2f} {sure.source}"
    if not sure.dm_confirmed:
        return told
    return "confirmed" if sure.confidence == 1 and sure.source == "stated" else f"{told}, confirmed"


def validity_in_words(validity: Validity, calendar: StoryCalendar | None) -> str:
    """Say when a fact holds, such as: since 2026-11-22 19:30, until 12 Hammer 1492; empty for always.

    Args:
        calendar: The story's calendar; None if it does not count days.
    """
    begun = (("since", validity.from_ms), ("until", validity.to_ms))
    days = (("since", validity.story_from), ("until", validity.story_to))
    parts = [f"{word} {moment(at_ms)}" for word, at_ms in begun if at_ms is not None]
    parts += [f"{word} {_day_in_words(day, calendar)}" for word, day in days if day is not None]
    return ", ".join(parts)


def ended_in_words(ended: EndedFact) -> str:
    """Say how a fact ended, such as: superseded by 3f2a91bc (event 12)."""
    by = "" if ended.superseded_by is None else f" by {short(ended.superseded_by)}"
    return f"{ended.ended_as.replace('_', ' ')}{by} (event {ended.ended_seq})"


def source_in_words(fact: Fact, names: Names) -> str:
    """Say where a fact was said, or who wrote it."""
    provenance = fact.provenance
    return place(provenance.session_id, provenance.ordinal, names) or provenance.origin.replace("_", " ")


def place(session: SessionId | None, ordinal: int | None, names: Names) -> str:
    """Name a place in a transcript, such as: session 2, line 12."""
    if session is None:
        return ""
    called = names.session(session)
    return called if ordinal is None else f"{called}, line {ordinal}"


def short(fact: FactId) -> str:
    """Return enough of an id to find the fact; an id with a suffix is returned whole."""
    return fact if "-" in fact else fact[:_DIGITS]


def moment(at_ms: int | None) -> str:
    """Return a time to the minute, in UTC; empty when unknown."""
    return "" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def _day_in_words(day: int, calendar: StoryCalendar | None) -> str:
    return f"day {day} of the story" if calendar is None or not calendar.months else calendar.in_words(day)


def entity_in_words(entity: Entity) -> str:
    """Return an entity with its type, such as: Grimjaw (npc)."""
    return f"{entity.name} ({entity.type})"


def fact_row(fact: Fact, names: Names) -> dict[str, str]:
    """Return what a list for the DM shows of a fact, by heading."""
    return {
        "id": fact.id,
        "fact": fact_in_words(fact, names),
        "status": fact.status,
        "certainty": certainty_in_words(fact),
        "known to": known_to_in_words(fact, names),
        "from": source_in_words(fact, names),
    }
