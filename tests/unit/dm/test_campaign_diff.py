from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from glyphoxa.dm.campaign_diff import CampaignChanges, Tables, changes, with_tables
from glyphoxa.domain.campaign import Campaign, Entity, Relationship, Secret, SlotRule
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import (
    AUTO_ACCEPT,
    PUBLIC,
    Claim,
    Fact,
    Provenance,
    Validity,
    secret_of,
    witnessed_by,
)
from glyphoxa.world.event_kinds import (
    AliasAdded,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactScoped,
    FactStated,
)
from glyphoxa.world.event_log import Cause, Event, WorldEvent, apply
from glyphoxa.world.state import WorldState
from tests.support.builders import CAMPAIGN, SMITH, a_campaign
from tests.support.world_histories import an_event

GRIMJAW, MIRELLE, ELDRINAX = EntityId("e-grimjaw"), EntityId("e-mirelle"), EntityId("e-eldrinax")
FORGE, SQUARE, ORLA = EntityId("e-forge"), EntityId("e-square"), EntityId("orla")
KNOWS = Claim.relation(MIRELLE, "KNOWS", GRIMJAW)
TALK = Provenance(0.9, origin="talk")


class World:
    """A state that things happen to, and the file that was loaded last."""

    def __init__(self) -> None:
        self.state = WorldState()
        self.seq = 0
        self.file: Campaign | None = None
        self.accept_at = AUTO_ACCEPT

    def happens(self, *events: Event) -> None:
        for event in events:
            assert event.failed_precondition(self.state) is None
            self.seq += 1
            apply(self.state, WorldEvent(self.seq, Cause("dm", self.seq * 1_000), event))

    def decide(self, rng: random.Random) -> None:
        """Let the DM decide anything."""
        for _ in range(6):
            event = an_event(rng, self.state)
            if event.failed_precondition(self.state) is None:
                self.happens(event)

    def changes(self, campaign: Campaign) -> CampaignChanges:
        firm = Provenance(dm_confirmed=True, origin="campaign_file", at_ms=1, accept_at=self.accept_at)
        return changes(self.file, campaign, self.state, firm)

    def load(self, campaign: Campaign) -> CampaignChanges:
        found = self.changes(campaign)
        self.happens(*found.events)
        self.file = campaign
        return found

    def value(self, entity: EntityId, attribute: str) -> object:
        """The accepted one; None when there is none."""
        return next((f.claim.content for f in self.state.in_slot(entity, attribute) if f.status == "accepted"), None)

    def fact(self, claim: Claim) -> Fact:
        fact = self.state.of_claim(claim)
        assert fact is not None
        return fact


@pytest.fixture
def world() -> World:
    """The campaign of the builders, loaded."""
    world = World()
    world.load(a_campaign())
    return world


def with_entity(campaign: Campaign, entity: EntityId, **fields: object) -> Campaign:
    entities = [replace(e, **fields) if e.id == entity else e for e in campaign.entities]  # type: ignore[arg-type]
    return replace(campaign, entities=tuple(entities))


def without(campaign: Campaign, entity: EntityId) -> Campaign:
    return replace(
        campaign,
        entities=tuple(e for e in campaign.entities if e.id != entity),
        relationships=tuple(r for r in campaign.relationships if entity not in (r.source, r.target)),
    )


def described(text: str) -> Campaign:
    return with_entity(a_campaign(), GRIMJAW, attributes={"description": text})


def related(*relations: Relationship) -> Campaign:
    return replace(a_campaign(), relationships=relations)


# What a file says


def test_the_first_load_brings_everything_with_where_it_comes_from(world: World) -> None:
    assert set(world.state.entities) == {e.id for e in a_campaign().entities}
    assert world.state.entities[GRIMJAW].origin == "campaign_file"
    assert world.value(GRIMJAW, "description") == "Grimjaw is a smith."
    known = world.fact(KNOWS)
    assert (known.status, known.provenance.origin, known.provenance.dm_confirmed) == ("accepted", "campaign_file", True)


def test_secret_is_a_fact_known_only_to_its_npcs(world: World) -> None:
    fact = world.fact(Claim.attribute(GRIMJAW, "secret", "Grimjaw forged the king's false crown."))
    assert fact.visibility == secret_of([SMITH])


