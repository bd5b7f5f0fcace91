"""Code, tests and documents give reasons in words: an id of a catalogue that is not here tells its reader nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
ID = re.compile(r"\b[RC]-\d{2,3}\b")
APPLIED = {"migrations/0009_views.sql"}
"""Databases remember a migration's checksum: one that was applied is never changed, not even in its comments."""


def test_no_line_contains_a_catalogue_id() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    files = [ROOT / name for name in tracked if name and name not in APPLIED]
    texts = {path: path.read_text("utf-8", errors="replace") for path in files if path.is_file()}
    assert len(texts) > 500
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path, text in texts.items()
        if ID.search(text)
        for number, line in enumerate(text.splitlines(), start=1)
        if ID.search(line)
    ]
    assert found == []
