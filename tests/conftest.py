from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.proof import n_examples

# How long an example takes says something of the machine and nothing of the rule that is tested. Where a change is
# judged by whether the tests pass, it is judged by the same examples each time; elsewhere each run tries new ones.
settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=n_examples(100),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("any machine")

# Files are handed out whole, in this order, to whichever process is free: none of these is left alone at the end.
LONGEST_FIRST = (
    "browser/test_evening.py",
    "browser/test_page.py",
    "integration/test_serve_ends.py",
    "integration/test_local_models.py",
    "integration/test_benchmark_turn.py",
    "browser/test_bad_network.py",
    "browser/test_page_for_all.py",
    "integration/test_plans_chunks.py",
    "integration/test_benchmark_memory_run.py",
    "integration/test_demo_processes.py",
    "integration/test_scopes.py",
    "integration/test_inspect_command.py",
    "integration/test_facts_command.py",
    "browser/test_page_turns.py",
    "integration/test_reindex.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files, then those of integration, then the rest."""
    here = Path(__file__).parent
    rank = {here / name: n for n, name in enumerate(LONGEST_FIRST)}
    assert all(path.is_file() for path in rank), f"no such file: {[str(path) for path in rank if not path.is_file()]}"
    items.sort(key=lambda item: (rank.get(item.path, len(rank)), here / "unit" in item.path.parents))