def test_a_secret_about_something_else_is_a_fact_of_that() -> None:
    world = World()
    world.load(replace(a_campaign(), secrets=(Secret("It burns.", frozenset({SMITH}), FORGE, hidden=True),)))
    seen = world.fact(Claim.attribute(FORGE, "secret", "It burns.")).visibility
    assert (seen.scope, [k.npc for k in seen.knowers]) == ("hidden", [SMITH])


def test_restricted_fact_is_restricted_in_the_world() -> None:
    world = World()
    campaign = with_entity(a_campaign(), ELDRINAX, hidden=True)
    edge = replace(campaign.relationships[0], known_by=(SMITH,))
    world.load(replace(campaign, relationships=(edge,)))
    assert world.state.entities[ELDRINAX].visibility.scope == "hidden"
    assert world.fact(KNOWS).visibility == secret_of([SMITH])


def test_uncertain_file_fact_needs_review() -> None:
    world = World()
    unsure = Relationship(GRIMJAW, ELDRINAX, "OWES", confidence=0.5, origin="inferred", dm_confirmed=False)
    world.load(related(unsure))
    assert world.fact(Claim.relation(GRIMJAW, "OWES", ELDRINAX)).status == "pending"


def test_a_location_that_names_an_entity_is_offered_as_a_relation() -> None:
    world = World()
    campaign = with_entity(a_campaign(), GRIMJAW, attributes={"location": "The Forge"})
    told = world.load(campaign)
    assert world.value(GRIMJAW, "location") == "The Forge"
    offer = world.fact(Claim.relation(GRIMJAW, "LOCATED_AT", FORGE))
    assert (offer.status, offer.provenance.source) == ("pending", "inferred")
    assert "Grimjaw is at the forge: needs review" in told.remarks[0]
    world.happens(FactRejected(offer.id))
    assert world.load(campaign).is_empty  # rejected once is rejected
    assert world.state.of_claim(offer.claim) is None


def test_an_offer_that_the_dm_took_up_outlives_the_attribute() -> None:
    world = World()
    world.load(with_entity(a_campaign(), GRIMJAW, attributes={"location": "The Forge"}))
    offer = world.fact(Claim.relation(GRIMJAW, "LOCATED_AT", FORGE))
    world.happens(FactConfirmed(offer.id))
    world.load(with_entity(a_campaign(), GRIMJAW, attributes={}))
    assert world.fact(offer.claim).status == "accepted"


def test_location_is_not_offered_if_the_file_has_the_relation() -> None:
    world = World()
    campaign = with_entity(a_campaign(), GRIMJAW, attributes={"location": "The Forge"})
    world.load(replace(campaign, relationships=(Relationship(GRIMJAW, SQUARE, "LOCATED_AT"),)))
    assert [f.claim.object for f in world.state.in_slot(GRIMJAW, "LOCATED_AT")] == [SQUARE]


def test_a_list_is_one_value_except_where_several_hold_at_a_time() -> None:
    world = World()
    world.load(with_entity(a_campaign(), GRIMJAW, attributes={"goals": ["eat", "sleep"], "trait": ["gruff", "kind"]}))
    assert world.value(GRIMJAW, "goals") == ["eat", "sleep"]
    assert [f.claim.content for f in world.state.in_slot(GRIMJAW, "trait")] == ["gruff", "kind"]


def test_a_campaigns_own_slots_are_declared_and_taken_back(world: World) -> None:
    slots: Mapping[str, SlotRule] = {"SWORN_TO": "functional"}
    told = world.load(replace(a_campaign(), slots=slots))
    assert (told.added, world.state.rules) == (("the slot rule of 'sworn to'",), {"SWORN_TO": "functional"})
    sworn = (Relationship(GRIMJAW, MIRELLE, "SWORN_TO"),)
    world.load(replace(a_campaign(), relationships=sworn))
    assert world.state.rules == {"SWORN_TO": "many"}


# Loading again


def test_the_same_file_again_does_nothing(world: World) -> None:
    assert world.changes(a_campaign()) == CampaignChanges()


def test_only_what_changed_in_the_file_happens(world: World) -> None:
    told = world.load(described("A tired smith."))
    assert [type(h) for h in told.events] == [FactReplaced]
    assert told.changed == ("Grimjaw, description",)
    assert world.value(GRIMJAW, "description") == "A tired smith."


