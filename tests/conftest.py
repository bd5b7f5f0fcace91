from __future__ import annotations

import gc
import os
import signal
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
    "browser/test_page.py",
    "integration/test_serve_ends.py",
    "integration/test_local_models.py",
    "integration/test_benchmark_turn.py",
    "integration/test_desk.py",
    "integration/test_desk_pages.py",
    "browser/test_bad_network.py",
    "browser/test_page_for_all.py",
    "integration/test_install.py",
    "integration/test_benchmark_answers_run.py",
    "integration/test_weights_fetch.py",
    "integration/test_wheel.py",
    "integration/test_benchmark_recall_run.py",
    "integration/test_fallbacks.py",
    "integration/test_scope_options.py",
    "integration/test_live_names.py",
    "integration/test_degraded.py",
    "integration/test_backup.py",
    "integration/test_ear.py",
    "integration/test_second_look_models.py",
    "integration/test_demo_processes.py",
    "integration/test_embedded_postgres.py",
    "integration/test_container.py",
    "browser/test_page_turns.py",
)

ALONE, TOGETHER = "alone", "together"


def pytest_configure() -> None:
    """Modules and tests stay to the end: looking through them for garbage, again and again, costs a fifth of collecting
    them, and more with each of the thousands that a test makes.
    """
    gc.disable()
    # A shell lets what it runs in the background ignore Ctrl-C, and children inherit that: the programs that tests
    # start would be deaf to it, too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--phase",
        choices=(ALONE, TOGETHER),
        help="run only the tests that need the machine to themselves, or only those that do not",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that hold nothing for the phase that runs alone need not even be imported for it."""
    if config.getoption("phase") != ALONE or collection_path.suffix != ".py":
        return None
    return True if "pytest.mark.realtime" not in collection_path.read_text(encoding="utf-8") else None


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """The selected tests may all be in one phase."""
    if session.config.getoption("phase") and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests of this phase: the longest files, then those of integration, then the rest."""
    if phase := config.getoption("phase"):
        chosen: dict[bool, list[pytest.Item]] = {True: [], False: []}
        for item in items:
            chosen[(item.get_closest_marker("realtime") is not None) == (phase == ALONE)].append(item)
        config.hook.pytest_deselected(items=chosen[False])
        items[:] = chosen[True]
    here = Path(__file__).parent
    rank = {here / name: n for n, name in enumerate(LONGEST_FIRST)}
    assert all(path.is_file() for path in rank), f"no such file: {[str(path) for path in rank if not path.is_file()]}"
    items.sort(key=lambda item: (rank.get(item.path, len(rank)), here / "unit" in item.path.parents))
