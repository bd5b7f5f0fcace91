"""Words what the DM reads: nodes of the memory graph, ranking signals, reading progress and imports; cleans texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from glyphoxa.chronicle.ports import SessionProgress
from glyphoxa.chronicle.timeline_writer import FLOOR
from glyphoxa.dm.import_review import Arrival, Proposal
from glyphoxa.dm.source_world import SourceDocument
from glyphoxa.domain.campaign import Entity, Schema
from glyphoxa.domain.errors import MAX_LISTED, counted, shown
from glyphoxa.domain.ids import EntityId, SessionId
from glyphoxa.domain.knowledge import Fact, Signal
from glyphoxa.language.facts import moment, value_in_words
from glyphoxa.transcript.sessions import EPISODE


def signals_in_words(signals: Mapping[Signal, float]) -> str:
    """List ranking signals, the strongest first: "meaning 1.94, words 1.57, asks -1.09"."""
    order = sorted(signals.items(), key=lambda each: (-abs(each[1]), each[0]))
    return ", ".join(f"{name.replace('_', ' ')} {share:.2f}" for name, share in order if round(share, 2))


_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters of a terminal, and those that reorder or isolate the text after them, which would disguise it."""


@dataclass(frozen=True, slots=True)
class IndentedLine:
    """
    Attributes:
        depth: Indentation level.
    """

    text: str
    depth: int = 0


def plain(text: str) -> str:
    """Return a text on one line without terminal control characters."""
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """Return a text without terminal control characters; line breaks stay."""
    return _COMMANDS.sub(" ", text)


def escaped(text: str) -> str:
    """Return a text as one line of Markdown, in which nothing is markup, a tag, a link or a comment."""
    return "".join(f"\\{each}" if each in r"\`*_{}[]<>#|~$%" else each for each in plain(text))


# How much of a session the chronicle has read, in words.


def reading_in_words(session: SessionProgress) -> str:
    """Say whether a session was read completely, and what prevents it."""
    if session.error is None:
        state = "unread talk" if session.has_news else "up to date"
        if session.refused is None:
            return state
        return f"{state}; {session.n_refused} rejected, the last one: {session.refused}"
    if session.is_dead:
        return f"given up after {session.attempts} tries: {session.error}"
    again = "" if session.retry_at_ms is None else f", again at {moment(session.retry_at_ms)}"
    return f"failed{again}: {session.error}"


def backlog_in_words(sessions: Sequence[SessionProgress]) -> str:
    """Say how much of a campaign's transcript was read in the background."""
    n_said, n_read = sum(each.last_ordinal for each in sessions), sum(each.read_ordinal for each in sessions)
    if n_read >= n_said:
        return f"Read in the background: all {counted(n_said, 'line')}."
    return f"Read in the background: {n_read:,} of {counted(n_said, 'line')}. Reading waits while somebody speaks."


# Imports.


def arrival_in_words(name: str, arrival: Arrival) -> Sequence[str]:
    """Return what a source brought, and what the DM should know of it, in lines."""
    numbers = (arrival.n_new, arrival.n_changed, arrival.n_unchanged, arrival.n_skipped)
    words = ("new", "changed", "unchanged", "skipped")
    told = ", ".join(f"{n:,} {word}" for n, word in zip(numbers, words, strict=True) if n)
    lines = [f"{name} ({arrival.source}): {told or 'no documents'}"]
    if arrival.gone:
        lines.append(
            f"no longer in it ({len(arrival.gone):,}): {shown(', '.join(arrival.gone))}; the campaign keeps them"
        )
    return [*lines, *(f"! {remark}" for remark in arrival.remarks)]


def secrecy_in_words(documents: Sequence[SourceDocument]) -> list[str]:
    """Say what of some documents is hidden and why, and what may be secret but is not hidden, in a line each."""
    hidden = [f"{each.name}{', in part' * (not each.hidden)} ({each.marks})" for each in documents if each.marks]
    doubtful = [f"{each.name} ({', '.join(each.doubts)})" for each in documents if each.doubts]
    lines = []
    for what, found in (("hidden", hidden), ("may be secret, but players may know it: decide", doubtful)):
        more = f"; and {len(found) - MAX_LISTED:,} more" if len(found) > MAX_LISTED else ""
        lines += [f"{what} ({len(found):,}): {'; '.join(found[:MAX_LISTED])}{more}"] if found else []
    return lines


def proposal_in_words(proposal: Proposal) -> str:
    """Say what accepting a document makes of it."""
    if proposal.changes:
        return "; ".join(proposal.changes)
    if proposal.same_as is not None:
        return f"part of {proposal.same_as.name}"
    like = ", ".join(each.name for each in proposal.like)
    return f"new; may be {like}" if like else "new"


# The memory graph.

_OF_THE_STORE: Final = ("kind", FLOOR)
"""Attributes of the entity of a summary that are no field."""


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """
    Attributes:
        type: The schema's name: an entity of type npc is a `character_sheet`.
        fields: Values by name: those of the type first, also without a value, then all others.
        session, floor: The utterance from which the node was last changed; None if it was not changed by talk.
    """

    id: EntityId
    type: str
    title: str
    fields: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    session: SessionId | None = None
    floor: int | None = None

    @property
    def values(self) -> dict[str, str]:
        """Return each field as one text."""
        return {name: "; ".join(map(value_in_words, values)) for name, values in self.fields.items()}

    def as_json(self) -> dict[str, object]:
        """Return the node as the memory graph document shows it."""
        return {
            "id": self.id,
            "type": self.type,
            "level": "semantic",
            "title": self.title,
            "fields": self.values,
            "floor": self.floor,
        }


def nodes_of(entities: Iterable[Entity], facts: Iterable[Fact], schema: Schema) -> list[MemoryNode]:
    """Return entities as nodes, in their order, with the accepted ones of these facts."""
    about: defaultdict[EntityId, list[Fact]] = defaultdict(list)
    for fact in facts:
        about[fact.claim.subject].append(fact)
    return [_node(entity, about[entity.id], schema) for entity in entities]


def _node(entity: Entity, facts: Iterable[Fact], schema: Schema) -> MemoryNode:
    type_ = schema.of_entity(entity.type)
    no_fields = _OF_THE_STORE if entity.type == "event" and entity.id.startswith(f"{EPISODE}-") else ()
    fields: dict[str, list[object]] = {name: [] for name in type_.fields}
    said: list[tuple[int, SessionId | None, int | None]] = []
    for fact in facts:
        claim, by = fact.claim, fact.provenance
        if fact.status != "accepted":
            continue
        if by.ordinal is not None:
            said.append((by.at_ms or 0, by.session_id, by.ordinal))
        if claim.object is None and claim.predicate not in no_fields:
            fields.setdefault(claim.predicate, []).append(claim.content)
    if "aliases" in fields:
        fields["aliases"] = [*entity.aliases]
    _, session, floor = max(said, key=lambda one: one[0], default=(0, None, None))
    return MemoryNode(
        entity.id,
        schema.name_of(entity.type),
        entity.name,
        {name: tuple(values) for name, values in fields.items()},
        session,
        floor,
    )
