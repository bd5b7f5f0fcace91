"""Convert pages in HTML to Markdown, and separate the sections that only the DM could read."""

from __future__ import annotations

import html as entities
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from glyphoxa.plugins.imports.labels import is_mark, is_marked, property_mark

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions
    from selectolax.lexbor import LexborNode

_COMMAND: Final = re.compile(
    r"(?:(@|&amp;)(\w+)\[((?:[^\[\]<]|\[[^\[\]<]*\])*)\]|\[\[(?:[^\[\]<]|\[[^\[\]<]*\])*\]\])(?:\{([^{}]*)\})?"
)
"""Foundry's commands inside a text: `@UUID[Actor.x]{label}`, `&Reference[prone]`, `[[/roll 2d6[fire]]]{label}`."""
_COMMENT: Final = re.compile(r"<!--([^<>]{1,60})-->")
_TAG: Final = re.compile(r"<[^<>]*>")
_MARKDOWN: Final = {
    "extract_metadata": False,
    "bullets": "-",
    "autolinks": False,
    "compact_tables": True,
    "hidden_content": "all",
    "preprocessing": {"enabled": False, "remove_navigation": False, "remove_forms": False},
}
_MOST_TAGS: Final = 50_000
_MOST_OPEN: Final = 10_000
"""A page with more tags, or more that are never closed, is returned as hidden plain text: deeply nested tags take
minutes to convert."""
_NO_TEXT: Final = ("script", "style", "template", "iframe", "object", "svg", "img", "video", "audio", "noscript")
_HIDDEN: Final = (
    ".secret:not(.revealed), [hidden], [data-visibility=gm], [data-visibility=owner], [data-visibility=none],"
    " [style*='display:none' i], [style*='display: none' i], [style*='visibility:hidden' i],"
    " [style*='visibility: hidden' i]"
)
_LABELS: Final = ("class", "id", "title", "data-title", "aria-label", "data-callout")
"""Attributes that may name what only the DM reads. The class `revealed` says that everybody reads it."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """
    Attributes:
        target: Foundry's id (`Actor.x`), an address, or a note's name or path, as it is written, without a heading.
        key: The word before `::` on its line, which names the relation; "" for none.
    """

    target: str
    key: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page or note.

    Attributes:
        visible: Markdown without images, link addresses, code of programs and dice commands.
        hidden: The parts that only the DM could read, in the same form.
        tags: Those of the visible part of a note, without `#`.
        pictures: Those of the visible part of a note, as they are written.
        why: The marks that hide the hidden parts.
        mark: A field in the text of a note that hides all of it; "" for none.
    """

    visible: str = ""
    hidden: str = ""
    links: tuple[PageLink, ...] = ()
    tags: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    mark: str = ""


def html_text(html: str, *, name_of: Callable[[str, bool], str] = lambda _target, _hidden: "") -> PageText:
    """Convert a page.

    `name_of` returns the text for a reference without a label, given its target and whether it is in a hidden section.
    """
    html = html.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "")
    # A comment that is nothing but a mark is a heading for what comes next; other comments are left out.
    html = _COMMENT.sub(lambda found: f"<p><b>{found[1]}</b></p>" if is_mark(found[1]) else "", html)
    if not any(mark in html for mark in "<&["):
        return PageText(html.strip())
    n_tags = html.count("<")
    if n_tags > _MOST_TAGS or n_tags - 2 * html.count("</") > _MOST_OPEN:
        text = " ".join(entities.unescape(_TAG.sub(" ", html)).split())
        return PageText(hidden=text, why=("more tags than are read",))
    from selectolax.lexbor import LexborHTMLParser

    body = LexborHTMLParser(html).body
    if body is None:
        return PageText()
    body.strip_tags(list(_NO_TEXT), recursive=True)
    why: dict[str, None] = {}
    for node in body.css("*"):
        if mark := _mark(node):
            marked = node.parent if node.tag == "summary" and node.parent is not None else node
            marked.attrs["class"] = "secret"
            why[mark] = None
    outer: list[LexborNode] = []
    inside: set[int | None] = set()
    for section in body.css(_HIDDEN):
        if section.mem_id not in inside:
            outer.append(section)
            inside |= {each.mem_id for each in section.css(_HIDDEN)}
    sections, hidden_links = [], []
    # Removing a section frees the nodes inside it, which must not be used after that.
    for section in outer:
        if not why:
            why["hidden section"] = None
        hidden_links += _addresses(section)
        sections.append(section.html or "")
        section.remove()
    links = _addresses(body)
    visible = _markdown(body.html or "", links, lambda target: name_of(target, False))
    hidden = _markdown("\n".join(sections), hidden_links, lambda target: name_of(target, True)) if sections else ""
    targets = dict.fromkeys(links, False)
    targets = {**targets, **dict.fromkeys(hidden_links, True), **targets}
    found = tuple(PageLink(target, hidden=is_hidden) for target, is_hidden in targets.items())
    return PageText(visible, hidden, found, why=tuple(why))


def _mark(node: LexborNode) -> str:
    """Return what says that an element is for the DM; "" for nothing."""
    tag, attributes = node.tag or "", node.attributes
    if tag == "summary" and is_marked(label := node.text().strip()):
        return f"summary {label!r}"
    if is_mark(tag):
        return f"element {tag!r}"
    if "revealed" in (attributes.get("class") or "").split():
        return ""
    for name, value in attributes.items():
        if name in _LABELS and any(is_marked(each, "folder") for each in (value or "", *(value or "").split())):
            return f"{name} {value!r}"
        if name.startswith("data-") and property_mark(name[5:], [value or "true"]) == "note":
            return f"{name}={value!r}"
    return ""


def _addresses(node: LexborNode) -> list[str]:
    """Return the targets of its links, and replace the links by their labels."""
    addresses = [link.attributes.get("data-uuid") or link.attributes.get("href") or "" for link in node.css("a")]
    node.unwrap_tags(["a"])
    return [address for address in addresses if address]


def _markdown(html: str, links: list[str], name_of: Callable[[str], str]) -> str:
    """Convert HTML, and append the targets of its references to `links`."""
    from html_to_markdown import WarningKind, convert
    from selectolax.lexbor import LexborHTMLParser

    def words(command: re.Match[str]) -> str:
        sign, name, written, label = command.groups()
        target = entities.unescape(written or "").partition(" ")[0].partition("#")[0]
        if sign == "@":
            target = target if name in ("UUID", "Embed") else f"{name}.{entities.unescape(written)}"
            links.append(target)
            return label if label is not None else entities.escape(name_of(target))
        return label or target.rpartition("=")[2]

    html = _COMMAND.sub(words, html)
    result = convert(html, _options())
    if any(warning.kind == WarningKind.DEPTH_LIMIT_EXCEEDED for warning in result.warnings):
        body = LexborHTMLParser(html).body
        return "" if body is None else body.text(separator="\n").strip()
    return (result.content or "").replace("  \n", "\n").strip()


@cache
def _options() -> ConversionOptions:
    from html_to_markdown import ConversionOptions

    # Options made from JSON convert faster: the library does not parse each enum again for each page.
    return ConversionOptions.from_json(json.dumps(_MARKDOWN))
