"""The memory benchmark's own ground: the worlds it invents, and the figures it tells."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest

from benchmarks.invented import SHARES, Embeddings, InventedCampaign, Size, invented_campaigns
from benchmarks.memory import summary, timed
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import Cause, WorldEvent, apply
from glyphoxa.world.fact_events import FactStated
from glyphoxa.world.state import WorldState

SIZE = Size(turns=12_000, entities=300, relationships=1_000)


@pytest.fixture(scope="module")
def world() -> InventedCampaign:
    return InventedCampaign(CampaignId("c"), SIZE, seed=7)


def test_the_same_seed_invents_the_same_world(world: InventedCampaign) -> None:
    again = InventedCampaign(CampaignId("c"), SIZE, seed=7)
    assert list(again.events()) == list(world.events())
    assert next(again.talk()) == next(world.talk())
    assert next(InventedCampaign(CampaignId("c"), SIZE, seed=8).talk()) != next(world.talk())


def test_one_npc_hears_a_hundredth_of_the_talk_and_others_up_to_six_tenths(world: InventedCampaign) -> None:
    turns = [turn.utterance for session in world.talk() for turn in session]
    assert len(turns) == len({turn.id for turn in turns}) == SIZE.turns
    heard = Counter(npc for turn in turns for npc in turn.witnesses)
    for npc, share in zip(world.npcs, SHARES, strict=True):
        assert heard[npc.id] / SIZE.turns == pytest.approx(share, abs=0.06)
    assert all(turn.npc_id is None or turn.npc_id in turn.witnesses for turn in turns)


def test_a_turn_names_the_entities_it_is_said_to_speak_of(world: InventedCampaign) -> None:
    names = {entity.id: entity.name for entity in world.entities}
    for turn in next(world.talk()):
        for entity in turn.entity_ids:
            assert names[entity].casefold() in turn.utterance.text.casefold()


def test_no_relation_ends_or_contradicts_another(world: InventedCampaign) -> None:
    """Else there would be fewer than were asked for, and conflicts that wait for a DM."""
    state = WorldState()
    for seq, event in enumerate(world.events(), start=1):
        apply(state, WorldEvent(seq, Cause("import", at_ms=0), event))
    relations = [fact for fact in state.facts.values() if fact.claim.object is not None]
    assert len(relations) == SIZE.relationships
    assert not state.ended
    assert {fact.status for fact in state.facts.values()} == {"accepted", "pending"}


def test_few_are_spoken_of_by_many(world: InventedCampaign) -> None:
    degrees = Counter(end for claim in world.relations() for end in (claim.subject, claim.object))
    assert degrees.most_common(1)[0][1] > 10 * (2 * SIZE.relationships / SIZE.entities)


def test_other_campaigns_are_smaller_and_have_the_same_cast() -> None:
    measured, *others = invented_campaigns(3, SIZE, other_share=0.1, seed=1)
    assert measured.size == SIZE
    assert {campaign.size for campaign in others} == {Size(1_200, 40, 100)}
    assert all(len(campaign.npcs) == len(SHARES) for campaign in others)
    assert len({campaign.id for campaign in (measured, *others)}) == 3


def test_every_entity_comes_before_what_is_said_of_it(world: InventedCampaign) -> None:
    known = set()
    for event in world.events():
        match event:
            case EntityAdded(entity=entity):
                known.add(entity)
            case FactStated(claim=claim):
                assert {claim.subject, claim.object} - {None} <= known


def test_invented_vectors_are_of_unit_length_and_near_to_a_centre() -> None:
    embeddings = Embeddings(None, seed=1)
    vectors = embeddings.invented(50)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    [one] = asyncio.run(embeddings.embed(["What happened at the mill?"]))
    [again] = asyncio.run(embeddings.embed(["What happened at the mill?"]))
    assert one @ again == pytest.approx(1)
    assert 0.7 < (embeddings._centres @ one).max() < 0.9


def test_percentiles_are_those_of_all_calls_but_the_first() -> None:
    asked: list[int] = []

    def prepare(n: int):  # type: ignore[no-untyped-def]
        async def call() -> int:
            asked.append(n)
            return n % 2

        return call

    timings = asyncio.run(timed(prepare, samples=10, warm_up=3))
    assert asked == list(range(13))
    assert timings.found == [1, 0] * 5
    assert summary(timings)["empty_percent"] == 50
    assert set(summary(timings)) >= {"p50_ms", "p95_ms", "p99_ms"}


async def test_a_call_that_had_no_answer_in_time_is_counted_as_such() -> None:
    async def away() -> int:
        raise Unavailable("not within 1000 ms")

    timings = await timed(lambda _: away, samples=3, warm_up=2)
    assert (summary(timings)["calls"], summary(timings)["given_up"]) == (3, 3)
