"""What the entry points of a program reach: modules, classes, functions, methods, fields, constants.

    Reach(sources).unreached_from(["glyphoxa.cli.main:main"])   # ["glyphoxa.turns.playback:Playback.is_over", ...]

The sources are read and not run. Whatever reached code mentions is reached in turn; what a definition mentions counts
only once that is reached itself, so code that only unreached code uses is found too.

- A plain name, or an attribute of an imported module, is followed through the imports to the one definition meant.
- An attribute of anything else (`index.search`) reaches the members of that name in all reached classes: types are not
  inferred. So an unreached member may hide behind a reached one of the same name, and never the other way round.
- A member that overrides one of a library's base class is reached with its class, as the library calls it. So are
  dunder methods, and functions under a decorator that may register them.
- All values of an enumeration are reached where that is called with one (`Kind("npc")`) or gone through.
- A module's dotted name in a string, alone or before a colon and a name, reaches it: entry points, `python -m`. Where
  its last part is filled in (`f"glyphoxa.cli.{verb}"`), each string of that module may be the part. What a module holds
  that is loaded by its name alone is found by name, like the members of a class.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

_CALLED_BY_NOBODY = frozenset(
    {"property", "cached_property", "setter", "staticmethod", "classmethod", "abstractmethod", "overload", "override"}
    | {"contextmanager", "asynccontextmanager", "cache", "lru_cache", "final", "dataclass", "runtime_checkable"}
)
"""Decorators that register nothing: what stands under them is reached by its name alone."""
_BY_NAME = frozenset(("getattr", "hasattr", "setattr", "attrgetter", "methodcaller"))
_IN_A_STRING = re.compile(r"([a-z_]\w*(?:\.[a-z_]\w*)*)(?::([A-Za-z_]\w*))?\Z")


@dataclass
class _Definition:
    """A class, function, field or constant; or, with the name "", what a module runs when it is imported."""

    module: str
    code: list[ast.AST]
    comes_with_its_owner: bool = False
    members: dict[str, _Definition] = field(default_factory=dict)
    bases: list[ast.expr] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    """Those that a pattern may name by their place."""


class Reach:
    """
    Args:
        sources: Text by module ("package.module").
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._trees = {module: ast.parse(source) for module, source in sources.items()}
        self._imports = {module: dict(_imports(tree)) for module, tree in self._trees.items()}
        self._packages = {module.partition(".")[0] for module in sources}
        self._texts = {module: set(_texts(tree)) for module, tree in self._trees.items()}
        self._parents = {f"{module.rpartition('.')[0]}." for module in sources}
        self._library_bases: dict[str, tuple[type, ...]] = {}
        self.tops: dict[str, dict[str, _Definition]] = {}
        self.definitions: dict[str, _Definition] = {}
        for module, tree in self._trees.items():
            held = self.tops[module] = _members(module, tree.body)
            self.definitions |= {f"{module}:{name}": one for name, one in held.items()}
            self.definitions |= {
                f"{module}:{name}.{m}": one for name, top in held.items() for m, one in top.members.items()
            }

    def unreached_from(self, roots: Iterable[str]) -> list[str]:
        """The outermost definitions that nothing reaches; a module ("package.module:") stands for all that it holds.

        Args:
            roots: "package.module:" or "package.module:name", a class with all its members; `KeyError` for one that is
                not there.
        """
        walk = _Walk(self)
        for root in roots:
            walk.enter(root)
            for member in self.definitions[root].members:
                walk.enter(f"{root}.{member}")
        lost = self.definitions.keys() - walk.reached
        return sorted(name for name in lost if lost.isdisjoint(_owners(name)) and self._holds_something(name))

    def _holds_something(self, name: str) -> bool:
        """Unlike an empty `__init__`."""
        return not name.endswith(":") or len(self.tops[name[:-1]]) > 1

    def meant(self, module: str, dotted: str) -> str:
        """The definition that a name, or an attribute of an imported module, stands for in a module; "" for none."""
        if dotted and dotted in self.tops[module]:
            return f"{module}:{dotted}"
        first, _, rest = dotted.partition(".")
        target = self._imports[module].get(first)
        if target is None:
            return ""
        full = f"{target}.{rest}" if rest else target
        if full in self.tops:
            return f"{full}:"
        holder, _, name = full.rpartition(".")
        return self.meant(holder, name) if holder in self.tops else ""

    def is_of_a_library(self, module: str, at: ast.Attribute) -> bool:
        """Such as `re.search`."""
        target = self._imports[module].get(_dotted(at).partition(".")[0], "")
        return bool(target) and target.partition(".")[0] not in self._packages

    def in_string(self, text: str) -> str:
        found = _IN_A_STRING.match(text)
        return f"{found[1]}:{found[2] or ''}" if found and found[1] in self.tops else ""

    def matched(self, module: str, pattern: ast.MatchClass) -> list[str]:
        """The fields that a pattern reads, by keyword or by their place: `Spoke(_, at_ms)`."""
        cls = self.definitions.get(self.meant(module, _dotted(pattern.cls)))
        by_place = zip(cls.fields if cls else (), pattern.patterns, strict=False)
        return pattern.kwd_attrs + [name for name, each in by_place if getattr(each, "name", "") is not None]

    def library_bases(self, name: str) -> tuple[type, ...]:
        """The classes of libraries that a class comes from."""
        if name not in self._library_bases:
            self._library_bases[name] = tuple(self._found_bases(self.definitions[name]))
        return self._library_bases[name]

    def _found_bases(self, definition: _Definition) -> Iterator[type]:
        for base in definition.bases:
            dotted = _dotted(base.value if isinstance(base, ast.Subscript) else base)
            own = self.meant(definition.module, dotted)
            first, *rest = dotted.split(".")
            if own in self.definitions:
                yield from self.library_bases(own)
            elif first in self._imports[definition.module]:
                yield from _loaded(".".join((self._imports[definition.module][first], *rest)))
            else:
                yield from _loaded(f"builtins.{dotted}")

    def values_of(self, module: str, at: ast.AST) -> Iterator[str]:
        """The values of an enumeration that is called with one, or gone through."""
        used = getattr(at, "func", None) or getattr(at, "iter", None)
        name = self.meant(module, _dotted(used)) if isinstance(used, ast.expr) else ""
        if name in self.definitions and any(issubclass(base, Enum) for base in self.library_bases(name)):
            yield from (f"{name}.{member}" for member in self.definitions[name].members)

    def filled_in(self, module: str, at: ast.JoinedStr) -> Iterator[str]:
        """What a formatted string may say that is a package and a part that is filled in."""
        match at.values:
            case [ast.Constant(value=str(package)), ast.FormattedValue()] if package in self._parents:
                yield from (package + text for text in self._texts[module])
            case _:
                pass


