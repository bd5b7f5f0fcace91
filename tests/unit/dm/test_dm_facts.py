from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from glyphoxa.dm.facts import FactDesk, NewFact
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId, FactId, UtteranceId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Claim, Fact, Provenance, Visibility, secret_of, witnessed_by
from glyphoxa.language.facts import known_to_in_words
from glyphoxa.world.event_kinds import EntityScoped, FactStated
from glyphoxa.world.event_log import Cause
from tests.support.builders import CAMPAIGN, INNKEEPER, SESSION, SMITH
from tests.support.world_twin import WorldTwin, a_world

GRIMJAW, ELDRINAX, FORGE, SQUARE = (EntityId(f"e-{name}") for name in ("grimjaw", "eldrinax", "forge", "square"))


@dataclass
class Table:
    """A DM at the desk, and talk from which facts are learned."""

    world: WorldTwin = field(default_factory=a_world)
    now: int = 1_000_000

    @property
    def desk(self) -> FactDesk:
        self.now += 1_000
        return FactDesk(CAMPAIGN, self.world, self.world, self.world.resolver(), now_ms=lambda: self.now)

    def hears(
        self, claim: Claim, confidence: float = 0.9, *, ordinal: int = 1, rests_on: tuple[FactId, ...] = ()
    ) -> FactId:
        provenance = Provenance(
            confidence,
            "inferred",
            session_id=SESSION,
            utterance_id=UtteranceId(f"u{ordinal}"),
            ordinal=ordinal,
            at_ms=ordinal,
        )
        stated = FactStated(claim, provenance, witnessed_by([SMITH], at_ms=ordinal), supports=rests_on)
        return self.world.learn(stated, Cause("talk", ordinal, SESSION, ordinal, UtteranceId(f"u{ordinal}")))

    def fact(self, fact: FactId) -> Fact:
        return self.world.state.facts[fact]

    def holds(self, fact: FactId) -> bool:
        return fact in self.world.state.facts


@pytest.fixture
def table() -> Table:
    return Table()


def job(of: EntityId, value: str) -> Claim:
    return Claim.attribute(of, "occupation", value)


