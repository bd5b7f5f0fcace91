"""The kinds of events about entities, facts and slot rules: when each can be applied, what it does, and its words.

See `glyphoxa.world.event_log` for what a kind of event has, and for the events that undo others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from glyphoxa.domain.campaign import SlotRule
from glyphoxa.domain.ids import EntityId, FactId, NpcId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import (
    ALWAYS,
    CERTAIN,
    PUBLIC,
    Claim,
    Fact,
    Knower,
    Origin,
    Provenance,
    Validity,
    Visibility,
)
from glyphoxa.language.facts import Names, claim_in_words, moment, people_in_words, visibility_in_words
from glyphoxa.language.relations import in_words
from glyphoxa.world.state import (
    Change,
    WorldEntity,
    WorldState,
    bad_claim,
    no_entity,
    no_fact,
    since,
    stated_again,
    until,
)


@dataclass(frozen=True, slots=True)
class EntityAdded:
    """Adds an entity; does nothing if it exists."""

    entity: EntityId
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    visibility: Visibility = PUBLIC
    origin: Origin = "dm"

    def failed_precondition(self, state: WorldState) -> str | None:
        return None

    def effect(self, change: Change) -> None:
        if change.state.entity(self.entity) is None:
            change.state.put_entity(
                WorldEntity(self.entity, self.type, self.name, self.aliases, self.visibility, self.origin)
            )

    def in_words(self, names: Names) -> str:
        return f"added {self.name} ({self.type}, id {self.entity})"


class _OneEntity:
    """Base of events that change or remove one existing entity."""

    __slots__ = ()
    entity: EntityId

    def failed_precondition(self, state: WorldState) -> str | None:
        return no_entity(state, self.entity)

    def effect(self, change: Change) -> None:
        if (entity := change.state.entity(self.entity)) is not None:
            change.state.put_entity(self._changed(entity))

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class EntityChanged(_OneEntity):
    """Changes fields of an entity; None leaves a field unchanged."""

    entity: EntityId
    type: str | None = None
    name: str | None = None
    aliases: tuple[str, ...] | None = None

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        return replace(
            entity,
            type=entity.type if self.type is None else self.type,
            name=entity.name if self.name is None else self.name,
            aliases=entity.aliases if self.aliases is None else self.aliases,
        )

    def in_words(self, names: Names) -> str:
        parts = [f"name {self.name}" * (self.name is not None), f"type {self.type}" * (self.type is not None)]
        parts.append("" if self.aliases is None else f"aliases {', '.join(self.aliases) or 'none'}")
        return f"changed {names.called(self.entity)}: {', '.join(part for part in parts if part)}"


@dataclass(frozen=True, slots=True)
class AliasAdded(_OneEntity):
    entity: EntityId
    alias: str

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        return replace(entity, aliases=tuple(dict.fromkeys((*entity.aliases, self.alias))))

    def in_words(self, names: Names) -> str:
        return f"{names.called(self.entity)} is also called {self.alias}"


@dataclass(frozen=True, slots=True)
class AliasRemoved(_OneEntity):
    entity: EntityId
    alias: str

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        return replace(entity, aliases=tuple(known for known in entity.aliases if known != self.alias))

    def in_words(self, names: Names) -> str:
        return f"{names.called(self.entity)} is not called {self.alias}"


@dataclass(frozen=True, slots=True)
class EntityScoped(_OneEntity):
    """Sets who may know that the entity exists."""

    entity: EntityId
    visibility: Visibility

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        return replace(entity, visibility=self.visibility)

    def in_words(self, names: Names) -> str:
        return f"{names.called(self.entity)} is {visibility_in_words(self.visibility, names)}"


@dataclass(frozen=True, slots=True)
class EntityRemoved(_OneEntity):
    """Removes an entity; its facts end with it."""

    entity: EntityId

    def effect(self, change: Change) -> None:
        entity = change.state.entity(self.entity)
        if entity is None:
            return
        concerned: list[FactId] = []
        for fact in change.state.touching(entity.id):
            concerned += change.status.end(fact, "entity_removed")
        change.state.drop_entity(entity.id)
        change.status.settle(concerned)

    def in_words(self, names: Names) -> str:
        return f"removed {names.called(self.entity)}"


@dataclass(frozen=True, slots=True)
class EntitiesMerged:
    """`gone` turned out to be the same entity as `kept`. Undoing the event splits them again."""

    kept: EntityId
    gone: EntityId

    def failed_precondition(self, state: WorldState) -> str | None:
        if (problem := no_entity(state, self.kept) or no_entity(state, self.gone)) is not None:
            return problem
        is_one = state.resolve(self.gone) == state.resolve(self.kept)
        return f"{self.gone!r} and {self.kept!r} are already merged" if is_one else None

    def effect(self, change: Change) -> None:
        state = change.state
        kept, gone = state.entity(self.kept), state.entity(self.gone)
        if kept is None or gone is None or kept.id == gone.id:
            return
        # A guarded name must not become an alias that everybody hears.
        if gone.visibility.scope == "public" or gone.visibility == kept.visibility:
            names = dict.fromkeys((*kept.aliases, gone.name, *gone.aliases))
            state.put_entity(replace(kept, aliases=tuple(n for n in names if n.casefold() != kept.name.casefold())))
        touching = state.touching(gone.id)
        state.put_merge(gone.id, kept.id)
        state.drop_entity(gone.id)
        concerned: list[FactId] = []
        for fact in touching:
            concerned += _moved(change, fact, guarded=gone.visibility)
        # If the merged entities are in two places, the DM decides.
        change.status.settle(concerned, may_supersede=False)

    def in_words(self, names: Names) -> str:
        return f"merged {names.called(self.gone)} into {names.called(self.kept)}"


def _moved(change: Change, fact: Fact, *, guarded: Visibility) -> list[FactId]:
    """Move a fact from the merged entity to the kept one, no more visible than before."""
    state, status = change.state, change.status
    claim = change.claim_of_kept(fact.claim)
    if claim is None:
        return status.end(fact, "merged")
    known = fact.with_(visibility=fact.visibility.within(guarded))
    held = state.of_claim(claim)
    if held is None:
        state.put_fact(known.with_(claim=claim, status="pending", disputes=()))
        return [fact.id, *status.dependents(fact.id)]
    state.put_fact(stated_again(held, known).with_(mentions=held.mentions + fact.mentions))
    for resting in state.resting_on(fact.id):
        supports = dict.fromkeys(held.id if support == fact.id else support for support in resting.supports)
        state.put_fact(resting.with_(supports=tuple(supports)))
    return [held.id, *status.dependents(held.id), *status.end(fact, "merged", by=held.id)]


# A campaign's own rules for its predicates.


@dataclass(frozen=True, slots=True)
class SlotDeclared:
    """Declares this campaign's own rule for a predicate."""

    predicate: str
    rule: SlotRule

    def failed_precondition(self, state: WorldState) -> str | None:
        return None

    def effect(self, change: Change) -> None:
        change.state.put_rule(self.predicate, self.rule)

    def in_words(self, names: Names) -> str:
        return f"declared: {in_words(self.predicate)!r} is {self.rule.replace('_', ' ')}"


