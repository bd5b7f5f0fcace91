"""The rules by which events change the world; what its facts are worth then is for `standing`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, TypeAlias, assert_never

from glyphoxa.domain.ids import EntityId, FactId, SpeakerId
from glyphoxa.domain.knowledge import (
    Claim,
    EndedAs,
    Fact,
    Knower,
    Visibility,
)
from glyphoxa.world.events import (
    AliasAdded,
    AliasRemoved,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactRevealed,
    FactScoped,
    FactStated,
    FactTold,
    RolledBack,
    SlotDeclared,
    Undone,
    UtteranceCorrected,
    UtteranceStruck,
    WorldEvent,
)
from glyphoxa.world.state import WorldEntity, WorldState
from glyphoxa.world.status import Standing, since, until

_FactChange: TypeAlias = Callable[[Fact], Fact]
_OPEN: Final = ("public", "witnessed", "told")
"""What the DM does not guard."""


def apply(state: WorldState, event: WorldEvent) -> None:
    """Change the state by one event, wholly or, when it raises, not at all.

    Raises:
        Missing: The state is partial and lacks something.
        ValueError: The event speaks of other events: that is for `replay`.
    """
    mark = state.mark()
    try:
        _Change(state, event).run()
    except BaseException:
        state.back_to(mark)
        raise


class _Change:
    """One event on its way through a state."""

    def __init__(self, state: WorldState, event: WorldEvent) -> None:
        self._state = state
        self._event = event
        self._standing = Standing(state, event.seq)

    def run(self) -> None:  # noqa: C901 - one line a kind of happening
        state, happening = self._state, self._event.happening
        match happening:
            case EntityAdded():
                if state.entity(happening.entity) is None:
                    state.put_entity(_entity(happening))
            case EntityChanged() | AliasAdded() | AliasRemoved() | EntityScoped():
                if (entity := state.entity(happening.entity)) is not None:
                    state.put_entity(_changed(entity, happening))
            case EntityRemoved():
                self._remove(happening.entity)
            case EntitiesMerged():
                self._merge(happening)
            case FactStated():
                self._state_fact(happening)
            case FactReplaced():
                self._replace(happening)
            case FactScoped(fact, visibility):
                self._update(fact, lambda held: held.with_(visibility=visibility))
                self._guard_what_rests_on(fact, visibility)
            case FactRevealed():
                self._update(happening.fact, lambda held: held.with_(visibility=self._revealed(held, happening)))
            case FactTold():
                self._update(happening.fact, lambda held: held.with_(visibility=_told(held.visibility, happening)))
            case FactConfirmed(fact):
                self._confirm(fact)
            case FactRejected(fact, why):
                self._end_and_settle(fact, "rejected" if why == "reject" else "retconned")
            case FactClosed():
                self._close(happening)
            case SlotDeclared(predicate, rule):
                state.own_rules()
                state.put_rule(predicate, rule)
            case Undone() | RolledBack() | UtteranceStruck() | UtteranceCorrected():
                raise ValueError(f"event {self._event.seq} speaks of other events: replay what remains")
            case _:
                assert_never(happening)

    # Facts

    def _state_fact(self, stated: FactStated) -> None:
        claim = self._resolved(stated.claim)
        if claim is None:
            return
        stated = self._guarded(stated)
        held = self._state.of_claim(claim)
        if held is not None:
            self._state.put_fact(_stated_again(held, stated))
            self._standing.settle([held.id])
        else:
            self._add(
                claim,
                provenance=stated.provenance,
                visibility=stated.visibility,
                validity=stated.validity,
                attributes=stated.attributes,
                supports=tuple(dict.fromkeys(stated.supports)),
                doubted=self._state.was_refused(claim.fact_id),
            )

    def _add(self, claim: Claim, **of_fact: object) -> FactId:
        fact = Fact(self._free_id(claim), claim, self._event.seq, "pending").with_(**of_fact)
        self._state.put_fact(fact)
        self._standing.settle([fact.id, *self._standing.dependents(fact.id)])
        return fact.id

    def _free_id(self, claim: Claim) -> FactId:
        """The claim's own, unless a fact has it whose claim became another by a merge."""
        fact_id, n = claim.fact_id, 1
        while self._state.fact(fact_id) is not None:
            n += 1
            fact_id = FactId(f"{claim.fact_id}-{n}")
        return fact_id

    def _replace(self, replaced: FactReplaced) -> None:
        old, claim = self._state.fact(replaced.fact), self._resolved(replaced.claim)
        if old is None or claim is None:
            return
        if claim == old.claim:
            self._confirm(old.id)
            return
        held = self._state.of_claim(claim)
        new_id = held.id if held is not None else self._free_id(claim)
        self._standing.end(old, "edited" if replaced.why == "edit" else "retconned", by=new_id)
        if held is not None:
            # It may be better guarded than the one that held it: what the DM corrects is told to nobody new.
            self._state.put_fact(held.with_(visibility=held.visibility.within(old.visibility)))
        else:
            fact = Fact(new_id, claim, self._event.seq, "pending", visibility=old.visibility, validity=old.validity)
            self._state.put_fact(fact.with_(provenance=old.provenance, attributes=old.attributes))
        self._confirm(new_id, also=self._standing.dependents(old.id))

    def _confirm(self, fact_id: FactId, *, also: Iterable[FactId] = ()) -> None:
        """The DM stands for it: it rests on nothing that is gone, and what disagrees with it ends."""
        fact = self._state.fact(fact_id)
        if fact is None:
            return
        kept = tuple(s for s in fact.supports if (on := self._state.fact(s)) is not None and on.status == "accepted")
        fact = fact.with_(provenance=replace(fact.provenance, dm_confirmed=True), supports=kept)
        self._state.put_fact(fact)
        concerned = [fact.id, *also]
        for rival in self._standing.rivals(fact):
            if self._standing.rule(fact) in ("functional", "functional_object") and since(rival) > since(fact):
                continue  # both are true, each in its time
            concerned += self._standing.end(rival, "superseded", by=fact.id, validity=until(rival, fact))
        for disputing in self._state.disputing(fact.id):
            concerned += self._standing.end(disputing, "rejected", by=fact.id)
        self._standing.settle(concerned)

    def _close(self, closed: FactClosed) -> None:
        fact = self._state.fact(closed.fact)
        if fact is None:
            return
        at_ms = self._event.cause.at_ms if closed.at_ms is None else closed.at_ms
        validity = replace(fact.validity, to_ms=at_ms, story_to=closed.story)
        self._standing.settle(self._standing.end(fact, "closed", validity=validity))

    def _end_and_settle(self, fact_id: FactId, ended_as: EndedAs) -> None:
        fact = self._state.fact(fact_id)
        if fact is not None:
            self._standing.settle(self._standing.end(fact, ended_as))

    def _update(self, fact_id: FactId, change: _FactChange) -> None:
        fact = self._state.fact(fact_id)
        if fact is not None:
            self._state.put_fact(change(fact))

    def _guarded(self, stated: FactStated) -> FactStated:
        """A conclusion tells of what it was drawn from: only who may know that may know it, unless the DM says so."""
        visibility = stated.visibility
        if stated.provenance.origin != "dm":
            for support in stated.supports:
                if (on := self._state.fact(support)) is not None:
                    visibility = visibility.within(on.visibility)
        return replace(stated, visibility=visibility)

    def _guard_what_rests_on(self, fact_id: FactId, visibility: Visibility) -> None:
        """What the DM guards is not to be told by what was concluded from it."""
        waiting = [] if visibility.scope == "public" else [fact_id]
        while waiting:
            for resting in self._state.resting_on(waiting.pop()):
                narrower = resting.visibility.within(visibility)
                if narrower != resting.visibility:
                    self._state.put_fact(resting.with_(visibility=narrower))
                    waiting.append(resting.id)

    def _revealed(self, fact: Fact, revealed: FactRevealed) -> Visibility:
        seen = fact.visibility
        if not revealed.to:
            return replace(seen, scope="public")
        if seen.scope == "public":
            return seen
        at_ms = self._event.cause.at_ms
        told = (Knower(npc, "told", SpeakerId("dm"), at_ms) for npc in revealed.to)
        # What was hidden is revealed to those who are named, not to those who happened to hear of it.
        return Visibility.of("secret", told) if seen.scope == "hidden" else seen.known_to(*told)

    # Entities

    def _remove(self, entity_id: EntityId) -> None:
        entity = self._state.entity(entity_id)
        if entity is None:
            return
        concerned: list[FactId] = []
        for fact in self._state.touching(entity.id):
            concerned += self._standing.end(fact, "entity_removed")
        self._state.drop_entity(entity.id)
        self._standing.settle(concerned)

    def _merge(self, merged: EntitiesMerged) -> None:
        state = self._state
        kept, gone = state.entity(merged.kept), state.entity(merged.gone)
        if kept is None or gone is None or kept.id == gone.id:
            return
        # A name that not everybody may know does not become one that everybody hears.
        if gone.visibility.scope == "public" or gone.visibility == kept.visibility:
            names = dict.fromkeys((*kept.aliases, gone.name, *gone.aliases))
            state.put_entity(replace(kept, aliases=tuple(n for n in names if n.casefold() != kept.name.casefold())))
        touching = state.touching(gone.id)
        state.put_merge(gone.id, kept.id)
        state.drop_entity(gone.id)
        concerned: list[FactId] = []
        for fact in touching:
            concerned += self._move(fact, guarded=gone.visibility)
        # Which of two places a merged entity is at is for the DM to say.
        self._standing.settle(concerned, may_supersede=False)

    def _move(self, fact: Fact, *, guarded: Visibility) -> list[FactId]:
        """A fact of an entity that is gone becomes one of the entity that is kept, and no better known than it was."""
        claim = self._claim_of_kept(fact.claim)
        if claim is None:
            return self._standing.end(fact, "merged")
        visibility = fact.visibility.within(guarded)
        held = self._state.of_claim(claim)
        if held is None:
            moved = fact.with_(claim=claim, visibility=visibility, status="pending", disputes=())
            self._state.put_fact(moved)
            return [fact.id, *self._standing.dependents(fact.id)]
        again = FactStated(claim, fact.provenance, visibility, fact.validity, fact.attributes, fact.supports)
        self._state.put_fact(_stated_again(held, again).with_(mentions=held.mentions + fact.mentions))
        for resting in self._state.resting_on(fact.id):
            supports = dict.fromkeys(held.id if support == fact.id else support for support in resting.supports)
            self._state.put_fact(resting.with_(supports=tuple(supports)))
        return [held.id, *self._standing.dependents(held.id), *self._standing.end(fact, "merged", by=held.id)]

    def _claim_of_kept(self, claim: Claim) -> Claim | None:
        subject = self._state.resolve(claim.subject)
        if claim.object is None:
            return replace(claim, subject=subject)
        entity = self._state.resolve(claim.object)
        return None if entity == subject else Claim.relation(subject, claim.predicate, entity)

    def _resolved(self, claim: Claim) -> Claim | None:
        """The claim in the words of the entities that are there; None when one is not."""
        ends = [claim.subject] if claim.object is None else [claim.subject, claim.object]
        if any(self._state.entity(end) is None for end in ends):
            return None
        return self._claim_of_kept(claim)


