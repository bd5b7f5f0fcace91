"""Read a Markdown note: what it says, what only the DM reads, and where its links lead.

Obsidian hides nothing from its author, so these marks say that a part is for the DM: comments (`%%`, `<!-- -->`),
spoilers (`||`, `>! !<`), callouts (`> [!secret]`), blocks (`:::secret` or a fence named `secret`), sections under a
heading or a line like "GM notes", items of lists, rows and columns of tables, and paragraphs that begin like `**GM:**`
or `secret::`. A hidden part is taken out before anything is rendered: nothing written in it can end it early.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from glyphoxa.dm.source_world import SourceText
from glyphoxa.plugins.imports.html_text import PageLink, PageText, html_text
from glyphoxa.plugins.imports.labels import (
    asks_who_sees,
    is_answer,
    is_end,
    is_mark,
    is_marked,
    property_mark,
    text_mark,
)
from glyphoxa.plugins.imports.obsidian import admonitions, headless_tables, prose, without_generated

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_COMMENTS: Final = (("%%", "%%"), ("<!--", "-->"))
_SPOILER: Final = re.compile(
    r"(?:^[ \t]*\|\||\|\|(?=[^\s|]))((?:[^|\n]|\|(?!\|)|\n(?!\s*\n))+)\|\||>!((?:(?!!<|>!)[^\n]|\n(?!\s*\n))+)!<", re.M
)
"""A spoiler of Discord or Reddit in one paragraph; `| a || b |` is an empty cell."""
_FIELD: Final = re.compile(r"(?:^|[\[(])[\s*_-]*([^:\[\]()*\n]{1,40})\**:(:?)([^\])\n]*)", re.M)
"""A field such as `visibility:: gm`, `[visibility:: gm]` or `- **Visibility:** gm`."""
MARKUP: Final = ("](", "<", "||", ">!", "%%")
"""A short value with one of these is read as a text: a part of it may be hidden."""
_RAW: Final = ("fence", "code_block", "html_block")
_NOTE: Final = "note:"
_LONGEST_KEY: Final = 40
_LONGEST_LABEL: Final = 60
_FEW_WORDS: Final = 3
"""Limit of a cell that says who may see its row."""
_LONGEST_LINK: Final = 1_000
_MARKS: Final = "\n!#$%&*+-:<=>@[\\]^_`{|}~"


@dataclass(slots=True)
class _Hidden:
    """The hidden parts of a text as HTML, and the marks that hide them."""

    parts: list[str] = field(default_factory=list)
    why: dict[str, None] = field(default_factory=dict)

    def add(self, html: str, why: str) -> None:
        self.parts.append(html)
        self.why[why] = None

    def add_markdown(self, text: str, why: str) -> None:
        if text.strip():
            self.add(_html(_markdown().parse(text)), why)


def note_text(text: str, is_hidden: Callable[[str], bool] = lambda _target: False) -> PageText:
    """Read a note without its front matter. A paragraph with a link to something hidden is hidden."""
    hidden = _Hidden()
    text = without_generated(text)
    for opening, closing in _COMMENTS:
        text = _without(text, opening, closing, hidden)
    tokens = _markdown().parse(_without_blocks(_without_spoilers(text, hidden), hidden))
    visible = _without_hidden(tokens, hidden, is_hidden)
    # Labels in HTML are read when it has become Markdown.
    has_html = any(each.type.startswith("html") for token in visible for each in (token, *(token.children or ())))
    shown = page_text(_html(visible)) if has_html else html_text(_html(visible))
    secret = html_text("\n".join(hidden.parts))
    of_secret = (replace(link, hidden=True) for link in secret.links)
    inline = [child for token in visible for child in token.children or ()]
    return PageText(
        shown.visible,
        "\n\n".join(part for part in (shown.hidden, secret.visible, secret.hidden) if part),
        tuple(link for each in (*shown.links, *of_secret) if (link := _link(each.target, hidden=each.hidden))),
        tuple(word[1:] for child in inline if child.type == "text" for word in child.content.split() if word[0] == "#"),
        tuple(unquote(str(child.attrs["src"])) for child in inline if child.type == "image"),
        tuple(dict.fromkeys((*hidden.why, *shown.why))),
        _field_for_dm(tokens),
    )


def page_text(html: str, *, name_of: Callable[[str, bool], str] = lambda _target, _hidden: "") -> PageText:
    """Convert a page as `html_text` does, and hide what its headings, labels and tables say is for the DM.

    If they hide anything, all links count as links of the hidden part.
    """
    page = html_text(html, name_of=name_of)
    hidden = _Hidden()
    tokens = _markdown().parse(_without_spoilers(page.visible, hidden))
    visible = _without_hidden(tokens, hidden, lambda _target: False)
    if mark := _field_for_dm(tokens):
        hidden.add(_html(visible), mark)
        visible = []
    if not hidden.parts:
        return page
    shown, secret = html_text(_html(visible)), html_text("\n".join(hidden.parts))
    parts = (page.hidden, shown.hidden, secret.visible, secret.hidden)
    return replace(
        page,
        visible=shown.visible,
        hidden="\n\n".join(filter(None, parts)),
        links=tuple(replace(link, hidden=True) for link in page.links),
        why=tuple(dict.fromkeys((*page.why, *hidden.why))),
    )


def texts_of(read: PageText, page: str = "", why: str = "") -> list[SourceText]:
    """Return the visible and the hidden part of a text, without empty ones. `why`: what hides all of it."""
    secret = "; ".join(read.why)
    parts = SourceText(read.visible, bool(why), page, why=why), SourceText(read.hidden, True, page, why=secret)
    return [each for each in parts if each.text]


def n_marks(text: str) -> int:
    """Return how many characters may mean something in Markdown. Reading a note takes about 10 us for each."""
    return sum(map(text.count, _MARKS))


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


def _without(text: str, opening: str, closing: str, hidden: _Hidden) -> str:
    """Take comments out of a text. One that is never closed reaches to its end.

    A comment that is nothing but a mark begins a part for the DM: up to one like `/GM`, or like a line in bold.
    """
    kept: list[str] = []
    start = 0
    while (at := text.find(opening, start)) >= 0:
        kept.append(text[start:at])
        end = text.find(closing, at + len(opening))
        end = len(text) if end < 0 else end
        comment = text[at + len(opening) : end]
        start = end + len(closing)
        hidden.add_markdown(comment, "comment")
        if is_mark(comment):
            again = text.find(opening, start)
            last = text.find(closing, again + len(opening)) if again >= 0 else -1
            if last >= 0 and is_end(text[again + len(opening) : last]):
                hidden.add_markdown(text[start:again], f"comment {comment.strip()!r}")
                start = last + len(closing)
            else:
                kept.append(f"\n\n**{' '.join(comment.split())}**\n\n")
    return "".join((*kept, text[start:]))


def _without_spoilers(text: str, hidden: _Hidden) -> str:
    for spoiler in _SPOILER.findall(text):
        hidden.add_markdown("".join(spoiler), "spoiler")
    return _SPOILER.sub(" ", text)


def _where(block: str) -> str:
    """Return a block of `_without_blocks` in words. A property of the note became a block that names it."""
    _, of_property, named = block.partition("secret (property ")
    return f"property {named.removesuffix(')')!r}" if of_property else f"block {block!r}"


def _without_blocks(text: str, hidden: _Hidden) -> str:
    kept: list[str] = []
    block: list[str] = []
    why: dict[str, None] = {}
    depth = 0
    for line in text.splitlines(keepends=True):
        mark = line.strip().removeprefix("> ")
        name = mark.lstrip(":").strip() if mark.startswith(":::") else None
        if depth and name is not None:
            depth += 1 if name else -1
            block.append("\n")
        elif name and _is_kind_for_dm(name):
            depth = 1
            why[_where(name)] = None
        elif name is None:
            (block if depth else kept).append(line)
    hidden.add_markdown("".join(block), "; ".join(why))
    return "".join(kept)


def _without_hidden(tokens: Sequence[Token], hidden: _Hidden, is_hidden: Callable[[str], bool]) -> list[Token]:
    """Return the tokens that players may read; adds the others as HTML."""
    tokens = _without_columns(tokens, hidden)
    kept: list[Token] = []
    at = 0
    while at < len(tokens):
        end, why = _hidden_here(tokens, at)
        links = (_link(str(child.attrs.get("href", "")), hidden=False) for child in tokens[at].children or ())
        if end > at:
            hidden.add(_html(tokens[at:end]), why)
        elif link := next((link for link in links if link and is_hidden(link.target)), None):
            hidden.add(f"<p>{_html(tokens[at : at + 1])}</p>", f"link to the hidden {link.target!r}")
        elif why := text_mark(tokens[at].content) if tokens[at].type == "inline" else "":
            hidden.add(f"<p>{_html(tokens[at : at + 1])}</p>", f"text after {why!r}")
        else:
            kept.append(tokens[at])
        at = max(end, at + 1)
    return kept


def _without_columns(tokens: Sequence[Token], hidden: _Hidden) -> list[Token]:
    """Return the tokens without columns for the DM. Notes rows that are for the DM as another column says."""
    kept: list[Token] = []
    names: list[str] = []
    row, column, is_cell = 0, 0, False
    for at, token in enumerate(tokens):
        if token.type == "thead_open":
            names = []
        elif token.type == "tr_open":
            row, column = len(kept), -1
        elif token.type in ("th_open", "td_open"):
            cell = tokens[at + 1].content
            column, is_cell = column + 1, True
            if token.type == "th_open":
                names.append(cell)
            # A first row may be a header only because Markdown needs one.
            is_short, is_first = len(cell.split()) <= _FEW_WORDS, token.type == "th_open" and column == 0
            if is_marked(cell) if is_first else is_short and property_mark(names[column], [cell]) == "note":
                kept[row].meta["mark"] = f"cell {cell!r} of column {names[column]!r}"
        if not (is_cell and is_marked(names[column])):
            kept.append(token)
        elif token.type == "inline":
            hidden.add(f"<p>{_html([token])}</p>", f"column {names[column]!r}")
        is_cell = is_cell and token.type not in ("th_close", "td_close")
    return kept


def _hidden_here(tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """Return where the hidden part that begins here ends, and its mark; where it begins if none does."""
    token = tokens[at]
    if token.type in _RAW:
        # A callout or fence in code or HTML, where neither is read, was meant to be one.
        marks = [part.partition("]")[0] for part in token.content.split("[!")[1:]]
        marks += [part.partition("\n")[0] for part in token.content.replace("~~~", "```").split("```")[1:]]
        marks += [line[6:] for line in token.content.splitlines() if line.casefold().startswith("title:")]
        found = next(filter(_is_kind_for_dm, (token.info, *marks)), "")
        found = found or ("" if token.type == "html_block" else text_mark(token.content))
        if found and token.type == "fence":
            token.info = "secret"  # it holds Markdown
        return (at + 1, f"block {found!r}") if found else (at, "")
    if why := _begins_for_dm(tokens, at):
        ends = (n for n in range(at, len(tokens)) if tokens[n].nesting < 0 and tokens[n].level == token.level)
        return next(ends) + 1, why
    text = tokens[at + 1].content if token.type in ("heading_open", "paragraph_open") else ""
    label = text if token.type == "heading_open" else text and _label_alone(text)
    if label and is_marked(label):
        where = "heading" if token.type == "heading_open" else "line"
        return _end_of_section(tokens, at), f"{where} {label!r}"
    return at, ""


def _end_of_section(tokens: Sequence[Token], at: int) -> int:
    """Return where the part under a heading ends; that under a line ends at any heading or line in bold."""
    token = tokens[at]
    for end in range(at + 1, len(tokens)):
        other = tokens[end]
        if other.level < token.level:
            return end
        if other.type == "heading_open" and other.level == token.level:
            if token.type != "heading_open" or other.tag <= token.tag:
                return end
        elif token.type == other.type == "paragraph_open" and other.level == token.level:
            label = _label_alone(tokens[end + 1].content)
            if label and not is_marked(label):
                return end
    return len(tokens)


def _label_alone(paragraph: str) -> str:
    """Return the first line of a paragraph if it is in bold, or nothing but a mark; "" if not."""
    line = paragraph.partition("\n")[0].strip().rstrip(":").replace("***", "**")
    if line.startswith(("**", "__")):
        bold, _, rest = line[2:].partition(line[:2])
        return "" if rest.strip(" :") else bold.strip(" :")
    return line if is_mark(line) else ""


def _begins_for_dm(tokens: Sequence[Token], at: int) -> str:
    """Return the mark of a callout, an item of a list or a row of a table that begins here and is for the DM."""
    token, first = tokens[at], "".join(each.content for each in tokens[at + 2 : at + 3])
    if token.type == "blockquote_open":
        callout = token.meta.get("callout", "")
        return f"callout {callout.strip()!r}" if _is_kind_for_dm(callout) else ""
    if token.type == "tr_open":
        row = range(at, next(n for n in range(at, len(tokens)) if tokens[n].type == "tr_close"))
        cells = [tokens[n].content for n in row if tokens[n].type == "inline"]
        mark = next((cell for cell in cells if is_mark(cell, "name")), "") or text_mark("".join(cells[:1]))
        mark = mark or next((cell for cell in cells[:1] if len(cell) <= _LONGEST_KEY and is_marked(cell)), "")
        return token.meta.get("mark", "") or (f"row {mark!r}" if mark else "")
    if token.type != "list_item_open":
        return ""
    has_items = any(each.type.endswith("list_open") for each in tokens[at + 4 : at + 5])
    mark = text_mark(first) or (first if has_items and len(first) <= _LONGEST_LABEL and is_marked(first) else "")
    return f"item {mark!r}" if mark else ""


def _is_kind_for_dm(named: str) -> bool:
    """Return whether a callout or block is for the DM, as its kind or its title says: `secret|wide Title`."""
    kind, _, title = named.strip(" {}").partition(" ")
    return any(map(is_marked, (kind.partition("|")[0], title)))


def _field_for_dm(tokens: Sequence[Token]) -> str:
    """Return a field in a text or table, such as `visibility:: gm`, that hides its whole note; "" for none."""
    texts = [token.content for token in tokens if token.type == "inline"]
    cells = {at for at, token in enumerate(tokens) if token.type in ("th_open", "td_open")}
    texts += [f"{tokens[at + 1].content}: {tokens[at + 4].content}" for at in cells if at + 3 in cells]
    for key, second, value in _FIELD.findall("\n".join(texts)):
        plain = value.strip(" *_")
        is_level = (
            is_answer(plain) or (asks_who_sees(key) and (second or is_mark(plain))) or (second and is_mark(plain))
        )
        if is_level and property_mark(key, [plain]) == "note":
            return f"field '{key}: {plain}'"
    return ""


def _html(tokens: Iterable[Token]) -> str:
    """Render tokens. A fence for the DM holds Markdown; other named fences hold code, which is left out."""
    markdown = _markdown()
    made: list[str] = []
    rest: list[Token] = []
    for token in tokens:
        if token.type == "fence" and _is_kind_for_dm(token.info):
            made.append(markdown.render(token.content))
        else:
            rest.append(token)
    return "\n".join((markdown.renderer.render(prose(rest), markdown.options, {}), *made))


def _link(address: str, *, hidden: bool) -> PageLink | None:
    if not address.startswith(_NOTE):
        return None
    target, _, key = address.removeprefix(_NOTE).partition(":")
    return PageLink(unquote(target), unquote(key), hidden)


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    markdown.inline.ruler.before("link", "wikilink", _wikilink)
    markdown.core.ruler.before("block", "table", headless_tables)
    markdown.core.ruler.before("inline", "admonition", admonitions)
    markdown.core.ruler.before("inline", "callout", _callouts)
    markdown.core.ruler.push("address", _addresses)
    return markdown


def _callouts(state: StateCore) -> None:
    """Note the kind and title of each callout, and leave its title."""
    for quote_open, inline, after in zip(state.tokens, state.tokens[2:], state.tokens[4:], strict=False):
        if quote_open.type == "blockquote_open" and inline.content.startswith("[!"):
            kind, _, rest = inline.content[2:].partition("]")
            inline.content = rest.lstrip("+-").strip()
            title = rest.lstrip("+-").partition("\n")[0].strip()
            is_panel = "\n" in rest or after.type != "blockquote_close"
            quote_open.meta |= {"callout": f"{kind} {title}", "panel": title if is_panel else ""}


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
