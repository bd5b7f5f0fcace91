"""The product uses only public names of pipecat, so that a release of pipecat does not break it."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from types import ModuleType

from tests.structure.product import sources

ALLOWED: dict[str, str] = {}
"""`Class.name` -> why pipecat has no public way. May only shrink."""


def test_our_classes_use_no_private_name_of_a_pipecat_class() -> None:
    """Neither read, nor set, nor overridden, not even by accident: a clash of names breaks both."""
    used = {f"{ours.__qualname__}.{name}" for ours in _our_classes() for name in _private_names(ours)}
    assert used == set(ALLOWED)


def test_no_private_name_of_a_pipecat_module_is_imported() -> None:
    imported = {
        f"{module}: {node.module}.{alias.name}"
        for module, text in sources().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pipecat"
        for alias in node.names
        if any(part.startswith("_") for part in f"{node.module}.{alias.name}".split("."))
    }
    assert imported == set()


def _our_classes() -> Iterator[type]:
    for name in sources():
        if name.startswith(("glyphoxa_processors", "glyphoxa_pipelines")):
            module = importlib.import_module(name)
            yield from (each for each in _classes(module) if _bases_of_pipecat(each))


def _classes(module: ModuleType) -> Iterator[type]:
    return (each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__)


def _bases_of_pipecat(ours: type) -> list[type]:
    return [base for base in ours.__mro__ if base.__module__.split(".")[0] == "pipecat"]


def _private_names(ours: type) -> set[str]:
    """Names of `self._x` in the class, and of what it defines, that a pipecat class defines or uses, too."""
    theirs = {name for base in _bases_of_pipecat(ours) for name in _names_of_self(base) | set(vars(base))}
    return {name for name in (_names_of_self(ours) | set(vars(ours))) & theirs if _is_private(name)}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_abc_impl"


def _names_of_self(of: type) -> set[str]:
    """Names of all attributes that a class uses of `self` and `super()`."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(of)))
    except (OSError, TypeError):  # made without source, as by a decorator
        return set()
    return set(_attributes(ast.walk(tree)))


def _attributes(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self") | ast.Call(func=ast.Name(id="super")), attr=name):
                yield name


if __name__ == "__main__":
    for each in _our_classes():
        for used in sorted(_private_names(each)):
            sys.stdout.write(f"{each.__module__}.{each.__qualname__}.{used}\n")
