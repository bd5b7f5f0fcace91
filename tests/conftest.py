from __future__ import annotations

import gc
import os
import signal
from collections import Counter
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
    # A table freezes what there is when it opens, and unfreezes all when it closes: each table after it would look
    # through the tests again.
    gc.freeze = gc.unfreeze = lambda: None


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
    """The tests of this phase: those of integration and browser before the rest, files that take long first.

    A file is handed out whole to whichever process is free: none that takes long may be left alone at the end. A test
    with a browser or a model counts as ten.
    """
    if phase := config.getoption("phase"):
        chosen: dict[bool, list[pytest.Item]] = {True: [], False: []}
        for item in items:
            chosen[(item.get_closest_marker("realtime") is not None) == (phase == ALONE)].append(item)
        config.hook.pytest_deselected(items=chosen[False])
        items[:] = chosen[True]
    lasts = Counter[Path]()
    for item in items:
        lasts[item.path] += 10 if any(map(item.get_closest_marker, ("browser", "models"))) else 1
    rest = {Path(__file__).parent / folder for folder in ("structure", "unit")}
    items.sort(key=lambda item: (not rest.isdisjoint(item.path.parents), -lasts[item.path], item.path))