def test_fact_removed_from_the_file_is_retracted(world: World) -> None:
    told = world.load(related())
    assert (told.removed, world.state.of_claim(KNOWS)) == (("Mirelle knows Grimjaw",), None)
    assert [ended.ended_as for ended in world.state.ended.values()] == ["retconned"]


def test_an_entity_that_left_the_file_goes_with_all_that_is_said_of_it(world: World) -> None:
    told = world.load(without(a_campaign(), ELDRINAX))
    assert (told.removed, [type(h) for h in told.events]) == (("Eldrinax (npc)",), [EntityRemoved])
    assert ELDRINAX not in world.state.entities


def test_a_renamed_entity_stays_the_same(world: World) -> None:
    told = world.load(with_entity(a_campaign(), ELDRINAX, name="Eldrinax the Grey", aliases=("the Grey",)))
    assert told.events == (
        EntityChanged(ELDRINAX, None, "Eldrinax the Grey"),
        AliasAdded(ELDRINAX, "the Grey"),
    )
    assert told.changed == ("Eldrinax the Grey (was Eldrinax): name, aliases",)


def test_rename_without_id_is_reported_before_history_is_lost(world: World) -> None:
    campaign = without(a_campaign(), ELDRINAX)
    told = world.changes(replace(campaign, entities=(*campaign.entities, Entity(ORLA, "npc", "Eldrinaxx"))))
    assert told.remarks == (
        "Eldrinaxx: if you renamed Eldrinax, give it `id: e-eldrinax` in the file; "
        "otherwise everything known about Eldrinax is removed",
    )


def test_scope_of_a_fact_can_change(world: World) -> None:
    campaign = with_entity(a_campaign(), ELDRINAX, known_by=(SMITH,))
    edge = replace(campaign.relationships[0], hidden=True)
    told = world.load(replace(campaign, relationships=(edge,)))
    assert [type(h) for h in told.events] == [EntityScoped, FactScoped]
    assert told.changed == ("Eldrinax: who may know of it", "Mirelle knows Grimjaw")
    world.load(a_campaign())
    assert (world.state.entities[ELDRINAX].visibility, world.fact(KNOWS).visibility) == (PUBLIC, PUBLIC)


def test_details_of_a_relation_can_change(world: World) -> None:
    edge = a_campaign().relationships[0]
    for attributes in ({"since": "childhood"}, {"since": "the war", "how": "well"}, {"how": "well"}, {}):
        told = world.load(related(replace(edge, attributes=attributes)))
        assert told.changed == ("Mirelle knows Grimjaw",)
        assert dict(world.fact(KNOWS).attributes) == attributes


def test_difference_names_what_is_missing_in_the_world(world: World) -> None:
    campaign = a_campaign()
    npcs = (replace(campaign.npcs[0], persona="You are tired."), campaign.npcs[1])
    told = world.load(replace(campaign, npcs=npcs, scenes=campaign.scenes[:1], players=campaign.players[:1], name="T"))
    assert told.changed == ("the campaign's name", "NPC Grimjaw")
    assert told.removed == ("player Bran", "scene forge")
    assert not told.is_empty and not told.events


# What the DM decided in the meantime


def test_an_entity_that_the_dm_removed_stays_away(world: World) -> None:
    world.happens(EntityRemoved(GRIMJAW))
    assert world.load(a_campaign()).is_empty
    told = world.load(described("A tired smith."))
    assert told.events == ()
    assert told.remarks == ("Grimjaw: you removed it, so the file's changes to it are skipped",)


def test_removed_entity_returns_when_the_file_lists_it_again(world: World) -> None:
    world.happens(EntityRemoved(ELDRINAX))
    world.load(without(a_campaign(), ELDRINAX))
    assert world.load(a_campaign()).added == ("Eldrinax (npc)",)
    assert world.value(ELDRINAX, "description") == "Eldrinax is an old wizard."


def test_dms_edit_holds_until_the_file_changes_that_value(world: World) -> None:
    smith = world.fact(Claim.attribute(GRIMJAW, "description", "Grimjaw is a smith."))
    world.happens(FactReplaced(smith.id, Claim.attribute(GRIMJAW, "description", "A spy.")))
    world.load(with_entity(a_campaign(), MIRELLE, attributes={"description": "Gone."}))
    assert world.value(GRIMJAW, "description") == "A spy."
    told = world.load(described("A tired smith."))
    assert world.value(GRIMJAW, "description") == "A tired smith."
    assert told.remarks == ("Grimjaw, description: the file changed it, which overrides your 'A spy.'",)
    assert told.discreet_remarks == ("Grimjaw, description: the file changed it, which overrides your decision",)


