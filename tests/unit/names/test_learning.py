from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.ids import EntityId, UtteranceId
from glyphoxa.names.wrong_forms import (
    DECISIONS,
    AlreadyTaken,
    FormHeard,
    PairStatus,
    StepKind,
    Witness,
    effect_of,
    statuses,
)

VUKRADIN, MAREK = EntityId("vukradin"), EntityId("marek")


def changes_something(steps: list[FormHeard], step: FormHeard) -> bool:
    return effect_of(steps, step) == "added"


def is_only_counted(steps: list[FormHeard], step: FormHeard) -> bool:
    return effect_of(steps, step) == "counted"


def history(*steps: FormHeard) -> list[FormHeard]:
    return list(steps)


def a_step(
    kind: StepKind,
    entity: EntityId = VUKRADIN,
    *,
    by: Witness = "dm",
    utterance: str | None = None,
    is_ordinary: bool = False,
) -> FormHeard:
    heard_in = UtteranceId(utterance) if utterance is not None else None
    return FormHeard("fukrudin", "Fukrudin", entity, kind, by, utterance=heard_in, is_ordinary=is_ordinary)


def proved(utterance: str, entity: EntityId = VUKRADIN, *, by: Witness = "llm", is_ordinary: bool = False) -> FormHeard:
    return a_step("proved", entity, by=by, utterance=utterance, is_ordinary=is_ordinary)


def state(*steps: FormHeard, entity: EntityId = VUKRADIN) -> str:
    return statuses(history(*steps))[entity].state


def test_what_the_dm_confirms_is_active_at_once() -> None:
    assert statuses(history(a_step("confirmed"))) == {VUKRADIN: PairStatus("active", 1, ())}


def test_one_proof_is_a_suggestion_and_two_from_different_utterances_are_enough() -> None:
    assert state(proved("u1")) == "suggested"
    assert state(proved("u1"), proved("u1", by="said")) == "suggested"
    assert state(proved("u1"), proved("u2")) == "active"


def test_a_name_that_was_spelled_out_needs_no_second_proof() -> None:
    assert state(proved("u1", by="spelled")) == "active"


def test_ordinary_words_need_more_proof() -> None:
    proofs = [proved(f"u{n}", is_ordinary=True) for n in range(3)]
    assert state(*proofs[:2]) == "suggested"
    assert state(proved("u1", by="spelled", is_ordinary=True)) == "suggested"
    assert state(*proofs) == "active"


def test_the_phonetic_stage_cannot_prove_itself_right() -> None:
    assert state(*(proved(f"u{n}", by="phonetic") for n in range(9))) == "suggested"
    assert state(*(proved(f"u{n}", by="phonetic") for n in range(9)), proved("u9", by="said")) == "active"


def test_what_one_player_types_is_suggested_and_neither_proves_nor_holds_up_anything() -> None:
    assert state(*(proved(f"u{number}", by="typed") for number in range(9))) == "suggested"
    assert state(proved("u1", by="spelled"), proved("u2", MAREK, by="typed")) == "active"
    assert state(proved("u1", by="said"), proved("u2", by="typed")) == "suggested"


def test_what_was_disproved_waits_for_the_dm() -> None:
    steps = [proved("u1"), proved("u2"), a_step("disproved", by="talk")]
    assert state(*steps) == "suggested"
    assert state(*steps, proved("u3"), proved("u4")) == "suggested"
    assert state(*steps, a_step("confirmed")) == "active"


def test_a_form_proved_for_two_names_is_active_for_none_until_the_dm_decides() -> None:
    both = [proved("u1"), proved("u2"), proved("u3", MAREK)]
    assert {each.state for each in statuses(history(*both)).values()} == {"suggested"}
    decided = statuses(history(*both, a_step("confirmed", MAREK)))
    assert (decided[MAREK].state, decided[VUKRADIN].state) == ("active", "suggested")
    rejected = statuses(history(*both, a_step("rejected", MAREK)))
    assert (rejected[MAREK].state, rejected[VUKRADIN].state) == ("rejected", "active")


def test_nothing_is_added_to_what_the_dm_rejected() -> None:
    steps = history(proved("u1"), a_step("rejected"))
    assert not changes_something(steps, proved("u2"))
    assert changes_something(steps, a_step("confirmed"))