class _Walk:
    """From the roots to all that they reach."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._mentioned: set[str] = set()
        self._waiting: dict[str, list[str]] = {}
        """By its name, what is reached as soon as any attribute of that name is mentioned."""
        self.reached: set[str] = set()

    def enter(self, root: str) -> None:
        todo = [root]
        while todo:
            name = todo.pop()
            definition = self._reach.definitions.get(name)
            if definition is None or name in self.reached:
                continue
            self.reached.add(name)
            todo.append(f"{definition.module}:")
            for code in definition.code:
                todo += self._followed(definition.module, code)
            if name.endswith(":"):
                tops = self._reach.tops[definition.module]
                todo += [f"{name}{top}" for top, one in tops.items() if one.comes_with_its_owner]
            todo += self._members(name, definition)

    def _members(self, name: str, cls: _Definition) -> Iterator[str]:
        bases = self._reach.library_bases(name) if cls.members else ()
        for member, one in cls.members.items():
            if one.comes_with_its_owner or any(hasattr(base, member) for base in bases):
                yield f"{name}.{member}"
            else:
                yield from self._when_mentioned(member, f"{name}.{member}")

    def _followed(self, module: str, code: ast.AST) -> Iterator[str]:
        for at in ast.walk(code):
            yield from self._reach.values_of(module, at)
            match at:
                case ast.Import(names=names):
                    yield from (f"{each.name}:" for each in names)
                case ast.ImportFrom(names=names, module=source):
                    yield f"{source}:"
                    yield from (f"{source}.{each.name}:" for each in names)
                case ast.Name(id=name):
                    yield self._reach.meant(module, name)
                case ast.Attribute(attr=name):
                    meant = self._reach.meant(module, _dotted(at))
                    if meant:
                        yield meant
                    elif not self._reach.is_of_a_library(module, at):
                        yield from self._mention(name)
                case ast.MatchClass():
                    for name in self._reach.matched(module, at):
                        yield from self._mention(name)
                case ast.Call(func=ast.Name(id=by), args=[*arguments]) if by in _BY_NAME:
                    for each in arguments:
                        if isinstance(each, ast.Constant) and isinstance(each.value, str):
                            yield from self._mention(each.value)
                case ast.Constant(value=str(text)):
                    yield from self._loaded_by_name(text)
                case ast.JoinedStr():
                    for text in self._reach.filled_in(module, at):
                        yield from self._loaded_by_name(text)
                case _:
                    pass

    def _loaded_by_name(self, text: str) -> Iterator[str]:
        name = self._reach.in_string(text)
        yield name
        if name.endswith(":"):
            for top in self._reach.tops[name[:-1]]:
                yield from self._when_mentioned(top, f"{name}{top}")

    def _when_mentioned(self, name: str, full: str) -> Iterator[str]:
        if name in self._mentioned:
            yield full
        else:
            self._waiting.setdefault(name, []).append(full)

    def _mention(self, name: str) -> Iterator[str]:
        self._mentioned.add(name)
        yield from self._waiting.pop(name, ())


def sources_below(*folders: Path) -> dict[str, str]:
    """The text of every module of some packages, by dotted name."""
    sources = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            sources[".".join(parts).removesuffix(".__init__")] = path.read_text("utf-8")
    return sources


def _owners(name: str) -> set[str]:
    """The module and the class in which a definition stands."""
    module, _, inner = name.partition(":")
    return ({f"{module}:"} if inner else set()) | ({name.rpartition(".")[0]} if "." in inner else set())


def _members(module: str, body: Iterable[ast.stmt]) -> dict[str, _Definition]:
    """What a body defines; under "" all other code in it."""
    found = {"": _Definition(module, [])}
    for statement in _flat(body):
        name, definition = _defined(module, statement)
        known = found.setdefault(name, definition)
        if known is not definition:
            known.code += definition.code
    return found


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, and instead of an `if` or a `try` those within it."""
    for at in body:
        match at:
            case ast.If():
                yield from (ast.Expr(at.test), *_flat((*at.body, *at.orelse)))
            case ast.Try():
                handled = [below for handler in at.handlers for below in handler.body]
                yield from _flat((*at.body, *handled, *at.orelse, *at.finalbody))
            case _:
                yield at


