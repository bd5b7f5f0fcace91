"""The rules by which a world changes, one by one."""

from __future__ import annotations

import pytest

from glyphoxa.domain.ids import EntityId, FactId, NpcId, SpeakerId
from glyphoxa.domain.knowledge import (
    DM,
    HIDDEN,
    PUBLIC,
    Claim,
    EndedAs,
    Fact,
    Provenance,
    Validity,
    Visibility,
    secret_of,
    witnessed_by,
)
from glyphoxa.world.event_kinds import (
    EntitiesMerged,
    EntityAdded,
    EntityRemoved,
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactRevealed,
    FactScoped,
    FactStated,
    FactTold,
    SlotDeclared,
)
from glyphoxa.world.event_log import Cause, Event, Undone, WorldEvent, apply, replay
from glyphoxa.world.state import WorldState

MIRA, KORVALD, INN, TOWER, SWORD = (EntityId(name) for name in ("mira", "korvald", "inn", "tower", "sword"))
ELOWEN, GRIM = NpcId("elowen"), NpcId("grim")

AT_INN = Claim.relation(MIRA, "LOCATED_AT", INN)
AT_TOWER = Claim.relation(MIRA, "LOCATED_AT", TOWER)
SMITH = Claim.attribute(MIRA, "occupation", "smith")
SPY = Claim.attribute(MIRA, "occupation", "spy")

SURE = Provenance(0.9)
UNSURE = Provenance(0.5)
CONCLUDED = Provenance(0.9, "inferred")
DM_SAYS = Provenance(dm_confirmed=True, origin="dm")


class Table:
    """A world to which things happen."""

    def __init__(self, *entities: EntityId) -> None:
        self.events: list[WorldEvent] = []
        self.state = WorldState()
        for entity in entities or (MIRA, KORVALD, INN, TOWER, SWORD):
            self.happens(EntityAdded(entity, "npc", entity.title()))

    def happens(self, event: Event) -> None:
        seq = len(self.events) + 1
        self.events.append(WorldEvent(seq, Cause("dm", seq), event))
        if isinstance(event, Undone):
            self.state = replay(self.events)
        else:
            apply(self.state, self.events[-1])

    def states(
        self, claim: Claim, provenance: Provenance = SURE, *, from_ms: int | None = None, **more: object
    ) -> Fact:
        self.happens(FactStated(claim, provenance, validity=Validity(from_ms), **more))  # type: ignore[arg-type]
        return self.fact(claim)

    def fact(self, claim: Claim) -> Fact:
        held = self.state.of_claim(claim)
        assert held is not None, f"not held: {claim}"
        return held

    def status(self, claim: Claim) -> str | None:
        held = self.state.of_claim(claim)
        return None if held is None else held.status

    def ends(self, claim: Claim) -> list[EndedAs]:
        return [ended.ended_as for ended in self.state.ended.values() if ended.fact.claim == claim]


def test_who_goes_elsewhere_is_no_longer_where_she_was() -> None:
    table = Table()
    table.states(AT_INN, from_ms=10)
    table.states(AT_TOWER, from_ms=20)
    assert table.status(AT_TOWER) == "accepted"
    assert table.status(AT_INN) is None
    [ended] = table.state.ended.values()
    assert (ended.ended_as, ended.fact.validity.to_ms, ended.superseded_by) == ("superseded", 20, AT_TOWER.fact_id)


def test_old_news_of_a_place_does_not_move_anybody() -> None:
    table = Table()
    table.states(AT_TOWER, from_ms=20)
    table.happens(FactStated(AT_INN, SURE, validity=Validity(10)))
    assert table.status(AT_TOWER) == "accepted"
    assert table.ends(AT_INN) == ["superseded"]


