"""Mutation testing of a random sample: `make mutants SAMPLE=300`.

All mutants of the packages that decide take hours. A sample says what share of them a test notices. It takes as many
from each package, so that a small one is judged as well as a large one, and with the same seed the same ones. A mutant
meets the unit tests that import its module, and those of its package.
"""
# ruff: noqa: T201 - it prints what it finds

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import tomllib
from collections import defaultdict
from math import sqrt
from pathlib import Path

import mutmut.__main__ as mutmut
import pytest
from mutmut.mutation.trampoline import set_mutant_under_test

CPU_S = 150
"""Limit for a mutant's tests. One that takes longer has no end: none of them takes half of that."""


def package_of(mutant: str) -> str:
    """`turns` of `glyphoxa.turns.playback.x_heard__mutmut_3`."""
    return mutant.split(".")[1]


def sample_of(mutants: list[str], *, n: int, seed: int) -> list[str]:
    """About `n` mutants, as many from each package that has so many, in random order."""
    by_package = defaultdict(list)
    for mutant in sorted(mutants):
        by_package[package_of(mutant)].append(mutant)
    dice, each = random.Random(seed), -(-n // len(by_package))
    found = [mutant for of_one in by_package.values() for mutant in dice.sample(of_one, min(each, len(of_one)))]
    dice.shuffle(found)
    return found


def interval(killed: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson)."""
    z, share = 1.96, killed / of
    middle, half = share + z * z / (2 * of), z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of)


def every_mutant() -> list[str]:
    """The names of all mutants; their code is in `mutants/` now, beside the tests."""
    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir(exist_ok=True)
    mutmut.copy_src_dir()
    mutmut.copy_also_copy_files()
    mutmut.setup_source_paths()
    mutmut.create_mutants(os.cpu_count() or 1)
    return [name for _, name, _ in mutmut.collect_source_file_mutation_data(mutant_names=[])[0]]


def tests_for(mutant: str) -> list[str]:
    """The files that import the module, the nearest first, and then the others of its package."""
    module = mutant.rsplit(".", 1)[0]
    own = f"tests/unit/{package_of(mutant)}/"
    files = {str(path): path.read_text("utf-8") for path in sorted(Path("tests/unit").rglob("test_*.py"))}
    near = sorted((path for path, text in files.items() if module in text), key=lambda path: not path.startswith(own))
    return near + [path for path in files if path.startswith(own) and path not in near]


def started(mutant: str, options: list[str]) -> int:
    """Starts the tests of a mutant in a process of its own, and returns its id: it ends with 0 when none has failed."""
    if pid := os.fork():
        return pid
    spent = int(sum(os.times()[:2]))
    resource.setrlimit(resource.RLIMIT_CPU, (spent + CPU_S, spent + CPU_S + 1))
    set_mutant_under_test(mutant)
    with Path(os.devnull).open("w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        os._exit(int(pytest.main(["-x", *options, *tests_for(mutant)])))


def lived_of(mutants: list[str], *, n_processes: int) -> list[str]:
    """Those that no test has noticed, each said as soon as it is known."""
    options = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["tool"]["mutmut"]["pytest_add_cli_args"]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "glyphoxa")]:
        del sys.modules[name]  # those of the directory with the mutants take their place
    os.chdir("mutants")
    sys.path.insert(0, str(Path.cwd()))
    set_mutant_under_test("")
    if pytest.main(["--collect-only", "-qq", *options, "tests/unit"]) != pytest.ExitCode.OK:
        raise SystemExit("the tests cannot be collected")
    waiting, running, lived = list(mutants), {}, []
    while waiting or running:
        while waiting and len(running) < n_processes:
            mutant = waiting.pop(0)
            running[started(mutant, options)] = mutant
        pid, status = os.wait()
        mutant, code = running.pop(pid), os.waitstatus_to_exitcode(status)
        if code == 0:
            lived.append(mutant)
        print("lived " if code == 0 else "killed" if code == 1 else f"{code:6}", mutant, flush=True)
    return lived


def report(mutants: list[str], lived: list[str], *, of_all: list[str]) -> None:
    """The share that was killed: by package, and of all by the size of each package."""
    share = variance = 0.0
    print(f"\n{'package':12} {'mutants':>8} {'tried':>6} {'killed':>7}  share (95 % interval)")
    for name in sorted({package_of(mutant) for mutant in mutants}):
        n_all, tried = (sum(package_of(mutant) == name for mutant in some) for some in (of_all, mutants))
        killed = tried - sum(package_of(mutant) == name for mutant in lived)
        low, high = interval(killed, tried)
        print(f"{name:12} {n_all:8} {tried:6} {killed:7}  {killed / tried:.0%} ({low:.0%} to {high:.0%})")
        share += n_all / len(of_all) * killed / tried
        variance += ((high - low) / 2 * n_all / len(of_all)) ** 2
    print(f"all, each package by its size: {share:.1%} ± {sqrt(variance):.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.mutants", description=__doc__)
    parser.add_argument("sample", type=int, help="about so many mutants")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    of_all = every_mutant()
    mutants = sample_of(of_all, n=given.sample, seed=given.seed)
    report(mutants, lived_of(mutants, n_processes=os.cpu_count() or 1), of_all=of_all)


if __name__ == "__main__":
    main()
