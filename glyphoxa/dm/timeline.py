"""The DM and time: undo, rollback, past states, and forks."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Final

from glyphoxa.dm.ports import CitedUtterance, Review, Session
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.heard import SpokenBy
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from glyphoxa.domain.knowledge import Claim, Fact, Viewer
from glyphoxa.names.wrong_forms import FormHeard
from glyphoxa.transcript.sessions import episode_of
from glyphoxa.world.event_kinds import EntitiesMerged, EntityRemoved, FactReplaced, FactStated
from glyphoxa.world.event_log import (
    Cause,
    RolledBack,
    TalkErased,
    Undoing,
    Undone,
    UtteranceCorrected,
    UtteranceRetracted,
    WorldEvent,
    difference,
    dropped,
    is_learned_from,
    replay,
)
from glyphoxa.world.graph import WorldHistory, may_know
from glyphoxa.world.state import WorldState

# Reading a campaign's log of events.


_AT_ONCE: Final = 5_000


async def all_events(world: WorldHistory, campaign: CampaignId) -> list[WorldEvent]:
    """Return all events in order."""
    events: list[WorldEvent] = []
    while True:
        page = await world.events(campaign, after=events[-1].seq if events else 0, limit=_AT_ONCE)
        events += page
        if len(page) < _AT_ONCE:
            return events


def events_about(fact: Fact, events: Sequence[WorldEvent]) -> list[WorldEvent]:
    """Return events that stated, changed or ended the fact or one of its entities, and their undoings."""
    about: list[WorldEvent] = []
    numbers: set[int] = set()
    ends = {fact.claim.subject, fact.claim.object} - {None}
    for recorded in events:
        match recorded.event:
            case FactStated(claim=claim):
                concerns = _says(claim, fact)
                if concerns:
                    ends |= {claim.subject, claim.object} - {None}
            case FactReplaced(fact=old, claim=claim):
                concerns = old == fact.id or _says(claim, fact)
            case EntitiesMerged(kept, gone):
                concerns = gone in ends or (kept in ends and bool(numbers))
            case EntityRemoved(entity):
                concerns = entity in ends
            case Undone(undone):
                concerns = undone in numbers
            case RolledBack() | UtteranceRetracted() | UtteranceCorrected() as taken_back:
                concerns = not numbers.isdisjoint(taken_back.events)
            case other:
                concerns = getattr(other, "fact", None) == fact.id
        if concerns:
            about.append(recorded)
            numbers.add(recorded.seq)
    return about


def _says(claim: Claim, fact: Fact) -> bool:
    """Return whether a claim is the fact's own, now or before a merge changed its entities."""
    return claim == fact.claim or claim.fact_id == fact.id.partition("-")[0]


