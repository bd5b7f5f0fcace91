"""Words ranking signals, reading progress and imports for the DM, and cleans text for terminals and Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from glyphoxa.chronicle.ports import SessionProgress
from glyphoxa.dm.import_review import Arrival, Proposal
from glyphoxa.dm.imported import SourceDocument
from glyphoxa.domain.errors import MAX_LISTED, counted, shown
from glyphoxa.domain.knowledge import Signal
from glyphoxa.language.facts import moment


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
