"""The strings that a JavaScript module holds, as far as our own modules need it: no string in single quotes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """
    Attributes:
        text: What stands between the quotes; `${}` for each part of a template that is computed.
        before: What stands before it in its line.
    """

    text: str
    before: str


def strings_of(source: str) -> list[Literal]:
    """In the order of their beginnings; those within a template's computed parts too."""
    found: dict[int, Literal] = {}
    _code(source, 0, found, in_template=False)
    return [found[start] for start in sorted(found)]


def _code(source: str, at: int, found: dict[int, Literal], *, in_template: bool) -> int:
    """Returns: Behind the brace that ends this part of a template, or the end."""
    depth = 0
    while at < len(source):
        if source.startswith("//", at):
            at = source.find("\n", at) % (len(source) + 1)
        elif source[at] in '"`':
            at = _string(source, at, found)
        else:
            depth += {"{": 1, "}": -1}.get(source[at], 0)
            at += 1
            if in_template and depth < 0:
                break
    return at


def _string(source: str, start: int, found: dict[int, Literal]) -> int:
    quote, text, at = source[start], "", start + 1
    while source[at] != quote:
        if source[at] == "\\":
            text, at = text + source[at : at + 2], at + 2
        elif quote == "`" and source.startswith("${", at):
            text, at = f"{text}${{}}", _code(source, at + 2, found, in_template=True)
        else:
            text, at = text + source[at], at + 1
    found[start] = Literal(text, source[source.rfind("\n", 0, start) + 1 : start])
    return at + 1
