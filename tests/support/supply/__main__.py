"""`make sbom`: the bill of materials in `dist/`, and the page of licences in `docs/`."""
# ruff: noqa: T201 - it says what it wrote

from __future__ import annotations

import sys

from tests.support.supply import licences, sbom
from tests.support.supply.locks import ROOT


def main() -> int:
    """1 where something may not stay; both files are written all the same."""
    path = ROOT / "dist" / "sbom.cdx.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(sbom.bill(), "utf-8")
    licences.write()
    print(f"{path.relative_to(ROOT)} and {licences.REPORT.relative_to(ROOT)} are written")
    wrong = licences.wrong_with(licences.everything())
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
