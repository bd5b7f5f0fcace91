"""Convert markup to plain text, also while the text streams.

Models and authors write what their other programs accept: HTML (`&amp;`, `<br>`), the placeholders of role-play
programs (`{{user}}`, `{{char}}`), and links of wikis and virtual tabletops (`[[Old Mill|the mill]]`,
`@UUID[Actor.x]{Mira}`). All of it stands for text that can be said. Markdown and stage directions are left to
`glyphoxa.judgement.reply`.

Only an unfinished construct at the end of the text is held back until the next token.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from glyphoxa.domain.ids import INVISIBLE

_BLOCKS: Final = re.compile(
    "address|article|aside|blockquote|br|center|d[dlt]|div|fieldset|fig(?:caption|ure)|footer|form|h[1-6]|header|hr|li"
    "|main|nav|ol|p|pre|section|table|tbody|td|tfoot|th|thead|tr|ul"
)
"""HTML elements that begin a line. Each ends a sentence."""
_INLINE: Final = re.compile(
    "a|abbr|b|bdi|bdo|big|cite|code|del|dfn|em|font|i|img|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u"
    "|var|wbr"
)
_STANDS_FOR: Final[Mapping[str, str]] = {"user": "user", "player": "user", "char": "char", "bot": "char", "npc": "char"}
"""Placeholders, and whose name they stand for."""
_NAMED: Final = "|".join(_STANDS_FOR)
_MARK: Final = re.compile(
    rf"\{{\{{?\s*(?P<placeholder>{_NAMED})\s*\}}\}}?|<(?P<legacy>user|char|bot)>"
    r"|<(?P<comment>!)--.*?-->|</?(?P<tag>[a-z][a-z0-9]*)\b[^<>]*>"
    r"|&(?:amp;)*(?P<entity>#?\w{1,31};)"
    r"|@(?P<link>\w+)\[(?P<address>[^\[\]]*)\](?:\{(?P<label>[^{}]*)\})?"
    r"|\[\[(?P<wiki>[^\[\]]*)\]\](?:\{(?P<roll>[^{}]*)\})?",
    re.IGNORECASE | re.DOTALL,
)
_LOOKS_LIKE: Final = re.compile(r"\{\{[^{}\n]*\}\}|</?[A-Za-z][^<>\n]*>|\{%[^{}\n]*%\}|\[/[a-z]+\]|@\w+\[[^\[\]\n]*\]")
_UNFINISHED: Final = re.compile(
    r"(?:&(?:amp;)*#?\w{0,31}|<(?:!--(?:(?!-->).){0,400}|!-|[/!]?(?:[a-z][^<>]{0,200})?)|\{[\s\w]{0,20}|\{\{[\s\w]{0,20}\}?"
    r"|@\w{0,12}(?:\[[^\[\]]{0,120}(?:\](?:\{[^{}]{0,80})?)?)?|\[\[?|\[\[[^\[\]]{0,120}\]?|\[\[[^\[\]]{0,120}\]\](?:\{[^{}]{0,80})?)\Z",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(slots=True)
class PlainText:
    """Convert one text: `push` each token as it comes, then `flush`.

    Args:
        char: The name that `{{char}}` stands for. Without a name the placeholder vanishes, with the comma after it.
        user: The same for `{{user}}`.
    """

    char: str = ""
    user: str = ""
    _held: str = ""
    _last: str = ""
    _drops_comma: bool = False

    def push(self, token_text: str) -> str:
        """Return the text that is now plain."""
        self._held += token_text
        unfinished = _UNFINISHED.search(self._held)
        end = len(self._held) if unfinished is None else unfinished.start()
        ready, self._held = self._held[:end], self._held[end:]
        return self._converted(ready)

    def flush(self) -> str:
        """Return the rest."""
        ready, self._held = self._held, ""
        return self._converted(ready)

    def _converted(self, text: str) -> str:
        parts: list[str] = []
        at = 0
        for found in _MARK.finditer(text):
            parts += (self._added(text[at : found.start()]), self._added(self._instead(found)))
            at = found.end()
        parts.append(self._added(text[at:]))
        return "".join(parts)

    def _added(self, text: str) -> str:
        text = text.translate(INVISIBLE)
        if self._drops_comma and text:
            text = text.lstrip(" ,")
            self._drops_comma = not text
        self._last = (text.rstrip() or self._last)[-1:]
        return text

    def _instead(self, found: re.Match[str]) -> str:
        """Return what is read where a construct stands."""
        if found["placeholder"] or found["legacy"]:
            whose = _STANDS_FOR[(found["placeholder"] or found["legacy"]).lower()]
            name = self.char if whose == "char" else self.user
            self._drops_comma = not name
            return name
        if found["comment"]:
            return ""
        if found["tag"]:
            tag = found["tag"].lower()
            if _BLOCKS.fullmatch(tag):
                return ".\n" if self._last.isalnum() else "\n"
            return "" if _INLINE.fullmatch(tag) else found[0]
        if found["entity"]:
            decoded = html.unescape(f"&{found['entity']}")
            return found[0] if decoded.endswith(";") and len(decoded) > 1 else decoded
        if found["link"]:
            # Without a label, the readable end, such as "Goblin" of `Compendium.dnd5e.monsters.Goblin`.
            return found["label"] or found["address"].split(".")[-1].split("|")[0].strip()
        return found["roll"] or _of_wiki(found["wiki"])


def _of_wiki(inner: str) -> str:
    """Return the visible text of `[[page#part|text]]`, or the formula of `[[/roll 2d6]]`."""
    if inner.startswith("/"):
        return inner.partition(" ")[2].strip()
    page, _, shown = inner.partition("|")
    return (shown or page.partition("#")[0]).strip()


def unknown_markup(text: str) -> str:
    """Return the first construct of a plain text that looks like markup of another program; "" if there is none."""
    found = _LOOKS_LIKE.search(text)
    return found[0] if found else ""


def plain_text(text: str, *, char: str = "", user: str = "") -> str:
    r"""Return a whole text without markup.

    >>> plain_text("Salt &amp; pepper<br>at [[Old Mill|the mill]]")
    'Salt & pepper.\nat the mill'
    """
    return PlainText(char, user, text).flush()
