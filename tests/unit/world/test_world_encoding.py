from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.errors import Corrupt, InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Claim, Knower, Validity, Visibility
from glyphoxa.world.encoding import decode, encode, event_type, state_of_parts, state_parts
from glyphoxa.world.event_kinds import EntityAdded, FactClosed, FactStated, FactTold
from glyphoxa.world.event_log import Cause, Event, Undone, WorldEvent, difference, replay
from tests.support.proof import n_examples
from tests.support.world_histories import a_history

TOWN, DM = CampaignId("town"), Cause("dm", 1_000)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Anything that a field of this type may hold."""
    if isinstance(hint, NewType):
        return TEXTS
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return st.one_of(*map(values_of, get_args(hint)))
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) is Mapping:
        return st.dictionaries(TEXTS, VALUES, max_size=3)
    if hint is Claim:
        return CLAIMS
    if is_dataclass(hint):
        return st.builds(hint, **_of_fields(hint))
    return {
        str: TEXTS,
        float: st.floats(0, 1),
        int: st.integers(-(10**12), 10**12),
        bool: st.booleans(),
        NoneType: st.none(),
    }[hint]


def _of_fields(kind: Any) -> dict[str, st.SearchStrategy[Any]]:
    hints = get_type_hints(kind)
    return {field.name: values_of(hints[field.name]) for field in fields(kind)}


PREDICATES = TEXTS.filter(str.strip)
CLAIMS = st.builds(Claim.relation, TEXTS, PREDICATES, TEXTS) | st.builds(Claim.attribute, TEXTS, PREDICATES, VALUES)


@pytest.mark.parametrize("kind", get_args(Event))
def test_what_was_kept_is_read_as_it_was(kind: type[Event]) -> None:
    @settings(max_examples=n_examples(60), derandomize=True, deadline=None)
    @given(values_of(kind))
    def comes_back(event: Event) -> None:
        kept = encode(event)
        assert decode(TOWN, 7, DM, kept.event_type, kept.payload) == WorldEvent(7, DM, event)
        assert kept.event == event

    comes_back()


def test_events_have_the_names_of_what_happened() -> None:
    assert event_type(FactStated(Claim.attribute(EntityId("mira"), "age", 40))) == "fact_stated"
    assert len({event_type_of(kind) for kind in get_args(Event)}) == len(get_args(Event))


def event_type_of(kind: type[Event]) -> str:
    return event_type(object.__new__(kind))


def test_an_event_that_this_program_does_not_know_is_named() -> None:
    with pytest.raises(Corrupt, match="event 7 of campaign 'town' is of type 'moon_rose'"):
        decode(TOWN, 7, DM, "moon_rose", "{}")


@pytest.mark.parametrize(
    ("kind", "payload", "problem"),
    [
        ("undone", '{"event": "first"}', "event: Input should be a valid integer"),
        ("undone", "{}", "event: Field required"),
        ("fact_stated", '{"claim": {"subject": "a", "predicate": "b"}}', "an object or a value"),
        ("entity_added", "{", "payload: Invalid JSON"),
    ],
)
def test_a_payload_that_is_none_is_named_with_its_place(kind: str, payload: str, problem: str) -> None:
    with pytest.raises(Corrupt, match=f"event 7 of campaign 'town' .{kind}. cannot be read: .*{problem}"):
        decode(TOWN, 7, DM, kind, payload)


MIRA = EntityId("mira")


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (EntityAdded(MIRA, "npc", "no\0name"), "NUL"),
        (EntityAdded(MIRA, "npc", "half \ud800"), "cannot be stored"),
        (EntityAdded(MIRA, "npc", 3), "entity_added: name: "),  # type: ignore[arg-type] # a caller's mistake
        (FactClosed(Claim.attribute(MIRA, "age", 1).fact_id, at_ms=10**17), "at_ms must be from"),
        (FactStated(Claim.attribute(MIRA, "age", 1), validity=Validity(story_from=2**63)), "story_from must be from"),
        (FactStated(Claim.attribute(MIRA, "age", 1), attributes={"by": object()}), "cannot be stored as JSON"),
        (FactStated(Claim.attribute(MIRA, "age", 1), attributes={"by": float("nan")}), "cannot be stored as JSON"),
        (FactStated(Claim(MIRA, "age", None, "1e+22")), "created with Claim.attribute"),
        (FactTold(Claim.attribute(MIRA, "age", 1).fact_id, (), "dm", at_ms=-(10**17)), "at_ms"),  # type: ignore[arg-type]
        (
            FactStated(
                Claim.attribute(MIRA, "age", 1),
                visibility=Visibility("told", (Knower("bran", "told", at_ms=10**17),)),  # type: ignore[arg-type]
            ),
            "at_ms",
        ),
    ],
)
def test_what_a_database_cannot_hold_is_refused(event: Event, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        encode(event)


def test_text_that_looks_like_an_escape_is_text() -> None:
    assert encode(EntityAdded(MIRA, "npc", "\\u0000")).event == EntityAdded(MIRA, "npc", "\\u0000")


def test_a_value_that_a_database_would_write_otherwise_is_written_so_at_once() -> None:
    for value in (1e22, [1e300, -0.0], {"a": 1e16}, "1e+22 and -0.0", 1e-7, 0.1):
        text = Claim.attribute(MIRA, "age", value).value
        assert text is not None
        assert Claim.attribute(MIRA, "age", json.loads(text)).value == text
        assert json.loads(text) == value


def test_a_state_is_kept_in_parts() -> None:
    for seed in range(100):
        state = replay(a_history(seed))
        assert difference(state, state_of_parts(state_parts(state))).is_empty


def test_a_state_of_many_rows_has_many_parts() -> None:
    added = [EntityAdded(EntityId(f"e{n}"), "npc", "Somebody") for n in range(1_200)]
    state = replay([WorldEvent(seq, DM, event) for seq, event in enumerate(added, start=1)])
    parts = list(state_parts(state))
    assert len(parts) == 3
    assert difference(state, state_of_parts(parts)).is_empty


def test_a_kept_state_that_is_none_is_said_to_be_none() -> None:
    for part in ('["moons",[]]', '["facts",[{}]]', "nothing"):
        with pytest.raises(Corrupt, match="a stored state"):
            state_of_parts([part])


def test_an_undoing_says_what_it_undoes() -> None:
    assert json.loads(encode(Undone(3)).payload) == {"event": 3}
