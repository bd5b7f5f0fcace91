"""Nothing is in the product that no entry point reaches."""

from __future__ import annotations

import tomllib

import pytest

from tests.structure.product import PROJECT, sources
from tests.support.reach import Reach

RELATIONS = "to be followed by an NPC that is asked how things hang together"
EXCEPTIONS = {
    "demo.record_players:": "run by hand: it makes the recordings in demo/players",
    "glyphoxa.adapters.postgres.world.graph:PostgresGraph.visible_subgraph": RELATIONS,
    "glyphoxa.adapters.weights.download:Artefact.publisher": "for who reads the manifest: whose weights these are",
    "glyphoxa.recall.guard:MemoryGuard.visible_subgraph": RELATIONS,
    "glyphoxa.world.graph:KnowledgeGraph.visible_subgraph": RELATIONS,
    "glyphoxa.world.graph:Subgraph": RELATIONS,
}
"""By definition, why it stays though nothing reaches it. What it uses itself counts as reached."""


@pytest.fixture(scope="module")
def reach() -> Reach:
    return Reach(sources())


@pytest.fixture(scope="module")
def entry_points() -> list[str]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    return [*project["scripts"].values(), *project["entry-points"]["glyphoxa.pipelines"].values(), "demo.__main__:"]


def test_every_definition_is_reached_or_excepted(reach: Reach, entry_points: list[str]) -> None:
    """Delete what is listed, or add it to the exceptions with the reason. Helpers of tests live in `tests/support`."""
    assert reach.unreached_from([*entry_points, *EXCEPTIONS]) == []


def test_every_exception_is_needed(reach: Reach, entry_points: list[str]) -> None:
    assert EXCEPTIONS.keys() <= set(reach.unreached_from(entry_points))