def test_where_somebody_was_for_a_while_does_not_move_her_from_where_she_is() -> None:
    table = Table()
    table.states(AT_TOWER, from_ms=5)
    table.happens(FactStated(AT_INN, SURE, validity=Validity(10, 15)))
    assert (table.status(AT_TOWER), table.status(AT_INN)) == ("accepted", "accepted")


def test_a_sword_has_one_owner_and_an_owner_many_things() -> None:
    table = Table()
    table.states(Claim.relation(MIRA, "OWNS", SWORD), from_ms=1)
    table.states(Claim.relation(MIRA, "OWNS", INN), from_ms=2)
    table.states(Claim.relation(KORVALD, "OWNS", SWORD), from_ms=3)
    owned = sorted((f.claim.subject, f.claim.object) for f in table.state.facts.values())
    assert owned == [(KORVALD, SWORD), (MIRA, INN)]


def test_two_occupations_are_for_the_dm_to_decide() -> None:
    table = Table()
    table.states(SMITH)
    spy = table.states(SPY)
    assert (table.status(SMITH), spy.status, spy.disputes) == ("accepted", "conflict", (SMITH.fact_id,))
    table.happens(FactConfirmed(spy.id))
    assert (table.status(SMITH), table.status(SPY)) == (None, "accepted")
    assert table.ends(SMITH) == ["superseded"]


def test_confirming_what_was_held_refuses_what_disagreed() -> None:
    table = Table()
    table.states(SMITH)
    table.states(SPY)
    table.happens(FactConfirmed(SMITH.fact_id))
    assert table.status(SMITH) == "accepted"
    assert table.ends(SPY) == ["rejected"]


def test_when_what_was_held_is_rejected_the_oldest_that_disagreed_takes_its_place() -> None:
    table = Table()
    table.states(SMITH)
    table.states(SPY)
    king = Claim.attribute(MIRA, "occupation", "king")
    table.states(king)
    table.happens(FactRejected(SMITH.fact_id))
    assert (table.status(SPY), table.status(king)) == ("accepted", "conflict")
    assert table.fact(king).disputes == (SPY.fact_id,)


def test_allies_who_are_said_to_be_enemies_are_a_conflict_from_either_side() -> None:
    table = Table()
    table.states(Claim.relation(TOWER, "ALLIED_WITH", INN))
    hostile = table.states(Claim.relation(INN, "HOSTILE_TO", TOWER))
    assert hostile.status == "conflict"


@pytest.mark.parametrize(("confidence", "status"), [(0.69, "pending"), (0.7, "accepted"), (1.0, "accepted")])
def test_below_the_threshold_a_fact_waits_for_the_dm(confidence: float, status: str) -> None:
    assert Table().states(AT_INN, Provenance(confidence)).status == status


def test_what_is_not_certain_supersedes_nothing_until_it_is_confirmed() -> None:
    table = Table()
    table.states(AT_INN, from_ms=10)
    table.states(AT_TOWER, UNSURE, from_ms=20)
    assert (table.status(AT_INN), table.status(AT_TOWER)) == ("accepted", "pending")
    table.happens(FactConfirmed(AT_TOWER.fact_id))
    assert (table.status(AT_INN), table.status(AT_TOWER)) == (None, "accepted")


def test_a_conclusion_does_not_supersede_what_the_dm_confirmed() -> None:
    table = Table()
    table.states(AT_INN, DM_SAYS, from_ms=10)
    assert table.states(AT_TOWER, CONCLUDED, from_ms=20).status == "conflict"
    assert table.status(AT_INN) == "accepted"


def test_hearing_it_surely_once_more_is_enough() -> None:
    table = Table()
    table.states(AT_INN, UNSURE)
    again = table.states(AT_INN, SURE)
    assert (again.status, again.mentions, again.provenance.confidence) == ("accepted", 2, 0.9)


def test_what_the_dm_rejected_is_not_believed_when_it_is_heard_again() -> None:
    table = Table()
    table.states(SPY)
    table.happens(FactRejected(SPY.fact_id))
    assert table.states(SPY).status == "pending"
    assert table.states(SPY, Provenance(1.0)).status == "pending"
    table.happens(FactConfirmed(SPY.fact_id))
    assert table.status(SPY) == "accepted"


