"""A campaign's world in memory: a list of events and its replay. Answers as `WorldHistory` and as the DM's `Review`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from glyphoxa.dm.entities import NameResolver
from glyphoxa.dm.ports import CitedUtterance, Session
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.heard import SpokenBy
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import DM, EndedFact, Fact, Status, Viewer
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import (
    Cause,
    Event,
    RolledBack,
    Undone,
    UtteranceCorrected,
    UtteranceRetracted,
    WorldEvent,
    apply,
    dropped,
    replay,
)
from glyphoxa.world.state import WorldState
from tests.support.builders import a_campaign


@dataclass
class WorldTwin:
    """One campaign, whatever its id. `said` is what facts point to."""

    log: list[WorldEvent] = field(default_factory=list)
    held_sessions: list[Session] = field(default_factory=list)
    talk: list[CitedUtterance] = field(default_factory=list)
    forks: dict[CampaignId, list[WorldEvent]] = field(default_factory=dict)

    @property
    def state(self) -> WorldState:
        return replay(self.log)

    # As `WorldHistory`

    async def commit(self, campaign: CampaignId, events: Sequence[Event], cause: Cause) -> list[WorldEvent]:
        state = self.state
        made: list[WorldEvent] = []
        for event in events:
            if (problem := event.failed_precondition(state)) is not None:
                raise InvalidInput(problem)
            made.append(WorldEvent(len(self.log) + len(made) + 1, cause, event))
            apply(state, made[-1])
        self.log += made
        return made

    async def undo(self, campaign: CampaignId, seqs: Sequence[int], cause: Cause) -> list[WorldEvent]:
        was = list(self.log)
        made: list[WorldEvent] = []
        for seq in seqs:
            if not 0 < seq <= len(self.log) or seq in dropped(self.log):
                self.log = was
                raise NotFound(f"there is no event {seq}, or it is already undone")
            made.append(self._append(Undone(seq), cause))
        return made

    async def rollback(self, campaign: CampaignId, session: SessionId, ordinal: int, cause: Cause) -> WorldEvent | None:
        ids = [each.id for each in self.held_sessions]
        later = ids[ids.index(session) + 1 :]
        going = [
            event.seq
            for event in self.log
            if event.cause.by == "talk"
            and event.seq not in dropped(self.log)
            and (
                event.cause.session_id in later
                or (
                    event.cause.session_id == session and (event.cause.ordinal is None or event.cause.ordinal > ordinal)
                )
            )
        ]
        return self._append(RolledBack(session, ordinal, tuple(going)), cause) if going else None

    async def retract(self, campaign: CampaignId, utterance: UtteranceId, cause: Cause) -> WorldEvent:
        said = self._spoken(utterance)
        self._mark(utterance, is_retracted=True)
        return self._append(
            UtteranceRetracted(utterance, said.session_id, said.ordinal, self._learned_from(said)), cause
        )

    async def correct(
        self, campaign: CampaignId, utterance: UtteranceId, text: str, cause: Cause, *, by: SpokenBy | None = None
    ) -> WorldEvent:
        said = self._spoken(utterance)
        changes = {"text": text} | ({} if by is None else {"speaker_name": by.name})
        self._mark(utterance, **changes)
        was_by = None if by is None else SpokenBy(SpeakerId(said.speaker_name), said.speaker_name)
        left = self._learned_from(said)
        event = UtteranceCorrected(utterance, said.session_id, said.ordinal, said.text, text, left, was_by, by)
        return self._append(event, cause)

    def _spoken(self, utterance: UtteranceId) -> CitedUtterance:
        said = next((each for each in self.talk if each.utterance_id == utterance), None)
        if said is None or said.is_retracted:
            raise NotFound(f"no utterance {utterance!r}")
        return said

    def _mark(self, utterance: UtteranceId, **changes: Any) -> None:
        self.talk = [replace(each, **changes) if each.utterance_id == utterance else each for each in self.talk]

    def _learned_from(self, said: CitedUtterance) -> tuple[int, ...]:
        without = dropped(self.log)
        at = said.session_id, said.ordinal
        return tuple(
            event.seq
            for event in self.log
            if event.cause.by == "talk"
            and event.seq not in without
            and (event.cause.session_id, event.cause.ordinal) == at
        )

    async def events(
        self, campaign: CampaignId, *, after: int = 0, limit: int = 1_000, latest_first: bool = False
    ) -> list[WorldEvent]:
        events = [event for event in self.log if event.seq > after]
        return (events[::-1] if latest_first else events)[:limit]

    async def as_of(
        self,
        campaign: CampaignId,
        *,
        at_ms: int | None = None,
        session: SessionId | None = None,
        seq: int | None = None,
    ) -> WorldState:
        until = self.log if seq is None else self.log[:seq]
        if at_ms is not None:
            until = [event for event in until if event.cause.at_ms <= at_ms]
        if session is not None:
            last = max((e.seq for e in until if e.cause.session_id == session), default=0)
            until = self.log[:last]
        return replay(until)

    async def fork(self, campaign: CampaignId, into: CampaignId, *, name: str) -> None:
        self.forks[into] = list(self.log)

    # As `Review`

    async def of_status(
        self, campaign: CampaignId, status: Status, *, session: SessionId | None = None, limit: int
    ) -> list[Fact]:
        found = [f for f in self.state.facts.values() if f.status == status]
        return _least_certain([f for f in found if session in (None, f.provenance.session_id)])[:limit]

    async def waiting(self, campaign: CampaignId) -> Mapping[Status, int]:
        counts: dict[Status, int] = {}
        for fact in self.state.facts.values():
            counts[fact.status] = counts.get(fact.status, 0) + 1
        return counts

    async def current(
        self, campaign: CampaignId, viewer: Viewer, *, about: EntityId | None = None, limit: int
    ) -> list[Fact]:
        state = self.state
        facts = [
            fact
            for fact in state.facts.values()
            if (viewer is DM or fact.status == "accepted")
            and fact.visibility.is_visible_to(viewer)
            and all(state.entities[end].visibility.is_visible_to(viewer) for end in _ends(fact))
            and (about is None or about in _ends(fact))
        ]
        return sorted(facts, key=lambda fact: (fact.claim.subject, fact.claim.predicate, fact.id))[:limit]

    async def facts(self, campaign: CampaignId, ids: Collection[FactId]) -> list[Fact]:
        held = self.state.facts
        return [held[fact] for fact in ids if fact in held]

    async def resting_on(self, campaign: CampaignId, fact: FactId) -> list[Fact]:
        return self.state.resting_on(fact)

    async def beginning_with(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[Fact]:
        found = [fact for fact in self.state.facts.values() if fact.id.startswith(prefix)]
        return sorted(found, key=lambda fact: fact.id)[:limit]

    async def like(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[FactId]:
        alike = {fact: sum(a == b for a, b in zip(fact, prefix, strict=False)) for fact in self.state.facts}
        return sorted(alike, key=lambda fact: (-alike[fact], fact))[:limit]

    async def ended(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[EndedFact]:
        ended = [each for each in self.state.ended.values() if each.fact.id.startswith(prefix)]
        return sorted(ended, key=lambda each: (-each.ended_seq, each.fact.id))[:limit]

    async def once_held(self, campaign: CampaignId, ids: Collection[FactId]) -> list[EndedFact]:
        last = {each.fact.id: each for each in sorted(self.state.ended.values(), key=lambda each: each.ended_seq)}
        return [last[fact] for fact in ids if fact in last]

    async def ended_by(self, campaign: CampaignId, events: Collection[int]) -> list[EndedFact]:
        ended = [each for each in self.state.ended.values() if each.ended_seq in events]
        return sorted(ended, key=lambda each: (each.ended_seq, each.fact.id))

    async def events_about(self, campaign: CampaignId, fact: Fact) -> list[WorldEvent]:
        return list(self.log)

    async def said(self, campaign: CampaignId, utterance: UtteranceId) -> CitedUtterance | None:
        return next((said for said in self.talk if said.utterance_id == utterance), None)

    async def said_ending_with(self, campaign: CampaignId, ending: str, *, limit: int) -> list[CitedUtterance]:
        return [said for said in self.talk[::-1] if said.utterance_id.endswith(ending)][:limit]

    async def talk_after(self, campaign: CampaignId, session: SessionId, ordinal: int) -> int:
        ids = [each.id for each in self.held_sessions]
        later = ids[ids.index(session) + 1 :]
        return sum(
            not said.is_retracted
            and (said.session_id in later or (said.session_id == session and said.ordinal > ordinal))
            for said in self.talk
        )

    async def sessions(self, campaign: CampaignId) -> list[Session]:
        return list(self.held_sessions)

    async def set_title(self, campaign: CampaignId, session: SessionId, title: str) -> None:
        self.held_sessions = [replace(each, title=title) if each.id == session else each for each in self.held_sessions]

    # For tests

    def resolver(self, campaign: Campaign | None = None) -> NameResolver:
        """Return a resolver for the present world."""
        held = [Entity(each.id, each.type, each.name, each.aliases) for each in self.state.entities.values()]
        scopes = {each.id: each.visibility for each in self.state.entities.values()}
        return replace(NameResolver.of(campaign or a_campaign(), held), scopes=scopes)

    def learn(self, stated: FactStated, cause: Cause) -> FactId:
        """Something is said at the table."""
        self._append(stated, cause)
        return stated.claim.fact_id

    def _append(self, event: Event, cause: Cause) -> WorldEvent:
        self.log.append(WorldEvent(len(self.log) + 1, cause, event))
        return self.log[-1]


def a_world() -> WorldTwin:
    """With the entities of `a_campaign`, and nothing known of them."""
    world = WorldTwin()
    for entity in a_campaign().entities:
        added = EntityAdded(entity.id, entity.type, entity.name, entity.aliases, origin="campaign_file")
        world._append(added, Cause("campaign_file", 0))
    return world


def _least_certain(facts: list[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda fact: (fact.provenance.confidence, fact.seq, fact.id))


def _ends(fact: Fact) -> list[EntityId]:
    return [end for end in (fact.claim.subject, fact.claim.object) if end is not None]
