"""A docstring and each argument's text begin with a verb or a noun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("glyphoxa", "processors", "pipelines", "benchmarks", "demo", "tests")
RELATIVE = r"(?:Of|By|As|What)\b"
OPENING = re.compile(RELATIVE)
ENTRY = re.compile(rf"    [`*\w][\w., *`]*: {RELATIVE}|(?<=:\n)    {RELATIVE}(?!.*: )")
"""The text of an argument, or of what is returned or raised."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of modules, classes, functions and attributes, each with its line."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            match statement:
                case ast.Expr(ast.Constant(str() as text)):
                    yield statement.lineno, cleandoc(text)


def bad_openings(text: str) -> list[str]:
    """Return the first line and the texts of arguments that begin with Of, By, As or What."""
    sections = re.findall(r"^(?:Args|Attributes|Returns|Yields|Raises):\n(?: {4}.*\n?|\n)+", text, re.MULTILINE)
    return ([text] if OPENING.match(text) else []) + [line for each in sections for line in ENTRY.findall(each)]


def test_no_docstring_begins_with_a_relative_word() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {each}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(ast.parse(path.read_text("utf-8")))
        for each in bad_openings(text)
    ]
    assert found == []


def test_relative_words_are_found() -> None:
    text = (
        "Of all.\n\nArgs:\n    limit: Of the rows.\n    path: The file.\n        Of all.\n\nReturns:\n    As `read`.\n"
    )
    assert len(bad_openings(text)) == 3
    assert bad_openings("Whatever it is, read it.\n\nAs before.\n") == []
