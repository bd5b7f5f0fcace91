"""Benchmarks as a developer runs them: in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.patience import DEADLINE_S

_ROOT = Path(__file__).resolve().parents[2]


def figures_of(module: str, *options: str | Path, temporary: Path) -> dict[str, Any]:
    """The JSON object in the last line of a benchmark's output.

    Args:
        module: A module of `benchmarks`.
        temporary: Where it may write; a path that a server's account can reach.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *map(str, options)],
        cwd=_ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
