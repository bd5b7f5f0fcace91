"""The name of a test is subject, condition and result, in at most 70 characters."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 70
LONG = {
    "tests/browser": 11,
    "tests/integration": 154,
    "tests/unit/actors": 3,
    "tests/unit/adapters": 6,
    "tests/unit/app": 3,
    "tests/unit/benchmarks": 4,
    "tests/unit/chronicle": 11,
    "tests/unit/cli": 4,
    "tests/unit/prompt": 27,
    "tests/unit/language": 6,
    "tests/unit/plugins": 9,
    "tests/unit/names": 26,
    "tests/unit/npc": 18,
    "tests/unit/observability": 1,
    "tests/unit/processors": 5,
    "tests/unit/recall": 30,
    "tests/unit/transcript": 16,
    "tests/unit/world": 11,
}
"""How many longer names a folder may still have. Shorten one and lower its number; never raise one."""


def test_no_folder_gains_long_test_names() -> None:
    counts: Counter[str] = Counter()
    for path in ROOT.glob("tests/**/test_*.py"):
        folders = path.relative_to(ROOT).parts[:-1]
        names = re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
        counts["/".join(folders[: 3 if folders[1] == "unit" else 2])] += sum(len(name) > MOST for name in names)
    assert {folder: n for folder, n in counts.items() if n > LONG.get(folder, 0)} == {}
