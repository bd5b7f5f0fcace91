"""What a GGUF file says of its model, in front of the weights: metadata and the names of its vocabulary."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from glyphoxa.domain.errors import Corrupt, NotFound, Unavailable

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_BOOL, _TEXT, _ARRAY = 7, 8, 9
_NUMBERS: Final = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    _BOOL: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_SIZES: Final = {kind: struct.calcsize(form) for kind, form in _NUMBERS.items()}
_VOCABULARY: Final = "tokenizer.ggml.tokens"
_KINDS: Final = "tokenizer.ggml.token_type"


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """
    Attributes:
        values: Numbers and texts by their key; lists are left out.
        tokens: Of the vocabulary, as they are written.
        token_types: Of each token, as llama.cpp numbers them.
        n_parameters: Of all tensors together.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    tokens: tuple[bytes, ...] = ()
    token_types: tuple[int, ...] = ()
    n_parameters: int = 0

    @property
    def chat_template(self) -> str:
        """How a chat becomes one text, in Jinja; empty for a model that was not made to be talked to."""
        template: str = self.values.get("tokenizer.chat_template", "")
        return template.strip()

    @property
    def context_length(self) -> int | None:
        """Tokens that it was trained to read at once; None where it does not say."""
        length: int | None = self.values.get(f"{self.values.get('general.architecture', '')}.context_length")
        return length


def check_gguf(path: Path) -> None:
    """
    Raises:
        NotFound: There is no such file.
        Unavailable: It cannot be read.
        Corrupt: It is another kind of file.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except FileNotFoundError as missing:
        raise NotFound(f"{path}: no such model file") from missing
    except OSError as failure:
        raise Unavailable(f"{path}: {failure.strerror}") from failure
    if magic != _MAGIC:
        raise Corrupt(f"{path}: not a GGUF file (it begins with {magic!r})")


def read_header(path: Path) -> GgufHeader:
    """Half a second for 150,000 tokens.

    Raises:
        Corrupt: It is no GGUF file that can be read.
    """
    check_gguf(path)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _header(data)
    except (struct.error, KeyError, ValueError, IndexError) as error:
        raise Corrupt(f"{path}: what it says of its model cannot be read: {error}") from error


def _header(data: mmap.mmap) -> GgufHeader:
    version, n_tensors, n_values = struct.unpack_from("<IQQ", data, 4)
    if version not in _VERSIONS:
        raise ValueError(f"it is of version {version}, and {' and '.join(map(str, _VERSIONS))} are known")
    values: dict[str, Any] = {}
    tokens: tuple[bytes, ...] = ()
    types: tuple[int, ...] = ()
    at = 24
    for _ in range(n_values):
        raw_key, at = _text(data, at)
        key = raw_key.decode("utf-8", "replace")
        (kind,) = struct.unpack_from("<I", data, at)
        at += 4
        if kind == _TEXT:
            text, at = _text(data, at)
            values[key] = text.decode("utf-8", "replace")
        elif kind == _ARRAY:
            of, n = struct.unpack_from("<IQ", data, at)
            at += 12
            if key == _KINDS:
                types = struct.unpack_from(f"<{n}i", data, at)
            if of == _TEXT:
                texts, at = _texts(data, at, n)
                tokens = tuple(texts) if key == _VOCABULARY else tokens
            else:
                at += n * _SIZES[of]
        else:
            (values[key],) = struct.unpack_from(_NUMBERS[kind], data, at)
            at += _SIZES[kind]
    return GgufHeader(values, tokens, types, _parameters(data, at, n_tensors))


def _parameters(data: mmap.mmap, at: int, n_tensors: int) -> int:
    total = 0
    for _ in range(n_tensors):
        _, at = _text(data, at)
        (n_dimensions,) = struct.unpack_from("<I", data, at)
        size = 1
        for extent in struct.unpack_from(f"<{n_dimensions}Q", data, at + 4):
            size *= extent
        total += size
        at += 4 + 8 * n_dimensions + 12
    return total


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
