"""Text to values that know their lines, within limits that are counted before anything is expanded.

The parser's events are read one by one. An alias, and a merge key, stands for the value that was built once, and counts
for all that it stands for, so that a few hundred bytes cannot stand for gigabytes. The parser's own tree is not used:
it is built without limits, and a text of ten thousand brackets crashes the process there.

A scalar is a number only if the number, written again, is the same text: `12:30`, `007`, `1_000`, `1.50` and a number
of thousands of digits stay text, as do dates, `yes`, `no`, `on` and `off`. Nothing is lost by that, and a setting that
is a number or a switch takes all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from glyphoxa.config.yaml_surprises import lost_behind, lost_in_commas, short, torn_by_commas

if yaml.__with_libyaml__:
    from yaml._yaml import CParser as _Parser
else:
    from yaml import SafeLoader as _Parser  # type: ignore[assignment]

MOST_VALUES: Final = 100_000
MOST_CHARACTERS: Final = 8 * 1024 * 1024
DEEPEST: Final = 100
_LONGEST_KEY: Final = 1_000
_DIRECTIVE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*%")
_BLANK = re.compile(r"(?:\s|#[^\n]*|\.\.\.)*")
_INTEGER = re.compile(r"-?[1-9][0-9]{0,17}|0")
_DECIMAL = re.compile(r"-?[0-9]{1,17}\.[0-9]{1,17}")
_NULLS: Final = ("", "~", "null", "Null", "NULL")
_BOOLS: Final = {
    word: value for value in (True, False) for word in (str(value), str(value).lower(), str(value).upper())
}
_CORE = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file. `line` counts from 1."""

    line: int
    text: str


