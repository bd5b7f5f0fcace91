"""Read a Markdown note: what it says, what only the DM reads, and where its links lead.

Obsidian hides nothing from its author, so these marks say that a part is for the DM: comments (`%%`, `<!-- -->`),
callouts (`> [!secret]`), blocks (`:::secret` or a fence named `secret`), sections under a heading like "GM notes", and
paragraphs that begin like `**GM:**` or `secret::`. A hidden part is taken out before anything is rendered: nothing
written in it can end it early.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from glyphoxa.imports.html_text import html_text
from glyphoxa.imports.source_words import is_for_dm

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_COMMENTS: Final = (("%%", "%%"), ("<!--", "-->"))
_RAW: Final = ("fence", "code_block", "html_block")
_NOTE: Final = "note:"
_LONGEST_KEY: Final = 40
_LONGEST_LINK: Final = 1_000


@dataclass(frozen=True, slots=True)
class NoteLink:
    """
    Attributes:
        target: Name or path of a note, as it is written, without a heading.
        key: The word before `::` on its line, which names the relation; "" for none.
    """

    target: str
    key: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class NoteText:
    """The part of a note that players may read, as Markdown without links, images and code; likewise the DM's part.

    The tags, without `#`, and the pictures, as they are written, are those of the visible part.
    """

    visible: str = ""
    hidden: str = ""
    links: tuple[NoteLink, ...] = ()
    tags: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()


def note_text(text: str, is_hidden: Callable[[str], bool] = lambda _target: False) -> NoteText:
    """Read a note without its front matter. A paragraph with a link to something hidden is hidden."""
    apart: list[str] = []
    for opening, closing in _COMMENTS:
        text = _without(text, opening, closing, apart)
    text = _without_blocks(text, apart)
    markdown = _markdown()
    hidden = [_html(markdown.parse(part)) for part in apart]
    visible = _without_hidden(markdown.parse(text), hidden, is_hidden)
    shown, secret = html_text(_html(visible)), html_text("\n".join(hidden))
    links = [_link(address, hidden=False) for address in shown.links]
    links += [_link(address, hidden=True) for address in (*shown.hidden_links, *secret.links, *secret.hidden_links)]
    inline = [child for token in visible for child in token.children or ()]
    return NoteText(
        shown.visible,
        "\n\n".join(part for part in (shown.hidden, secret.visible, secret.hidden) if part),
        tuple(link for link in links if link is not None),
        tuple(word[1:] for child in inline if child.type == "text" for word in child.content.split() if word[0] == "#"),
        tuple(unquote(str(child.attrs["src"])) for child in inline if child.type == "image"),
    )


def wikilinks(text: str) -> Iterator[str]:
    """Yield the targets of wikilinks in a value of the front matter."""
    for part in text.split("[[")[1:]:
        yield _target(part.partition("]]")[0].partition("|")[0])


def without_links(text: str) -> str:
    """Return a value of the front matter with the labels of its wikilinks.

    >>> without_links("Son of [[NPCs/Bob|Bob]]")
    'Son of Bob'
    """
    first, *parts = text.split("[[")
    split = (part.partition("]]") for part in parts)
    return first + "".join((link.partition("|")[2] or link) + rest for link, _, rest in split)


def _target(written: str) -> str:
    return written.partition("#")[0].partition("^")[0].rstrip("\\").strip()


def _without(text: str, opening: str, closing: str, apart: list[str]) -> str:
    """Take comments out of a text. One that is never closed reaches to its end."""
    kept: list[str] = []
    start = 0
    while (at := text.find(opening, start)) >= 0:
        kept.append(text[start:at])
        end = text.find(closing, at + len(opening))
        end = len(text) if end < 0 else end
        apart.append(text[at + len(opening) : end])
        start = end + len(closing)
    return "".join((*kept, text[start:]))


def _without_blocks(text: str, apart: list[str]) -> str:
    kept: list[str] = []
    block: list[str] = []
    depth = 0
    for line in text.splitlines(keepends=True):
        mark = line.strip().removeprefix("> ")
        name = mark.lstrip(":").strip() if mark.startswith(":::") else None
        if depth and name is not None:
            depth += 1 if name else -1
            block.append("\n")
        elif name and is_for_dm(name):
            depth = 1
        elif name is None:
            (block if depth else kept).append(line)
    apart.append("".join(block))
    return "".join(kept)


def _without_hidden(tokens: Sequence[Token], hidden: list[str], is_hidden: Callable[[str], bool]) -> list[Token]:
    """Return the tokens that players may read; adds the others as HTML."""
    kept: list[Token] = []
    at = 0
    while at < len(tokens):
        end = _end_of_hidden(tokens, at)
        links = (_link(str(child.attrs.get("href", "")), hidden=False) for child in tokens[at].children or ())
        if end > at:
            hidden.append(_html(tokens[at:end]))
        elif any(link and is_hidden(link.target) for link in links) or _is_for_dm(tokens[at].content):
            hidden.append(f"<p>{_html(tokens[at : at + 1])}</p>")
        else:
            kept.append(tokens[at])
        at = max(end, at + 1)
    return kept


def _end_of_hidden(tokens: Sequence[Token], at: int) -> int:
    """Return where the hidden part that begins here ends; where it begins if none does."""
    token = tokens[at]
    if token.type in _RAW:
        # A callout or fence in code or HTML, where neither is read, was meant to be one.
        marks = [part.partition("]")[0] for part in token.content.split("[!")[1:]]
        marks += [part.partition("\n")[0] for part in token.content.replace("~~~", "```").split("```")[1:]]
        return at + 1 if any(map(is_for_dm, (token.info, *marks))) else at
    if _begins_for_dm(tokens, at):
        ends = (n for n in range(at, len(tokens)) if tokens[n].nesting < 0 and tokens[n].level == token.level)
        return next(ends) + 1
    if token.type == "heading_open" and is_for_dm(tokens[at + 1].content):
        for end in range(at + 1, len(tokens)):
            other = tokens[end]
            is_heading = other.type == "heading_open" and other.level == token.level and other.tag <= token.tag
            if other.level < token.level or is_heading:
                return end
        return len(tokens)
    return at


def _begins_for_dm(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a callout, an item of a list, a table or a row of one, which begins here, is for the DM."""
    token, first = tokens[at], "".join(each.content for each in tokens[at + 2 : at + 3])
    if token.type == "blockquote_open":
        return is_for_dm(token.meta.get("callout", ""))
    if token.type == "table_open":
        return any(is_for_dm(each.content) for each in takewhile(lambda each: each.type != "thead_close", tokens[at:]))
    is_row = token.type == "tr_open"
    is_named = is_row and len(first) <= _LONGEST_KEY and is_for_dm(first)
    return is_named or ((is_row or token.type == "list_item_open") and _is_for_dm(first))


