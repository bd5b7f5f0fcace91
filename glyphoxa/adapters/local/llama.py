"""A language model inside this process, served through an OpenAI-compatible API.

Measured on llama.cpp's server as embedded by xllamacpp 2026.10 (two threads; the tests check the same without wall
time through `timings` in the last chunk of a stream):

- A chat completion honours `id_slot` on the OpenAI route. One slot per character keeps every prefix warm: after a
  request with `max_tokens=1`, the next one with the same beginning evaluates only the new part (`timings.prompt_n`),
  and two characters in turn do not evict each other. `max_tokens=0` still generates one token.
- `n_batch` bounds the server's reaction time: a cancellation or another slot's request is only seen between two
  batches. With the default of 2048, a cancelled prefill continued for 7-15 s; with 32 tokens it ends with its batch,
  at the same prefill speed.
- While a prompt is evaluated, the server checks for a closed connection once a second, unless the stream has
  something to write: `return_progress` makes it write after each batch, so that closing the stream frees the slot
  within one. Progress chunks carry no text: "first token" is the first chunk with content.
- Evaluation holds no GIL: the event loop lags 0.2 ms (median), under 5 ms at worst while it runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import mmap
import os
import secrets
import struct
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx
from loguru import logger

from glyphoxa.adapters.local import machine as native_env
from glyphoxa.chat.client import ChatClient
from glyphoxa.chat.dialect import UNKNOWN, Connection, Habits, Roles, dialect_of
from glyphoxa.chat.marks import COMMON, ELSEWHERE, ControlTokens
from glyphoxa.chat.models import Measured
from glyphoxa.domain.errors import Corrupt, GlyphoxaError, InvalidInput, NotFound, Unavailable

SPOKEN_GRAMMAR = r"""root ::= sentence (" " sentence)? (" " sentence)?
sentence ::= ([A-ZÀ-ÖØ-Þ] rest | number) (gap word)* [.!?]
word ::= [a-zA-ZÀ-ÖØ-öø-ÿ'] rest | number
rest ::= [a-zA-ZÀ-ÖØ-öø-ÿ0-9'\-]*
number ::= [0-9]+ ([.,:] [0-9]+)* rest
gap ::= " " | ", " | "; "
"""
"""GBNF for one to three plain sentences that a voice can say: no quotes, lists, markup or stage directions.

A comma is followed by a space, except in a number: without that exception, "1,140" can only be written as "1, 140"."""

SPOKEN_TEMPERATURE = 0.7
SPOKEN_REPEAT_PENALTY = 1.05
SPOKEN_MAX_TOKENS = 60
"""Sampling limits that keep a 1.5B model short and in character (few-shot persona, facts beside the question)."""

_BATCH_TOKENS = 32
_MAX_THREADS = 4
"""More would wait for memory."""
_PING_S = 1
"""Interval at which the server pings a silent stream and so notices that it was closed.

`unload` waits for that: 30 s with the server's default."""
_QUEUE_S = 60.0
_NICENESS = 10
_SYSTEM_LIBRARIES = "it needs the system's OpenMP library (on Debian and Ubuntu: apt-get install libgomp1)"
_PROMPT_CACHE_MIB = 256
"""Memory for prefixes evicted from slots: about 10 kB (0.5B) to 30 kB (1.5B) per token."""


def spoken_extras(slot: int) -> dict[str, Any]:
    """Additions to the body of a chat completion (`extra_body`) that keep `slot`'s prefix and speed up cancelling."""
    return {
        "cache_prompt": True,
        "id_slot": slot,
        "repeat_penalty": SPOKEN_REPEAT_PENALTY,
        "return_progress": True,
        "grammar": SPOKEN_GRAMMAR,
    }


class LlamaServer:
    """A GGUF model behind `base_url`, with one slot (KV cache) per character.

    Use it as `async with LlamaServer(...) as server`, or `load` and `unload` it in a thread. It listens on a free
    loopback port and requires `api_key`, because other users of this machine and web pages can reach the port too.

    Args:
        model_path: A GGUF file; its chat template is used.
        slots: Conversations kept warm at once; ids 0 to `slots` - 1.
        ctx_per_slot: Tokens of prompt and reply a slot can hold. A longer prompt is rejected with HTTP 400.
        prompts_dir: Where slots are stored between processes; created if missing, private to this user. None: nowhere.
        model_id: Identifies the model in names of stored prompt files.

    Attributes:
        control_tokens: The model's markers, once loaded. They must be broken in every message that is sent here.
        used_slots: Slots that have had a request.
        examples: Those that a slot has for questions about notes; empty: none.
        one_at_a_time: Held during a spoken reply, so that each is evaluated alone.
    """

    def __init__(
        self,
        *,
        model_path: Path | str,
        slots: int = 1,
        ctx_per_slot: int = 2048,
        prompts_dir: Path | None = None,
        model_id: str = "",
    ) -> None:
        if slots < 1 or ctx_per_slot < 1:
            raise InvalidInput(f"a model needs a slot and a context: slots={slots}, ctx_per_slot={ctx_per_slot}")
        self.model_path = Path(model_path)
        self.slots = slots
        self.ctx_per_slot = ctx_per_slot
        self.prompts_dir = prompts_dir
        self.api_key = secrets.token_urlsafe(24)
        self.control_tokens = COMMON
        self.model_id = model_id
        self.used_slots: set[int] = set()
        self.examples = ""
        self.one_at_a_time = asyncio.Lock()
        self._habits = UNKNOWN
        self._server: Any = None

    def load(self) -> None:
        """Load the weights; blocks for seconds.

        Raises:
            NotFound: There is no such file.
            Corrupt: It is not a model that can be loaded.
            InvalidInput: It is a model that was not made to be talked to, or cannot hold so long a prompt, or
                the system lacks a library.
            Unavailable: It does not get ready within a minute.
        """
        if self._server is not None:
            return
        header = read_header(self.model_path)
        _check_chat(self.model_path, header, self.ctx_per_slot)
        native_env.prepare()
        try:
            import xllamacpp  # the library reads its environment when it is loaded
        except ImportError as failure:
            raise InvalidInput(f"xllamacpp cannot be loaded: {failure}; {_SYSTEM_LIBRARIES}") from failure

        params = xllamacpp.CommonParams()
        params.model.path = str(self.model_path)
        params.model_alias = {"local"}
        params.n_ctx = self.ctx_per_slot * self.slots
        params.n_parallel = self.slots
        params.n_batch = params.n_ubatch = max(_BATCH_TOKENS, self.slots)
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = min(_MAX_THREADS, os.cpu_count() or 1)
        params.fit_params = False
        params.warmup = False
        params.verbosity = -1
        params.use_jinja = True
        params.sse_ping_interval = _PING_S
        params.ui = False
        params.cache_idle_slots = False
        params.cache_ram_mib = _PROMPT_CACHE_MIB
        params.api_keys = [self.api_key]
        if self.prompts_dir is not None:
            self.prompts_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.prompts_dir.chmod(0o700)
            params.slot_save_path = f"{self.prompts_dir}/"
        try:
            with ThreadPoolExecutor(max_workers=1, thread_name_prefix="llama", initializer=_stand_back) as fresh:
                self._server = fresh.submit(xllamacpp.Server, params).result()
        except RuntimeError as failure:
            raise Corrupt(f"{self.model_path}: cannot be loaded as a model: {failure}") from failure
        self.control_tokens = header.control_tokens
        with httpx.Client(**self.client_options(timeout_s=_QUEUE_S)) as client:
            self._await_queue(client)
            try:
                self._habits = habits_of(client, self.model_path)
            except GlyphoxaError:
                self.unload()
                raise

    def _await_queue(self, client: httpx.Client) -> None:
        """Wait until the server accepts tasks, which is a moment after it answers.

        A server stopped in that moment starts accepting tasks afterwards and never ends: its destructor joins a thread
        that waits for the next task. The query for slot states is such a task, so it serves as a probe.
        """
        try:
            client.get("/slots").raise_for_status()
        except httpx.HTTPError as failure:
            # Do not close it: that could block forever.
            raise Unavailable(f"the language model {self.model_path.name} is not ready: {failure}") from failure

    @property
    def base_url(self) -> str:
        """Address of the OpenAI API, for example `http://127.0.0.1:40123/v1`.

        Raises:
            Unavailable: Not started, or closed.
        """
        if self._server is None:
            raise Unavailable(f"the language model {self.model_path.name} is not running")
        return f"{self._server.listening_address.rstrip('/')}/v1"

    @property
    def connection(self) -> Connection:
        """The OpenAI API, for a client. Raises like `base_url`."""
        return Connection("local", self.base_url, self.api_key, self._habits)

    def client_options(self, *, timeout_s: float) -> dict[str, Any]:
        """Arguments of an `httpx` client for what llama.cpp's server offers outside `/v1`."""
        return {
            "base_url": self.base_url.removesuffix("/v1"),
            "headers": {"Authorization": f"Bearer {self.api_key}"},
            "timeout": timeout_s,
        }

    def unload(self) -> None:
        """Cancel running requests, and free the memory and the port; blocks. Safe to call twice."""
        # The native destructor cancels the running tasks and joins the server's threads.
        self._server = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.load)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.unload)


