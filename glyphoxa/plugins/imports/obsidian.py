"""Leave out of a note what is not its author's text: code of Obsidian's plugins, forms, empty panels, statistics.

Nothing here makes a hidden text public: parts are only left out. `obsidian.toml` lists what plugins write, and the
topic `imports` of the lexicon what statistics are called.
"""

from __future__ import annotations

import mimetypes
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from glyphoxa.language.language_data import lexicon
from glyphoxa.language.words import fold

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

OBSIDIAN: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("obsidian.toml").read_text("utf-8"))
_MARKS: Final = ("%%", "<!--", ":::", "[!", "```", "~~~", "\n#")
"""Signs of parts that may be hidden."""
_SIGNS: Final = re.compile(r"\[\^[^\]\s]{0,40}\]:?|\^(?=\[)|(?:^|(?<=\s))\^[\w-]+\s*$|==|^#\S+(?:\s+#\S+)*$")
"""Footnotes, names of blocks, highlights, and lines of tags."""
_RAW: Final = ("html_block", "fence", "code_block")
_BREAKS: Final = ("softbreak", "hardbreak")
_LONGEST_LABEL: Final = 40
_DEEPEST: Final = 8
"""Limit of blocks inside each other: each is parsed once more."""


def is_of_rules(label: str, text: str = "") -> bool:
    """Return whether a heading, or the label or key of a text, names statistics or says that nothing is written."""
    name = fold(label) if len(label) <= _LONGEST_LABEL else ""
    return name in _folded("rules") or (name in _folded("statistics") and any(map(str.isdecimal, text)))


@cache
def _folded(key: str) -> frozenset[str]:
    return frozenset(map(fold, lexicon("imports").words(key)))


def without_generated(text: str) -> str:
    """Take out what plugins generate, with their comments. It stays if it contains a sign of something hidden."""
    for opening, closing in OBSIDIAN["generated"]:
        first, *parts = text.split(opening)
        kept = [first]
        for part in parts:
            inner, found, rest = part.partition(closing)
            kept += (rest,) if found and not any(mark in inner for mark in _MARKS) else (opening, part)
        text = "".join(kept)
    return text


def headless_tables(state: StateCore) -> None:
    """Complete the head of a table that is empty: Obsidian accepts `|` above `---|---|`."""
    lines = state.src.split("\n")
    for at, (head, rule) in enumerate(pairwise(lines)):
        n_columns = rule.strip("> \t|").count("|") + 1
        if "|" in head and n_columns > 1 and not head.strip("> |\t") and not rule.strip("> |\t:-"):
            lines[at] = head[: head.index("|")] + "|" * (n_columns + 1)
    state.src = "\n".join(lines)


def admonitions(state: StateCore) -> None:
    """Make a callout of each block of the plugin Admonition, also of one inside another."""
    waiting, state.tokens = state.tokens[::-1], []
    while waiting:
        token = waiting.pop()
        if token.type != "fence" or not token.info.startswith("ad-") or token.level > _DEEPEST:
            state.tokens.append(token)
            continue
        split = [(line.partition(":")[0].strip(), line) for line in token.content.split("\n")]
        title = "".join(line.partition(":")[2] for key, line in split if key == "title")
        lines = (f"> {line}" for key, line in split if key not in OBSIDIAN["admonition_settings"])
        made: list[Token] = []
        state.md.block.parse("\n".join((f"> [!{token.info[3:]}]{title}", *lines)), state.md, state.env, made)
        waiting += (each.copy(level=each.level + token.level) for each in reversed(made))


