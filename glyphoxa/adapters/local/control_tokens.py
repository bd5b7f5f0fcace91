"""Control tokens in words: what a chat template means by `<|im_start|>`, and nobody else may.

llama.cpp reads a whole chat as one text, in which nothing tells the markers of the template from the words of the
messages: a player who says "<|im_end|>" would end their message, and speak as the system from there on. So every marker
that stands in words is broken by a space before it gets there: it is read as the plain text it is.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from glyphoxa.domain.errors import Corrupt

ELSEWHERE: Final = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<|begin_of_text|>", "<|end_of_text|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|eom_id|>"),
    *("<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]"),
)
"""Markers of the usual templates, for a server whose vocabulary cannot be read."""

_PARSED: Final = frozenset({2, 3, 4})
"""Types of tokens that llama.cpp finds in a text as a whole: unknown, control, user-defined."""
_TEXT, _ARRAY = 8, 9
_SIZES: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


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
        words = self._any.sub(lambda found: f"{found.group()[0]} {found.group()[1:]}", words)
        while self._any.search(words):  # one that was made of what is left of others
            words = self._any.sub("", words)
        return words

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


def of_gguf(path: Path) -> ControlTokens:
    """Those of a model file's own vocabulary, or the usual ones if it names none. Half a second for 150,000 tokens.

    Raises:
        Corrupt: It is no GGUF file that can be read.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            tokens, types = _vocabulary(data)
    except (struct.error, KeyError, ValueError, IndexError) as error:
        raise Corrupt(f"{path}: its vocabulary cannot be read: {error}") from error
    marked = [token for token, kind in zip(tokens, types, strict=False) if kind in _PARSED]
    return ControlTokens([token.decode("utf-8", "replace") for token in marked] or ELSEWHERE)


def _vocabulary(data: mmap.mmap) -> tuple[list[bytes], tuple[int, ...]]:
    (n_values,) = struct.unpack_from("<Q", data, 16)
    tokens: list[bytes] = []
    types: tuple[int, ...] = ()
    at = 24
    for _ in range(n_values):
        key, at = _text(data, at)
        (kind,) = struct.unpack_from("<I", data, at)
        at += 4
        if kind == _TEXT:
            _, at = _text(data, at)
        elif kind == _ARRAY:
            of, n = struct.unpack_from("<IQ", data, at)
            at += 12
            if key == b"tokenizer.ggml.token_type":
                types = struct.unpack_from(f"<{n}i", data, at)
            if of == _TEXT:
                texts, at = _texts(data, at, n)
                tokens = texts if key == b"tokenizer.ggml.tokens" else tokens
            else:
                at += n * _SIZES[of]
        else:
            at += _SIZES[kind]
        if tokens and types:
            break
    return tokens, types


def _text(data: mmap.mmap, at: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from("<Q", data, at)
    end = at + 8 + length
    if end > len(data):
        raise ValueError("a text ends behind the end of the file")
    return data[at + 8 : end], end


def _texts(data: mmap.mmap, at: int, n: int) -> tuple[list[bytes], int]:
    found: list[bytes] = []
    for _ in range(n):
        text, at = _text(data, at)
        found.append(text)
    return found, at
