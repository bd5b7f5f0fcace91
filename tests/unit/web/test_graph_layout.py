"""Where the entities around one of them are drawn."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.web.desk.world import RING, radial


def test_empty_graph_draws_nothing() -> None:
    assert radial({}, []) == {}


def test_nearer_entities_are_drawn_nearer_and_beside_their_path() -> None:
    at = radial(
        {"inn": 0, "cook": 1, "smith": 1, "forge": 2, "pot": 2},
        [("inn", "cook"), ("smith", "inn"), ("forge", "smith"), ("cook", "pot")],
    )
    assert (at["inn"].x, at["inn"].y) == (0, 0)
    assert {name: round(math.hypot(point.x, point.y) / RING) for name, point in at.items()} == {
        "inn": 0,
        "cook": 1,
        "smith": 1,
        "forge": 2,
        "pot": 2,
    }
    for near, far in (("smith", "forge"), ("cook", "pot")):
        assert math.isclose(math.atan2(at[near].y, at[near].x), math.atan2(at[far].y, at[far].x), abs_tol=0.01)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 20)), max_size=60))
def test_no_two_names_stand_on_each_other(nodes: list[tuple[int, int]]) -> None:
    ordered = sorted(enumerate(nodes), key=lambda each: each[1][0])
    depths = {"middle": 0} | {f"n{i}": depth for i, (depth, _) in ordered}
    edges = [(f"n{i}", f"n{to}") for i, (_, to) in enumerate(nodes)]
    at = radial(depths, edges)
    assert set(at) == set(depths)
    assert len(set(at.values())) == len(depths)
    assert radial(depths, edges) == at
