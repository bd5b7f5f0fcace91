"""Properties of the world over many random histories."""

from __future__ import annotations

from functools import cache

import pytest

from glyphoxa.domain.knowledge import Fact
from glyphoxa.world.event_kinds import (
    EntitiesMerged,
    EntityRemoved,
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactStated,
)
from glyphoxa.world.event_log import Undone, WorldEvent, apply, difference, remaining, replay
from glyphoxa.world.state import OPPOSITES, Changes, WorldState, rule_of
from tests.support import world_histories
from tests.support.proof import n_examples

HISTORIES = n_examples(10_000, one_of=20)
BATCHES = 8
"""The histories in as many tests, so that a failure is found where it is."""

batches = pytest.mark.parametrize("batch", range(BATCHES))


@cache
def a_history(seed: int) -> list[WorldEvent]:
    return world_histories.a_history(seed)


def seeds(batch: int) -> range:
    return range(batch, HISTORIES, BATCHES)


def tables(state: WorldState) -> tuple[object, ...]:
    return state.entities, state.merged, state.facts, state.ended, state.rules


@batches
def test_undoing_an_event_gives_what_the_others_give_and_undoing_that_brings_it_back(batch: int) -> None:
    for seed in seeds(batch):
        events = a_history(seed)
        left = remaining(events)
        target = left[seed % len(left)]
        undone = [*events, WorldEvent(len(events) + 1, target.cause, Undone(target.seq))]
        assert tables(replay(undone)) == tables(replay([e for e in left if e is not target])), seed
        redone = [*undone, WorldEvent(len(undone) + 1, target.cause, Undone(len(undone)))]
        assert tables(replay(redone)) == tables(replay(events)), seed


@batches
def test_what_holds_never_contradicts_itself(batch: int) -> None:
    for seed in seeds(batch):
        state = replay(a_history(seed))
        for fact in state.facts.values():
            assert_sound(fact, state, seed)


@batches
def test_nothing_that_was_accepted_ends_without_a_reason_that_the_rules_name(batch: int) -> None:
    """Only a functional slot supersedes by itself; everything else that ends was ended by somebody."""
    for seed in seeds(batch):
        state = WorldState()
        for recorded in remaining(a_history(seed)):
            before, before_merge = dict(state.facts), bool(state.merged)
            state.begin()
            apply(state, recorded)
            for gone in before.keys() - state.facts.keys():
                assert (gone, recorded.seq) in state.ended, (seed, recorded)
                ended = state.ended[gone, recorded.seq]
                is_ordered = isinstance(
                    recorded.event,
                    FactConfirmed | FactRejected | FactReplaced | FactClosed | EntityRemoved | EntitiesMerged,
                )
                if ended.ended_as == "merged":
                    merged = recorded.event
                    assert isinstance(merged, EntitiesMerged)
                    is_between = {ended.fact.claim.subject, ended.fact.claim.object} == {merged.kept, merged.gone}
                    assert ended.superseded_by in state.facts or is_between or before_merge, (seed, recorded)
                if not is_ordered:
                    assert ended.ended_as == "superseded", (seed, recorded)
                    rule = rule_of(ended.fact.claim, state.rules)
                    assert rule in ("functional", "functional_object"), (seed, recorded)
            if isinstance(recorded.event, FactStated):
                stated = [f for f in state.facts.values() if f.seq == recorded.seq]
                for fact in stated:
                    assert fact.status != "accepted" or fact.provenance.is_enough, (seed, recorded)


@batches
def test_the_difference_of_two_states_leads_from_one_to_the_other(batch: int) -> None:
    for seed in seeds(batch):
        events = a_history(seed)
        before, after = replay(events[: len(events) // 2]), replay(events)
        changed = difference(before, after)
        assert difference(after, after) == Changes()
        facts = {f.id: f for f in before.facts.values() if f.id not in changed.facts_gone}
        facts.update({f.id: f for f in changed.facts_put})
        assert facts == after.facts, seed
        ended = {k: v for k, v in before.ended.items() if k not in changed.ended_gone}
        ended.update({(e.fact.id, e.ended_seq): e for e in changed.ended_put})
        assert ended == after.ended, seed


def assert_sound(fact: Fact, state: WorldState, seed: int) -> None:
    claim = fact.claim
    assert claim.subject in state.entities, seed
    assert claim.object is None or claim.object in state.entities, seed
    assert claim.object != claim.subject, seed
    supports = [state.facts.get(support) for support in fact.supports]
    if any(on is None or on.status == "stale" for on in supports):
        assert fact.status == "stale", seed
    if fact.status != "accepted":
        return
    assert all(on is not None and on.status == "accepted" for on in supports), seed
    assert fact.provenance.is_enough, seed
    rule = rule_of(claim, state.rules)
    for other in state.facts.values():
        if other.id == fact.id:
            continue
        assert other.claim != claim, seed
        if other.status != "accepted":
            continue
        same_slot = (other.claim.subject, other.claim.predicate) == (claim.subject, claim.predicate)
        if rule in ("one", "functional") and not state.rules:
            assert not same_slot, seed
        if rule == "functional_object":
            assert (other.claim.object, other.claim.predicate) != (claim.object, claim.predicate), seed
        if OPPOSITES.get(claim.predicate) == other.claim.predicate:
            assert {other.claim.subject, other.claim.object} != {claim.subject, claim.object}, seed
