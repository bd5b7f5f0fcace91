"""Marks of chat templates: where a reply ends, and control tokens in messages.

Only the chat template may use markers like `<|im_start|>`. Servers read a whole chat as one text, which does not
distinguish markers of the template from words of the messages: a player who types "<|im_end|>" would end their message
and continue as the system. So every marker in a message is broken by a space first, and is read as plain text.

Some tokenizers normalise text (NFKC, without invisible characters), which can turn other words into markers. So markers
are searched in the normalised text, with look-alike bars and brackets as well; only the markers are changed.

The same marks end a reply: a model that writes one after its words continues with the next message of the chat
(`glyphoxa.chat.reasoning`). The table is `marks.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from glyphoxa.language.lexicon import Lexicon

TABLE: Final = Lexicon([tomllib.loads(Path(__file__).with_name("marks.toml").read_text("utf-8"))])
GAP: Final = r"[ \t]*"
_LOOK_ALIKES: Final = {ord(other): usual for usual, others in TABLE.value("look_alikes").items() for other in others}
_ENDS: Final = sorted(TABLE.words("ends"), key=len, reverse=True)

ELSEWHERE: Final = (*_ENDS, *sorted(TABLE.words("enclosing")))
"""Markers of common templates, for a server whose vocabulary cannot be read."""
SPACED_ENDS: Final = "|".join(GAP.join(map(re.escape, re.findall(r"\w+|\W", marker))) for marker in _ENDS)
"""Pattern of the marks that end a reply, beside the families."""
WIDE: Final = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {ord("∣"): "|"}
"""For `str.translate`: full-width characters, of which the marks of some models consist, to ASCII."""


class ControlTokens:
    """
    Args:
        markers: Marker texts beside the common families. A single character cannot be broken, and white space is
            harmless: both are ignored.
    """

    def __init__(self, markers: Iterable[str]) -> None:
        meant = {marker for marker in markers if len(_plain(marker)) > 1 and not marker.isspace()}
        self.markers = tuple(sorted(meant, key=lambda marker: (-len(marker), marker)))
        exact = (re.escape(_plain(marker)).replace("_", "[_▁]") for marker in self.markers)
        families = TABLE.words("call_families") | TABLE.words("end_families")
        self._any = TABLE.compile("|".join((*exact, *sorted(families))), flags=re.IGNORECASE, gap="")

    def broken(self, words: str) -> str:
        """Break every marker in the words, and change nothing else.

        >>> ControlTokens(["<|im_end|>"]).broken("Well<|im_end|> met.")
        'Well< |im_end|> met.'
        """
        if self._any.search(plain := _plain(words)) is None:
            return words
        places = [place for place, character in enumerate(words) for _ in _plain(character)]
        parts, done = [], 0
        for found in self._any.finditer(plain):
            parts += [words[done : places[found.start()]], f"{found[0][0]} {found[0][1:]}"]
            done = places[found.end() - 1] + 1
        words = "".join((*parts, words[done:]))
        while self._any.search(plain := _plain(words)):  # a marker formed by the remains of others
            words = self._any.sub("", plain)
        return words

    def in_messages(self, messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Apply `in_message` to a chat."""
        return [self.in_message(message) for message in messages]

    def in_message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Break markers in all texts of a chat message: content, tool results and tool arguments."""
        return {key: value if key == "role" else self._in(value) for key, value in message.items()}

    def _in(self, value: Any) -> Any:
        match value:
            case str():
                return self.broken(value)
            case Mapping():
                return {key: self._in(each) for key, each in value.items()}
            case list() | tuple():
                return [self._in(each) for each in value]
            case _:
                return value


_UNUSUAL: Final = re.compile(r"[^\x00-\x7f\xc0-\xff–—‘’“”„…]")


def _plain(words: str) -> str:
    """Return the text as a tokenizer may read it, with the characters that look like those of a mark."""
    return words if words.isascii() else _UNUSUAL.sub(lambda found: _as_read(found[0]), words)


@lru_cache(maxsize=4_096)
def _as_read(character: str) -> str:
    if unicodedata.category(character) == "Cf" or character == "\u034f" or "\ufe00" <= character <= "\ufe0f":
        return ""  # a tokenizer may drop format characters, joiners and variation selectors
    return unicodedata.normalize("NFKC", character).translate(_LOOK_ALIKES)


COMMON: Final = ControlTokens(ELSEWHERE)
"""For every request: any server may read marks anywhere in a message."""
