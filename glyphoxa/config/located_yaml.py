"""Read YAML with the line of each value, so that a mistake is reported as `file:line`.

This reader is stricter than YAML where YAML surprises people. A key may stand only once in a mapping. A text that would
lose a part is refused, and so is text that a database cannot store.

A scalar is a number only if the number, written again, is the same text: `12:30`, `007`, `1_000`, `1.50` and a number
of thousands of digits stay text, as do dates, `yes`, `no`, `on` and `off`. Nothing is lost by that: a setting that is a
number or a switch takes all of them.

The reader composes values from the parser's events, within limits that it checks before it expands anything. An alias
or a merge key refers to the value that was built once, and counts with its full size. So a few hundred bytes cannot
stand for gigabytes. PyYAML's own composer has no limits: a text of 200,000 brackets crashes the process there. For a
file of 19,000 entities, it alone takes longer than this reader, because it keeps more objects for each value. Its nodes
lack the anchors, so that `&Co the merchants` would lose a word.
"""

from __future__ import annotations

import copy
import re
import typing
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ValidationError
from pydantic_core import ErrorDetails

from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import INVISIBLE

if yaml.__with_libyaml__:
    from yaml._yaml import CParser as _Parser
else:
    from yaml import SafeLoader as _Parser  # type: ignore[assignment]

Model = TypeVar("Model", bound=BaseModel)
YamlPath = tuple[str | int, ...]
"""Keys, and indices of lists."""
Wrong = Iterator[tuple[YamlPath, str]]
"""Paths in a file, each with what is wrong there."""

MOST_TOLD: Final = 100
"""Mistakes of one file that are reported at once."""
MOST_VALUES: Final = 100_000
MOST_CHARACTERS: Final = 8 * 1024 * 1024
DEEPEST: Final = 100
_MOST_BYTES: Final = 4 * 1024 * 1024
_LONGEST_KEY: Final = 1_000
_KEYS_SHOWN: Final = 5
_MOST_KEYS: Final = 7
_NO_TEXT: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""Characters that YAML does not allow."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file. `line` counts from 1."""

    line: int
    text: str


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
        self.paths: tuple[YamlPath, ...] = ()
        """Paths of the wrong values, if they are known."""


@dataclass(slots=True, eq=False)
class Node:
    """A value, where it stands, and its size with all that it refers to.

    Attributes:
        line: From 1.
        column: From 0.
        end: Index of the first character after a scalar or a value between brackets. A block's is where the next
            value begins.
        keys: For a mapping: the line of each key, and its value.
        items: For a sequence: its values.
        is_plain: A scalar without quotes.
        is_flow: Between brackets or braces.
    """

    line: int
    column: int = 0
    end: int = 0
    value: Any = None
    size: int = 1
    n_characters: int = 0
    keys: dict[str, tuple[int, Node]] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)
    is_plain: bool = False
    is_flow: bool = False


@dataclass(frozen=True, slots=True)
class LocatedYaml:
    """A file's content as plain values, and the line of each of them.

    Attributes:
        remarks: Entries whose author may have meant something else.
    """

    path: Path
    root: Node | None
    remarks: tuple[Problem, ...] = ()

    @property
    def value(self) -> object:
        return None if self.root is None else self.root.value

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of the value at `path`, or of the deepest part of the path that exists."""
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
        text: Content to read instead of the file's own.

    Raises:
        NotFound: There is no such file.
        InvalidInput: It cannot be read, is not YAML, or holds something that cannot be stored.
    """
    text = text_of(path) if text is None else text
    found = _NO_TEXT.search(text)
    if found is not None:
        what = f"character U+{ord(found[0]):04X} is not allowed in YAML; is this a text file, saved as UTF-8?"
        if found[0] == "\ufeff":
            what = f"{character_in_words(found[0])} is not allowed in YAML; remove it"
        raise InvalidFile(path, [Problem(text.count("\n", 0, found.start()) + 1, what)])
    composer = _Composer(text)
    try:
        root = composer.root()
    except yaml.MarkedYAMLError as error:
        line, said = _odd_character(error, text) or _in_words(error, text)
        raise InvalidFile(path, [Problem(line, f"not YAML: {said}")]) from None
    except _Refused as refused:
        raise InvalidFile(path, [refused.problem]) from None
    if composer.problems:
        raise InvalidFile(path, composer.problems)
    return LocatedYaml(path, root, tuple(composer.remarks))


