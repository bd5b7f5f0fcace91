import pytest

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Fact, Visibility, secret_of, witnessed_by
from glyphoxa.language.relations import IN_ENGLISH
from glyphoxa.prompt.select import recalled_of
from glyphoxa.recall.facts import facts_asked
from glyphoxa.recall.world import World
from glyphoxa.world.graph import Known
from glyphoxa.world.state import WorldEntity, WorldState

TANKARD = Entity(EntityId("tankard"), "location", "The Rusty Tankard", ("the tavern",))
MAREK = Entity(EntityId("marek"), "npc", "Marek", ("the smith",))
MILLFORD = Entity(EntityId("millford"), "location", "Millford")
CELLAR = Entity(EntityId("cellar"), "location", "Old Cellar")
GUILD = Entity(EntityId("guild"), "faction", "Owner's League")
ALENKA = Entity(EntityId("alenka"), "npc", "Alenka")


def relation(source: Entity, predicate: str, target: Entity, visibility: Visibility = PUBLIC) -> Fact:
    claim = Claim.relation(source.id, predicate, target.id)
    return Fact(claim.fact_id, claim, 1, visibility=visibility)


def attribute(subject: Entity, name: str, value: str) -> Fact:
    claim = Claim.attribute(subject.id, name, value)
    return Fact(claim.fact_id, claim, 1)


TAVERN = Known(
    TANKARD,
    (attribute(TANKARD, "description", "A low room."), attribute(TANKARD, "speciality", "Eel stew")),
    (
        (relation(TANKARD, "LOCATED_AT", MILLFORD), MILLFORD),
        (relation(ALENKA, "LOCATED_AT", TANKARD), ALENKA),
        (relation(MAREK, "OWNS", TANKARD), MAREK),
        (relation(TANKARD, "OWNS", CELLAR), CELLAR),
    ),
)
SMITH = Known(
    MAREK,
    (attribute(MAREK, "occupation", "blacksmith"), attribute(MAREK, "description", "A giant.")),
    (
        (relation(MAREK, "OWNS", TANKARD), TANKARD),
        (relation(MAREK, "OWNS", CELLAR), CELLAR),
        (relation(MAREK, "MEMBER_OF", GUILD), GUILD),
        (relation(ALENKA, "CHILD_OF", MAREK), ALENKA),
        (relation(MAREK, "SWORN_TO", ALENKA), ALENKA),
        (relation(MAREK, "HOSTILE_TO", ALENKA, secret_of([NpcId("marek")])), ALENKA),
    ),
)


def answers(known: Known, question: str, *named: Entity, language: str = "en") -> list[str]:
    """The answering facts as "PREDICATE other" or "attribute value"."""
    asked = facts_asked(known, question, named={entity.id for entity in named}, language=language)
    if asked.answer is None:
        return []
    told = [f"{fact.claim.predicate} {fact.claim.content}" for fact in asked.answer.attributes]
    return told + [f"{fact.claim.predicate} {other.id}" for fact, other in asked.answer.relations]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Who owns the Rusty Tankard?", ["OWNS marek"]),
        ("Who is the owner of the tavern?", ["OWNS marek"]),
        ("Whose tavern is the Rusty Tankard?", ["OWNS marek"]),
        ("What does the Rusty Tankard own?", ["OWNS marek", "OWNS cellar"]),
        ("Where is the Rusty Tankard?", ["LOCATED_AT millford"]),
        ("What is the speciality of the Rusty Tankard?", ["speciality Eel stew"]),
        ("What is the Rusty Tankard like?", []),
        ("Who are the enemies of the Rusty Tankard?", []),
        ("", []),
    ],
)
def test_a_tavern_is_told_of_by_what_is_asked(question: str, told: list[str]) -> None:
    assert answers(TAVERN, question, TANKARD) == told


