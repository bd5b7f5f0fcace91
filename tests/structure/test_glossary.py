"""The glossary's words are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| `([^`|]+)` \|$", re.MULTILINE)
TERMS = ROW.findall((ROOT / "docs" / "glossary.md").read_text("utf-8"))


def plain(text: str) -> str:
    """However the words are joined: "barge-in", `barge_in` and `BargeIn` are one."""
    return re.sub(r"[\s_-]+", "", text).lower()


def test_no_term_has_two_meanings() -> None:
    terms = [plain(term) for term, _ in TERMS]
    assert len(terms) > 50
    assert sorted(terms) == sorted(set(terms))


@pytest.mark.parametrize(("term", "module"), TERMS)
def test_a_term_is_used_in_the_module_that_is_named(term: str, module: str) -> None:
    path = ROOT / module
    assert path.is_file()
    assert plain(term) in plain(module + path.read_text("utf-8"))