class Refused(Exception):
    """What a text holds cannot be read at all."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.problem = Problem(line, text)


@dataclass(slots=True, eq=False)
class Node:
    """A value, where it begins, and how much it is with all that it refers to.

    Attributes:
        line: From 1.
        keys: Of a mapping: the line of each key, and its value.
        items: Of a sequence.
        is_plain: A scalar without quotes.
    """

    line: int
    value: Any = None
    size: int = 1
    n_characters: int = 0
    keys: dict[str, tuple[int, Node]] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)
    is_plain: bool = False


@dataclass(slots=True)
class Composed:
    """
    Attributes:
        root: None for an empty text.
        problems: What would be lost, or is there twice.
        remarks: What may have been meant otherwise.
    """

    root: Node | None = None
    problems: list[Problem] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)


def compose(text: str) -> Composed:
    """The one document of a text.

    Raises:
        yaml.YAMLError: It is not YAML.
        Refused: It is more than anybody writes by hand, or has what is not used here.
    """
    return _Composer(text).composed()


class _Composer:
    """The parser's events are `Any`: their marks are always there, which their types deny."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found = Composed()
        self._anchors: dict[str, Node | None] = {}
        """None: not complete yet."""
        self._anchored_at: dict[str, int] = {}
        self._used: set[str] = set()
        self._n_nodes = 0

    def composed(self) -> Composed:
        found = _DIRECTIVE.match(self._text)
        if found is not None:
            line = self._text.count("\n", 0, found.end()) + 1
            raise Refused(line, "a line that begins with % stands for no text; put the text in quotes")
        parser = _Parser(self._text)
        events: Iterator[Any] = iter(parser.get_event, None)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                break
            if isinstance(event, yaml.StreamEndEvent):
                return self._found
        self._found.root = self._node(next(events), events, 0)
        self._end(next(events).end_mark.index)
        next(events)  # what is no document is the parser's to refuse
        for anchor in self._anchors.keys() - self._used:
            self._wrong(
                self._anchored_at[anchor], f"`&{anchor}` names a value that nothing refers to; text goes in quotes"
            )
        return self._found

    def _end(self, index: int) -> None:
        behind = _BLANK.match(self._text, index)
        if behind is not None and self._text.startswith(("---", "%"), behind.end()):
            line = self._text.count("\n", 0, behind.end()) + 1
            raise Refused(line, "a second document (behind `---`); one file holds one")

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), line)
        self._n_nodes += 1
        if self._n_nodes > MOST_VALUES:
            raise Refused(line, f"holds more than {MOST_VALUES} keys and values; a larger world comes as tables (CSV)")
        if depth > DEEPEST:
            raise Refused(line, f"nested too deeply: more than {DEEPEST} levels")
        anchor = event.anchor
        if anchor is not None:
            if anchor in self._anchors:
                raise Refused(line, f"`&{anchor}` stands here twice, first on line {self._anchored_at[anchor]}")
            self._anchors[anchor], self._anchored_at[anchor] = None, line
        node = Node(line)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(node, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._sequence(node, event, events, depth)
        else:
            self._mapping(node, event, events, depth)
        if node.size > MOST_VALUES:
            raise Refused(line, _too_much(f"{MOST_VALUES} values"))
        if node.n_characters > MOST_CHARACTERS:
            raise Refused(line, _too_much(f"{MOST_CHARACTERS} characters"))
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _alias(self, anchor: str, line: int) -> Node:
        if anchor not in self._anchors:
            raise Refused(line, f"`*{anchor}` refers to a value that nothing above names; text goes in quotes")
        self._used.add(anchor)
        node = self._anchors[anchor]
        if node is None:
            raise Refused(line, "this value contains itself")
        return node

    def _sequence(self, node: Node, event: Any, events: Iterator[Any], depth: int) -> None:
        _check_tag(event, "seq")
        while not isinstance(each := next(events), yaml.SequenceEndEvent):
            node.items.append(self._with(node, self._node(each, events, depth + 1)))
        node.value = [item.value for item in node.items]
        if event.flow_style and (remark := torn_by_commas([(i.value, i.is_plain) for i in node.items])):
            self._found.remarks.append(Problem(node.line, remark))

    def _mapping(self, node: Node, event: Any, events: Iterator[Any], depth: int) -> None:
        _check_tag(event, "map")
        merged: list[Node] = []
        while not isinstance(each := next(events), yaml.MappingEndEvent):
            line = each.start_mark.line + 1
            if not isinstance(each, yaml.ScalarEvent):
                raise Refused(line, "a key must be a word")
            name = self._key(each, line)
            value_event = next(events)
            value = self._with(node, self._node(value_event, events, depth + 1))
            if name == "<<" and not each.style:
                merged += self._merged(value, line)
                continue
            if name in node.keys:
                self._wrong(line, f"key {short(name)!r} stands here twice, first on line {node.keys[name][0]}")
            if event.flow_style and value.value is None and self._has_no_colon(each, value_event):
                self._wrong(line, lost_in_commas(name))
            node.n_characters += len(name)
            node.keys[name] = line, value
        for other in merged:
            for name, found in other.keys.items():
                node.keys.setdefault(name, found)
        node.value = {name: value.value for name, (_, value) in node.keys.items()}

    def _has_no_colon(self, key: Any, value: Any) -> bool:
        return ":" not in self._text[key.end_mark.index : value.end_mark.index]

    def _with(self, node: Node, part: Node) -> Node:
        node.size += part.size
        node.n_characters += part.n_characters
        if node.size > MOST_VALUES:
            raise Refused(node.line, _too_much(f"{MOST_VALUES} values"))
        return part

    def _merged(self, value: Node, line: int) -> list[Node]:
        """Of what `<<` names the first wins, and the mapping's own keys before all."""
        others = [value] if isinstance(value.value, dict) else value.items
        if not others or not all(isinstance(other.value, dict) for other in others):
            raise Refused(line, "`<<` takes the keys of other blocks: `<<: *name` or `<<: [*one, *other]`")
        return others

    def _key(self, event: Any, line: int) -> str:
        """Always text: `on` and `12` are names."""
        self._n_nodes += 1
        name: str = event.value
        if event.anchor is not None:
            raise Refused(line, f"`&{event.anchor}` in front of a key; text that begins with & goes in quotes")
        if len(name) > _LONGEST_KEY:
            raise Refused(line, f"a key of {len(name)} characters: a key is a word; text stands behind it")
        _check_storable(name, line)
        return name

    def _scalar(self, node: Node, event: Any) -> None:
        text: str = event.value
        node.n_characters = len(text)
        node.is_plain = not event.style and event.tag is None
        _check_storable(text, node.line)
        if node.is_plain:
            node.value = _plain(text)
            if text and (remark := lost_behind(self._text, event.end_mark.index)):
                self._found.remarks.append(Problem(event.end_mark.line + 1, remark))
            return
        tag = event.tag
        if tag in (None, "!", f"{_CORE}str"):
            node.value = text
            return
        node.value = _plain(text)
        kinds = {"int": int, "float": float, "bool": bool, "null": type(None)}
        if tag.removeprefix(_CORE) not in kinds or type(node.value) is not kinds[tag.removeprefix(_CORE)]:
            raise Refused(node.line, f"values of type {tag[:40]!r} are not used here; write it as text in quotes")

    def _wrong(self, line: int, text: str) -> None:
        self._found.problems.append(Problem(line, text))


def _plain(text: str) -> object:
    """What a scalar without quotes is."""
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
        raise Refused(line, "a NUL character cannot be stored")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise Refused(line, "half of a surrogate pair cannot be stored")


def _check_tag(event: Any, kind: str) -> None:
    if event.tag not in (None, "!", f"{_CORE}{kind}"):
        line = event.start_mark.line + 1
        raise Refused(
            line, f"values of type {event.tag[:40]!r} are not used here; text that begins with ! goes in quotes"
        )


def _too_much(limit: str) -> str:
    return f"this value stands for more than {limit}, the most that a file may hold: look at its aliases and merge keys"
