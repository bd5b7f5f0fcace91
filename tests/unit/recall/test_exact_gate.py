import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import ALWAYS, HIDDEN, PUBLIC, Claim, Fact, Validity
from glyphoxa.language.language_data import vocabulary_of
from glyphoxa.names.naming import Entry, Speech
from glyphoxa.names.reader import NameReader
from glyphoxa.recall.world import World
from glyphoxa.world.state import WorldEntity, WorldState
from tests.support.proof import n_examples

NPC = NpcId("tamsin")


@dataclass(frozen=True, slots=True)
class Named:
    """An entity if it has names; otherwise a relation between its participants.

    Attributes:
        participants: Both ends of a relation, or those who took part in an event.
        part_of: The event in which the participant of a relation took part.
    """

    id: str
    names: tuple[str, ...] = ()
    kind: str = ""
    participants: tuple[str, ...] = ()
    part_of: str = ""
    has_ended: bool = False
    validity: Validity = ALWAYS

    def claims(self) -> list[Claim]:
        subjects = [EntityId(one) for one in self.participants]
        if self.names:
            return [Claim.relation(one, "PARTICIPATED_IN", EntityId(self.id)) for one in subjects if one != self.id]
        if self.part_of in self.participants:
            whole = EntityId(self.part_of)
            return [Claim.relation(one, "PARTICIPATED_IN", whole) for one in subjects if one != self.part_of]
        return [Claim.relation(one, "KNOWS", other) for one, other in pairwise(subjects)]


def everything(_: Named) -> bool:
    return True


TANKARD = Named("tankard", ("The Rusty Tankard", "the tavern"), "location")
MAREK = Named("marek", ("Marek",), "npc")
WIFE = Named("wife", ("Alenka", "Marek's wife"), "npc")
MARRIED = Named("married", participants=("marek", "wife"))
GUARD_AT_GATE = Named("gate-guard", ("Hobb",), "npc")
GUARD_AT_KEEP = Named("keep-guard", ("Hobb",), "npc")
ELDRINAX = Named("eldrinax", ("Eldrinax the Wise", "K9X"), "npc")
FEUD = Named("feud", ("the feud",), "event", participants=("marek", "eldrinax"))

WORLD = (TANKARD, MAREK, WIFE, MARRIED, GUARD_AT_GATE, GUARD_AT_KEEP, ELDRINAX, FEUD)

RAMBLING = (
    "so, you know, we have been walking since the morning and my feet hurt and nobody told us about the rain, and I "
    "was thinking, before we forget, could you perhaps tell us, if it is no trouble, {} and then we go to bed, because "
    "tomorrow is a long day and I want to see the market before the others wake up and spend all of our money"
)


def a_world(
    items: Iterable[Named], *, may_see: Callable[[Named], bool] = everything, at_ms: int = 0, language: str = "en"
) -> World:
    there = {item.id: item for item in items if item.names and not item.has_ended}
    entities = [
        WorldEntity(EntityId(item.id), item.kind, item.names[0], item.names[1:], PUBLIC if may_see(item) else HIDDEN)
        for item in there.values()
    ]
    facts = {
        claim.fact_id: Fact(
            claim.fact_id,
            claim,
            seq=1,
            status="stale" if item.has_ended else "accepted",
            validity=item.validity,
            visibility=PUBLIC if may_see(item) else HIDDEN,
        )
        for item in sorted(items, key=lambda item: (may_see(item), item.id))
        for claim in item.claims()
        if there.keys() >= set(claim.ends)
    }
    state = WorldState()
    state.load(entities=entities, facts=facts.values())
    return World(state, now_ms=lambda: at_ms, language=language)


def answers(world: World, question: str) -> list[str]:
    return [one.known.entity.id for one in world.by_name(NPC, question)]


def called(
    question: str,
    items: tuple[Named, ...] = WORLD,
    *,
    may_see: Callable[[Named], bool] = everything,
    at_ms: int = 0,
    language: str = "en",
) -> list[str]:
    return answers(a_world(items, may_see=may_see, at_ms=at_ms, language=language), question)


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("Who owns the Rusty Tankard?", ["tankard"]),
        ("who owns the rusty tankard", ["tankard"]),
        ("WHO OWNS THE RUSTY TANKARD", ["tankard"]),
        ("Is that a Rusty Tankard's cup?", ["tankard"]),
        ("What did Marek drink at the tavern?", ["marek", "tankard"]),
        ("Have you seen Eldrinax?", ["eldrinax"]),
        ("Tell me of K9X.", ["eldrinax"]),
        ("I heard Márek sing.", ["marek"]),
    ],
)
def test_whoever_is_named_is_called_for(question: str, ids: list[str]) -> None:
    assert called(question) == ids


@pytest.mark.parametrize(
    "question",
    [
        "",
        "   ",
        "?!",
        "the of and to",
        "How are you today?",
        "I drink from a rusty old cup.",
        "Mare",
        "Marekovich is somebody else.",
        "Was kostet ein Bier, und wer schenkt es aus?",
        "今日は何を飲みますか",
    ],
)
def test_a_question_without_a_name_calls_for_nothing(question: str) -> None:
    assert called(question) == []