async def test_uncertain_fact_needs_review_until_accepted(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"), 0.5)
    assert table.fact(fact).status == "pending"
    decision = await table.desk.confirm([fact])
    assert [each.status for each in decision.facts] == ["accepted"]
    assert table.fact(fact).provenance.dm_confirmed


async def test_the_beginning_of_an_id_is_enough(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"), 0.5)
    assert (await table.desk.find(fact[:6])).id == fact


async def test_a_beginning_that_several_ids_have_lists_them(table: Table) -> None:
    facts = [table.hears(job(GRIMJAW, f"job {n}"), 0.5) for n in range(40)]
    first = next(f[0] for f in facts if sum(each.startswith(f[0]) for each in facts) > 1)
    with pytest.raises(InvalidInput, match=f"'{first}' matches several facts: .*Grimjaw, occupation: job"):
        await table.desk.find(first)


async def test_an_unknown_id_is_answered_with_those_most_like_it(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"))
    wrong = ("x" if fact[0] != "x" else "y") + fact[1:8]
    with pytest.raises(NotFound, match=f"no fact '{wrong}' in campaign 'town': nearest: {fact}"):
        await table.desk.find(wrong)
    with pytest.raises(NotFound, match="no fact ''"):
        await table.desk.find("")


async def test_lookup_of_an_ended_fact_says_so(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"))
    await table.desk.reject([fact])
    with pytest.raises(NotFound, match=r"Grimjaw, occupation: smith is no longer held: rejected \(event \d+\)"):
        await table.desk.find(fact)


async def test_confirming_one_of_two_that_disagree_ends_the_other(table: Table) -> None:
    first, second = table.hears(job(GRIMJAW, "smith")), table.hears(job(GRIMJAW, "baker"))
    assert table.fact(second).status == "conflict"
    assert table.fact(second).disputes == (first,)
    decision = await table.desk.confirm([second])
    assert [each.fact.id for each in decision.ended] == [first]
    assert table.fact(second).status == "accepted"


async def test_facts_derived_from_a_rejected_fact_are_stale(table: Table) -> None:
    ground = table.hears(Claim.relation(GRIMJAW, "LOCATED_AT", FORGE))
    derived = table.hears(job(GRIMJAW, "smith"), rests_on=(ground,))
    decision = await table.desk.reject([ground])
    assert [each.ended_as for each in decision.ended] == ["rejected"]
    assert table.fact(derived).status == "stale"


async def test_a_fact_that_is_named_twice_is_decided_on_once(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"), 0.5)
    assert len((await table.desk.confirm([fact, fact[:9]])).events) == 1
    assert len((await table.desk.reject([fact, fact])).ended) == 1


async def test_one_mistake_in_a_list_changes_nothing(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"), 0.5)
    with pytest.raises(NotFound):
        await table.desk.confirm([fact, "nonsense"])
    assert table.fact(fact).status == "pending"


async def test_an_edit_replaces_value_object_or_predicate(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smoth"), 0.5)
    [now] = (await table.desk.edit(fact, value="smith")).facts
    assert (now.claim, now.status) == (job(GRIMJAW, "smith"), "accepted")
    place = table.hears(Claim.relation(GRIMJAW, "LOCATED_AT", FORGE))
    [now] = (await table.desk.edit(place, object="market square")).facts
    assert now.claim == Claim.relation(GRIMJAW, "LOCATED_AT", SQUARE)
    [now] = (await table.desk.edit(now.id, predicate="OWNS")).facts
    assert now.claim == Claim.relation(GRIMJAW, "OWNS", SQUARE)
    [now] = (await table.desk.edit(now.id, predicate="note", value={"said": [1, 2]})).facts
    assert now.claim == Claim.attribute(GRIMJAW, "note", {"said": [1, 2]})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, "give a new value, object or predicate"),
        ({"object": "forge"}, "Grimjaw, occupation: smith is an attribute: give a value, or a predicate, too"),
        ({"object": "forge", "value": 1}, "a fact has either an object (another entity) or a value"),
        ({"predicate": "  "}, "a fact needs a predicate"),
        ({"predicate": "LOCATED_AT", "object": "the frge"}, "no entity 'the frge' in campaign 'town': did you mean"),
        ({"predicate": "KNOWS", "object": "Grimjaw"}, "cannot be related to itself"),
    ],
)
async def test_an_edit_that_makes_no_sense_changes_nothing(table: Table, change: dict[str, object], told: str) -> None:
    fact = table.hears(job(GRIMJAW, "smith"))
    with pytest.raises(InvalidInput, match=re.escape(told)):
        await table.desk.edit(fact, **change)  # type: ignore[arg-type]
    assert table.holds(fact)


async def test_a_retcon_says_it_never_was_so(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"))
    decision = await table.desk.retcon(fact)
    assert [each.ended_as for each in decision.ended] == ["retconned"]
    fact = table.hears(job(ELDRINAX, "wizard"))
    decision = await table.desk.retcon(fact, value="thief")
    assert [each.ended_as for each in decision.ended] == ["retconned"]
    assert [each.claim for each in decision.facts] == [job(ELDRINAX, "thief")]


async def test_closed_fact_was_true_before(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"))
    [ended] = (await table.desk.close(fact, at_ms=500_000)).ended
    assert (ended.ended_as, ended.fact.validity.to_ms) == ("closed", 500_000)


async def test_a_secret_is_known_to_those_who_are_named_and_to_no_others(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "forger"))
    [kept] = (await table.desk.keep_secret(fact, ["mirelle"])).facts
    assert kept.visibility.is_visible_to(INNKEEPER)
    assert not kept.visibility.is_visible_to(SMITH)
    [kept] = (await table.desk.keep_secret(fact, ["Mirelle", "the smith"])).facts
    assert kept.visibility.is_visible_to(SMITH)


async def test_witness_of_a_secret_keeps_knowing_it(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "forger"))
    [kept] = (await table.desk.keep_secret(fact, ["grimjaw", "mirelle"])).facts
    assert {knower.npc: knower.how for knower in kept.visibility.knowers} == {SMITH: "witnessed", INNKEEPER: "secret"}


async def test_hidden_fact_is_unknown_until_revealed(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "forger"))
    [hidden] = (await table.desk.hide(fact)).facts
    assert not any(hidden.visibility.is_visible_to(npc) for npc in (SMITH, INNKEEPER))
    [shown] = (await table.desk.reveal(fact, ["mirelle"])).facts
    assert shown.visibility.is_visible_to(INNKEEPER)
    assert not shown.visibility.is_visible_to(SMITH)
    [shown] = (await table.desk.reveal(fact)).facts
    assert shown.visibility.scope == "public"


async def test_the_dm_notes_that_somebody_told_somebody(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "forger"))
    [told] = (await table.desk.tell(fact, ["mirelle"], by="tamsin")).facts
    [knower] = [each for each in told.visibility.knowers if each.npc == INNKEEPER]
    assert (knower.how, knower.by, knower.at_ms) == ("told", "tamsin", table.now)
    with pytest.raises(NotFound, match=r"no speaker 'tamson' in .*did you mean 'Tamsin'\?"):
        await table.desk.tell(fact, ["mirelle"], by="tamson")
    with pytest.raises(NotFound, match="no NPC 'Eldrinax' in campaign 'town': valid"):
        await table.desk.tell(fact, ["Eldrinax"], by="dm")


async def test_public_fact_cannot_be_told(table: Table) -> None:
    [fact] = (await table.desk.state(NewFact(subject="Grimjaw", predicate="occupation", value="smith"))).facts
    with pytest.raises(InvalidInput, match="Grimjaw, occupation: smith is public: everybody knows it"):
        await table.desk.tell(fact.id, ["mirelle"], by="dm")
    with pytest.raises(InvalidInput, match="is public: there is nothing to reveal"):
        await table.desk.reveal(fact.id)


async def test_a_dm_states_facts_by_hand(table: Table) -> None:
    [fact] = (await table.desk.state(NewFact(subject="the smith", predicate="occupation", value="smith"))).facts
    assert fact.claim == job(GRIMJAW, "smith")
    assert (fact.status, fact.provenance.dm_confirmed, fact.provenance.origin) == ("accepted", True, "dm")
    [fact] = (
        await table.desk.state(NewFact(subject="Grimjaw", predicate="fears", object="Eldrinax", known_by=["Mirelle"]))
    ).facts
    assert fact.claim == Claim.relation(GRIMJAW, "fears", ELDRINAX)
    assert (fact.visibility.scope, [k.npc for k in fact.visibility.knowers]) == ("secret", [INNKEEPER])
    [fact] = (await table.desk.state(NewFact(subject="Grimjaw", predicate="note", value="x", hidden=True))).facts
    assert fact.visibility == Visibility("hidden")
    [fact] = (
        await table.desk.state(NewFact(subject="Grimjaw", predicate="debt", value=5, known_by=["Grimjaw"], hidden=True))
    ).facts
    assert fact.visibility.scope == "hidden" and [knower.npc for knower in fact.visibility.knowers] == [SMITH]


async def test_new_location_ends_the_old_one(table: Table) -> None:
    heard = table.hears(Claim.relation(GRIMJAW, "LOCATED_AT", FORGE))
    decision = await table.desk.state(NewFact(subject="Grimjaw", predicate="LOCATED_AT", object="Market Square"))
    assert [fact.status for fact in decision.facts] == ["accepted"]
    assert [(each.fact.id, each.ended_as) for each in decision.ended] == [(heard, "superseded")]


async def test_a_dm_may_say_what_he_refused_before(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"))
    await table.desk.reject([fact])
    table.hears(job(GRIMJAW, "smith"))
    assert table.fact(fact).status == "pending"
    [said] = (await table.desk.state(NewFact(subject="Grimjaw", predicate="occupation", value="smith"))).facts
    assert said.status == "accepted"


async def test_stated_fact_overwrites_nothing_silently(table: Table) -> None:
    heard = table.hears(job(GRIMJAW, "smith"))
    [fact] = (await table.desk.state(NewFact(subject="Grimjaw", predicate="occupation", value="baker"))).facts
    assert (fact.status, fact.disputes) == ("conflict", (heard,))


@pytest.mark.parametrize(
    ("subject", "predicate", "said", "told"),
    [
        ("Grimjw", "occupation", {"value": 1}, "no entity 'Grimjw' in campaign 'town': did you mean 'Grimjaw'?"),
        ("Grimjaw", "KNOWS", {}, "a fact has either an object (another entity) or a value"),
        ("Grimjaw", "x", {"value": float("nan")}, "is not a value that JSON can hold"),
        ("Grimjaw", "x", {"value": 1, "known_by": ["nobody"]}, "no NPC 'nobody' in campaign 'town'"),
    ],
)
async def test_a_fact_that_makes_no_sense_is_not_stated(
    table: Table, subject: str, predicate: str, said: dict[str, Any], told: str
) -> None:
    before = len(table.world.log)
    with pytest.raises(InvalidInput, match=re.escape(told)):
        await table.desk.state(NewFact(subject=subject, predicate=predicate, **said))
    assert len(table.world.log) == before


async def test_every_decision_is_an_event_of_the_dm(table: Table) -> None:
    fact = table.hears(job(GRIMJAW, "smith"), 0.5)
    decision = await table.desk.confirm([fact])
    [event] = [each for each in table.world.log if each.seq in decision.events]
    assert event.cause == Cause("dm", table.now)


@pytest.mark.parametrize(
    ("scope", "told"),
    [
        (PUBLIC, "public"),
        (HIDDEN, "hidden with Eldrinax"),
        (secret_of([SMITH]), "secret with Eldrinax: Grimjaw"),
    ],
)
async def test_fact_is_as_hidden_as_its_entity_in_words(table: Table, scope: Visibility, told: str) -> None:
    [fact] = (await table.desk.state(NewFact(subject="Eldrinax", predicate="occupation", value="wizard"))).facts
    await table.world.commit(CAMPAIGN, [EntityScoped(ELDRINAX, scope)], Cause("dm", 1))
    assert known_to_in_words(fact, table.world.resolver()) == told
    assert table.desk.state_in_words(fact).endswith(told)


async def test_public_fact_of_a_hidden_entity_names_what_to_reveal(table: Table) -> None:
    [fact] = (await table.desk.state(NewFact(subject="Eldrinax", predicate="occupation", value="wizard"))).facts
    await table.world.commit(CAMPAIGN, [EntityScoped(ELDRINAX, HIDDEN)], Cause("dm", 1))
    with pytest.raises(InvalidInput, match="is hidden with Eldrinax: there is nothing to reveal"):
        await table.desk.reveal(fact.id)