def text_of(path: Path) -> str:
    """Read a whole text file.

    Raises:
        NotFound: There is no such file.
        InvalidInput: It cannot be read, is larger, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"no such file: {path}") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path}: cannot be read: it is a folder; name the file in it") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > _MOST_BYTES:
        raise InvalidInput(f"{path}: larger than {_MOST_BYTES // 1024 // 1024} MiB, which no file of this kind is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidFile(path, [Problem(line, "not UTF-8 text; save the file as UTF-8")]) from None


def validate(source: LocatedYaml, model: type[Model], *, folder: Path | None = None) -> Model:
    """Return the file's content as `model`.

    Args:
        folder: The value of `context["folder"]` for validators of the model.

    Raises:
        InvalidFile: With one problem for each mistake, at its line.
    """
    content = {} if source.value is None else source.value
    if not isinstance(content, dict):
        raise InvalidFile(
            source.path, [source.problem((), f"must be keys with values ({', '.join(model.model_fields)})")]
        )
    if content and not content.keys() & model.model_fields.keys():
        # A file of another program: its hundreds of keys are one mistake.
        held = ", ".join(repr(short(key)) for key in list(content)[:_KEYS_SHOWN])
        valid = did_you_mean(next(iter(content)), model.model_fields)
        raise InvalidFile(source.path, [source.problem((), f"has no known key (only {held}), {valid}")])
    try:
        return model.model_validate(content, context=folder and {"folder": folder})
    except ValidationError as error:
        if source.value is None:
            needed = ", ".join(f"`{name}:`" for name, field in model.model_fields.items() if field.is_required())
            raise InvalidFile(source.path, [Problem(1, f"the file is empty; it needs {needed}")]) from None
        details = error.errors(include_url=False)
        told = [_located(source, model, detail) for detail in details[:MOST_TOLD]]
        wrong = InvalidFile(source.path, told, more=len(details) - len(told))
        wrong.paths = tuple(detail["loc"] for detail in details)
        raise wrong from None


def validate_in_part(source: LocatedYaml, model: type[Model], *, needed: Set[str]) -> tuple[Model, InvalidFile | None]:
    """Return the content without the values that are wrong, so that the rest can be checked, and what is wrong.

    Args:
        needed: Keys without which the rest cannot be checked.

    Raises:
        InvalidFile: The rest cannot be checked without the values that are wrong.
    """
    try:
        return validate(source, model), None
    except InvalidFile as error:
        wrong = error
    content = copy.deepcopy(source.value)
    if (
        not wrong.paths
        or len(wrong.paths) > MOST_TOLD
        or not all(_removed(content, path, needed) for path in wrong.paths)
    ):
        raise wrong
    try:
        return model.model_validate(content), wrong
    except ValidationError:
        raise wrong from None


def _removed(content: Any, path: YamlPath, needed: Set[str]) -> bool:
    """Remove a value of a block, with the list that it is in; return whether that was possible."""
    *above, key = path[:3] if len(path) > 1 and isinstance(path[1], int) else path[:2]
    if not above or key in needed:
        return False
    for step in above:
        content = content[step]
    if isinstance(content, dict) and key in content:
        del content[key]
        return True
    return isinstance(content, dict) and path[: len(above) + 1] != path  # an inner mistake of the same value


def _located(source: LocatedYaml, model: type[BaseModel], detail: ErrorDetails) -> Problem:
    path = detail["loc"]
    key = path[-1] if path else ""
    where = _where(source, path)
    if detail["input"] is None and detail["type"] != "missing":
        return source.problem(path, f"{where} has no value: write one, or remove the key")
    match detail["type"]:
        case "extra_forbidden":
            owner = _model_at(model, path[:-1])
            valid = owner.model_fields if owner else ()
            text = f"unknown key {short(key)!r}, " + did_you_mean(str(key), valid)
            if odd := odd_character(str(key)):
                text += f" ({character_in_words(odd)} is part of the key)"
        case "missing":
            text = f"{key!r} is missing" + (f" in {'.'.join(map(str, path[:-1]))}" if len(path) > 1 else "")
        case "model_type" | "model_attributes_type" | "dict_type":
            owner = _model_at(model, path)
            keys = f" ({', '.join(owner.model_fields)})" if owner and len(owner.model_fields) <= _MOST_KEYS else ""
            names = "names, each with a block of " if owner and detail["type"] == "dict_type" else ""
            text = f"{where} must be a block of {names}keys{keys}, not {_shown(detail['input'])}"
        case "string_type" if isinstance(detail["input"], dict | list):
            text = f"{where} must be text, not {_shown(detail['input'])}; put text that begins with [ or {{ in quotes"
        case "string_type":
            text = f"{where} must be text, not {_shown(detail['input'])}; put it in quotes"
        case "tuple_type" | "list_type":
            given = detail["input"]
            fits = isinstance(given, str) and re.fullmatch(r"[\w' -]+", given)
            text = f"{where} must be a list" + (f": [{short(given)}]" if fits else f", not {_shown(given)}")
        case "literal_error":
            expected = str(detail.get("ctx", {}).get("expected", ""))
            valid_values = [word.strip(" '") for word in expected.replace(" or ", ", ").split(",")]
            text = f"{where}: {_shown(detail['input'])} is not valid, " + did_you_mean(
                str(detail["input"]), valid_values
            )
        case kind if kind in _EXPECTED:
            limit = next(iter(detail.get("ctx", {}).values()), "")
            text = f"{where} must be {_EXPECTED[kind].format(limit)}, not {_shown(detail['input'])}"
        case "value_error":
            text = f"{where}: {detail['msg'].removeprefix('Value error, ')}"
        case _:
            text = f"{where}: {detail['msg'].removeprefix('Input ')}, not {_shown(detail['input'])}"
    return source.problem(path, text)


_EXPECTED: Final = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {}",
    "greater_than_equal": "at least {}",
    "less_than": "less than {}",
    "less_than_equal": "at most {}",
    "string_too_short": "text",
    "string_too_long": "text of at most {} characters",
    "too_short": "a list that is not empty",
}
"""The expected value for each kind of error of pydantic that names one; `{}` is the limit."""


def written_as(pattern: str, example: str) -> AfterValidator:
    """Validate that a text matches a pattern; the message shows the example."""

    def check(text: str) -> str:
        if re.search(pattern, text) is None:
            raise ValueError(f"must look like {example}")
        return text

    return AfterValidator(check)


_CALLED: Final = ("name", "entity", "location")
"""Keys whose value names their block."""


def _where(source: LocatedYaml, path: YamlPath) -> str:
    """Return where a value is, such as `aliases of 'Rusk'`, or `server.ice_servers.0.urls` if its block has no name."""
    if len(path) > 2 and isinstance(path[0], str) and isinstance(path[1], int) and isinstance(source.value, dict):
        blocks = source.value.get(path[0])
        block = blocks[path[1]] if isinstance(blocks, list) and path[1] < len(blocks) else None
        called = [block[key] for key in _CALLED if isinstance(block.get(key), str)] if isinstance(block, dict) else []
        if called:
            return f"{'.'.join(str(short(step)) for step in path[2:])} of {short(called[0])!r}"
    return ".".join(str(short(step)) for step in path)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a block of keys"
    if isinstance(value, list):
        return "a list"
    text = repr(short(value))
    return text if len(text) <= 40 else text[:40] + "..."


def _model_at(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    current: type[BaseModel] | None = model
    for step in path:  # of which some are places in a list, or names that a user gave
        if current is not None and step in current.model_fields:
            current = model_in(current.model_fields[str(step)].annotation)
    return current


def model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model in an annotation such as `list[Block] | None`."""
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    for part in typing.get_args(annotation):
        found = model_in(part)
        if found is not None:
            return found
    return None


