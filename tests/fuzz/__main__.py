"""`make fuzz`: every target in turn, for N inputs each or until SECONDS are over."""

from __future__ import annotations

import argparse
import faulthandler
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.fuzz.running import FuzzTarget, fuzz, seeds_of
from tests.fuzz.targets import TARGETS

_ROUND = 500
_STUCK_S = 120.0
_LONGEST_WORD = 64
"""Limit of a word in libFuzzer's dictionaries."""
_TOLD = 4_000


def main() -> int:
    """0 when no target failed; each finding is printed with its smallest input."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=5_000, help="inputs for each target")
    parser.add_argument("--seconds", type=float, help="for all targets together; instead of --inputs")
    parser.add_argument("--start", type=int, default=int(time.time()), help="the same start gives the same inputs")
    parser.add_argument("--guided", action="store_true", help="led by what each input reaches, with atheris")
    parser.add_argument("--only", choices=[target.name for target in TARGETS], help="this target alone")
    wanted = parser.parse_args()
    targets = [target for target in TARGETS if wanted.only in (None, target.name)]
    n_failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for target in targets:
            each_s = None if wanted.seconds is None else wanted.seconds / len(targets)
            size = wanted.inputs, each_s, wanted.start
            n_failed += not (_guide if wanted.guided else _run)(target, Path(scratch) / "input", size)
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


def _guide(target: FuzzTarget, scratch: Path, size: tuple[int, float | None, int]) -> bool:
    """In a process of its own: atheris ends the one it runs in."""
    n_inputs, seconds, start = size
    corpus = scratch.parent / target.name
    corpus.mkdir()
    for number, seed in enumerate(seeds_of(target)):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = scratch.parent / f"{target.name}.words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words if len(word) <= _LONGEST_WORD), "ascii")
    length = f"-runs={n_inputs}" if seconds is None else f"-max_total_time={max(1, round(seconds))}"
    flags = [length, f"-seed={start % 2**31 or 1}", f"-timeout={_STUCK_S:.0f}", "-rss_limit_mb=4096", f"-dict={words}"]
    command = [sys.executable, "-m", "tests.fuzz.guided", target.name, str(scratch), str(corpus), *flags]
    done = subprocess.run(
        [*command, f"-artifact_prefix={target.name}-", "-print_final_stats=1"],
        capture_output=True,
        text=True,
        check=False,
    )
    figures = dict(re.findall(r"^stat::(\w+):\s+(\d+)$", done.stderr, re.MULTILINE))
    reached = re.findall(r"cov: (\d+)", done.stderr) or ["0"]
    print(
        f"{target.name}: {figures.get('number_of_executed_units', '0')} inputs, guided; reached {reached[0]} places"
        f" with the seeds, {reached[-1]} in the end; {figures.get('peak_rss_mb', '?')} MB at most",
        flush=True,
    )
    if done.returncode:
        print(done.stderr[-_TOLD:], file=sys.stderr)
        print(f"{target.name}: FAILED; the input is kept beside, see above", flush=True)
    return not done.returncode


def _escaped(word: bytes) -> str:
    """Escape a word for a dictionary of libFuzzer."""
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    sys.exit(main())