def _defined(module: str, at: ast.stmt) -> tuple[str, _Definition]:
    match at:
        case ast.ClassDef(name=name):
            members = _members(module, at.body)
            code = [*at.bases, *at.keywords, *at.decorator_list, *members.pop("").code]
            fields = [each for each in at.body if isinstance(each, ast.AnnAssign)]
            code += [each.annotation for each in fields]  # pydantic and dataclasses read them when the class is made
            names = [_dotted(each.target) for each in fields]
            for member in members.values() if "TypedDict" in map(_dotted, at.bases) else ():
                member.comes_with_its_owner = True  # its keys are strings
            return name, _Definition(module, code, _is_registered(at), members, at.bases, names)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name, _Definition(module, [at], _is_registered(at))
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, _Definition(module, [value], _is_dunder(name))
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
            return name, _Definition(module, [annotation, *([value] if value else [])], _is_dunder(name))
        case _:
            return "", _Definition(module, [at])


def _is_registered(at: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    calls = (each.func if isinstance(each, ast.Call) else each for each in at.decorator_list)
    return _is_dunder(at.name) or any(_dotted(each).rpartition(".")[2] not in _CALLED_BY_NOBODY for each in calls)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each name that an import anywhere in a module binds, with the dotted name that it stands for."""
    for at in ast.walk(tree):
        match at:
            case ast.Import(names=names):
                for each in names:
                    first = each.name.partition(".")[0]
                    yield each.asname or first, each.name if each.asname else first
            case ast.ImportFrom(names=names, module=source):
                yield from ((each.asname or each.name, f"{source}.{each.name}") for each in names)
            case _:
                pass


def _texts(tree: ast.AST) -> Iterator[str]:
    for at in ast.walk(tree):
        if isinstance(at, ast.Constant) and isinstance(at.value, str):
            yield at.value


def _dotted(at: ast.expr) -> str:
    """ "" for anything but names and attributes of names."""
    match at:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name) if holder := _dotted(value):
            return f"{holder}.{name}"
        case _:
            return ""


def _loaded(dotted: str) -> Iterator[type]:
    """The class of a library, where that is installed."""
    module, _, name = dotted.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return
    if isinstance(found, type):
        yield found
