"""What is pinned is told anyway, once, and takes its place before what is called for."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.precision_gate import Given, Pinned, PinningGate
from glyphoxa.recall.entities.gate import Named
from tests.support.proof import n_examples

MAREK = Named("marek", ("Marek",), "npc")
ELDRINAX = Named("eldrinax", ("Eldrinax the Wise", "K9X"), "npc")
OATH = Named("oath", ("the oath",))
TRUCE = Named("truce", ("the truce",))


def a_gate(*items: tuple[Named, Pinned | None]) -> PinningGate:
    gate = PinningGate((MAREK, ELDRINAX))
    for item, pinned in items:
        gate.put(item, pinned)
    return gate


def test_what_is_pinned_is_told_anyway_and_not_twice() -> None:
    murder = Named("who", ("the murder",))
    gate = a_gate((OATH, Pinned(told_ms=1)), (TRUCE, Pinned(told_ms=2)), (murder, Pinned(is_question=True)))
    for question in ("", "the murder", "Did Marek break the oath?"):
        answer = gate.ask(question)
        assert answer.pinned == (TRUCE, OATH)
        assert answer.questions == (murder,)
    assert [each.item for each in gate.ask("Did Marek break the oath?").called] == [MAREK]


def test_what_is_pinned_has_its_place_before_what_is_called_for() -> None:
    gate = a_gate((OATH, Pinned()), (TRUCE, Pinned()))
    assert [each.item for each in gate.ask("Marek and Eldrinax", limit=3).called] == [MAREK]
    assert gate.ask("Marek and Eldrinax", limit=2).called == ()
    assert len(gate.ask("Marek", limit=1).pinned) == 1
    assert gate.ask("Marek", limit=0) == Given()


def test_what_is_pinned_no_more_is_told_only_if_it_is_asked_for() -> None:
    gate = a_gate((OATH, Pinned()))
    gate.put(OATH)
    assert gate.ask("") == Given()
    assert [each.item for each in gate.ask("the oath").called] == [OATH]
    gate.remove("oath")
    assert gate.ask("the oath") == Given()


IDS = st.sampled_from(("a", "b", "c", "d", "e", "f", "g"))
WORDS = ("Marek", "Mareek", "Dorn", "Eldrinax", "Hobb", "the", "tower")
ITEMS = st.lists(
    st.tuples(
        st.builds(
            Named,
            id=IDS,
            names=st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(tuple),
            kind=st.sampled_from(("npc", "location")),
            has_ended=st.booleans(),
        ),
        st.none() | st.builds(Pinned, st.booleans(), st.integers(0, 2)),
    ),
    max_size=6,
    unique_by=lambda each: each[0].id,
)
QUESTIONS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


@settings(max_examples=n_examples(100), derandomize=True, deadline=None)
@given(ITEMS, st.frozensets(IDS), QUESTIONS, st.none() | st.integers(0, 5), st.randoms(use_true_random=False))
def test_what_may_not_be_seen_and_the_order_of_items_change_nothing(
    items: list[tuple[Named, Pinned | None]],
    seen: frozenset[str],
    question: str,
    limit: int | None,
    dice: random.Random,
) -> None:
    gate, of_seen = PinningGate(), PinningGate()
    for item, pinned in items:
        gate.put(item, pinned)
    shuffled = [each for each in items if each[0].id in seen]
    dice.shuffle(shuffled)
    for item, pinned in shuffled:
        of_seen.put(item, pinned)
    answer = gate.ask(question, may_see=lambda item: item.id in seen, limit=limit)
    told = (*answer.pinned, *answer.questions, *(each.item for each in answer.called))
    assert all(item.id in seen and not item.has_ended for item in told)
    assert len({item.id for item in told}) == len(told)
    assert answer == of_seen.ask(question, limit=limit)
