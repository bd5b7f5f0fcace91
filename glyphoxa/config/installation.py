"""Whether the program is installed as it must be: Python's version, and the packages that Glyphoxa requires."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from glyphoxa.config.check import Finding, Level

OLDEST: Final = (3, 11)
NEWEST: Final = (3, 14)
"""Versions of Python that Glyphoxa supports, both included."""
LOCK: Final = Path(__file__).parents[2] / "requirements" / "app.txt"
"""Of a checkout; an installed package has none."""
_NAME: Final = "glyphoxa"
_NAMED: Final = 5
"""Packages in one line; of more their number is given."""


def python(version: Sequence[int] = sys.version_info[:3], *, place: str = sys.prefix) -> Iterator[Finding]:
    """Whether this version of Python is supported."""
    here = ".".join(map(str, version))
    supported = f"{_dotted(OLDEST)} to {_dotted(NEWEST)}"
    if tuple(version[:2]) < OLDEST:
        remedy = f"install Python {supported} and make a new virtual environment with it"
        yield Finding("error", "python", f"{here} in {place} is too old: {remedy}")
    elif tuple(version[:2]) > NEWEST:
        remedy = f"if something fails, make a virtual environment with Python {supported}"
        yield Finding("warning", "python", f"{here} in {place} is newer than what is supported: {remedy}")
    else:
        yield Finding("ok", "python", f"{here} in {place}")


def packages(path: Sequence[str] | None = None, *, lock: Path = LOCK) -> Iterator[Finding]:
    """Whether what Glyphoxa and its installed extras require is there, and in a checkout as it is locked.

    Args:
        path: Directories with packages; None is where Python looks for them.
    """
    installed = _Installed(sys.path if path is None else path)
    own = installed.find(_NAME)
    if own is None:
        yield Finding("error", "packages", f"{_NAME} itself is not installed: run `pip install {_NAME}`, or `make`")
        return
    extras = tuple(_extras(own, installed))
    named = ("all",) if "all" in extras else extras
    wanted = f"{_NAME}[{','.join(named)}]" if named else _NAME
    is_checkout = lock.is_file()
    remedy = f"`pip install --no-deps --require-hashes -r {lock}`" if is_checkout else f"`pip install -U '{wanted}'`"
    needed, unmet = _walked(installed, extras)
    for parent in sorted({parent for parent, _ in unmet}):
        texts = sorted({text for each, text in unmet if each == parent})
        # What others require of each other is often stricter than what they need.
        level: Level = "error" if parent == _NAME else "warning"
        yield Finding(level, "packages", f"{parent} needs {_listed(texts)}: run {remedy}")
    differing = _differing(installed, lock) if is_checkout else []
    if differing:
        yield Finding("warning", "packages", f"not as {lock} has them: {_listed(differing)}: run {remedy}")
    if not unmet and not differing:
        locked = f", as {lock} has them" if is_checkout else ""
        yield Finding("ok", "packages", f"{wanted} {own.version}, with {len(needed)} packages{locked}")


@dataclass(frozen=True, slots=True)
class _Package:
    version: str
    extras: tuple[str, ...]
    requirements: tuple[Requirement, ...]

    def required(self, extras: AbstractSet[str]) -> list[Requirement]:
        """On this machine, with these extras."""
        return [each for each in self.requirements if _applies(each, {"", *extras})]


class _Installed:
    """Packages by their name, read once each: that takes milliseconds."""

    def __init__(self, path: Sequence[str]) -> None:
        self._path = list(path)
        self._found: dict[str, _Package | None] = {}

    def find(self, name: str) -> _Package | None:
        name = canonicalize_name(name)
        if name not in self._found:
            first = next(iter(distributions(name=name, path=self._path)), None)
            self._found[name] = None if first is None else _read(first)
        return self._found[name]

    def has(self, wanted: Requirement) -> bool:
        """Whether it is there with its extras, in whatever version."""
        found = self.find(wanted.name)
        return found is not None and all(self.find(each.name) for each in found.required(wanted.extras))

    def fault(self, wanted: Requirement) -> str:
        """What is wrong with what is installed of it; empty if nothing is."""
        found = self.find(wanted.name)
        if found is None:
            return f"{wanted.name}{wanted.specifier}, which is not installed"
        if not wanted.specifier.contains(found.version, prereleases=True):
            return f"{wanted.name}{wanted.specifier}, and {found.version} is installed"
        return ""


def _extras(own: _Package, installed: _Installed) -> Iterator[str]:
    """Those of which every package is there, in whatever version."""
    always = own.required(frozenset())
    for extra in own.extras:
        added = [each for each in own.required({extra}) if each not in always]
        is_sum = any(canonicalize_name(each.name) == _NAME for each in added)  # of other extras
        if added and not is_sum and all(installed.has(each) for each in added):
            yield extra


def _walked(installed: _Installed, extras: Sequence[str]) -> tuple[set[str], set[tuple[str, str]]]:
    """Every package that is required, and what is wrong, each with the name of who requires it."""
    needed: set[str] = set()
    unmet: set[tuple[str, str]] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(_NAME, frozenset(extras))]
    while todo:
        name, wanted_extras = todo.pop()
        package = installed.find(name)
        if package is None or (name, wanted_extras) in seen:
            continue
        seen.add((name, wanted_extras))
        for each in package.required(wanted_extras):
            if fault := installed.fault(each):
                unmet.add((name, fault))
            else:
                needed.add(canonicalize_name(each.name))
                todo.append((canonicalize_name(each.name), frozenset(each.extras)))
    return needed - {_NAME}, unmet


def _read(distribution: Distribution) -> _Package:
    """What of its requirements cannot be read is left out."""
    told = distribution.metadata
    requirements = []
    for text in told.get_all("Requires-Dist") or ():
        try:
            requirements.append(Requirement(text))
        except InvalidRequirement:
            continue
    return _Package(told["Version"], tuple(told.get_all("Provides-Extra") or ()), tuple(requirements))


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": each}) for each in extras)


def _differing(installed: _Installed, lock: Path) -> list[str]:
    """Installed in another version than the lock has. What is not installed is another extra's."""
    differing = []
    for line in lock.read_text("utf-8").splitlines():
        if "==" not in line or line.startswith((" ", "#")):
            continue
        locked = Requirement(line.rstrip(" \\"))
        found = installed.find(locked.name) if _applies(locked, {""}) else None
        if found is not None and not locked.specifier.contains(found.version, prereleases=True):
            differing.append(f"{locked.name} {found.version} (locked{locked.specifier})")
    return sorted(differing)


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + more


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