def _entity(added: EntityAdded) -> WorldEntity:
    return WorldEntity(added.entity, added.type, added.name, added.aliases, added.visibility, added.origin)


def _changed(entity: WorldEntity, happening: EntityChanged | AliasAdded | AliasRemoved | EntityScoped) -> WorldEntity:
    match happening:
        case EntityChanged(_, kind, name, aliases):
            return replace(
                entity,
                type=entity.type if kind is None else kind,
                name=entity.name if name is None else name,
                aliases=entity.aliases if aliases is None else aliases,
            )
        case AliasAdded(_, alias):
            return replace(entity, aliases=tuple(dict.fromkeys((*entity.aliases, alias))))
        case AliasRemoved(_, alias):
            return replace(entity, aliases=tuple(known for known in entity.aliases if known != alias))
        case EntityScoped(_, visibility):
            return replace(entity, visibility=visibility)
        case _:
            assert_never(happening)


def _stated_again(held: Fact, stated: FactStated) -> Fact:
    """What is heard once more is surer and better known; what the DM guards (secret, hidden) stays guarded, though
    somebody may have heard it.
    """
    old, new = held.provenance, stated.provenance
    visibility = _heard_again(held, stated)
    # What only some were told of it is told to nobody who learns of it otherwise.
    known = [said.attributes for said in (held, stated) if visibility.is_within(said.visibility)]
    return held.with_(
        provenance=new if (new.dm_confirmed, new.confidence) > (old.dm_confirmed, old.confidence) else old,
        visibility=visibility,
        attributes={name: value for attributes in known for name, value in attributes.items()},
        supports=_supports(held, stated),
        mentions=held.mentions + 1,
    )


def _heard_again(held: Fact, stated: FactStated) -> Visibility:
    seen, told = held.visibility, stated.visibility
    if seen.scope in _OPEN:
        if told.scope == "public":
            return replace(seen, scope="public")
        if told.scope not in _OPEN and held.status != "accepted":
            return told  # nobody was told it before it became true
    return seen.known_to(*told.knowers)


def _supports(held: Fact, stated: FactStated) -> tuple[FactId, ...]:
    """Who says it of his own accord needs no support."""
    if not held.supports or not stated.supports:
        return ()
    return stated.supports if held.status == "stale" else held.supports


def _told(visibility: Visibility, told: FactTold) -> Visibility:
    return visibility if visibility.scope == "public" else visibility.known_to(*told.knowers())