# Characters that look like a space, like nothing, or like a quotation mark, and are none to YAML.

SPACES: Final = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
QUOTES: Final = "“”„‟«»‹›‘’‚"
_ODD_SPACE: Final = re.compile(f"[{SPACES}]")
_ODD: Final = re.compile(rf"[{SPACES}{''.join(map(chr, INVISIBLE))}]|(?:^|(?<=[-:] ))[ \t]*[{QUOTES}]")
_IN_WORDS: Final = {"\u00a0": "no-break space", "\ufeff": "byte order mark, invisible"}


def character_in_words(character: str) -> str:
    """Name a character that may not be seen, such as "U+00A0 (no-break space)"."""
    name = _IN_WORDS.get(character) or unicodedata.name(character, "no character of a text").lower()
    return f"U+{ord(character):04X} ({name})"


def odd_character(text: str) -> str:
    """Return the first character that looks like a space, nothing or a quotation mark, and is none; "" if none is."""
    odd = (each for each in text if ord(each) in INVISIBLE or each in QUOTES or _ODD_SPACE.match(each))
    return next(odd, "")


def _odd_character(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str] | None:
    """Return the line of a character that may have caused the error, and what to do about it; None for none."""
    marks = [mark.line for mark in (error.context_mark, error.problem_mark) if mark is not None]
    lines = text.split("\n")
    for at in range(max(0, min(marks) - 1), max(marks) + 1) if marks else ():
        found = _ODD.search(lines[at]) if at < len(lines) else None
        if found is not None:
            what = character_in_words(found[0].strip(" \t"))
            return at + 1, f"{what} is not part of YAML: remove it, or write a plain space or a plain quotation mark"
    return None