def test_fact_that_the_dm_made_secret_stays_secret(world: World) -> None:
    world.happens(FactScoped(world.fact(KNOWS).id, secret_of([SMITH])))
    edge = replace(a_campaign().relationships[0], attributes={"since": "childhood"})
    world.load(related(edge))
    assert world.fact(KNOWS).visibility == secret_of([SMITH])


def test_entities_that_the_dm_merged_stay_merged(world: World) -> None:
    world.happens(EntitiesMerged(kept=GRIMJAW, gone=ELDRINAX))
    assert world.load(a_campaign()).is_empty
    world.load(with_entity(a_campaign(), ELDRINAX, attributes={"hat": "pointed"}))
    assert world.value(GRIMJAW, "hat") == "pointed"
    told = world.load(without(a_campaign(), ELDRINAX))
    assert GRIMJAW in world.state.entities and "Grimjaw, which it was merged into, stays" in told.remarks[0]


def test_fact_that_the_dm_rejected_is_not_stated_again(world: World) -> None:
    world.happens(FactRejected(world.fact(KNOWS).id))
    world.load(described("A tired smith."))
    assert world.state.of_claim(KNOWS) is None


def test_an_entity_that_is_there_already_is_described_by_the_file(world: World) -> None:
    world.happens(EntityAdded(ORLA, "concept", "Orla", ("O",)))
    orla = Entity(ORLA, "npc", "Orla", ("the baker",), {"hat": "red"})
    told = world.load(replace(a_campaign(), entities=(*a_campaign().entities, orla)))
    held = world.state.entities[ORLA]
    assert (held.type, held.aliases, world.value(ORLA, "hat")) == ("npc", ("O", "the baker"), "red")
    assert "Orla: type, aliases" in told.changed


def test_a_namesake_is_pointed_out(world: World) -> None:
    world.happens(EntityAdded(EntityId("orla-2"), "npc", "orla"))
    told = world.load(replace(a_campaign(), entities=(*a_campaign().entities, Entity(ORLA, "npc", "Orla"))))
    assert told.remarks == ("Orla: there is already one with that name (orla-2); merge them if they are the same",)


# What was said in play


def test_fact_also_stated_in_play_survives_its_removal_from_the_file(world: World) -> None:
    claim = Claim.relation(GRIMJAW, "KNOWS", ELDRINAX)
    world.happens(FactStated(claim, TALK, witnessed_by([SMITH])))
    edge = Relationship(GRIMJAW, ELDRINAX, "KNOWS", confidence=0.8, dm_confirmed=False)
    world.load(related(*a_campaign().relationships, edge))
    assert world.fact(claim).visibility.scope == "public"
    told = world.load(a_campaign())
    assert world.fact(claim).provenance.origin == "talk"
    assert told.remarks == ("Grimjaw knows Eldrinax: was removed from the file, but stays: it has other sources",)
    assert told.discreet_remarks == ("Grimjaw, knows: was removed from the file, but stays: it has other sources",)


def test_a_place_that_changes_in_the_file_does_not_undo_where_play_has_led() -> None:
    world = World()
    world.load(related(Relationship(GRIMJAW, FORGE, "LOCATED_AT")))
    moved = Claim.relation(GRIMJAW, "LOCATED_AT", SQUARE)
    world.happens(FactStated(moved, TALK, validity=Validity(from_ms=5_000)))
    world.load(related(Relationship(GRIMJAW, MIRELLE, "LOCATED_AT")))
    assert [f.claim for f in world.state.in_slot(GRIMJAW, "LOCATED_AT")] == [moved]


def test_file_value_that_contradicts_play_needs_review(world: World) -> None:
    world.happens(FactStated(Claim.attribute(GRIMJAW, "hat", "red"), TALK))
    told = world.load(with_entity(a_campaign(), GRIMJAW, attributes={"hat": "blue"}))
    assert world.fact(Claim.attribute(GRIMJAW, "hat", "blue")).status == "conflict"
    assert "Grimjaw, hat: is 'red' in the world; decide: `glyphoxa facts review conflict`" in told.remarks
    assert "Grimjaw, hat: is another in the world; decide: `glyphoxa facts review conflict`" in told.discreet_remarks