def _is_for_dm(paragraph: str) -> bool:
    """Return whether a paragraph begins like `**GM notes**`, or a line of it like `Secret:` or `secret::`."""
    bold = paragraph[2:].partition(paragraph[:2])[0] if paragraph.startswith(("**", "__")) else ""
    keys = (line.partition(":")[0] for line in paragraph.splitlines() if ":" in line)
    return is_for_dm(bold) or any(len(key) <= _LONGEST_KEY and is_for_dm(key) for key in keys)


def _html(tokens: Iterable[Token]) -> str:
    """Render tokens. A fence for the DM holds Markdown; other named fences hold code, which is left out."""
    markdown = _markdown()
    made: list[str] = []
    rest: list[Token] = []
    for token in tokens:
        if token.type == "fence" and is_for_dm(token.info):
            made.append(markdown.render(token.content))
        elif token.type != "fence" or not token.info.strip():
            rest.append(token)
    return "\n".join((markdown.renderer.render(rest, markdown.options, {}), *made))


def _link(address: str, *, hidden: bool) -> NoteLink | None:
    if not address.startswith(_NOTE):
        return None
    target, _, key = address.removeprefix(_NOTE).partition(":")
    return NoteLink(unquote(target), unquote(key), hidden)


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    markdown.inline.ruler.before("link", "wikilink", _wikilink)
    markdown.core.ruler.before("inline", "callout", _callouts)
    markdown.core.ruler.push("address", _addresses)
    return markdown


def _callouts(state: StateCore) -> None:
    """Note the kind and title of each callout, and leave its title."""
    for quote_open, _, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if quote_open.type == "blockquote_open" and inline.content.startswith("[!"):
            kind, _, rest = inline.content[2:].partition("]")
            inline.content = rest.lstrip("+-").strip()
            title = "" if rest.lstrip("+-").startswith("\n") else inline.content.partition("\n")[0]
            quote_open.meta["callout"] = f"{kind} {title}"


def _wikilink(state: StateInline, silent: bool) -> bool:
    """Read `[[target|label]]`, and `![[target]]`, which shows a picture or another note."""
    start = state.pos
    is_shown = state.src.startswith("![[", start)
    if not is_shown and not state.src.startswith("[[", start):
        return False
    start += 2 + is_shown
    end = state.src.find("]]", start, min(start + _LONGEST_LINK, state.posMax))
    if end < 0 or "\n" in state.src[start:end]:
        return False
    written, _, label = state.src[start:end].partition("|")
    target = _target(written)
    if not silent:
        if is_shown and mimetypes.guess_type(target)[0] not in (None, "text/markdown"):
            state.push("image", "img", 0).attrs = {"src": quote(target), "alt": ""}
        else:
            state.push("link_open", "a", 1).attrs = {"href": f"{_NOTE}{quote(target, safe='')}"}
            state.push("text", "", 0).content = label.strip() or target or written.strip("#^ ")
            state.push("link_close", "a", -1)
    state.pos = end + 2
    return True


def _addresses(state: StateCore) -> None:
    """Write the target and the key of each link to a note into its address, where rendering keeps them."""
    for inline in state.tokens:
        if inline.type == "html_block":
            inline.content = inline.content.replace("[[", "").replace("]]", "")
        line = ""
        for child in inline.children or ():
            if child.type in ("softbreak", "hardbreak"):
                line = ""
            elif child.type == "link_open":
                address = str(child.attrs["href"])
                if ":" not in address.partition("/")[0]:
                    address = f"{_NOTE}{quote(_target(unquote(address)), safe='')}"
                child.attrs["href"] = f"{address}:{quote(_key(line), safe='')}"
            line += child.content


def _key(line: str) -> str:
    """Return the key of an inline field: `location:: `, `- **location**:: `, `in [location:: `."""
    written, found, _ = line.rpartition("::")
    for bracket in "[(":
        written = written.rpartition(bracket)[2]
    key = written.strip(" -*_\t")
    return key if found and len(key) <= _LONGEST_KEY else ""
