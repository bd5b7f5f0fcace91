"""YAML that remembers where everything stands, so that a mistake is reported as `file:line`.

Stricter than YAML where YAML surprises people: a key may stand only once in a mapping, dates stay text, and
what a database could not store (NUL characters, NaN) is refused here, where its line is known.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.constructor import SafeConstructor

from glyphoxa.config.yaml_nodes import compose
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean

Model = TypeVar("Model", bound=BaseModel)
YamlPath = tuple[str | int, ...]

MOST_TOLD = 100
"""Mistakes of one file that are told at once."""
_MAX_BYTES = 4 * 1024 * 1024
_MAX_VALUES = 200_000
_TEXT, _FLOAT = "tag:yaml.org,2002:str", "tag:yaml.org,2002:float"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_SCALARS = {_TEXT, _FLOAT, _TIMESTAMP, *(f"tag:yaml.org,2002:{t}" for t in ("int", "bool", "null"))}


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file. `line` counts from 1."""

    line: int
    text: str


class InvalidFile(InvalidInput):
    """A file that a user wrote cannot be used; the message holds one `file:line: what` for each mistake."""

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems, key=lambda p: p.line))
        lines = [f"{path}:{p.line}: {p.text}" for p in self.problems[:MOST_TOLD]]
        if len(self.problems) > MOST_TOLD:
            lines.append(f"{path}: and {len(self.problems) - MOST_TOLD} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class LocatedYaml:
    """A file's content as plain values, and the line of each of them."""

    path: Path
    value: object
    root: yaml.Node | None

    def line(self, path: Sequence[str | int]) -> int:
        """Line of the value at `path` (keys and indices); of the deepest part of it that is there."""
        node, line = self.root, 1
        if node is not None:
            line = node.start_mark.line + 1
        for step in path:
            found = _step(node, step)
            if found is None:
                break
            line, node = found
        return line

    def problem(self, path: Sequence[str | int], text: str) -> Problem:
        return Problem(self.line(path), text)


def _step(node: yaml.Node | None, step: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item.start_mark.line + 1, item
    return None


def read_yaml(path: Path) -> LocatedYaml:
    """Read one YAML document.

    Raises:
        NotFound: There is no such file.
        InvalidInput: It cannot be read, is not YAML, or holds something that cannot be stored.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"no such file: {path}") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > _MAX_BYTES:
        raise InvalidInput(f"{path}: larger than {_MAX_BYTES // 1024 // 1024} MiB, which no file of this kind is")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidFile(path, [Problem(line, "not UTF-8 text; save the file as UTF-8")]) from None
    try:
        root, constructor = compose(text)
        value = None if root is None else _Builder(path, constructor).build(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidFile(path, [Problem(mark.line + 1 if mark else 1, f"not YAML: {error.problem}")]) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = error.character if isinstance(error.character, int) else ord(error.character)
        raise InvalidFile(path, [Problem(line, f"character U+{character:04X} is not allowed in YAML")]) from None
    except RecursionError:
        raise InvalidInput(f"{path}: nested too deeply") from None
    return LocatedYaml(path, value, root)


class _Builder:
    """Turns nodes into values. An aliased node is built once; what it stands for is counted each time."""

    def __init__(self, path: Path, constructor: SafeConstructor) -> None:
        self._path = path
        self._constructor = constructor
        self._built: dict[int, tuple[object, int]] = {}
        self._open: set[int] = set()

    def build(self, root: yaml.Node) -> object:
        value, _ = self._build(root)
        return value

    def _fail(self, node: yaml.Node, text: str) -> InvalidFile:
        return InvalidFile(self._path, [Problem(node.start_mark.line + 1, text)])

    def _build(self, node: yaml.Node) -> tuple[object, int]:
        known = self._built.get(id(node))
        if known is not None:
            return known
        if id(node) in self._open:
            raise self._fail(node, "this value contains itself")
        self._open.add(id(node))
        if isinstance(node, yaml.MappingNode):
            built = self._mapping(node)
        elif isinstance(node, yaml.SequenceNode):
            parts = [self._build(item) for item in node.value]
            built = [value for value, _ in parts], 1 + sum(size for _, size in parts)
        else:
            built = self._scalar(node), 1
        if built[1] > _MAX_VALUES:
            raise self._fail(node, f"stands for more than {_MAX_VALUES} values (aliases of aliases?)")
        self._open.discard(id(node))
        self._built[id(node)] = built
        return built

    def _mapping(self, node: yaml.MappingNode) -> tuple[object, int]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._fail(key, "a key must be a word")
            line = key.start_mark.line + 1
            if key.value in seen and key.value != "<<":
                raise self._fail(key, f"key {key.value!r} stands here twice, first on line {seen[key.value]}")
            seen[key.value] = line
        self._constructor.flatten_mapping(node)  # resolves `<<: *anchor`
        result: dict[str, object] = {}
        size = 1
        for key, value in node.value:
            result[self._text(key)], part = self._build(value)
            size += part
        return result, size

    def _text(self, node: yaml.Node) -> str:
        text: str = node.value
        if "\0" in text:
            raise self._fail(node, "a NUL character cannot be stored")
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise self._fail(node, "half of a surrogate pair cannot be stored")
        return text

    def _scalar(self, node: yaml.Node) -> object:
        if node.tag not in _SCALARS:
            raise self._fail(node, f"values of type {node.tag!r} are not used here; write it as text in quotes")
        if node.tag in (_TEXT, _TIMESTAMP):
            return self._text(node)
        try:
            value: object = self._constructor.construct_object(node)
        except ValueError:
            raise self._fail(node, f"{node.value!r} is not a number; write it in quotes if it is text") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise self._fail(node, f"{node.value} is not a number that can be stored")
        return value


def validate(source: LocatedYaml, model: type[Model]) -> Model:
    """The file's content as `model`.

    Raises:
        InvalidFile: With one problem for each mistake, at its line.
    """
    content = {} if source.value is None else source.value
    if not isinstance(content, dict):
        raise InvalidFile(source.path, [source.problem((), f"must hold keys ({', '.join(model.model_fields)})")])
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise InvalidFile(source.path, [_located(source, model, detail) for detail in error.errors()]) from None


def _located(source: LocatedYaml, model: type[BaseModel], detail: ErrorDetails) -> Problem:
    path = detail["loc"]
    key = path[-1] if path else ""
    where = ".".join(str(step) for step in path)
    match detail["type"]:
        case "extra_forbidden":
            owner = _model_at(model, path[:-1])
            valid = owner.model_fields if owner else ()
            text = f"unknown key {key!r}, " + did_you_mean(str(key), valid)
        case "missing":
            text = f"{key!r} is missing" + (f" in {'.'.join(map(str, path[:-1]))}" if len(path) > 1 else "")
        case "model_type" | "model_attributes_type" | "dict_type":
            text = f"{where} must hold keys, not {_shown(detail['input'])}"
        case "string_type" if isinstance(detail["input"], dict | list):
            text = f"{where} must be text, not {_shown(detail['input'])}"
        case "string_type":
            text = f"{where} must be text, not {detail['input']!r}; put it in quotes"
        case "tuple_type" | "list_type":
            text = f"{where} must be a list, not {_shown(detail['input'])}"
        case "literal_error":
            expected = str(detail.get("ctx", {}).get("expected", ""))
            valid_values = [word.strip(" '") for word in expected.replace(" or ", ", ").split(",")]
            text = f"{where}: {detail['input']!r} is not valid, " + did_you_mean(str(detail["input"]), valid_values)
        case "value_error":
            text = f"{where}: {detail['msg'].removeprefix('Value error, ')}"
        case _:
            text = f"{where}: {detail['msg'].removeprefix('Input ')}, not {_shown(detail['input'])}"
    return source.problem(path, text)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a block of keys"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "..."


def _model_at(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    current: type[BaseModel] | None = model
    for step in path:
        if isinstance(step, int):
            continue
        if current is None or step not in current.model_fields:
            return None
        current = _model_in(current.model_fields[step].annotation)
    return current


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model that an annotation such as `list[Block] | None` is about."""
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    for part in typing.get_args(annotation):
        found = _model_in(part)
        if found is not None:
            return found
    return None
