"""Puts a block into the text of a campaign file, and leaves everything else of it as its author wrote it.

A YAML library that dumps a whole document loses comments, order and line breaks. So only the place of the new block is
looked up, and the text around it is copied.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from glyphoxa.config.yaml_nodes import Refused, compose
from glyphoxa.domain.errors import InvalidInput

YamlPlace = tuple[str | int, ...]
_WIDTH: Final = 110
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Insertion:
    """
    Attributes:
        place: Of the list that grows: keys, and indices of lists.
        value: Its new last item: a text, or keys with texts, switches and lists of texts.
    """

    place: YamlPlace
    value: str | Mapping[str, object]


def insert_all(text: str, insertions: Sequence[Insertion]) -> str:
    """The text with all of them.

    Args:
        text: One YAML document, as `glyphoxa.config.located_yaml.read_yaml` takes it.

    Raises:
        InvalidInput: One has no place that can be found; its block has to be written by hand.
    """
    for each in insertions:
        text = insert(text, each)
    return text


def insert(text: str, insertion: Insertion) -> str:
    """As `insert_all`, of one."""
    wanted = _with(_value_of(text), insertion)
    try:
        made = _inserted(text, insertion)
        is_so = _value_of(made) == wanted
    except (yaml.YAMLError, Refused, ValueError):
        is_so = False
    if not is_so:
        at = ".".join(str(step) for step in insertion.place)
        block = textwrap.indent(_block(insertion.value).rstrip(), "  ")
        raise InvalidInput(f"there is no place under `{at}:` that can be found; write this there by hand:\n{block}")
    return made


def _value_of(text: str) -> Any:
    root = compose(text).root
    return {} if root is None or root.value is None else root.value


def _with(value: Any, insertion: Insertion) -> Any:
    """The document's value as it is to be."""
    if not insertion.place:
        return [*(value or []), _plain(insertion.value)]
    step, rest = insertion.place[0], Insertion(insertion.place[1:], insertion.value)
    if isinstance(step, int):
        return [_with(each, rest) if i == step else each for i, each in enumerate(value)]
    return {**value, step: _with(value.get(step), rest)}


def _plain(value: str | Mapping[str, object]) -> object:
    return value if isinstance(value, str) else dict(value)


def _inserted(text: str, insertion: Insertion) -> str:
    found = _find(yaml.compose(text, Loader=_Loader), insertion.place)
    if found is None:
        if len(insertion.place) > 1:
            raise ValueError("only lists of the document itself are begun")
        ending = "" if not text or text.endswith("\n") else "\n"
        block = textwrap.indent(_block(insertion.value), "  ")
        return f"{text}{ending}\n{insertion.place[0]}:\n{block}"
    if found.flow_style:
        at = found.end_mark.index - 1
        comma = ", " if found.value else ""
        return text[:at].rstrip(" ") + comma + _in_line(insertion.value) + text[at:]
    at = _end_of_line(text, _end(found))
    block = textwrap.indent(_block(insertion.value), " " * found.start_mark.column)
    return f"{text[:at]}\n{block.rstrip()}{text[at:]}"


def _find(node: Any, place: YamlPlace) -> Any:
    for step in place:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
        else:
            return None
    return node if isinstance(node, yaml.SequenceNode) else None


def _end(node: Any) -> int:
    """Behind the last character of what stands there. A block's own mark is where the next one begins."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(node, yaml.MappingNode) else last)


def _end_of_line(text: str, index: int) -> int:
    """Of the last line that holds a part of what ends there. A folded text ends where the next line begins."""
    while index and text[index - 1] in "\n\r \t":
        index -= 1
    found = text.find("\n", index)
    return len(text) if found < 0 else found


def _block(value: str | Mapping[str, object]) -> str:
    return yaml.safe_dump([_plain(value)], sort_keys=False, allow_unicode=True, width=_WIDTH)


def _in_line(value: str | Mapping[str, object]) -> str:
    dumped = yaml.safe_dump([_plain(value)], sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=True)
    return dumped.strip().removeprefix("[").removesuffix("]")