def _stand_back() -> None:
    """Lower this thread's priority, and with it that of the server threads it starts.

    Speech recognition must not wait for the model. On two cores, a transcript during a prefill took 0.55-0.65 s at
    equal priority, 0.07 s alone.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        # Only root may raise a priority, and it may be lower already: `nice glyphoxa serve`.
        os.setpriority(os.PRIO_PROCESS, thread, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


def _check_chat(path: Path, header: GgufHeader, ctx_per_slot: int) -> None:
    if not header.chat_template:
        raise InvalidInput(
            f"{path}: has no chat template, so it is not a chat model; use the file of an instruction-tuned model"
            " (its name usually has Instruct, Chat or it in it)"
        )
    longest = header.context_length
    if longest is not None and longest < ctx_per_slot:
        raise InvalidInput(
            f"{path}: its context is {longest:,} tokens, but {ctx_per_slot:,} are set: use another model, or set"
            f" providers.llm.context_tokens to {longest} or less"
        )


# The model file's metadata.


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


# Prompt caches of NPCs on disk, so that the next session need not read the prompts again.
#
# Reading a persona takes two cores ten to twenty seconds per NPC; restoring the cache takes milliseconds. If the file
# no longer matches, the server reuses the common prefix and reads the rest.


_KEPT_BYTES: Final = 1 << 30
"""Maximum size of all files together; the oldest are deleted. One of the 1.5B model has about 15 MB."""
_WITHIN_S: Final = 10.0
_SUFFIX: Final = ".kv"


class PromptFile:
    """An NPC's server slot, and the file that stores it.

    No method raises: without a file the NPC reads its persona.

    Args:
        slot: The NPC's slot.
        key: Tells the file from others of the same model: the campaign and the NPC.

    Attributes:
        one_at_a_time: The server's lock.
    """

    def __init__(self, server: LlamaServer, slot: int, *key: str) -> None:
        self.one_at_a_time = server.one_at_a_time
        self._server = server
        self._slot = slot
        self._name = _name(server, *key)

    async def restore(self) -> None:
        """Load the stored cache into the slot, unless it has been used since the start."""
        if self._slot not in self._server.used_slots:
            if await self.is_stored():
                await self._ask("restore", self._name)
            self._server.used_slots.add(self._slot)

    async def is_stored(self) -> bool:
        """Return whether there is a file, of this session or an earlier one."""
        directory = self._server.prompts_dir
        return directory is not None and await asyncio.to_thread((directory / self._name).is_file)

    async def save(self) -> None:
        """Store the slot's cache, replacing the old file."""
        directory = self._server.prompts_dir
        unfinished = f"{self._name}.part"
        if directory is not None and await self._ask("save", unfinished):
            try:
                await asyncio.to_thread(self._put, directory, unfinished)
            except OSError as error:
                logger.warning("the prompt cache of an NPC was not saved: {}", error)

    async def _ask(self, action: str, filename: str) -> bool:
        try:
            async with httpx.AsyncClient(**self._server.client_options(timeout_s=_WITHIN_S)) as client:
                answer = await client.post(
                    f"/slots/{self._slot}", params={"action": action}, json={"filename": filename}
                )
        except httpx.HTTPError as error:
            logger.warning("the local model did not {} what an NPC has read: {}", action, type(error).__name__)
            return False
        if answer.is_error:
            logger.info("the local model did not {} what an NPC has read: {}", action, answer.status_code)
        return answer.is_success

    def _put(self, directory: Path, unfinished: str) -> None:
        (directory / unfinished).chmod(0o600)
        (directory / unfinished).replace(directory / self._name)
        kept = 0
        for file in sorted(directory.glob(f"*{_SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True):
            kept += file.stat().st_size
            if kept > _KEPT_BYTES:
                # Another process may have been faster.
                with suppress(FileNotFoundError):
                    file.unlink()


def _name(server: LlamaServer, *key: str) -> str:
    """A file name unique to the key and the model: the file itself does not identify its model."""
    whose = "\0".join((server.model_id, *key))
    return hashlib.sha256(whose.encode()).hexdigest()[:32] + _SUFFIX


# Whether notes hold the answer to a question, by the probability of the next token. See `docs/measurements.md`.


_ANSWERS: Final = ("known", "unknown")
"""The beginnings of the examples' answers."""
_N_LIKELY: Final = 100
_NOT_LIKELY: Final = -4.6
"""Log probability (1 %) of a model that gives another answer than its examples."""


class NotesToken:
    """Asks the model for the beginning of one answer. `close` it. The caller holds `one_at_a_time`.

    Args:
        slot: A slot that nothing else uses. It keeps the examples, so a question costs what it adds to them.
        examples: Pairs of role and text before each question.
    """

    def __init__(self, server: LlamaServer, slot: int, examples: Sequence[tuple[str, str]]) -> None:
        self._server = server
        self._examples = [{"role": role, "content": text} for role, text in examples]
        self._text = "\0".join(text for _, text in examples)
        self._file = PromptFile(server, slot, "notes", self._text)
        extras = {"cache_prompt": True, "id_slot": slot, "return_progress": True}
        self._chat = ChatClient(server.connection, extras=extras, as_words=server.control_tokens.in_messages)

    async def get_ready(self) -> None:
        """Read the examples, unless the slot has them, and store them on disk.

        Raises:
            openai.OpenAIError, Unavailable: The model does not answer. The next call tries again.
        """
        if self._server.examples == self._text:
            return
        await self._file.restore()
        _, question = self._examples[:2]
        await self._next_token(question["content"])
        self._server.examples = self._text
        if not await self._file.is_stored():
            await self._file.save()

    async def log_odds(self, notes: str) -> float | None:
        """Return the log odds that they hold the answer; None if the slot lacks the examples or the model wavers.

        Raises:
            openai.OpenAIError, Unavailable: The model does not answer.
        """
        if self._server.examples != self._text:
            return None
        likely = await self._next_token(notes)
        least = min(p for _, p in likely) if likely else _NOT_LIKELY
        known, unknown = (
            max((p for token, p in likely if token and answer.startswith(token)), default=least) for answer in _ANSWERS
        )
        return known - unknown if max(known, unknown) > _NOT_LIKELY else None

    async def close(self) -> None:
        await self._chat.close()

    async def _next_token(self, notes: str) -> list[tuple[str, float]]:
        """Return the likeliest tokens in lower case, each with its log probability."""
        messages = [*self._examples, {"role": "user", "content": notes}]
        options = {"stream": True, "max_tokens": 1, "temperature": 0.0, "logprobs": True, "top_logprobs": _N_LIKELY}
        found: list[tuple[str, float]] = []
        async with aclosing(self._chat.ask({"messages": messages, **options})) as deltas:
            async for delta in deltas:
                for choice in delta.extras.get("choices") or ():
                    for token in (choice.get("logprobs") or {}).get("content") or ():
                        likely = token["top_logprobs"]
                        found = found or [(one["token"].strip().lower(), float(one["logprob"])) for one in likely]
        return found


_PATIENCE_S: Final = 120.0
_N_READ, _N_SPOKEN = 128, 16
_CTX_TOKENS: Final = 512


def measure(path: Path, *, deadline_s: float | None = None) -> Measured:
    """Measure how fast a model reads and speaks on this machine: load it, run it for a few seconds, unload it.

    Blocks. Do not call in a thread that runs an event loop.

    Raises:
        NotFound, Corrupt, InvalidInput: See `LlamaServer.load`.
        Unavailable: It does not answer, or not before the deadline.
    """
    try:
        return asyncio.run(asyncio.wait_for(_measured(path), deadline_s))
    except TimeoutError:
        raise Unavailable(
            f"{path.name} was not measured within {deadline_s:g} s: this machine is slow, or busy"
        ) from None


async def _measured(path: Path) -> Measured:
    async with (
        LlamaServer(model_path=path, ctx_per_slot=_CTX_TOKENS) as server,
        httpx.AsyncClient(**server.client_options(timeout_s=_PATIENCE_S)) as client,
    ):
        try:
            # The first read of the file comes from the disk.
            await _timed(client, n_read=16, n_spoken=2)
            timings = await _timed(client, n_read=_N_READ, n_spoken=_N_SPOKEN)
            (model,) = (await client.get("/v1/models")).json()["data"]
            return Measured(
                billions=model["meta"]["n_params"] / 1e9,
                bytes=path.stat().st_size,  # noqa: ASYNC240 - nobody waits
                reads_per_s=float(timings["prompt_per_second"]),
                speaks_per_s=float(timings["predicted_per_second"]),
            )
        except (httpx.HTTPError, ValueError, KeyError) as error:
            raise Unavailable(f"the language model cannot be measured: {error}") from error


async def _timed(client: httpx.AsyncClient, *, n_read: int, n_spoken: int) -> dict[str, Any]:
    asked = {
        # Token ids instead of text: the number of tokens of a text depends on the model.
        "prompt": [100 + at % 100 for at in range(n_read)],
        "n_predict": n_spoken,
        "ignore_eos": True,
        "cache_prompt": False,
    }
    answer = await client.post("/completion", json=asked)
    answer.raise_for_status()
    timings: dict[str, Any] = answer.json()["timings"]
    return timings