@dataclass(frozen=True, slots=True)
class FactStated:
    """A claim was said, inferred, or read from a campaign file. Repeating a current claim adds a mention."""

    claim: Claim
    provenance: Provenance = CERTAIN
    visibility: Visibility = PUBLIC
    validity: Validity = ALWAYS
    attributes: Mapping[str, object] = field(default_factory=dict)
    supports: tuple[FactId, ...] = ()

    def failed_precondition(self, state: WorldState) -> str | None:
        return bad_claim(state, self.claim)

    def effect(self, change: Change) -> None:
        claim = change.resolved(self.claim)
        if claim is None:
            return
        stated = Fact(
            claim.fact_id,
            claim,
            change.seq,
            "pending",
            self.provenance,
            self._guarded(change.state),
            self.validity,
            self.attributes,
            tuple(dict.fromkeys(self.supports)),
        )
        held = change.state.of_claim(claim)
        if held is not None:
            change.state.put_fact(stated_again(held, stated))
            change.status.settle([held.id])
            return
        fact = stated.with_(id=change.free_id(claim), doubted=change.state.was_refused(claim.fact_id))
        change.state.put_fact(fact)
        change.status.settle([fact.id, *change.status.dependents(fact.id)])

    def _guarded(self, state: WorldState) -> Visibility:
        """Limit an inferred fact to those who may know its supports, unless the DM states otherwise."""
        visibility = self.visibility
        if self.provenance.origin != "dm":
            for support in self.supports:
                if (on := state.facts.get(support)) is not None:
                    visibility = visibility.within(on.visibility)
        return visibility

    def in_words(self, names: Names) -> str:
        return f"stated: {claim_in_words(self.claim, names)} ({visibility_in_words(self.visibility, names)})"


