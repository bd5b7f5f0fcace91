"""Chat models: names, prompt limits, and which models are fast enough on this machine.

A model that is not in the shipped manifest is a GGUF file, named by its path or by its name on the model hub.

The estimate scales the figures of one model that was measured on the machine:

    reading    is bound by the processor: tokens per second scale with 1 / parameters
    speaking   is bound by memory bandwidth: tokens per second scale with 1 / bytes of the file
    memory     the file, a prompt cache for each NPC, and everything else

A model is suitable if the first clause of an answer comes within a human pause, words come faster than speech, and the
constant start of the prompt is read in reasonable time before the table opens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.filesize import decimal

# Names

_PART: Final = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_ON_THE_HUB: Final = re.compile(rf"({_PART}/{_PART})/((?:{_PART}/)*{_PART}\.gguf)", re.IGNORECASE)
_IN_PIECES: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)


def hub_name(model: str) -> tuple[str, str] | None:
    """Repository and file of `OWNER/REPO/FILE.gguf`; None for a path.

    A relative path of three or more parts must begin with a dot.

    >>> hub_name("bartowski/gemma-3-4b-it-GGUF/gemma-3-4b-it-Q4_K_M.gguf")
    ('bartowski/gemma-3-4b-it-GGUF', 'gemma-3-4b-it-Q4_K_M.gguf')
    >>> hub_name("./models/chat/mine.gguf"), hub_name("models/mine.gguf")
    (None, None)
    """
    named = _ON_THE_HUB.fullmatch(model)
    return (named[1], named[2]) if named else None


def is_a_path(weights: str) -> bool:
    """Whether these weights are a local file; all others can be fetched by name."""
    return weights.lower().endswith(".gguf") and hub_name(weights) is None


def wrong_gguf_name(model: str) -> str:
    """Why the name is not that of a loadable model; "" if it is.

    >>> wrong_gguf_name("./mine.bin")
    "'./mine.bin' is not a GGUF file; valid: a path, ./FILE.gguf, or a file of the hub, OWNER/REPO/FILE.gguf"
    """
    if not model.lower().endswith(".gguf"):
        return f"{model!r} is not a GGUF file; valid: a path, ./FILE.gguf, or a file of the hub, OWNER/REPO/FILE.gguf"
    if _IN_PIECES.search(model):
        return f"{model!r} is one part of a split model; valid: a model in a single file"
    return ""


# Which models suit a machine

UNREAD_TOKENS: Final = 50
"""Prompt tokens left to read when the question ends: facts, the end of the question, the cue."""
FIRST_CLAUSE_TOKENS: Final = 8
WITHIN_S: Final = 2.5
"""Seconds from the end of the question to a first clause. Transcript and voice take 0.3 s more."""
SPOKEN_TOKENS_PER_S: Final = 5.0
"""A fast speaker says three and a half words per second."""
STANDING_TOKENS: Final = 900
"""Tokens of an NPC's prompt before the conversation, read once for each NPC and cached on disk."""
OPENS_WITHIN_S: Final = 60.0
OTHERS_BYTES: Final = 1_300_000_000
"""Memory of the recogniser, voice, embeddings, database and program."""


@dataclass(frozen=True, slots=True)
class ChatModel:
    """
    Attributes:
        name: Name on the hub, see `glyphoxa models fetch`; or in the manifest.
        billions: Parameters, in billions.
        bytes: Size of the file.
        cache_bytes: Prompt cache size per token: 4 bytes for each layer and each number of its keys.
    """

    name: str
    billions: float
    bytes: int
    cache_bytes: int
    licence: str
    quantisation: str = "Q4_K_M"


@dataclass(frozen=True, slots=True)
class Measured:
    """Speed of one model on this machine.

    Attributes:
        reads_per_s, speaks_per_s: Tokens per second.
    """

    billions: float
    bytes: int
    reads_per_s: float
    speaks_per_s: float


@dataclass(frozen=True, slots=True)
class Machine:
    """
    Attributes:
        free_bytes: Free memory when no model is loaded.
        n_npcs: Number of NPCs; each has its own prompt cache.
        context_tokens: Size of each cache.
    """

    free_bytes: int
    n_npcs: int = 3
    context_tokens: int = 2_048


@dataclass(frozen=True, slots=True)
class Reckoned:
    """Estimate for one model on one machine.

    Attributes:
        first_clause_s, opens_s: Seconds to a first clause, and to read the start of an NPC's prompt.
        bytes: Total memory.
        against: Why it is unsuitable; empty if it is suitable.
    """

    model: ChatModel
    speaks_per_s: float
    first_clause_s: float
    opens_s: float
    bytes: int
    against: tuple[str, ...]