def test_what_rests_on_a_fact_that_ends_is_stale_and_so_on() -> None:
    table = Table()
    owner = Claim.relation(MIRA, "OWNS", INN)
    rich = Claim.attribute(MIRA, "wealth", "rich")
    generous = Claim.attribute(MIRA, "trait", "generous")
    table.states(owner)
    table.states(rich, supports=(owner.fact_id,))
    table.states(generous, supports=(rich.fact_id,))
    table.happens(FactClosed(owner.fact_id))
    assert (table.status(rich), table.status(generous)) == ("stale", "stale")
    table.happens(FactConfirmed(rich.fact_id))
    assert (table.status(rich), table.status(generous)) == ("accepted", "accepted")


def test_a_conclusion_waits_for_what_it_was_drawn_from() -> None:
    table = Table()
    table.states(SMITH, UNSURE)
    strong = Claim.attribute(MIRA, "trait", "strong")
    assert table.states(strong, supports=(SMITH.fact_id,)).status == "pending"
    table.happens(FactConfirmed(SMITH.fact_id))
    assert table.status(strong) == "accepted"


def test_a_retcon_is_as_if_the_other_had_been_so_all_along() -> None:
    table = Table()
    table.states(AT_INN, from_ms=10)
    table.happens(FactReplaced(AT_INN.fact_id, AT_TOWER, "retcon"))
    assert table.ends(AT_INN) == ["retconned"]
    assert table.fact(AT_TOWER).validity.from_ms == 10
    assert table.fact(AT_TOWER).provenance.dm_confirmed


def test_undoing_a_confirmation_puts_the_fact_back_into_the_queue() -> None:
    table = Table()
    table.states(AT_INN, UNSURE)
    table.happens(FactConfirmed(AT_INN.fact_id))
    table.happens(Undone(len(table.events)))
    assert table.status(AT_INN) == "pending"


def test_merging_moves_facts_and_names_and_undoing_it_splits_them_again() -> None:
    table = Table()
    table.states(AT_INN)
    table.states(Claim.relation(KORVALD, "KNOWS", MIRA))
    table.happens(EntitiesMerged(KORVALD, MIRA))
    assert table.state.entity(MIRA) is table.state.entity(KORVALD)
    assert "Mira" in table.state.entities[KORVALD].aliases
    assert table.status(Claim.relation(KORVALD, "LOCATED_AT", INN)) == "accepted"
    assert table.ends(Claim.relation(KORVALD, "KNOWS", MIRA)) == ["merged"]
    table.happens(FactStated(SMITH, SURE))  # said of Mira, meant for the one she is now
    assert table.status(Claim.attribute(KORVALD, "occupation", "smith")) == "accepted"
    table.happens(Undone(8))
    assert table.status(AT_INN) == "accepted"
    assert table.status(SMITH) == "accepted"
    assert table.state.entities[KORVALD].aliases == ()


def test_two_places_of_one_merged_person_are_for_the_dm_to_decide() -> None:
    table = Table()
    table.states(Claim.relation(KORVALD, "LOCATED_AT", TOWER), from_ms=1)
    table.states(AT_INN, from_ms=2)
    table.happens(EntitiesMerged(KORVALD, MIRA))
    assert table.status(Claim.relation(KORVALD, "LOCATED_AT", INN)) == "conflict"


def test_a_secret_identity_does_not_become_known_by_being_merged() -> None:
    table = Table(KORVALD, INN)
    shadow = EntityId("shadow")
    table.happens(EntityAdded(shadow, "npc", "The Shadow", visibility=secret_of([GRIM])))
    table.states(Claim.relation(shadow, "OWNS", INN))
    table.happens(EntitiesMerged(KORVALD, shadow))
    assert table.state.entities[KORVALD].aliases == ()
    moved = table.fact(Claim.relation(KORVALD, "OWNS", INN))
    assert moved.visibility.is_visible_to(GRIM)
    assert not moved.visibility.is_visible_to(ELOWEN)