class _OneFact:
    """Base of events that change one current fact."""

    __slots__ = ()
    fact: FactId

    def failed_precondition(self, state: WorldState) -> str | None:
        return no_fact(state, self.fact)


@dataclass(frozen=True, slots=True)
class FactConfirmed(_OneFact):
    """The DM accepts a fact; facts that contradict it end."""

    fact: FactId

    def effect(self, change: Change) -> None:
        _confirm(change, self.fact)

    def in_words(self, names: Names) -> str:
        return f"confirmed: {names.fact(self.fact)}"


@dataclass(frozen=True, slots=True)
class FactRejected(_OneFact):
    """It was never true: a wrong extraction, or (`retcon`) the story is changed."""

    fact: FactId
    why: Literal["reject", "retcon"] = "reject"

    def effect(self, change: Change) -> None:
        fact = change.state.facts.get(self.fact)
        if fact is not None:
            change.status.settle(change.status.end(fact, "rejected" if self.why == "reject" else "retconned"))

    def in_words(self, names: Names) -> str:
        return f"{'rejected' if self.why == 'reject' else 'retconned'}: {names.fact(self.fact)}"


@dataclass(frozen=True, slots=True)
class FactClosed(_OneFact):
    """It was true and no longer is.

    Attributes:
        at_ms: Since when; None: since the time of this event's cause.
    """

    fact: FactId
    at_ms: int | None = None
    story: int | None = None

    def effect(self, change: Change) -> None:
        fact = change.state.facts.get(self.fact)
        if fact is None:
            return
        at_ms = change.at_ms if self.at_ms is None else self.at_ms
        validity = replace(fact.validity, to_ms=at_ms, story_to=self.story)
        change.status.settle(change.status.end(fact, "closed", validity=validity))

    def in_words(self, names: Names) -> str:
        since = f" since {moment(self.at_ms)}" if self.at_ms is not None else ""
        return f"no longer so{since}: {names.fact(self.fact)}"


@dataclass(frozen=True, slots=True)
class FactReplaced(_OneFact):
    """The DM replaces a fact by another that was true in its place all along."""

    fact: FactId
    claim: Claim
    why: Literal["edit", "retcon"] = "edit"

    def failed_precondition(self, state: WorldState) -> str | None:
        return no_fact(state, self.fact) or bad_claim(state, self.claim)

    def effect(self, change: Change) -> None:
        state, status = change.state, change.status
        old, claim = state.facts.get(self.fact), change.resolved(self.claim)
        if old is None or claim is None:
            return
        if claim == old.claim:
            _confirm(change, old.id)
            return
        held = state.of_claim(claim)
        new_id = held.id if held is not None else change.free_id(claim)
        status.end(old, "edited" if self.why == "edit" else "retconned", by=new_id)
        if held is not None:
            # The existing fact may be more guarded: a correction reveals nothing to anybody new.
            state.put_fact(held.with_(visibility=held.visibility.within(old.visibility)))
        else:
            fact = Fact(new_id, claim, change.seq, "pending", visibility=old.visibility, validity=old.validity)
            state.put_fact(fact.with_(provenance=old.provenance, attributes=old.attributes))
        _confirm(change, new_id, also=status.dependents(old.id))

    def in_words(self, names: Names) -> str:
        verb = "edited" if self.why == "edit" else "retconned"
        return f"{verb}: {names.fact(self.fact)}, now {claim_in_words(self.claim, names)}"


