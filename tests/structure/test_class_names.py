"""One name means one class, wherever it is read."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.structure.product import sources

EXCEPTIONS: dict[str, str] = {
    "UtteranceRetracted": "the same event twice: as the world's log keeps it, and as an open table is told",
}
"""Reasons why several public classes have one name."""


def test_no_two_public_classes_share_a_name() -> None:
    where = defaultdict(list)
    for module, source in sources().items():
        for at in ast.walk(ast.parse(source)):
            if isinstance(at, ast.ClassDef) and not at.name.startswith("_"):
                where[at.name].append(module)
    shared = {name: modules for name, modules in where.items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if name not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() <= shared.keys()