_LOOKED_AT_FIRST: Final = 64
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Preview:
    """The effects of a rollback.

    Attributes:
        events: Events that would be dropped.
        facts: Facts that would no longer be current, that would change (in their new form), and that would become
            current again, each with a title. Without those that only say who took part in a session.
        n_utterances: Utterances that nobody would recall any more.
    """

    events: tuple[WorldEvent, ...] = ()
    facts: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    n_utterances: int = 0


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """A session among those of its campaign; `earlier` and `later` are in order of time."""

    session: Session
    earlier: tuple[SessionId, ...]
    later: tuple[SessionId, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The event log of one campaign. Every call raises `Unavailable` when the database is away.

    Args:
        now_ms: Milliseconds since the Unix epoch.
    """

    campaign: CampaignId
    world: WorldHistory
    review: Review
    now_ms: Callable[[], int]

    async def undo(self, seq: int | None = None) -> list[WorldEvent]:
        """Undo an event, or the DM's last decision; repeat it for the one before. Undoing an undo restores.

        Decisions about wrong forms of names are undone by their number only, or on the page of names.

        Returns:
            What was undone: one event, or all of the decision, the last first.

        Raises:
            NotFound: There is no such event, it is already undone, or there is no decision.
            InvalidInput: It erased part of the transcript, or is a player's decision about being remembered.
        """
        taken = await self._last_decision() if seq is None else [await self._event(seq)]
        if any(isinstance(event.event, TalkErased) for event in taken):
            raise InvalidInput(f"event {seq} erased part of the transcript and cannot be undone")
        if any(event.cause.by == "player" for event in taken):
            raise InvalidInput(f"event {seq} is a player's decision about being remembered; only they can change it")
        await self.world.undo(self.campaign, [event.seq for event in taken], Cause("dm", self.now_ms()))
        return taken

    async def preview(self, session: SessionId, ordinal: int) -> Preview:
        """Return what `rollback` would change.

        Raises:
            NotFound: There is no such session.
            InvalidInput: It has no such ordinal.
        """
        later = {*(await self._last_kept(session, ordinal)).later}
        n_utterances = await self.review.talk_after(self.campaign, session, ordinal)
        found = await self._without(lambda event: _is_learned_after(event, session, ordinal, later))
        return replace(found, n_utterances=n_utterances)

    async def preview_without(self, said: CitedUtterance) -> Preview:
        """Return what `retract` or `correct` of an utterance would change."""
        one, place = frozenset({said.utterance_id}), frozenset({(said.session_id, said.ordinal)})
        return await self._without(lambda event: is_learned_from(event, one, place))

    async def _episodes(self) -> dict[EntityId, str]:
        """Return the entities that hold the summaries of sessions, each with its name for the DM."""
        sessions = await self.review.sessions(self.campaign)
        return {episode_of(each.id): f"Session {number}" for number, each in enumerate(sessions, start=1)}

    async def _without(self, is_dropped: Callable[[WorldEvent], bool]) -> Preview:
        """Return what would change without these of the events that still count."""
        events = await all_events(self.world, self.campaign)
        without = dropped(events)
        going = tuple(event for event in events if event.seq not in without and is_dropped(event))
        if not going:
            return Preview()
        taken_back = RolledBack(SessionId(""), 0, tuple(event.seq for event in going))
        then = [*events, WorldEvent(events[-1].seq + 1, Cause("dm", self.now_ms()), taken_back)]
        before = replay(events)
        changes, episodes = difference(before, replay(then)), await self._episodes()
        facts = {
            "no longer known": [before.facts[fact] for fact in changes.facts_gone],
            "changed": [fact for fact in changes.facts_put if fact.id in before.facts],
            "known again": [fact for fact in changes.facts_put if fact.id not in before.facts],
        }
        told = {title: [one for one in found if not is_bookkeeping(one, episodes)] for title, found in facts.items()}
        return Preview(going, {title: found for title, found in told.items() if found})

    async def rollback(self, session: SessionId, ordinal: int) -> WorldEvent | None:
        """Return to what was known after the utterance with this ordinal. None if there is nothing to drop.

        Raises:
            NotFound: There is no such session.
            InvalidInput: It has no such ordinal.
        """
        await self._last_kept(session, ordinal)
        return await self.world.rollback(self.campaign, session, ordinal, Cause("dm", self.now_ms()))

    async def retract(self, said: CitedUtterance) -> WorldEvent:
        """Retract an utterance: nobody recalls it, and facts learned from it alone are dropped.

        Raises:
            NotFound: It is not in the log.
            InvalidInput: It is retracted already.
        """
        return await self.world.retract(self.campaign, said.utterance_id, Cause("dm", self.now_ms()))

    async def correct(self, said: CitedUtterance, text: str, *, by: SpokenBy | None = None) -> WorldEvent:
        """Correct an utterance: these words were said instead.

        Args:
            by: Who said them; None: the speaker is right.

        Raises:
            NotFound: It is not in the log.
            InvalidInput: The text is empty or unchanged, or the utterance is retracted.
        """
        words = " ".join(text.split())
        if not words:
            raise InvalidInput("the correction is empty: give the words that were said, or retract the utterance")
        return await self.world.correct(self.campaign, said.utterance_id, words, Cause("dm", self.now_ms()), by=by)

    async def history(self, *, limit: int) -> list[tuple[WorldEvent, bool]]:
        """Return events, the latest first, each with whether it still counts.

        Without the proofs of wrong forms of names: nobody decided them, and the history of names has them.
        """
        looked_at = limit
        while True:
            events = await self.world.events(self.campaign, limit=looked_at, latest_first=True)
            shown = [event for event in events if event.cause.by != "talk" or not isinstance(event.event, FormHeard)]
            if len(shown) >= limit or len(events) < looked_at:
                without = dropped(events[::-1])
                return [(event, event.seq not in without) for event in shown[:limit]]
            looked_at *= 8

    async def history_of(self, fact: Fact) -> list[tuple[WorldEvent, bool]]:
        """Return all events about a fact, oldest first, each with whether it still counts."""
        events = await self.review.events_about(self.campaign, fact)
        without = dropped(events)
        return [(event, event.seq not in without) for event in events_about(fact, events)]

    async def as_of(self, when: str) -> WorldState:
        """Return the world as known at the end of a session, at a time, or after an event.

        Args:
            when: A session's id; "2026-11-22" (the end of that day) or "2026-11-22 19:30", in UTC by default; or
                "#120", the number of an event.

        Raises:
            NotFound: It is none of these.
        """
        if when.startswith("#") and when[1:].isdecimal():
            return await self.world.as_of(self.campaign, seq=int(when[1:]))
        sessions = [each.id for each in await self.review.sessions(self.campaign)]
        if when in sessions:
            return await self.world.as_of(self.campaign, session=SessionId(when))
        at_ms = moment_of(when)
        if at_ms is None:
            raise NotFound(
                f"{when!r} is not a time such as 2026-11-22 or 2026-11-22T19:30, an event such as #120, or a session "
                f"of campaign {self.campaign!r}: {did_you_mean(when, sessions)}"
            )
        return await self.world.as_of(self.campaign, at_ms=at_ms)

    async def known(
        self, viewer: Viewer, *, about: EntityId | None = None, as_of: str = "", limit: int
    ) -> tuple[list[Fact], Mapping[EntityId, str]]:
        """Return facts that the viewer knows, by subject and predicate, and the names that entities had then.

        What happened in a session is one of them; that the session has an entity, and who took part in it, is not.

        Args:
            as_of: A time for `as_of`; empty: now, and no names are returned.

        Raises:
            NotFound: There is no such time.
        """
        numbered = await self._episodes()
        if not as_of:
            most = 2 * (limit + len(numbered))
            facts, names = await self.review.current(self.campaign, viewer, about=about, limit=most), {}
        else:
            state = await self.as_of(as_of)
            facts = of_state(state, viewer, about=about)
            names = {each.id: each.name for each in state.entities.values()}
            names |= {each: name for each, name in numbered.items() if each in names}
        return [fact for fact in facts if not is_bookkeeping(fact, numbered)][:limit], names

    async def session(self, wanted: str) -> SessionPlace:
        """Return the session with this id, and those around it.

        Raises:
            NotFound: There is none.
        """
        found = await self.review.sessions(self.campaign)
        ids = [each.id for each in found]
        if wanted not in ids:
            raise NotFound(f"no session {wanted!r} in campaign {self.campaign!r}: {did_you_mean(wanted, ids)}")
        at = ids.index(SessionId(wanted))
        return SessionPlace(found[at], tuple(ids[:at]), tuple(ids[at + 1 :]))

    async def _last_kept(self, session: SessionId, ordinal: int) -> SessionPlace:
        """Raises: NotFound: There is no such session. InvalidInput: It has no such ordinal."""
        place = await self.session(session)
        most = place.session.last_ordinal
        if not 0 <= ordinal <= most:
            raise InvalidInput(f"session {session!r} has ordinals 0 to {most}, not {ordinal}")
        return place

    async def _event(self, seq: int) -> WorldEvent:
        found = await self.world.events(self.campaign, after=seq - 1, limit=1) if seq > 0 else []
        if not found or found[0].seq != seq:
            raise NotFound(f"there is no event {seq} in campaign {self.campaign!r}")
        return found[0]

    async def _last_decision(self) -> list[WorldEvent]:
        """Return all events of the DM's last decision that still counts, the last first."""
        looked_at = _LOOKED_AT_FIRST
        while True:
            events = await self.world.events(self.campaign, limit=looked_at, latest_first=True)
            is_all = len(events) < looked_at
            without = dropped(events[::-1])
            mine = [e for e in events if e.cause.by == "dm" and e.seq not in without and not _is_kept(e)]
            decision = [event for event in mine if event.cause == mine[0].cause]
            before = (e for e in events if decision and e.seq < decision[-1].seq)
            decision += [e for e in takewhile(_is_statement_for_decision, before) if e.seq not in without]
            if is_all or (decision and decision[-1] != events[-1]):
                if not decision:
                    raise NotFound("there is no decision to undo")
                return decision
            looked_at *= 8


def _is_kept(recorded: WorldEvent) -> bool:
    """Return whether `undo` without a number skips an event: an undoing, an erasure, or a decision about a name."""
    return isinstance(recorded.event, Undone | TalkErased | FormHeard)


def _is_statement_for_decision(recorded: WorldEvent) -> bool:
    """Return whether the DM chose a line to be a fact: the decision about that fact follows in the same transaction."""
    event = recorded.event
    return recorded.cause.by == "talk" and isinstance(event, FactStated) and event.provenance.origin == "dm"


def _is_learned_after(recorded: WorldEvent, session: SessionId, ordinal: int, later: set[SessionId]) -> bool:
    cause = recorded.cause
    if cause.by != "talk" or isinstance(recorded.event, Undoing):
        return False
    # Facts learned from a whole session count as learned at its end.
    return cause.session_id in later or (
        cause.session_id == session and (cause.ordinal is None or cause.ordinal > ordinal)
    )


def moment_of(when: str) -> int | None:
    """Return "2026-11-22" (the end of that day) or "2026-11-22 19:30" in milliseconds since the Unix epoch.

    UTC by default; None if it is not a time.
    """
    at_ms = beginning_of(when)
    is_day = len(when.strip()) <= len("2026-11-22")
    return at_ms if at_ms is None or not is_day else at_ms + _DAY_MS - 1


def beginning_of(when: str) -> int | None:
    """Like `moment_of`, but a day means its beginning."""
    try:
        moment = datetime.fromisoformat(when.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


# Knowledge at an earlier time.


def is_bookkeeping(fact: Fact, episodes: Container[EntityId]) -> bool:
    """Return whether a fact only says that a session is one, or who took part in it."""
    claim = fact.claim
    return claim.object in episodes or (claim.subject in episodes and claim.predicate != "summary")


def of_state(state: WorldState, viewer: Viewer, *, about: EntityId | None) -> list[Fact]:
    """Return facts of an earlier state that the viewer knew, in the order of `Review.current`."""
    resolved = None if about is None else state.resolve(about)
    facts = [
        fact
        for fact in state.facts.values()
        if resolved in (None, fact.claim.subject, fact.claim.object) and may_know(viewer, fact, state.visibility_of)
    ]
    return sorted(facts, key=lambda fact: (fact.claim.subject, fact.claim.predicate, fact.id))
