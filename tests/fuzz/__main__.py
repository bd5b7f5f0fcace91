"""`make fuzz`: every target in turn, for N inputs each or until SECONDS are over."""

from __future__ import annotations

import argparse
import faulthandler
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.fuzz.running import FuzzTarget, fuzz
from tests.fuzz.targets import TARGETS

_ROUND = 500
_STUCK_S = 120.0


def main() -> int:
    """0 when no target failed; each finding is printed with its smallest input."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=5_000, help="inputs for each target")
    parser.add_argument("--seconds", type=float, help="for all targets together; instead of --inputs")
    parser.add_argument("--start", type=int, default=int(time.time()), help="the same start gives the same inputs")
    wanted = parser.parse_args()
    n_failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for target in TARGETS:
            each_s = None if wanted.seconds is None else wanted.seconds / len(TARGETS)
            n_failed += not _run(target, Path(scratch) / "input", (wanted.inputs, each_s, wanted.start))
    return 1 if n_failed else 0


def _run(target: FuzzTarget, scratch: Path, size: tuple[int, float | None, int]) -> bool:
    n_inputs, seconds, start = size
    began, done = time.monotonic(), 0
    while done < n_inputs if seconds is None else time.monotonic() - began < seconds:
        # Ends the process, and says where, when one reader never comes back.
        faulthandler.dump_traceback_later(_STUCK_S, exit=True)
        many = _ROUND if seconds is not None else min(_ROUND, n_inputs - done)
        try:
            fuzz(target, scratch, n_inputs=many, start=start + done)
        except Exception:
            traceback.print_exc()
            print(f"{target.name}: FAILED after {done} inputs; again with --start {start + done}", flush=True)
            return False
        finally:
            faulthandler.cancel_dump_traceback_later()
        done += many
    print(f"{target.name}: {done} inputs in {time.monotonic() - began:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