# Composing values from the parser's events.

_DIRECTIVE: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*%")
_BLANK: Final = re.compile(r"(?:\s|#[^\n]*|\.\.\.)*")
_INTEGER: Final = re.compile(r"-?[1-9][0-9]{0,17}|0")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,17}\.[0-9]{1,17}")
_NULLS: Final = ("", "~", "null", "Null", "NULL")
_BOOLS: Final = {
    word: value for value in (True, False) for word in (str(value), str(value).lower(), str(value).upper())
}
_CORE: Final = "tag:yaml.org,2002:"


class _Refused(Exception):
    """The text holds more than anybody writes by hand, or a part of YAML that is not used here."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.problem = Problem(line, text)


class _Composer:
    """Build the nodes of one document. The events are `Any`: their types say that a mark may be missing.

    Attributes:
        problems: Entries that would be lost, or are there twice.
        remarks: Entries whose author may have meant something else.
    """

    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self.remarks: list[Problem] = []
        self._text = text
        self._anchors: dict[str, Node] = {}
        self._used: set[str] = set()
        self._incomplete: set[str] = set()
        self._n_nodes = 0

    def root(self) -> Node | None:
        """Return the value of the document; None for an empty text.

        Raises:
            yaml.YAMLError: It is not YAML.
            _Refused: It cannot be read at all.
        """
        found = _DIRECTIVE.match(self._text)
        if found is not None:
            line = self._text.count("\n", 0, found.end()) + 1
            raise _Refused(line, "a line that begins with % is not text; put the text in quotes")
        parser = _Parser(self._text)
        events: Iterator[Any] = iter(parser.get_event, None)
        next(events)  # the stream's start
        if isinstance(next(events), yaml.StreamEndEvent):
            return None
        root = self._node(next(events), events, 0)
        self._end(next(events).end_mark.index)
        next(events)  # what is no document is the parser's to refuse
        for anchor in self._anchors.keys() - self._used:
            text = f"`&{anchor}` names a value that nothing refers to; put text in quotes"
            self._wrong(self._anchors[anchor].line, text)
        return root

    def _end(self, index: int) -> None:
        behind = _BLANK.match(self._text, index)
        if behind is not None and self._text.startswith(("---", "%"), behind.end()):
            line = self._text.count("\n", 0, behind.end()) + 1
            raise _Refused(line, "a second document (after `---`); a file can have one")

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), line)
        self._n_nodes += 1
        if self._n_nodes > MOST_VALUES:
            raise _Refused(line, f"has more than {MOST_VALUES} keys and values; import a larger one from tables (CSV)")
        if depth > DEEPEST:
            raise _Refused(line, f"nested too deeply: more than {DEEPEST} levels")
        node, anchor = Node(line, event.start_mark.column), event.anchor
        if anchor is not None:
            if (first := self._anchors.setdefault(anchor, node)) is not node:
                raise _Refused(line, f"`&{anchor}` is here twice, first on line {first.line}")
            self._incomplete.add(anchor)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(node, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._sequence(node, event, events, depth)
        else:
            self._mapping(node, event, events, depth)
        if node.n_characters > MOST_CHARACTERS:
            raise _Refused(line, _too_much(f"{MOST_CHARACTERS} characters"))
        self._incomplete.discard(anchor)
        return node

    def _alias(self, anchor: str, line: int) -> Node:
        if anchor not in self._anchors:
            raise _Refused(line, f"`*{anchor}` refers to a value that nothing above names; put text in quotes")
        if anchor in self._incomplete:
            raise _Refused(line, "this value contains itself")
        self._used.add(anchor)
        return self._anchors[anchor]

    def _sequence(self, node: Node, event: Any, events: Iterator[Any], depth: int) -> None:
        _check_tag(event, "seq")
        while not isinstance(each := next(events), yaml.SequenceEndEvent):
            node.items.append(self._with(node, self._node(each, events, depth + 1)))
        node.end, node.is_flow = _end_of(each), bool(event.flow_style)
        node.value = [item.value for item in node.items]
        if node.is_flow and (remark := _torn_by_commas(node.items)):
            self.remarks.append(Problem(node.line, remark))

    def _mapping(self, node: Node, event: Any, events: Iterator[Any], depth: int) -> None:
        _check_tag(event, "map")
        merged: list[Node] = []
        node.is_flow = bool(event.flow_style)
        while not isinstance(each := next(events), yaml.MappingEndEvent):
            line = each.start_mark.line + 1
            if not isinstance(each, yaml.ScalarEvent):
                is_placeholder = self._text.startswith("{{", max(0, each.start_mark.index - 1))
                hint = "; put text that begins with `{{` in quotes" if is_placeholder else ""
                raise _Refused(line, f"a key must be a word{hint}")
            name = self._key(each, line)
            value_event = next(events)
            value = self._with(node, self._node(value_event, events, depth + 1))
            if name == "<<" and not each.style:
                merged += self._merged(value, line)
                continue
            if name in node.keys:
                self._wrong(line, f"key {short(name)!r} is here twice, first on line {node.keys[name][0]}")
            if node.is_flow and value.value is None and ":" not in self._text[_end_of(each) : _end_of(value_event)]:
                text = "has no value: between braces, a comma ends the text before it"
                self._wrong(line, f"{short(name)!r} {text}; put the text in quotes or on a line of its own")
            node.n_characters += len(name)
            node.keys[name] = line, value
        node.end = _end_of(each)
        for other in merged:
            for name, found in other.keys.items():
                node.keys.setdefault(name, found)
        node.value = {name: value.value for name, (_, value) in node.keys.items()}

    def _with(self, node: Node, part: Node) -> Node:
        node.size += part.size
        node.n_characters += part.n_characters
        if node.size > MOST_VALUES:
            raise _Refused(node.line, _too_much(f"{MOST_VALUES} values"))
        return part

    def _merged(self, value: Node, line: int) -> list[Node]:
        """Return the mappings that `<<` names. The first wins, and the mapping's own keys win over all."""
        others = [value] if isinstance(value.value, dict) else value.items
        if not others or not all(isinstance(other.value, dict) for other in others):
            raise _Refused(line, "`<<` takes the keys of other blocks: `<<: *name` or `<<: [*one, *other]`")
        return others

    def _key(self, event: Any, line: int) -> str:
        """Return a key, which is always text: `on` and `12` are names."""
        self._n_nodes += 1
        name: str = event.value
        if event.anchor is not None:
            raise _Refused(line, f"`&{event.anchor}` before a key; put text that begins with & in quotes")
        if len(name) > _LONGEST_KEY:
            raise _Refused(line, f"a key of {len(name)} characters: a key is a word, and its text follows the colon")
        _check_storable(name, line)
        return name

    def _scalar(self, node: Node, event: Any) -> None:
        text: str = event.value
        node.n_characters, node.end = len(text), _end_of(event)
        node.is_plain = not event.style and event.tag is None
        _check_storable(text, node.line)
        if node.is_plain:
            node.value = _plain(text)
            if text and (remark := _lost_behind(self._text, node.end)):
                self.remarks.append(Problem(event.end_mark.line + 1, remark))
            return
        tag = event.tag
        if tag in (None, "!", f"{_CORE}str"):
            node.value = text
            return
        node.value = _plain(text)
        kinds = {"int": int, "float": float, "bool": bool, "null": type(None)}
        if tag.removeprefix(_CORE) not in kinds or type(node.value) is not kinds[tag.removeprefix(_CORE)]:
            raise _Refused(node.line, f"values of type {tag[:40]!r} are not used here; put the text in quotes")

    def _wrong(self, line: int, text: str) -> None:
        self.problems.append(Problem(line, text))