def test_the_same_said_twice_is_one_step() -> None:
    steps = history(proved("u1"), a_step("confirmed"))
    assert not changes_something(steps, proved("u1"))
    assert not changes_something(steps, a_step("confirmed"))
    assert changes_something(steps, proved("u2"))


def test_decided_pair_is_only_counted_by_the_phonetic_stage() -> None:
    again = proved("u9", by="phonetic")
    settled = ([proved("u1"), proved("u2")], [a_step("confirmed")], [proved("u1", by="phonetic"), a_step("confirmed")])
    for steps in (history(*each) for each in settled):
        assert not changes_something(steps, again)
        assert is_only_counted(steps, again)
    assert changes_something(history(proved("u1")), again)
    assert changes_something(history(proved("u1"), proved("u2")), replace(again, entity=MAREK))


def test_what_was_heard_before_or_was_rejected_is_not_even_counted() -> None:
    steps = history(proved("u1"), proved("u2"))
    assert not is_only_counted(steps, proved("u1", by="phonetic"))
    assert not is_only_counted(history(*steps, a_step("rejected")), proved("u9", by="phonetic"))
    assert not is_only_counted(steps, a_step("confirmed"))


@pytest.mark.parametrize("by", ["phonetic", "llm"])
def test_a_history_does_not_grow_with_every_utterance(by: Witness) -> None:
    disproved = a_step("disproved", by="talk")  # so that nothing is settled
    kept = played([disproved, *(proved(f"u{n}", by=by) for n in range(5_000))])
    assert len(kept) == 21
    assert is_only_counted(kept, proved("u4999", by=by))
    assert state(*kept, proved("u5000", by="said")) == "suggested"
    assert changes_something(kept, a_step("confirmed"))


def test_two_names_cannot_both_be_confirmed_for_one_form() -> None:
    with pytest.raises(AlreadyTaken, match="already confirmed for 'vukradin'"):
        changes_something(history(a_step("confirmed")), a_step("confirmed", MAREK))
    assert changes_something(history(a_step("confirmed"), a_step("rejected")), a_step("confirmed", MAREK))


def test_where_it_was_heard_is_counted_and_the_last_places_are_kept() -> None:
    status = statuses(history(*(proved(f"u{n}") for n in range(50)), a_step("confirmed")))[VUKRADIN]
    assert status.count == 50
    assert status.utterances == tuple(f"u{n}" for n in range(30, 50))


steps_of_a_form = st.lists(
    st.builds(
        a_step,
        st.sampled_from(["proved", "disproved", "confirmed", "rejected"]),
        st.sampled_from([VUKRADIN, MAREK]),
        by=st.sampled_from(["llm", "phonetic", "spelled", "said", "typed"]),
        utterance=st.sampled_from(["u1", "u2", "u3"]),
        is_ordinary=st.booleans(),
    ),
    max_size=12,
)


def played(steps: list[FormHeard], before: list[FormHeard] | None = None) -> list[FormHeard]:
    """A history to which only steps were added that a store would add."""
    kept = list(before or ())
    for step in steps:
        try:
            if changes_something(kept, step):
                kept.append(step)
        except AlreadyTaken:
            continue
    return kept


def undone(steps: list[FormHeard]) -> list[FormHeard]:
    """The history without the DM's last decision."""
    last = next((step for step in reversed(steps) if step.kind in DECISIONS), None)
    return [step for step in steps if step is not last]


@given(steps_of_a_form)
def test_at_most_one_name_is_active_for_a_form(steps: list[FormHeard]) -> None:
    kept = played(steps)
    while True:
        assert [each.state for each in statuses(kept).values()].count("active") <= 1
        if undone(kept) == kept:
            break
        kept = undone(kept)


@given(steps_of_a_form, st.sampled_from(["confirmed", "rejected"]), st.sampled_from([VUKRADIN, MAREK]))
def test_undoing_a_decision_restores_what_was_before(steps: list[FormHeard], kind: StepKind, entity: EntityId) -> None:
    before = played(steps)
    after = played([a_step(kind, entity)], before)
    if len(after) > len(before):
        assert statuses(undone(after)) == statuses(before)
