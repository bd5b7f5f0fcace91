"""Nothing leaves the machine of a table but what its settings send to a provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.no_network import NOT_PERMITTED
from tests.support.patience import DEADLINE_S

_ROOT = Path(__file__).parents[2]

_ASKS = """
import json, socket
from tests.support.no_network import NOT_PERMITTED, NotPermitted, packets
try:
    with packets() as seen:
        for ask in (
            lambda: socket.getaddrinfo("vale.example", 443),
            lambda: socket.create_connection(("198.51.100.1", 443)),
            lambda: socket.create_connection(("127.0.0.1", 9)),
        ):
            try:
                ask()
            except OSError:
                pass
except NotPermitted as error:
    print(error)
    raise SystemExit(NOT_PERMITTED)
print(json.dumps({"names": sorted(seen.names), "addresses": sorted(seen.addresses)}))
"""

_TELLS_WHEN_IT_IS_IMPORTED = """
import importlib, os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxruntime":
            print("imported with", os.environ.get("ORT_DISABLE_TELEMETRY"))

sys.meta_path.insert(0, Watch())
importlib.import_module(sys.argv[1])
import onnxruntime
"""


def run_alone(*command: str) -> dict[str, list[str]]:
    """Return the report of a program that gives itself a network of its own."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * DEADLINE_S,
    )
    if done.returncode == NOT_PERMITTED:
        pytest.skip(f"this machine lets no test have a network of its own: {done.stdout.strip()}")
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.models
def test_an_evening_whose_providers_are_on_this_machine_asks_nobody_else_and_leaves_nothing_in_the_home(
    reachable_dir: Path,
) -> None:
    found = run_alone("-m", "tests.support.evening_without_network", str(reachable_dir))
    assert found == {"names": [], "addresses": [], "files": []}


def test_whoever_asks_for_a_name_or_an_address_elsewhere_is_seen() -> None:
    found = run_alone("-c", _ASKS)
    assert found["names"] == ["vale.example"]
    assert "198.51.100.1:443" in found["addresses"]
    assert not any(address.startswith("127.") for address in found["addresses"])


@pytest.mark.parametrize("module", ["glyphoxa", "glyphoxa_pipelines.ear"])
def test_reports_of_libraries_are_off_before_they_are_imported_whichever_module_comes_first(module: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    told = subprocess.run(
        [sys.executable, "-c", _TELLS_WHEN_IT_IS_IMPORTED, module],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    ).stdout
    assert set(told.splitlines()) == {"imported with 1"}


def test_whoever_has_set_such_a_switch_otherwise_is_obeyed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import glyphoxa, os; print(os.environ['ORT_DISABLE_TELEMETRY'])"],
        cwd=_ROOT,
        env=os.environ | {"ORT_DISABLE_TELEMETRY": "0"},
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    assert done.stdout == "0\n"
