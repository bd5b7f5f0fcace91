"""Events of facts: stated, confirmed, rejected, replaced, closed, and who may know them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from glyphoxa.domain.ids import FactId, NpcId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import ALWAYS, CERTAIN, PUBLIC, Claim, Fact, Knower, Provenance, Validity, Visibility
from glyphoxa.language.facts import Names, claim_in_words, moment, people_in_words, visibility_in_words
from glyphoxa.world.fact_status import Change, bad_claim, no_fact, since, stated_again, until
from glyphoxa.world.state import WorldState


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