@pytest.mark.parametrize(
    ("question", "named", "told"),
    [
        ("Does Marek own the Rusty Tankard?", (MAREK, TANKARD), ["OWNS tankard"]),
        ("What does Marek own?", (MAREK,), ["OWNS tankard", "OWNS cellar"]),
        ("What is Marek's occupation?", (MAREK,), ["occupation blacksmith"]),
        ("Which guild does Marek belong to?", (MAREK,), ["OWNS tankard", "OWNS cellar", "MEMBER_OF guild"]),
        ("Is Marek a member of the Owner's League?", (MAREK, GUILD), ["MEMBER_OF guild"]),
        ("Tell me of Marek and the Owner's League.", (MAREK, GUILD), []),
        ("Who is the daughter of Marek?", (MAREK,), ["CHILD_OF alenka"]),
        ("Who is Marek sworn to?", (MAREK,), ["SWORN_TO alenka"]),
        ("Is Marek hostile to Alenka?", (MAREK, ALENKA), []),
    ],
)
def test_a_smith_is_told_of_by_what_is_asked(question: str, named: tuple[Entity, ...], told: list[str]) -> None:
    assert answers(SMITH, question, *named) == told


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Wem gehört die Schenke The Rusty Tankard?", ["OWNS marek"]),
        ("Wo ist The Rusty Tankard?", ["LOCATED_AT millford"]),
        ("Was gibt es im Rusty Tankard?", []),
    ],
)
def test_in_german_too(question: str, told: list[str]) -> None:
    assert answers(TAVERN, question, TANKARD, language="de") == told


def test_in_a_language_without_words_of_asking_only_a_predicates_own_words_ask_for_it() -> None:
    assert answers(TAVERN, "Kde je The Rusty Tankard?", TANKARD, language="cs") == []
    assert answers(TAVERN, "speciality?", TANKARD, language="cs") == ["speciality Eel stew"]


def test_a_question_that_says_much_beside_is_not_short() -> None:
    assert facts_asked(TAVERN, "Marek, who owns the Rusty Tankard?").is_short
    rambling = "I have walked all day and my feet hurt and I want a bed, so tell me who owns the Rusty Tankard"
    assert not facts_asked(TAVERN, rambling).is_short
    assert answers(TAVERN, rambling) == ["OWNS marek"]


def test_entities_are_called_by_the_gate_and_tied_by_their_facts() -> None:
    wife = Entity(EntityId("wife"), "npc", "Zdenka", ("Marek's wife",))
    married = relation(MAREK, "MARRIED_TO", wife)
    assert by_name(married, "Is Marek's wife at the tavern?", TANKARD, MAREK, wife) == ["wife", "marek", "tankard"]
    stale = married.with_(status="stale")
    assert by_name(stale, "Is Marek's wife at the tavern?", TANKARD, MAREK, wife) == ["wife", "tankard"]


def by_name(fact: Fact, question: str, *entities: Entity) -> list[str]:
    state = WorldState()
    nodes = [WorldEntity(one.id, one.type, one.name, one.aliases) for one in entities]
    state.load(entities=nodes, facts=[fact])
    return [one.known.entity.id for one in World(state, now_ms=lambda: 0).by_name(NpcId("barmaid"), question)]


def test_an_npc_is_told_the_answer_and_why_it_may_know_it() -> None:
    npc = NpcId("barmaid")
    owner = relation(MAREK, "OWNS", TANKARD, secret_of([npc]))
    overheard = Fact(owner.id, owner.claim, 1, visibility=witnessed_by([npc]))
    known = Known(TANKARD, TAVERN.attributes, ((overheard, MAREK),))
    answer = facts_asked(known, "Who owns the Rusty Tankard?").answer
    assert answer is not None
    assert [(told.text, told.reason) for told in recalled_of(answer, npc, IN_ENGLISH)] == [
        ("Marek owns The Rusty Tankard.", "witnessed")
    ]
    assert facts_asked(Known(TANKARD, (), ((owner, MAREK),)), "Who owns the Rusty Tankard?").answer is None


def test_who_is_at_a_place_does_not_say_where_the_place_is() -> None:
    ferry = Entity(EntityId("ferry"), "location", "Ferry Landing")
    known = Known(
        ferry,
        (attribute(ferry, "description", "It lies at the end of Salt Road."),),
        ((relation(MAREK, "LOCATED_AT", ferry), MAREK),),
    )
    assert answers(known, "Where is the Ferry Landing?", ferry) == []
    assert answers(known, "Wo liegt Ferry Landing?", ferry, language="de") == []
