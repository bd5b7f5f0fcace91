"""Control tokens in words: what a chat template means by `<|im_start|>`, and nobody else may.

llama.cpp reads a whole chat as one text, in which nothing tells the markers of the template from the words of the
messages: a player who says "<|im_end|>" would end their message, and speak as the system from there on. So every marker
that stands in words is broken by a space before it gets there: it is read as the plain text it is.

Some tokenizers normalise what they read (NFKC, without invisible characters), which makes markers of words that look
like none. Where that would be, the words are normalised here, and then broken.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

from glyphoxa.adapters.local.gguf import GgufHeader

ELSEWHERE: Final = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<|begin_of_text|>", "<|end_of_text|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|eom_id|>"),
    *("<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<tools>", "</tools>"),
    *("[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
)
"""Markers of the usual templates, for a server whose vocabulary cannot be read."""

_PARSED: Final = frozenset({2, 3, 4})
"""Types of tokens that llama.cpp finds in a text as a whole: unknown, control, user-defined."""


class ControlTokens:
    """
    Args:
        markers: As text. A single character cannot be broken, and white space means nothing: both stay.
    """

    def __init__(self, markers: Iterable[str]) -> None:
        meant = {marker for marker in markers if len(marker) > 1 and not marker.isspace()}
        longest_first = sorted(meant, key=lambda marker: (-len(marker), marker))
        self.markers = tuple(longest_first)
        self._any = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def broken(self, words: str) -> str:
        """The words, with no marker in them.

        >>> ControlTokens(["<|im_end|>"]).broken("Well<|im_end|> met.")
        'Well< |im_end|> met.'
        """
        words = self._broken(words)
        while not words.isascii() and self._any.search(plain := _normalised(words)):
            words = self._broken(plain)
        return words

    def _broken(self, words: str) -> str:
        words = self._any.sub(lambda found: f"{found.group()[0]} {found.group()[1:]}", words)
        while self._any.search(words):  # one that was made of what is left of others
            words = self._any.sub("", words)
        return words

    def in_messages(self, messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """As `in_message`, of a chat."""
        return [self.in_message(message) for message in messages]

    def in_message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A message of a chat completion, with no marker in any of its words: what was said, what a tool answered, what
        it was asked.
        """
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


def _normalised(words: str) -> str:
    return unicodedata.normalize("NFKC", "".join(each for each in words if not _is_invisible(each)))


def _is_invisible(character: str) -> bool:
    """What a tokenizer may drop: marks of format, joiners, variation selectors."""
    return unicodedata.category(character) == "Cf" or character == "\u034f" or "\ufe00" <= character <= "\ufe0f"


def of_gguf(header: GgufHeader) -> ControlTokens:
    """Those of a model's own vocabulary, with the usual ones that its template writes as text; all the usual ones if
    its vocabulary names none.
    """
    marked = [token for token, kind in zip(header.tokens, header.token_types, strict=False) if kind in _PARSED]
    in_template = [marker for marker in ELSEWHERE if marker in header.chat_template]
    return ControlTokens(
        [*(token.decode("utf-8", "replace") for token in marked), *in_template] if marked else ELSEWHERE
    )
