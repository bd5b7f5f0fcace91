"""axe-core, which finds what keeps people with assistive technology out of a page. Installed for the tests only."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from playwright.async_api import Page

NPM_PACKAGE = "axe-core@4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
INSTALL_WITHIN_S = 300


async def violations(page: Page) -> list[str]:
    """What is seriously or critically wrong with the page as it stands: the rule, the node and why, a line each."""
    await page.evaluate(_source())
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']} ({violation['impact']}): {' '.join(node['target'])}: {node['failureSummary']}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@cache
def _source() -> str:
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glyphoxa" / "test-axe"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not _is_ours(script):
        _install(folder)
    if not _is_ours(script):
        raise RuntimeError(f"{script} is not the axe.min.js of {NPM_PACKAGE}: its SHA-256 is not {SHA256}")
    return script.read_text("utf-8")


def _is_ours(script: Path) -> bool:
    return script.is_file() and hashlib.sha256(script.read_bytes()).hexdigest() == SHA256


def _install(folder: Path) -> None:
    if shutil.which("npm") is None:
        raise RuntimeError(f"the browser tests need npm, to install {NPM_PACKAGE} (apt-get install npm)")
    folder.mkdir(parents=True, exist_ok=True)
    quietly = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--no-package-lock"]
    command = ["npm", "install", *quietly, "--prefix", str(folder), NPM_PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{NPM_PACKAGE} cannot be installed: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.stdout.write(f"browser tests are looked at by {NPM_PACKAGE}, {len(_source())} characters\n")
