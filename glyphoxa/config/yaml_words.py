"""What the YAML parser finds wrong, in words that help who wrote the file."""

from __future__ import annotations

from typing import Final

import yaml

_QUOTES: Final = "put the text in quotes"
_WORDS: Final = (
    ("mapping values are not allowed", f"a ': ' inside a text, or a line that is indented wrongly; {_QUOTES}"),
    ("expected ',' or '}'", "a `{` that is not closed here, or text behind a quote; put all of the text in quotes"),
    ("expected ',' or ']'", "a `[` that is not closed here, or text behind a quote; put all of the text in quotes"),
    ("could not find expected ':'", "a line without `key: value`; text of several lines stands indented behind `>-`"),
    ("expected '-' indicator", "a line in a list that does not begin with `- `, or is indented wrongly"),
    ("expected <block end>", "a line that does not fit in with those above: is it indented as they are?"),
    ("expected key", "a line that does not fit in: is it indented as those above, and is all of a text in its quotes?"),
    ("sequence entries are not allowed", "`- ` stands behind a key; a list begins on a line of its own"),
    ("mapping keys are not allowed", f"`? ` stands inside a value; {_QUOTES}"),
    ("tab character", "a tab; indent with spaces"),
    ("unexpected end of stream", "a quote that is opened and not closed"),
    ("unexpected document", "a quote that is opened and not closed before `---` or `...`"),
    ("unknown escape", r"a `\` in double quotes begins an escape; use single quotes, or write `\\`"),
    ("hexdecimal number", r"`\x`, `\u` and `\U` in double quotes take hexadecimal digits; use single quotes"),
    ("Unicode character escape", "an escape in double quotes that stands for no character"),
    ("alphabetic or numeric character", f"a text that begins with `&` or `*`; {_QUOTES}"),
    ("comment or line break", "text right behind `|` or `>`; it begins on the next line"),
    ("indentation indicator", "behind `|` or `>` stands no 0; the text begins on the next line"),
    (
        "<document start>",
        "something follows what is complete already: is it indented as those above, or in quotes?",
    ),
    (
        "expected node content",
        f"no value, or one that begins with a character that means something; {_QUOTES}",
    ),
    ("tag", f"a text that begins with `!`; {_QUOTES}"),
    ("while scanning a directive", f"a line that begins with `%`; {_QUOTES}"),
)
_BEGUN: Final = ("unexpected end of stream", "unexpected document", "could not find expected ':'")
"""Told of at the line where it began."""


def in_words(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str]:
    """The line, from 1, and what to do about it.

    Args:
        text: Of the file; nothing of it but a single character is repeated, as it may hold a password.
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