def _confirm(change: Change, fact_id: FactId, *, also: Iterable[FactId] = ()) -> None:
    """Confirm a fact: it loses supports that are gone, and facts that contradict it end."""
    state, status = change.state, change.status
    fact = state.facts.get(fact_id)
    if fact is None:
        return
    kept = tuple(s for s in fact.supports if (on := state.facts.get(s)) is not None and on.status == "accepted")
    fact = fact.with_(provenance=replace(fact.provenance, dm_confirmed=True), supports=kept)
    state.put_fact(fact)
    concerned = [fact.id, *also]
    for rival in status.rivals(fact):
        if status.rule(fact) in ("functional", "functional_object") and since(rival) > since(fact):
            continue  # both are true, at different times
        concerned += status.end(rival, "superseded", by=fact.id, validity=until(rival, fact))
    for disputing in state.disputing(fact.id):
        concerned += status.end(disputing, "rejected", by=fact.id)
    status.settle(concerned)


# Visibility of a fact: set by the DM, revealed, told.


class _KnowingOneFact(_OneFact):
    """Base of events that change who may know one current fact."""

    __slots__ = ()

    def effect(self, change: Change) -> None:
        if (fact := change.state.facts.get(self.fact)) is not None:
            change.state.put_fact(fact.with_(visibility=self._visibility(fact.visibility, at_ms=change.at_ms)))

    def _visibility(self, seen: Visibility, *, at_ms: int) -> Visibility:
        """The new visibility.

        Args:
            at_ms: When it happens.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FactScoped(_KnowingOneFact):
    """The DM decides who may know it."""

    fact: FactId
    visibility: Visibility

    def effect(self, change: Change) -> None:
        _KnowingOneFact.effect(self, change)  # `super()` would refer to the class before slots were added
        self._guard_what_rests_on_it(change.state)

    def _visibility(self, seen: Visibility, *, at_ms: int) -> Visibility:
        return self.visibility

    def _guard_what_rests_on_it(self, state: WorldState) -> None:
        """Guard facts inferred from it too, so that they do not reveal it."""
        waiting = [] if self.visibility.scope == "public" else [self.fact]
        while waiting:
            for resting in state.resting_on(waiting.pop()):
                narrower = resting.visibility.within(self.visibility)
                if narrower != resting.visibility:
                    state.put_fact(resting.with_(visibility=narrower))
                    waiting.append(resting.id)

    def in_words(self, names: Names) -> str:
        return f"{visibility_in_words(self.visibility, names)}: {names.fact(self.fact)}"


@dataclass(frozen=True, slots=True)
class FactRevealed(_KnowingOneFact):
    """Revealed to these NPCs, or to everybody if none is named."""

    fact: FactId
    to: tuple[NpcId, ...] = ()

    def _visibility(self, seen: Visibility, *, at_ms: int) -> Visibility:
        if not self.to:
            return replace(seen, scope="public")
        if seen.scope == "public":
            return seen
        told = (Knower(npc, "told", SpeakerId("dm"), at_ms) for npc in self.to)
        # A hidden fact is revealed to the named NPCs only, not to those who happened to hear of it.
        return Visibility.of("secret", told) if seen.scope == "hidden" else seen.known_to(*told)

    def in_words(self, names: Names) -> str:
        return f"revealed to {people_in_words(self.to, names) or 'everybody'}: {names.fact(self.fact)}"


@dataclass(frozen=True, slots=True)
class FactTold(_KnowingOneFact):
    """Somebody told it to these NPCs. A hidden fact stays hidden, but who was told is recorded."""

    fact: FactId
    to: tuple[NpcId, ...]
    by: SpeakerId
    at_ms: int | None = None
    utterance: UtteranceId | None = None

    def knowers(self) -> tuple[Knower, ...]:
        return tuple(Knower(npc, "told", self.by, self.at_ms, self.utterance) for npc in self.to)

    def _visibility(self, seen: Visibility, *, at_ms: int) -> Visibility:
        return seen if seen.scope == "public" else seen.known_to(*self.knowers())

    def in_words(self, names: Names) -> str:
        return f"{names.person(self.by)} told {people_in_words(self.to, names)}: {names.fact(self.fact)}"
