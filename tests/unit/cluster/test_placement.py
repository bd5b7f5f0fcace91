"""Which node takes a table, and when a node that was cut off closes its tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.errors import Unavailable
from glyphoxa.plugins.cluster.placement import Node, choose, must_close, share_of_lost

FREE = Node("a", "http://a/", capacity=4)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"is_seen": False}, "a does not report"),
        ({"is_draining": True}, "a is draining"),
        ({"tables": 4}, "a holds 4 of 4 tables"),
        ({"memory_used": 0.93}, "a uses 93% of its memory"),
        ({"lag_ms": 140.0}, "a lags 140 ms"),
    ],
)
def test_a_node_that_takes_no_table_says_why(changes: dict[str, object], why: str) -> None:
    with pytest.raises(Unavailable, match=f"no node can take the table of 'moor': {why}; add one"):
        choose([replace(FREE, **changes)], "moor")


def test_without_nodes_that_is_said() -> None:
    with pytest.raises(Unavailable, match="there are no nodes"):
        choose([], "moor")


def test_the_node_with_the_smallest_share_in_use_is_chosen() -> None:
    half, third = replace(FREE, name="half", tables=2), replace(FREE, name="third", capacity=9, tables=3)
    assert choose([half, third], "moor") == third


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(1, 40))
def test_nodes_fill_evenly(capacities: list[int], n_tables: int) -> None:
    nodes = {f"n{n}": Node(f"n{n}", "http://n/", capacity) for n, capacity in enumerate(capacities)}
    for n in range(min(n_tables, sum(capacities))):
        chosen = choose(nodes.values(), f"c{n}")
        nodes[chosen.name] = replace(chosen, tables=chosen.tables + 1)
    shares = [node.tables / node.capacity for node in nodes.values()]
    after_one_more = [(node.tables + 1) / node.capacity for node in nodes.values() if not node.refusal]
    assert all(node.tables <= node.capacity for node in nodes.values())
    assert not after_one_more or max(shares) <= min(after_one_more)


def test_equal_nodes_share_the_campaigns() -> None:
    nodes = [replace(FREE, name=name) for name in "abcd"]
    chosen = {choose(nodes, f"campaign {n}").name for n in range(40)}
    assert chosen == set("abcd")


@pytest.mark.parametrize(
    ("unrenewed_ms", "peers", "answers", "closes"),
    [
        (3_500, 2, [], True),
        (2_500, 2, [], False),  # there is time: nobody may reopen its tables yet
        (3_500, 2, [False, False], False),  # the directory is away for everybody, so nobody can reopen them
        (3_500, 2, [False], False),
        (3_500, 2, [False, True], True),
        (3_500, 0, [], False),  # a lone node
    ],
)
def test_a_node_that_was_cut_off_closes_its_tables_before_others_open_them(
    unrenewed_ms: int, peers: int, answers: list[bool], closes: bool
) -> None:
    assert must_close(unrenewed_ms=unrenewed_ms, lease_ms=4_000, peers=peers, answers=answers) is closes


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=12), st.integers(0, 60))
def test_the_nodes_take_over_all_lost_tables_that_they_have_room_for(held: list[tuple[int, int]], lost: int) -> None:
    nodes = [Node(f"n{n}", "http://n/", most, tables=min(most, now)) for n, (most, now) in enumerate(held)]
    taken = [share_of_lost(nodes, node.name, lost) for node in nodes]
    assert all(0 <= n <= node.capacity - node.tables for n, node in zip(taken, nodes, strict=True))
    assert sum(taken) >= min(lost, sum(node.capacity - node.tables for node in nodes))