def prose(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens that contain text: without plugins' code and signs, unfilled forms and empty sections."""
    below: list[Token] = []  # from the last one on
    ends: list[int] = []
    form = 0  # where one was left out: the heading before it is its label
    for token in reversed(tokens):
        if token.nesting < 0:
            ends.append(len(below))
        if token.type == "hr" or (token.type == "fence" and token.info.strip()):
            form = len(below) if token.type == "fence" else form
            continue
        lines = [*_lines(token.children or ())]
        lines = [line for line in lines if not _is_left_over(line, is_alone=len(lines) == 1)]
        below.append(token.copy(children=[child for line in lines for child in line if not _is_code(child)]))
        if token.nesting > 0 and ends:
            end = ends.pop()
            is_empty = _is_empty(below[:end:-1] + below[end : end + 1])
            if token.type == "heading_open":
                start = end
                while start and not _ends_section(below[start - 1], token):
                    start -= 1
                is_empty = is_empty or end in (start, form)
                # A tag that hides something may be open behind the section.
                has_html = any(each.type == "html_block" for each in below[start:end])
                if is_of_rules(below[-2].content.strip(" *_:")) and not has_html:
                    end, is_empty = start, True
            elif is_empty and (form > end or any("`" in each.content for each in below[end:])):
                form = end
            if is_empty:
                del below[end:]
    return below[::-1]


def _ends_section(token: Token, heading: Token) -> bool:
    is_heading = token.type == "heading_open" and token.level == heading.level and token.tag <= heading.tag
    return is_heading or token.level < heading.level


def _is_empty(block: Sequence[Token]) -> bool:
    """Return whether a block has no text, or only a label or title."""
    opening, texts = block[0], [_text(each) for each in block if each.type == "inline"]
    if any(map(is_of_rules, (opening.meta.get("callout", "").partition(" ")[0], opening.meta.get("panel", "")))):
        return True
    if opening.type in ("td_open", "th_open") or any(each.type in _RAW for each in block):
        return False
    if opening.type == "tr_open":
        return _says_nothing("|".join(texts))
    if opening.type == "table_open":
        return not any(each.type == "tbody_open" for each in block)
    if opening.type == "list_item_open" and len(texts) == 1:
        return not texts[0] or texts[0].endswith(":")
    return fold("".join(texts)) == fold(opening.meta.get("panel", ""))


def _lines(children: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the lines of a paragraph without signs, each with the break before it."""
    line: list[Token] = []
    for child in children:
        if child.type in _BREAKS and line:
            yield line
            line = []
        line.append(child.copy(content=_SIGNS.sub("", child.content)) if child.type == "text" else child)
    yield line


def _is_left_over(line: Sequence[Token], *, is_alone: bool) -> bool:
    """Return whether a line says nothing but a label of something that plugins show, or statistics."""
    tags = sum(-1 if each.content.startswith("</") else 1 for each in line if each.type == "html_inline")
    links = [str(each.attrs["href"]).rpartition(":")[0] for each in line if each.type == "link_open"]
    if tags or sum(each.nesting for each in line) or not all(map(_is_picture, links)):
        return False
    text, codes = _words(line), [at for at, each in enumerate(line) if _is_code(each)]
    parts = [each.type for each in line if each.type not in _BREAKS and (each.nesting or each.content.strip())]
    is_caption = parts[:1] + parts[-1:] == ["link_open", "link_close"]
    is_field = bool(codes) and len(text) <= _LONGEST_LABEL and not fold(_words(line[codes[-1] :]))
    bold = [*takewhile(lambda each: each.type != "strong_close", line)]
    is_label = not is_alone and text.strip().endswith(":") and fold(_words(bold)) == fold(text)
    is_left_over = is_caption or is_field or is_label
    return is_left_over or (not links and _says_nothing(text, _words(bold) if len(bold) < len(line) else ""))


def _is_picture(address: str) -> bool:
    return (mimetypes.guess_type(address)[0] or "").startswith("image/")


def _says_nothing(text: str, bold: str = "") -> bool:
    """Return whether the text of a line, or of cells divided by `|`, is no more than a label or statistics."""
    cells = [cell.strip(" :.*") for cell in text.lstrip("| ").split("|")]
    filled = [cell for cell in cells if any(map(str.isalpha, cell))]
    is_label = len(cells) > 1 and not fold("".join(cells[1:])) and len(text) <= _LONGEST_LABEL
    is_head = len(filled) > 1 and all(is_of_rules(cell, "0") for cell in filled)
    label = bold.strip(" :.*") or cells[0].partition(":")[0]
    is_blank = not (filled if "|" in text else fold(text))
    return is_blank or is_label or is_head or is_of_rules(label, text)


def _words(line: Sequence[Token]) -> str:
    return "".join(each.content for each in line if each.type in ("text", "code_inline") and not _is_code(each))


def _text(inline: Token) -> str:
    """Return its words; "" if there is no letter or digit in them."""
    text = _words(inline.children or ()).strip()
    return text if fold(text) else ""


def _is_code(token: Token) -> bool:
    return token.type == "code_inline" and token.content.lstrip(" $").startswith(tuple(OBSIDIAN["code"]))