@pytest.mark.parametrize(
    ("misspelt", "ids"),
    [
        ("Eldrinaxx", ["eldrinax"]),
        ("Eldrnax", ["eldrinax"]),
        ("Eldrimax", ["eldrinax"]),
        ("Eldirnax", ["eldrinax"]),
        ("the Rusty Tankrad", ["tankard"]),
        ("Mareek", ["marek"]),
        ("Mark", []),  # another name
        ("Aldrinax", []),  # its beginning is wrong
        ("Eldrimaxx", []),  # two typos
        ("K8X", []),
        ("Hoob", []),
        ("Hob", []),
    ],
)
def test_one_typo_is_forgiven_where_a_name_is_long_enough(misspelt: str, ids: list[str]) -> None:
    assert called(f"where may {misspelt} be now") == ids


SISTER = Named("annah", ("Annah",), "npc")
PIRATE = Named("moongoose", ("Moongoose",), "npc")
VAULT = Named("vault", ("Vault 13", "Vault13"), "location")
HARPERS = Named("harpers", ("the Harpers", "silver messengers"), "faction")
OGRE = Named("ogre", ("Ogre",), "monster")
MARAS = Named("maras", ("Maras",), "npc")
CUP = Named("cup", ("Tankard",), "item")
IT = Named("it", ("It",), "monster")
OLD_HALL = Named("old", ("Old Hall",), "location", has_ended=True)
OLD_INN = Named("old", ("Rusty Tankard Inn",), "location", has_ended=True)


@pytest.mark.parametrize(
    ("items", "question", "ids"),
    [
        # In a short word only a doubled letter is forgiven.
        ((SISTER,), "Is Anah here?", ["annah"]),
        ((SISTER,), "Is Anna here?", []),
        # An ordinary word is a typo only where it is written as a name.
        ((PIRATE,), "I saw a mongoose in the yard", []),
        ((PIRATE,), "Mongoose meat is tough", []),
        ((PIRATE,), "I saw Mongoose in the yard", ["moongoose"]),
        ((PIRATE,), "I SAW A MONGOOSE IN THE YARD", []),
        ((VAULT,), "What is in Vault 14?", []),
        # One of several is meant by the plural, and the other way round.
        ((HARPERS, OGRE), "How many ogres were there?", ["ogre"]),
        ((HARPERS, OGRE), "A silver messenger came", ["harpers"]),
        ((MARAS,), "Is Mara there?", []),
        # A name inside a longer one is not called.
        ((TANKARD, CUP), "Who owns the Rusty Tankard?", ["tankard"]),
        ((TANKARD, CUP), "Who owns the Rusty Tankard, and whose Tankard is this?", ["tankard", "cup"]),
        # What was superseded is not called for, not brought along, and hides nothing.
        ((OLD_HALL,), "What of the Old Hall?", []),
        ((TANKARD, OLD_INN), "Where is the Rusty Tankard Inn?", ["tankard"]),
        ((replace(MAREK, has_ended=True), ELDRINAX, FEUD), "the feud", ["feud", "eldrinax"]),
        ((FEUD,), "the feud", ["feud"]),
        # A name that is also a little word needs a capital letter.
        ((IT,), "I fear it", []),
        ((IT,), "I fear It", ["it"]),
        (WORLD, RAMBLING.format("nothing") * 40 + " Marek " + "x" * 1_000, ["marek"]),
    ],
)
def test_names_are_called_by_the_rules_of_the_gate(items: tuple[Named, ...], question: str, ids: list[str]) -> None:
    assert called(question, items) == ids


@pytest.mark.parametrize("place", ["{}", "{} Good night.", "Listen. {}"])
def test_rambling_changes_nothing(place: str) -> None:
    question = "who owns the Rusty Tankard, Marek or Eldrinaxx"
    assert called(place.format(RAMBLING.format(question))) == called(question) == ["tankard", "marek", "eldrinax"]


def test_all_who_share_a_name_are_called_for() -> None:
    assert called("Did Hobb let you in?") == ["gate-guard", "keep-guard"]
    assert called("Did Hobb let you in?", may_see=lambda item: item.id != "gate-guard") == ["keep-guard"]


def test_who_has_the_name_goes_before_who_has_it_as_a_part() -> None:
    smith, lord = Named("smith", ("Thorvald",), "npc"), Named("lord", ("Thorvald Grimsson",), "npc")
    assert called("Ask Thorvald.", (lord, smith)) == ["smith"]
    assert called("Ask Thorvald.", (lord,)) == ["lord"]
    assert called("Ask Thorvald.", (lord, smith), may_see=lambda item: item.id != "smith") == ["lord"]


def test_a_name_inside_that_of_a_relative_is_called() -> None:
    assert called("Where is Marek's wife?") == ["wife", "marek"]
    assert called("Where is Mareek's wife?") == ["wife", "marek"]
    assert called("Where is Marek's wife?", (MAREK, WIFE)) == ["wife"]
    assert called("Where is Marek's wife?", may_see=lambda item: item.id != "married") == ["wife"]


