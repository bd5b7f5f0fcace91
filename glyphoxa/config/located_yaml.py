"""YAML that remembers where everything stands, so that a mistake is reported as `file:line`.

Stricter than YAML where YAML surprises people: a key may stand only once in a mapping, what would lose a part of a text
is refused, and so is what a database could not store. See `glyphoxa.config.yaml_nodes` for what is a number.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from glyphoxa.config.yaml_nodes import Node, Refused, compose
from glyphoxa.config.yaml_nodes import Problem as Problem
from glyphoxa.config.yaml_surprises import short
from glyphoxa.config.yaml_words import in_words
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean

Model = TypeVar("Model", bound=BaseModel)
YamlPath = tuple[str | int, ...]

MOST_TOLD = 100
"""Mistakes of one file that are told at once."""
_MAX_BYTES = 4 * 1024 * 1024
_KEYS_SHOWN = 5
_NO_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""Characters that YAML does not allow."""


class InvalidFile(InvalidInput):
    """A file that a user wrote cannot be used; the message holds one `file:line: what` for each mistake."""

    def __init__(self, path: Path, problems: Iterable[Problem], *, more: int = 0) -> None:
        """
        Args:
            more: How many there are besides.
        """
        self.path = path
        self.problems = tuple(sorted(problems, key=lambda p: p.line))
        lines = [f"{path}:{p.line}: {p.text}" for p in self.problems[:MOST_TOLD]]
        more += max(0, len(self.problems) - MOST_TOLD)
        if more:
            lines.append(f"{path}: and {more} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class LocatedYaml:
    """A file's content as plain values, and the line of each of them.

    Attributes:
        remarks: What its author may have meant otherwise.
    """

    path: Path
    root: Node | None
    remarks: tuple[Problem, ...] = ()

    @property
    def value(self) -> object:
        return None if self.root is None else self.root.value

    def line(self, path: Sequence[str | int]) -> int:
        """Line of the value at `path` (keys and indices); of the deepest part of it that is there."""
        node = self.root
        line = 1 if node is None else node.line
        for step in path:
            if node is None:
                break
            if str(step) in node.keys:
                line, node = node.keys[str(step)]
            elif isinstance(step, int) and step < len(node.items):
                node = node.items[step]
                line = node.line
            else:
                break
        return line

    def problem(self, path: Sequence[str | int], text: str) -> Problem:
        return Problem(self.line(path), text)


def read_yaml(path: Path, text: str | None = None) -> LocatedYaml:
    """Read one YAML document.

    Args:
        text: What the file is to hold, if that is not what it holds now.

    Raises:
        NotFound: There is no such file.
        InvalidInput: It cannot be read, is not YAML, or holds something that cannot be stored.
    """
    text = text_of(path) if text is None else text
    found = _NO_TEXT.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        what = f"character U+{ord(found[0]):04X} is not allowed in YAML; is this a text file, saved as UTF-8?"
        raise InvalidFile(path, [Problem(line, what)])
    try:
        composed = compose(text)
    except yaml.MarkedYAMLError as error:
        line, said = in_words(error, text)
        raise InvalidFile(path, [Problem(line, f"not YAML: {said}")]) from None
    except Refused as refused:
        raise InvalidFile(path, [refused.problem]) from None
    if composed.problems:
        raise InvalidFile(path, composed.problems)
    return LocatedYaml(path, composed.root, tuple(composed.remarks))


def text_of(path: Path) -> str:
    """A whole text file, at most 4 MiB of UTF-8.

    Raises:
        NotFound: There is no such file.
        InvalidInput: It cannot be read, is larger, or is no UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"no such file: {path}") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path}: cannot be read: it is a folder; name the file in it") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > _MAX_BYTES:
        raise InvalidInput(f"{path}: larger than {_MAX_BYTES // 1024 // 1024} MiB, which no file of this kind is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidFile(path, [Problem(line, "not UTF-8 text; save the file as UTF-8")]) from None


def validate(source: LocatedYaml, model: type[Model]) -> Model:
    """The file's content as `model`.

    Raises:
        InvalidFile: With one problem for each mistake, at its line.
    """
    content = {} if source.value is None else source.value
    if not isinstance(content, dict):
        raise InvalidFile(source.path, [source.problem((), f"must hold keys ({', '.join(model.model_fields)})")])
    if content and not content.keys() & model.model_fields.keys():
        # A file of another program: its hundreds of keys are one mistake.
        held = ", ".join(repr(short(key)) for key in list(content)[:_KEYS_SHOWN])
        valid = did_you_mean(next(iter(content)), model.model_fields)
        raise InvalidFile(source.path, [source.problem((), f"holds no key that is known here (but {held}), {valid}")])
    try:
        return model.model_validate(content)
    except ValidationError as error:
        if source.value is None:
            raise InvalidFile(source.path, [Problem(1, f"the file is empty; it holds {_needed(model)}")]) from None
        told = [_located(source, model, detail) for detail in error.errors(include_url=False)[:MOST_TOLD]]
        raise InvalidFile(source.path, told, more=error.error_count() - len(told)) from None


def _needed(model: type[BaseModel]) -> str:
    return ", ".join(f"`{name}:`" for name, field in model.model_fields.items() if field.is_required())


def _located(source: LocatedYaml, model: type[BaseModel], detail: ErrorDetails) -> Problem:
    path = detail["loc"]
    key = path[-1] if path else ""
    where = ".".join(str(short(step)) for step in path)
    if detail["input"] is None and detail["type"] != "missing":
        return source.problem(path, f"{where} has no value: write one, or leave the key out")
    match detail["type"]:
        case "extra_forbidden":
            owner = _model_at(model, path[:-1])
            valid = owner.model_fields if owner else ()
            text = f"unknown key {short(key)!r}, " + did_you_mean(str(key), valid)
        case "missing":
            text = f"{key!r} is missing" + (f" in {'.'.join(map(str, path[:-1]))}" if len(path) > 1 else "")
        case "model_type" | "model_attributes_type" | "dict_type":
            text = f"{where} must hold keys, not {_shown(detail['input'])}"
        case "string_type" if isinstance(detail["input"], dict | list):
            text = f"{where} must be text, not {_shown(detail['input'])}"
        case "string_type":
            text = f"{where} must be text, not {_shown(detail['input'])}; put it in quotes"
        case "tuple_type" | "list_type":
            text = f"{where} must be a list, not {_shown(detail['input'])}"
        case "literal_error":
            expected = str(detail.get("ctx", {}).get("expected", ""))
            valid_values = [word.strip(" '") for word in expected.replace(" or ", ", ").split(",")]
            text = f"{where}: {_shown(detail['input'])} is not valid, " + did_you_mean(
                str(detail["input"]), valid_values
            )
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
    text = repr(short(value))
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