def test_facts_end_with_their_entity() -> None:
    table = Table()
    table.states(AT_INN)
    table.happens(EntityRemoved(INN))
    assert table.ends(AT_INN) == ["entity_removed"]
    assert table.state.facts == {}


def test_a_witness_knows_it_who_is_told_knows_it_too_and_others_do_not() -> None:
    table = Table()
    fact = table.states(SPY, visibility=witnessed_by([GRIM], at_ms=3))
    assert fact.visibility.is_visible_to(GRIM)
    assert not fact.visibility.is_visible_to(ELOWEN)
    table.happens(FactTold(fact.id, (ELOWEN,), SpeakerId("grim"), at_ms=9))
    [told] = [k for k in table.fact(SPY).visibility.knowers if k.npc == ELOWEN]
    assert (told.how, told.by, told.at_ms) == ("told", "grim", 9)
    assert table.fact(SPY).visibility.is_visible_to(ELOWEN)


def test_a_secret_is_for_those_the_dm_names_and_hearing_it_makes_nobody_forget_that_it_is_one() -> None:
    table = Table()
    fact = table.states(SPY, visibility=witnessed_by([GRIM, ELOWEN]))
    table.happens(FactScoped(fact.id, secret_of([GRIM])))
    assert not table.fact(SPY).visibility.is_visible_to(ELOWEN)
    assert table.states(SPY, visibility=PUBLIC).visibility.scope == "secret"


def test_what_only_some_were_told_of_a_fact_is_told_to_nobody_who_learns_of_it_otherwise() -> None:
    knows = Claim.relation(MIRA, "KNOWS", KORVALD)
    for first, second in (
        ((PUBLIC, {}), (witnessed_by([GRIM]), {"note": "they are lovers"})),
        ((witnessed_by([GRIM]), {"note": "they are lovers"}), (PUBLIC, {})),
        ((secret_of([GRIM]), {"note": "they are lovers"}), (witnessed_by([ELOWEN]), {})),
    ):
        table = Table()
        for visibility, attributes in (first, second):
            table.states(knows, visibility=visibility, attributes=attributes)
        fact = table.fact(knows)
        assert fact.visibility.is_visible_to(ELOWEN)
        assert fact.attributes == {}
        table.states(knows, visibility=fact.visibility, attributes={"since": "spring"})
        assert table.fact(knows).attributes == {"since": "spring"}


def test_a_merge_tells_nobody_what_only_some_were_told_of_a_fact() -> None:
    table = Table()
    table.states(Claim.relation(KORVALD, "KNOWS", TOWER))
    table.states(
        Claim.relation(MIRA, "KNOWS", TOWER), visibility=secret_of([GRIM]), attributes={"note": "she was born there"}
    )
    table.happens(EntitiesMerged(KORVALD, MIRA))
    assert table.fact(Claim.relation(KORVALD, "KNOWS", TOWER)).attributes == {}


@pytest.mark.parametrize("before", [PUBLIC, witnessed_by([ELOWEN])])
@pytest.mark.parametrize("secret", [secret_of([GRIM]), HIDDEN])
def test_a_rumour_that_waits_becomes_true_only_for_those_whom_the_dm_names(
    before: Visibility, secret: Visibility
) -> None:
    table = Table()
    table.states(SPY, UNSURE, visibility=before)
    assert table.status(SPY) == "pending"
    assert table.states(SPY, DM_SAYS, visibility=secret).status == "accepted"
    assert not table.fact(SPY).visibility.is_visible_to(ELOWEN)
    assert table.fact(SPY).visibility.is_visible_to(GRIM) == (secret != HIDDEN)