def test_public_fact_becomes_secret_if_the_file_says_so(world: World) -> None:
    claim = Claim.relation(GRIMJAW, "KNOWS", ELDRINAX)
    world.happens(FactStated(claim, TALK))
    world.load(related(*a_campaign().relationships, Relationship(GRIMJAW, ELDRINAX, "KNOWS", known_by=(SMITH,))))
    assert world.fact(claim).visibility == secret_of([SMITH])


# Tables beside the file


def test_facts_from_tables_survive_a_reload_of_the_file() -> None:
    world, file = World(), a_campaign()
    orla = Entity(ORLA, "npc", "Orla", (), {"hat": "red"})
    grimjaw = Entity(GRIMJAW, "npc", "Grimjaw", ("Grim",), {"hat": "blue", "description": "An elf."})
    tables = Tables((orla, grimjaw), (Relationship(ORLA, GRIMJAW, "KNOWS"),))
    world.load(with_tables(file, tables))
    assert world.load(with_tables(file, tables)).is_empty
    assert world.value(GRIMJAW, "hat") == "blue"
    assert world.value(GRIMJAW, "description") == "Grimjaw is a smith."  # the file's word stands
    assert with_tables(with_tables(file, tables), tables) == with_tables(file, tables)


# Whatever happens


@pytest.mark.parametrize("seed", range(60))
def test_file_can_be_reloaded_after_any_decisions(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    for _ in range(5):
        campaign = a_random_campaign(rng)
        world.load(campaign)
        assert world.load(campaign) == CampaignChanges()
        world.decide(rng)
        assert world.load(campaign) == CampaignChanges()


VALUES: Mapping[str, list[object]] = {"hat": ["red", "blue"], "location": ["E1", "E2"], "trait": [["x"], ["x", "y"]]}


def a_random_campaign(rng: random.Random) -> Campaign:
    ids = [EntityId(f"e{n}") for n in range(6) if rng.random() < 0.8]
    entities = tuple(
        Entity(
            entity,
            rng.choice(["npc", "location"]),
            entity.upper() + rng.choice(["", " II"]),
            tuple(a for a in ("a", "b") if rng.random() < 0.3),
            {name: rng.choice(values) for name, values in VALUES.items() if rng.random() < 0.5},
            hidden=rng.random() < 0.2,
        )
        for entity in ids
    )
    edges: dict[tuple[str, ...], Relationship] = {}
    """Relations by their key, of which only one can hold."""
    for _ in range(8):
        if len(ids) > 1:
            source, target = rng.sample(ids, 2)
            kind = rng.choice(["KNOWS", "LOCATED_AT", "OWNS", "ALLIED_WITH"])
            slot = {"LOCATED_AT": (kind, source), "OWNS": (kind, target)}
            edges[slot.get(kind, (kind, *sorted((source, target))))] = Relationship(
                source,
                target,
                kind,
                rng.choice([{}, {"since": "long"}]),
                confidence=rng.choice([0.5, 1.0]),
                dm_confirmed=rng.random() < 0.7,
                known_by=rng.choice([(), (NpcId("n1"),)]),
            )
    secrets = tuple(Secret(f"s{n}", frozenset({NpcId("n1")}), rng.choice(ids)) for n in range(2) if ids)
    return Campaign(CAMPAIGN, "T", "en", entities, tuple(edges.values()), (), (), (), secrets)


def test_uncertain_place_needs_review_and_keeps_the_old_one() -> None:
    world = World()
    world.accept_at = 0.9
    at_forge = Relationship(ELDRINAX, FORGE, "LOCATED_AT", confidence=0.95, dm_confirmed=False)
    at_square = replace(at_forge, target=SQUARE, confidence=0.8)
    campaign = replace(a_campaign(), slots={"LOCATED_AT": "functional"})
    world.load(replace(campaign, relationships=(at_forge,)))
    world.load(replace(campaign, relationships=(at_square,)))
    assert world.fact(Claim.relation(ELDRINAX, "LOCATED_AT", SQUARE)).status == "pending"
