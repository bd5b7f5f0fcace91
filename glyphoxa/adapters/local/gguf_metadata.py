"""Read a GGUF file's metadata, and find the chats that its template accepts."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from glyphoxa.chat.dialect import Habits, Roles, dialect_of
from glyphoxa.chat.marks import ELSEWHERE, ControlTokens
from glyphoxa.domain.errors import Corrupt, InvalidInput, NotFound, Unavailable

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_TEXT, _LIST = 8, 9
_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_PARSED: Final = frozenset({2, 3, 4})
"""Token types that llama.cpp matches as a whole: unknown, control, user-defined."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """
    Attributes:
        values: Numbers, texts as bytes, and lists of one kind, by their key.
    """

    values: Mapping[str, Any]

    @property
    def chat_template(self) -> str:
        """The Jinja chat template; empty for a model that is not a chat model."""
        return self._text("tokenizer.chat_template").strip()

    @property
    def context_length(self) -> int | None:
        """The context size it was trained for, in tokens; None if not given."""
        length: int | None = self.values.get(f"{self._text('general.architecture')}.context_length")
        return length

    @property
    def control_tokens(self) -> ControlTokens:
        """Markers of the vocabulary and the common ones that the template writes as text.

        All common ones if the vocabulary contains none.
        """
        tokens, kinds = (self.values.get(f"tokenizer.ggml.{name}", ()) for name in ("tokens", "token_type"))
        marked = [token for token, kind in zip(tokens, kinds, strict=False) if kind in _PARSED]
        in_template = [marker for marker in ELSEWHERE if marker in self.chat_template]
        return ControlTokens([*map(_decoded, marked), *in_template] if marked else ELSEWHERE)

    def _text(self, key: str) -> str:
        text = self.values.get(key)
        return _decoded(text) if isinstance(text, bytes) else ""


def read_header(path: Path) -> GgufHeader:
    """Read the metadata: half a second for 150,000 tokens.

    Raises:
        NotFound: There is no such file.
        Unavailable: It cannot be read.
        Corrupt: It is another kind of file, or damaged.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
            if magic != _MAGIC:
                raise Corrupt(f"{path}: not a GGUF file (it begins with {magic!r})")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                data.seek(len(_MAGIC))
                return GgufHeader(dict(_values(data)))
    except FileNotFoundError as missing:
        raise NotFound(f"{path}: no such model file") from missing
    except OSError as failure:
        raise Unavailable(f"{path}: {failure.strerror}") from failure
    except (struct.error, KeyError, ValueError, OverflowError) as error:
        raise Corrupt(f"{path}: its metadata cannot be read: {error}") from error


def _values(data: mmap.mmap) -> Iterator[tuple[str, Any]]:
    version, _n_tensors, n_values = _numbers(data, "IQQ")
    if version not in _VERSIONS:
        raise ValueError(f"its version is {version}; supported: {' and '.join(map(str, _VERSIONS))}")
    for _ in range(n_values):
        key = _decoded(_text(data))
        (kind,) = _numbers(data, "I")
        of, n = _numbers(data, "IQ") if kind == _LIST else (kind, 1)
        values = [_text(data) for _ in range(n)] if of == _TEXT else _numbers(data, f"{n}{_NUMBERS[of]}")
        yield key, values if kind == _LIST else values[0]


def _numbers(data: mmap.mmap, form: str) -> tuple[Any, ...]:
    return struct.unpack(f"<{form}", data.read(struct.calcsize(f"<{form}")))


def _text(data: mmap.mmap) -> bytes:
    (length,) = _numbers(data, "Q")
    text = data.read(length)
    if len(text) < length:
        raise ValueError("a text extends beyond the end of the file")
    return text


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


# Which chats a model's chat template accepts.
#
# A template is a program of the model's publisher. Most accept any chat. Some reject messages of one role in a row (two
# players speak in turn), a system message after the first one, or a chat that begins with an answer; others leave such
# messages out. The check runs when the model is loaded, never in a turn.


_BEGINNING: Final = (("system", "You are Mira."), ("user", "Tamsin says: Hello."), ("assistant", "Good evening."))
_CHATS: Final = (
    (*_BEGINNING, ("user", "Bran says: Hm."), ("user", "Tamsin says: Where are we?")),
    (*_BEGINNING, ("system", "It rains."), ("user", "Bran says: Hm."), ("system", "It is late.")),
    (_BEGINNING[0], _BEGINNING[2], ("user", "Bran says: Hm.")),
)
_BY_CHANGES: Final[tuple[Roles, ...]] = ("auto", "alternate", "no_system")


def habits_of(server: httpx.Client, model: Path) -> Habits:
    """Find the fewest changes of roles with which the running model's template accepts the chats of a table.

    Raises:
        InvalidInput: It rejects them in any form, or leaves out what is said.
        Unavailable: The server does not answer.
    """
    why = ""
    for habits in map(Habits, _BY_CHANGES):
        why = next(filter(None, (_refused(server, habits, chat) for chat in _CHATS)), "")
        if not why:
            return habits
    raise InvalidInput(f"{model}: its chat template rejects a conversation of several players: {why}")


def _refused(server: httpx.Client, habits: Habits, chat: Sequence[tuple[str, str]]) -> str:
    """Return why a template does not accept a chat; empty if it does."""
    messages = [{"role": role, "content": content} for role, content in chat]
    try:
        request = dialect_of("local", habits=habits).fitted({"messages": messages})
        answer = server.post("/apply-template", json=request)
        if answer.is_success:
            prompt = str(answer.json().get("prompt"))
            return next((f"it leaves out {content!r}" for _, content in chat if content not in prompt), "")
        said = answer.json().get("error", {}).get("message") or f"HTTP {answer.status_code}"
        return " ".join(str(said).split())
    except (httpx.HTTPError, ValueError) as error:
        raise Unavailable(f"the language model does not apply its chat template: {error}") from error