def test_a_conclusion_is_known_to_nobody_who_may_not_know_what_it_was_drawn_from() -> None:
    table = Table()
    secret = table.states(SPY, visibility=secret_of([GRIM]))
    drawn = Claim.attribute(MIRA, "trait", "two-faced")
    fact = table.states(drawn, CONCLUDED, supports=(secret.id,))
    assert fact.visibility.is_visible_to(GRIM)
    assert not fact.visibility.is_visible_to(ELOWEN)
    assert not table.states(drawn, CONCLUDED, supports=(secret.id,)).visibility.is_visible_to(ELOWEN)


def test_what_becomes_a_secret_later_is_not_told_by_what_was_concluded_from_it() -> None:
    table = Table()
    owner, rich, vain = (Claim.attribute(MIRA, name, "yes") for name in ("owner", "rich", "vain"))
    table.states(owner)
    table.states(rich, supports=(owner.fact_id,))
    table.states(vain, supports=(rich.fact_id,))
    table.happens(FactScoped(owner.fact_id, secret_of([GRIM])))
    for claim in (owner, rich, vain):
        assert table.fact(claim).visibility.is_visible_to(GRIM)
        assert not table.fact(claim).visibility.is_visible_to(ELOWEN)


def test_what_is_hidden_is_revealed_to_those_who_are_named_or_to_all() -> None:
    table = Table()
    fact = table.states(SPY, visibility=HIDDEN)
    table.happens(FactTold(fact.id, (ELOWEN,), SpeakerId("grim")))
    assert not table.fact(SPY).visibility.is_visible_to(ELOWEN)
    assert table.fact(SPY).visibility.is_visible_to(DM)
    table.happens(FactRevealed(fact.id, (GRIM,)))
    assert table.fact(SPY).visibility.is_visible_to(GRIM)
    assert not table.fact(SPY).visibility.is_visible_to(ELOWEN)
    table.happens(FactRevealed(fact.id))
    assert table.fact(SPY).visibility.is_visible_to(ELOWEN)


def test_a_campaign_may_say_that_one_holds_one_office_at_a_time() -> None:
    table = Table()
    table.happens(SlotDeclared("occupation", "functional"))
    table.states(SMITH, from_ms=1)
    table.states(SPY, from_ms=2)
    assert (table.status(SMITH), table.status(SPY)) == (None, "accepted")


def test_what_speaks_of_things_that_are_not_there_changes_nothing_and_may_not_be_committed() -> None:
    table = Table()
    nothing: tuple[Event, ...] = (
        FactConfirmed(FactId("f0")),
        FactRejected(FactId("f0")),
        FactClosed(FactId("f0")),
        FactTold(FactId("f0"), (GRIM,), SpeakerId("grim")),
        FactStated(Claim.relation(MIRA, "KNOWS", EntityId("nobody"))),
        EntityRemoved(EntityId("nobody")),
        EntitiesMerged(MIRA, EntityId("nobody")),
    )
    table.state.begin()
    for event in nothing:
        assert event.failed_precondition(table.state) is not None
        table.happens(event)
    assert table.state.changes().is_empty


def test_the_same_claim_has_the_same_name_whoever_makes_it() -> None:
    assert AT_INN.fact_id == Claim.relation(MIRA, "LOCATED_AT", INN).fact_id
    assert Claim.relation(INN, "ALLIED_WITH", TOWER) == Claim.relation(TOWER, "ALLIED_WITH", INN)
    assert Claim.attribute(MIRA, "a", {"x": 1, "y": 2}) == Claim.attribute(MIRA, "a", {"y": 2, "x": 1})


def test_the_first_word_on_how_somebody_knows_counts() -> None:
    seen = Visibility.of("witnessed", witnessed_by([GRIM]).knowers).known_to(*secret_of([GRIM]).knowers)
    assert [knower.how for knower in seen.knowers] == ["witnessed"]