def test_a_relation_brings_those_who_take_part_in_it() -> None:
    assert called("What was the feud about?") == ["feud", "eldrinax", "marek"]
    assert called("What was the feud about?", may_see=lambda item: item.id != "eldrinax") == ["feud", "marek"]
    assert called("What of Marek?") == ["marek"]


def test_who_took_part_in_an_event_comes_along_with_it() -> None:
    battle = Named("battle", ("Battle of Skarn",), "event")
    fought = Named("fought", (), "", ("marek", "battle"), part_of="battle")
    held_at = Named("held at", (), "", ("battle", "tankard"))
    world = (battle, fought, held_at, MAREK, TANKARD)
    assert called("Tell me of the Battle of Skarn", world) == ["battle", "marek"]
    assert called("What of Marek?", world) == ["marek"]
    assert called("the Battle of Skarn", world, may_see=lambda item: item.id != "fought") == ["battle"]
    assert called("the Battle of Skarn", (battle, held_at, MAREK, TANKARD)) == ["battle"]


def test_what_holds_at_a_time_connects_at_that_time() -> None:
    married = replace(MARRIED, validity=Validity(from_ms=1_000, to_ms=2_000))
    world = (MAREK, WIFE, married)
    at = {when: called("Where is Marek's wife?", world, at_ms=when) for when in (999, 1_000, 1_999, 2_000)}
    assert at == {999: ["wife"], 1_000: ["wife", "marek"], 1_999: ["wife", "marek"], 2_000: ["wife"]}


def test_what_is_named_has_its_place_before_what_comes_along() -> None:
    assert called("After the feud, what of the Rusty Tankard?")[:2] == ["feud", "tankard"]


def test_every_answer_says_why() -> None:
    whys = {one.known.entity.id: one.why for one in a_world(WORLD).by_name(NPC, "the feud at the rusty tankrad")}
    assert whys == {
        "feud": "named 'the feud'",
        "tankard": "'the rusty tankrad' is one letter from 'The Rusty Tankard'",
        "marek": "takes part in 'the feud'",
        "eldrinax": "takes part in 'the feud'",
    }


def a_reader(items: Iterable[Named]) -> NameReader:
    reader = NameReader(Speech(vocabulary_of("en"), lambda _: (), lambda _: ""))
    for item in items:
        put(reader, item)
    return reader


def put(reader: NameReader, item: Named) -> None:
    if item.names:
        reader.put(Entry(item.names[0], EntityId(item.id), item.kind, item.names[1:]))


def read(reader: NameReader, text: str) -> list[tuple[str, int, int, bool]]:
    found = reader.mentions(text, lambda _: True)
    return [(one.name.entity_id, one.start, one.end, one.is_typo) for one in found]


def test_in_a_language_without_a_word_list_names_are_found_too() -> None:
    assert called("Kde je Eldrinaxx a Marek?", language="cs") == ["eldrinax", "marek"]


WORDS = ("Marek", "Mareek", "Dorn", "Eldrinax", "Eldrinx", "wife", "the", "tower", "Hobb", "Silver", "Hand", "s")
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
IDS = st.sampled_from(("a", "b", "c", "d", "e", "f", "g"))
ITEMS = st.lists(
    st.builds(
        Named,
        id=IDS,
        names=st.lists(NAMES, max_size=2).map(tuple),
        kind=st.sampled_from(("npc", "location", "event")),
        participants=st.lists(IDS, max_size=2, unique=True).map(tuple),
        part_of=st.just("") | IDS,
        has_ended=st.booleans(),
    ),
    max_size=7,
    unique_by=lambda item: item.id,
)
QUESTIONS = st.lists(st.sampled_from((*WORDS, "Eldrinaxx", "Hands", ",", "Where", "is")), max_size=12).map(" ".join)


@settings(max_examples=n_examples(150), derandomize=True, deadline=None)
@given(ITEMS, st.frozensets(IDS), QUESTIONS)
def test_what_may_not_be_seen_changes_nothing(items: list[Named], seen: frozenset[str], question: str) -> None:
    """Also not what else is found: it is as if it were not there."""
    found = a_world(items, may_see=lambda item: item.id in seen).by_name(NPC, question)
    ended = {item.id for item in items if item.has_ended}
    assert all(one.known.entity.id in seen - ended for one in found)
    assert len({one.known.entity.id for one in found}) == len(found)
    assert found == a_world([item for item in items if item.id in seen]).by_name(NPC, question)


@settings(max_examples=n_examples(100), derandomize=True, deadline=None)
@given(ITEMS, QUESTIONS, st.randoms(use_true_random=False))
def test_the_order_and_the_history_of_names_change_nothing(
    items: list[Named], question: str, dice: random.Random
) -> None:
    shuffled = list(items)
    dice.shuffle(shuffled)
    reader = a_reader(replace(item, names=("Marek Dorn",)) for item in shuffled if item.names)
    put(reader, Named("gone", ("Eldrinax", "Marek")))
    for item in shuffled:
        put(reader, item)
    reader.remove(EntityId("gone"))
    assert read(reader, question) == read(a_reader(items), question)
    assert answers(a_world(shuffled), question) == answers(a_world(items), question)
