"""What the locks under `requirements/` pin, and who asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
LOCKS: Final = ("app", "build", "dev", "mutation", "fuzzing")
"""In this order: what an earlier one holds is named by it."""
PROJECT: Final = "glyphoxa"

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==(?P<version>[^ ;\\]+)(?: ; (?P<marker>.*?))? \\?"
)
_HASH = re.compile(r"    --hash=sha256:([0-9a-f]{64}) ?\\?")
_VIA = re.compile(r"    #(?: via(?= .))? +(?!via$)([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?(?:[ :].*)?")


@dataclass(slots=True)
class LockedPackage:
    """
    Attributes:
        lock: The first lock that holds it: "app" is what the program runs with.
        marker: Where it is installed (PEP 508); "": everywhere.
        sha256: Of its files, sorted: any of them may be installed.
        wanted_by: Packages, and `PROJECT`.
    """

    name: str
    version: str
    lock: str
    marker: str
    sha256: list[str] = field(default_factory=list)
    wanted_by: set[str] = field(default_factory=set)

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def locked(directory: Path = ROOT / "requirements") -> list[LockedPackage]:
    """Every package of every lock, by name and version.

    Raises:
        ValueError: A line is none of a lock with hashes.
    """
    found: dict[tuple[str, str], LockedPackage] = {}
    for lock in LOCKS:
        for package in _of_file(directory / f"{lock}.txt", lock):
            known = found.setdefault((package.name, package.version), package)
            known.wanted_by |= package.wanted_by
            known.sha256 = sorted({*known.sha256, *package.sha256})
    return [found[key] for key in sorted(found)]


def _of_file(path: Path, lock: str) -> Iterator[LockedPackage]:
    package: LockedPackage | None = None
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if pin := _PIN.fullmatch(line):
            if package is not None:
                yield package
            package = LockedPackage(_normal(pin["name"]), pin["version"], lock, pin["marker"] or "")
        elif package is not None and (sha256 := _HASH.fullmatch(line)):
            package.sha256.append(sha256[1])
        elif package is not None and line.startswith("    #"):
            if via := _VIA.fullmatch(line):
                package.wanted_by.add(_normal(via[1]))
        elif line.strip():
            raise ValueError(f"{path}:{number}: no line of a lock with hashes: {line!r}")
    if package is not None:
        yield package


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
