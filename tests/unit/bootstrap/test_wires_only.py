"""Bootstrap makes and connects; what works through an evening lives with its own kind."""

from __future__ import annotations

import ast
from pathlib import Path

import glyphoxa.bootstrap

HERE = Path(next(iter(glyphoxa.bootstrap.__path__)))


def test_no_class_in_bootstrap_is_an_actor() -> None:
    modules = sorted(HERE.glob("*.py"))
    assert len(modules) > 10
    actors = [
        f"{path.stem}.{node.name}"
        for path in modules
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(member, ast.AsyncFunctionDef) and member.name == "run" for member in node.body)
    ]
    assert actors == []
