"""A docstring and each argument's text begin with a verb or a noun, and their lines are filled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("glyphoxa", "processors", "pipelines", "benchmarks", "demo", "tests")
WIDTH = 120
SLACK = 12
"""Columns that a line may leave free although the next line's first word would fit."""

SECTION = re.compile(r' *(?:""")?(Args|Attributes|Returns|Yields|Raises):$')
ENTRY = re.compile(r" *[`*\w][\w., *`]*: (?=\S)")
OPENING = re.compile(r' *(?:r?""")?(Of|By|As|What)\b')
AS_WRITTEN = re.compile(r"^(?:[-*|@>#]|\d+\.|>>>)|\S {2,}\S|[\u2190-\u25ff]")
"""Lists, doctests, tables and drawings, whose lines are not filled."""


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            match statement:
                case ast.Expr(ast.Constant(str()) as text):
                    yield text


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def bad_openings(text: str) -> list[str]:
    """Return the first line and the texts of arguments that begin with Of, By, As or What."""
    lines = text.splitlines()
    found = [lines[0].strip()] if OPENING.match(lines[0]) else []
    entries = -1
    for above, line in pairwise(lines):
        if SECTION.match(above):
            entries = indent(above) + 4
        elif line.strip() and indent(line) < entries:
            entries = -1
        if indent(line) != entries:
            continue
        entry = ENTRY.match(line)
        if (entry or SECTION.match(above)) and OPENING.match(line[entry.end() if entry else 0 :]):
            found.append(line.strip())
    return found


def short_lines(text: str) -> list[str]:
    """Return the lines that end early although their paragraph continues."""
    lines = text.splitlines()
    margin, entries, found = indent(lines[0]), -1, []
    for line, below in pairwise(lines):
        if SECTION.match(line):
            entries = indent(line) + 4
            continue
        if line.strip() and indent(line) < entries:
            entries = -1
        continues = indent(below) == (entries + 4 if entries >= 0 else margin)
        begins = indent(line) in ((entries, entries + 4) if entries >= 0 else (margin,))
        if not (continues and begins and line.strip(' "') and below.strip(' "')) or SECTION.match(below):
            continue
        if AS_WRITTEN.search(line.strip()) or AS_WRITTEN.search(below.strip()):
            continue
        if len(line) + 1 + len(below.split()[0]) <= WIDTH - SLACK:
            found.append(line.strip())
    return found


@cache
def all_docstrings() -> list[tuple[str, str]]:
    """Return the place of each docstring, and its text with its quotes and indentation."""
    found = []
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        source = path.read_text("utf-8")
        lines = source.splitlines()
        for each in docstrings(ast.parse(source)):
            written = "\n".join(lines[each.lineno - 1 : each.end_lineno])
            found.append((f"{path.relative_to(ROOT)}:{each.lineno}", written))
    return found


def test_no_docstring_begins_with_a_relative_word() -> None:
    found = [f"{place}: {line}" for place, text in all_docstrings() for line in bad_openings(text)]
    assert found == []


def test_lines_of_docstrings_are_filled() -> None:
    found = [f"{place}: {line}" for place, text in all_docstrings() for line in short_lines(text)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        '    """What it does."""',
        '    """Read it.\n\n    Args:\n        limit: Of the rows.\n    """',
        '    """Args:\n        limit: Of the rows.\n    """',
        '    """Read it.\n\n    Returns:\n        As `read`.\n    """',
        '    """Read it.\n\n    Args:\n        path: The file.\n        one, two: By name.\n    """',
    ],
)
def test_relative_word_is_found(text: str) -> None:
    assert len(bad_openings(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        '    """Whatever it is, read it."""',
        '    """Read it.\n\n    As before.\n\n    Args:\n        path: The file.\n            Of all.\n    """',
    ],
)
def test_other_opening_is_allowed(text: str) -> None:
    assert bad_openings(text) == []


@pytest.mark.parametrize(
    "text",
    [
        '    """Read it\n    all.\n    """',
        '    """Read.\n\n    Args:\n        path: The\n            file.\n    """',
    ],
)
def test_short_line_is_found(text: str) -> None:
    assert len(short_lines(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        '    """Read it.\n\n    All.\n    """',
        '    """Read it:\n\n        read(it)\n        read(all)\n    """',
        '    """Read.\n\n    >>> read()\n    1\n    """',
        '    """Args:\n        path: The file.\n        limit: The limit.\n    """',
    ],
)
def test_complete_line_is_allowed(text: str) -> None:
    assert short_lines(text) == []
