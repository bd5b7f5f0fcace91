"""Read a GGUF file's metadata, and adapt messages to its chat template."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import httpx

from glyphoxa.chat.marks import ELSEWHERE, ControlTokens
from glyphoxa.domain.errors import Corrupt, InvalidInput, NotFound, Unavailable

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
        values: Numbers and texts by their key, without lists.
        tokens: Texts of the vocabulary.
        token_types: The type of each token, in llama.cpp's numbering.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    tokens: tuple[bytes, ...] = ()
    token_types: tuple[int, ...] = ()

    @property
    def chat_template(self) -> str:
        """The Jinja chat template; empty for a model that is not a chat model."""
        template: str = self.values.get("tokenizer.chat_template", "")
        return template.strip()

    @property
    def context_length(self) -> int | None:
        """The context size it was trained for, in tokens; None if not given."""
        length: int | None = self.values.get(f"{self.values.get('general.architecture', '')}.context_length")
        return length


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
                return _header(data)
    except FileNotFoundError as missing:
        raise NotFound(f"{path}: no such model file") from missing
    except OSError as failure:
        raise Unavailable(f"{path}: {failure.strerror}") from failure
    except (struct.error, KeyError, ValueError, IndexError) as error:
        raise Corrupt(f"{path}: its metadata cannot be read: {error}") from error


def _header(data: mmap.mmap) -> GgufHeader:
    version, _n_tensors, n_values = struct.unpack_from("<IQQ", data, 4)
    if version not in _VERSIONS:
        raise ValueError(f"its version is {version}; supported: {' and '.join(map(str, _VERSIONS))}")
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
                texts = []
                for _ in range(n):
                    text, at = _text(data, at)
                    texts.append(text)
                tokens = tuple(texts) if key == _VOCABULARY else tokens
            else:
                at += n * _SIZES[of]
        else:
            (values[key],) = struct.unpack_from(_NUMBERS[kind], data, at)
            at += _SIZES[kind]
    return GgufHeader(values, tokens, types)


def _text(data: mmap.mmap, at: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from("<Q", data, at)
    end = at + 8 + length
    if end > len(data):
        raise ValueError("a text extends beyond the end of the file")
    return data[at + 8 : end], end


# Adapting a chat to a model's chat template.
#
# A template is a program of the model's publisher. Most accept any chat. Some reject messages of one role in a row (two
# players speak in turn), a system message after the first one, or a chat that begins with an answer; others leave such
# messages out. The check runs when the model is loaded, never in a turn.


Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatShape:
    """The changes that a chat needs for a template.

    Attributes:
        joins: Consecutive messages of one role are joined into one.
        has_one_system: System messages after the first message become the user's.
        begins_with_user: A system message before an answer becomes the user's.
    """

    joins: bool = False
    has_one_system: bool = False
    begins_with_user: bool = False

    def of(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The chat in this shape. Returns the same object if nothing has to be changed."""
        if self.has_one_system:
            messages = [*messages[:1], *(_as_user(each) for each in messages[1:])]
        if self.begins_with_user and [each["role"] for each in messages[:2]] == ["system", "assistant"]:
            messages = [_as_user(messages[0]), *messages[1:]]
        return joined(messages) if self.joins else messages


_BEGINNING: Final = (("system", "You are Mira."), ("user", "Tamsin says: Hello."), ("assistant", "Good evening."))
_PROBES: Final = (
    ("joins", (*_BEGINNING, ("user", "Bran says: Hm."), ("user", "Tamsin says: Where are we?"))),
    ("has_one_system", (*_BEGINNING, ("system", "It rains."), ("user", "Bran says: Hm."), ("system", "It is late."))),
    ("begins_with_user", (_BEGINNING[0], _BEGINNING[2], ("user", "Bran says: Hm."))),
)


def joined(messages: Sequence[Message]) -> list[Message]:
    r"""Join consecutive messages of one role. Tool calls and their results stay separate.

    >>> joined([{"role": "user", "content": "Hm."}, {"role": "user", "content": "Well."}])
    [{'role': 'user', 'content': 'Hm.\nWell.'}]
    """
    found: list[Message] = []
    for (role, is_plain), run in groupby(messages, key=lambda each: (each["role"], _is_plain(each))):
        together = list(run)
        if is_plain and len(together) > 1:
            found.append({"role": role, "content": "\n".join(each["content"] for each in together)})
        else:
            found += together
    return found


def shape_for(server: httpx.Client, model: Path) -> ChatShape:
    """Find the fewest changes with which the running model's template accepts the chats of a table.

    Raises:
        InvalidInput: It rejects them in any shape, or leaves out what is said.
        Unavailable: The server does not answer.
    """
    shape = ChatShape()
    for change, chat in _PROBES:
        if _refused(server, shape, chat):
            shape = replace(shape, **{change: True})
    for _, chat in _PROBES:
        if why := _refused(server, shape, chat):
            raise InvalidInput(f"{model}: its chat template rejects a conversation of several players: {why}")
    return shape


def _as_user(message: Message) -> Message:
    return {**message, "role": "user"} if message["role"] == "system" else message


def _is_plain(message: Message) -> bool:
    return message.keys() == {"role", "content"} and isinstance(message["content"], str)


def _refused(server: httpx.Client, shape: ChatShape, chat: Sequence[tuple[str, str]]) -> str:
    """Return why a template does not accept a chat; empty if it does."""
    messages = shape.of([{"role": role, "content": content} for role, content in chat])
    try:
        answer = server.post("/apply-template", json={"messages": [*messages]})
        if answer.is_success:
            prompt = str(answer.json().get("prompt"))
            return next((f"it leaves out {content!r}" for _, content in chat if content not in prompt), "")
        said = answer.json().get("error", {}).get("message") or f"HTTP {answer.status_code}"
        return " ".join(str(said).split())
    except (httpx.HTTPError, ValueError) as error:
        raise Unavailable(f"the language model does not apply its chat template: {error}") from error


_PARSED: Final = frozenset({2, 3, 4})
"""Token types that llama.cpp matches as a whole: unknown, control, user-defined."""


def of_gguf(header: GgufHeader) -> ControlTokens:
    """Markers of a model's vocabulary and the common ones its template writes as text.

    All common ones if its vocabulary contains none.
    """
    marked = [token for token, kind in zip(header.tokens, header.token_types, strict=False) if kind in _PARSED]
    in_template = [marker for marker in ELSEWHERE if marker in header.chat_template]
    return ControlTokens(
        [*(token.decode("utf-8", "replace") for token in marked), *in_template] if marked else ELSEWHERE
    )