def judged(model: ChatModel, measured: Measured, machine: Machine) -> Reckoned:
    """Estimate whether a model that was not measured suits the machine."""
    reads = measured.reads_per_s * measured.billions / model.billions
    speaks = measured.speaks_per_s * measured.bytes / model.bytes
    first_s = UNREAD_TOKENS / reads + FIRST_CLAUSE_TOKENS / speaks
    opens_s = STANDING_TOKENS / reads
    needed = OTHERS_BYTES + model.bytes + model.cache_bytes * machine.context_tokens * machine.n_npcs
    against = []
    if needed > machine.free_bytes:
        against.append(f"needs {decimal(needed)} of memory, {decimal(machine.free_bytes)} are free")
    if first_s > WITHIN_S:
        against.append(f"first words after {first_s:.1f} s, more than {WITHIN_S:g}")
    if speaks < SPOKEN_TOKENS_PER_S:
        against.append(f"{speaks:.1f} tokens a second are slower than speech")
    if opens_s > OPENS_WITHIN_S:
        against.append(f"{opens_s:.0f} s to read each NPC the first time")
    return Reckoned(model, speaks, first_s, opens_s, needed, tuple(against))


def best(verdicts: Sequence[Reckoned]) -> Reckoned | None:
    """The largest suitable model; the first one of equal size."""
    return max((one for one in verdicts if not one.against), key=lambda one: one.model.billions, default=None)


def _bartowski(model: str, billions: float, n_bytes: int, cache_bytes: int, licence: str) -> ChatModel:
    return ChatModel(f"bartowski/{model}-GGUF/{model}-Q4_K_M.gguf", billions, n_bytes, cache_bytes, licence)


_SHIPPED: Final = "qwen2.5-coder-1.5b-instruct-q4_k_m"
_QWEN: Final = "Qwen/Qwen2.5-1.5B-Instruct-GGUF/qwen2.5-1.5b-instruct-q4_k_m.gguf"

CHAT_MODELS: Final = (
    _bartowski("Llama-3.2-1B-Instruct", 1.24, 808_000_000, 16 * 512 * 4, "Llama 3.2"),
    ChatModel(_SHIPPED, 1.54, 1_117_320_768, 28 * 256 * 4, "Apache-2.0"),
    ChatModel(_QWEN, 1.54, 1_117_000_000, 28 * 256 * 4, "Apache-2.0"),
    _bartowski("SmolLM2-1.7B-Instruct", 1.71, 1_060_000_000, 24 * 2_048 * 4, "Apache-2.0"),
    _bartowski("Llama-3.2-3B-Instruct", 3.21, 2_020_000_000, 28 * 1_024 * 4, "Llama 3.2"),
    _bartowski("Phi-3.5-mini-instruct", 3.82, 2_390_000_000, 32 * 3_072 * 4, "MIT"),
    _bartowski("google_gemma-3-4b-it", 3.88, 2_490_000_000, 34 * 1_024 * 4, "Gemma"),
    _bartowski("Mistral-7B-Instruct-v0.3", 7.25, 4_370_000_000, 32 * 1_024 * 4, "Apache-2.0"),
    _bartowski("Qwen2.5-7B-Instruct", 7.62, 4_680_000_000, 28 * 512 * 4, "Apache-2.0"),
    _bartowski("Meta-Llama-3.1-8B-Instruct", 8.03, 4_920_000_000, 32 * 1_024 * 4, "Llama 3.1"),
)
"""Instruction-tuned models with 1 to 8 billion parameters in a single file. File sizes are rounded."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Prompt limits and needs of a model.

    Attributes:
        context_tokens: Reliable size of prompt and reply together.
        identity_tokens, scene_tokens, bible_tokens, past_tokens, facts_tokens, history_tokens: See
            `glyphoxa.domain.budgets.Budgets`.
        facts_position: In the question's message, where a small model uses recalled facts better, or before the
            conversation.
        takes_tools: Whether it is given tools. A small model answers small talk with tool calls.
        needs_repairs: Whether a small model's slips are repaired (see `glyphoxa.judgement.small_model`), the prompt
            lists what the NPC does not know, and questions about that bypass the model.
    """

    name: str
    context_tokens: int
    identity_tokens: int
    scene_tokens: int
    bible_tokens: int
    past_tokens: int
    facts_tokens: int
    history_tokens: int
    takes_tools: bool
    needs_repairs: bool = False
    facts_position: Literal["question", "depth"] = "question"


SMALL: Final = Profile("small", 2_048, 120, 60, 120, 60, 90, 500, takes_tools=False, needs_repairs=True)
MIDDLE: Final = Profile("middle", 4_096, 200, 100, 200, 150, 750, 1_000, takes_tools=True)
"""A self-hosted server may truncate a prompt silently: Ollama's default context is 4,096 tokens."""
LARGE: Final = Profile("large", 128_000, 500, 300, 600, 600, 1_500, 1_500, takes_tools=True, facts_position="depth")

PROFILES: Final = (SMALL, MIDDLE, LARGE)

_HOSTED: Final = re.compile(r"(^|/)(gpt-|chatgpt|claude|gemini)", re.IGNORECASE)
_BILLIONS: Final = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
_SMALL_UP_TO: Final = 2


def profile_by_name(model: str) -> Profile:
    """The profile for providers with models of any size, derived from the model's name; default `MIDDLE`.

    >>> [profile_by_name(name).name for name in ("llama3.2:1b", "qwen2.5-7b", "llama3.2", "openai/gpt-4.1")]
    ['small', 'middle', 'middle', 'large']
    """
    if _HOSTED.search(model):
        return LARGE
    billions = [float(size) for size in _BILLIONS.findall(model)]
    return SMALL if billions and max(billions) <= _SMALL_UP_TO else MIDDLE