def _end_of(event: Any) -> int:
    index: int = event.end_mark.index
    return index


def _plain(text: str) -> object:
    """Return the value of a scalar without quotes."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text) and repr(value := float(text)) == text:
        return value
    return text


def _check_storable(text: str, line: int) -> None:
    if "\0" in text:
        raise _Refused(line, "a NUL character cannot be stored")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise _Refused(line, "half of a surrogate pair cannot be stored")


def _check_tag(event: Any, kind: str) -> None:
    if event.tag not in (None, "!", f"{_CORE}{kind}"):
        line = event.start_mark.line + 1
        raise _Refused(
            line, f"values of type {event.tag[:40]!r} are not used here; put text that begins with ! in quotes"
        )


def _too_much(limit: str) -> str:
    return f"this value expands to more than {limit}, the limit for a file: check its aliases and merge keys"


# Where YAML loses or splits a text without an error.

_COMMENT: Final = re.compile(r"[ \t]+(#[^\s#][^\n]{0,40})")
SENTENCE_ENDS: Final = (".", "!", "?")


def _torn_by_commas(items: Sequence[Node]) -> str:
    """Return a remark if the items of a list between brackets look like one text; "" if they do not."""
    for before, item in pairwise(items):
        text = item.value
        if item.is_plain and isinstance(text, str) and text[:1].islower() and text.endswith(SENTENCE_ENDS):
            two = f"{short(before.value)!r} and {short(text)!r}"
            return f"between brackets, a comma separates values: {two} are two; put text with a comma in quotes"
    return ""


def _lost_behind(text: str, end: int) -> str:
    """Return a remark if what follows a plain scalar that ends at `end` looks like more of it (`Room #3`)."""
    if end >= len(text) or text[end] not in " \t":
        return ""
    found = _COMMENT.match(text, end)
    if found is None:
        return ""
    return f"{short(found[1].rstrip())!r} is a comment; if it belongs to the text before it, put the text in quotes"


def short(value: object) -> object:
    """Shorten a value for a message. An address may hold a password, and is not shown."""
    if isinstance(value, str) and ("://" in value or "@" in value):
        return "..."
    return value[:60] + "..." if isinstance(value, str) and len(value) > 60 else value


# What the YAML parser reports, in words that help the author of the file.

_QUOTES: Final = "put the text in quotes"
_WORDS: Final = (
    ("mapping values are not allowed", f"a ': ' inside a text, or a line with wrong indentation; {_QUOTES}"),
    ("expected ',' or '}'", "a `{` that is not closed here, or text after a quote; put all of the text in quotes"),
    ("expected ',' or ']'", "a `[` that is not closed here, or text after a quote; put all of the text in quotes"),
    ("could not find expected ':'", "a line without `key: value`; write text of several lines indented after `>-`"),
    ("expected '-' indicator", "a line in a list that does not begin with `- `, or has wrong indentation"),
    ("expected <block end>", "a line that does not match those above: check its indentation"),
    ("expected key", "a line that does not match: check its indentation, and that quotes contain all of a text"),
    ("sequence entries are not allowed", "`- ` after a key; begin a list on its own line"),
    ("mapping keys are not allowed", f"`? ` inside a value; {_QUOTES}"),
    ("tab character", "a tab; indent with spaces"),
    ("unexpected end of stream", "a quote that is opened and not closed"),
    ("unexpected document", "a quote that is opened and not closed before `---` or `...`"),
    ("unknown escape", r"a `\` in double quotes begins an escape; use single quotes, or write `\\`"),
    ("hexdecimal number", r"`\x`, `\u` and `\U` in double quotes take hexadecimal digits; use single quotes"),
    ("Unicode character escape", "an escape in double quotes that is not a character"),
    ("alphabetic or numeric character", f"a text that begins with `&` or `*`; {_QUOTES}"),
    ("comment or line break", "text directly after `|` or `>`; begin it on the next line"),
    ("indentation indicator", "a 0 after `|` or `>`; remove it and begin the text on the next line"),
    (
        "<document start>",
        "text after a complete value: check its indentation and quotes",
    ),
    (
        "expected node content",
        f"no value, or one that begins with a special character; {_QUOTES}",
    ),
    ("tag", f"a text that begins with `!`; {_QUOTES}"),
    ("while scanning a directive", f"a line that begins with `%`; {_QUOTES}"),
)
_BEGUN: Final = ("unexpected end of stream", "unexpected document", "could not find expected ':'")
"""Reported at the line where it began."""


def _in_words(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str]:
    """Return the line, from 1, and what to do about the error.

    Args:
        text: The file's content. The message repeats at most one character of it: the file may hold a password.
    """
    problem, context = error.problem or "", error.context or ""
    mark = error.problem_mark or error.context_mark
    if any(what in problem for what in _BEGUN) and error.context_mark is not None:
        mark = error.context_mark
    line = mark.line + 1 if mark is not None else 1
    if "cannot start any token" in problem and mark is not None:
        found = text[mark.index : mark.index + 1]
        return line, "a tab; indent with spaces" if found == "\t" else f"a text begins with `{found}`; {_QUOTES}"
    said = next((words for what, words in _WORDS if what in problem or what in context), problem)
    return line, said
