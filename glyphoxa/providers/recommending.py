"""Which chat models a machine can hold a table with, by what one model does on it.

Three things decide, and each is scaled from the model that was measured:

    reading    is bound by the processor: tokens a second go by 1 / parameters
    speaking   is bound by memory bandwidth: tokens a second go by 1 / bytes of the file
    memory     the file, a prompt cache for each NPC, and what everything else takes

A table is held when the first clause of an answer can be heard within a human pause, when words come faster than they
are spoken, and when what stands in front of all talk is read in reasonable time before the table opens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

UNREAD_TOKENS: Final = 50
"""Of a prompt when the question ends: facts, the end of the question, the cue. The rest was read before."""
FIRST_CLAUSE_TOKENS: Final = 8
WITHIN_S: Final = 2.5
"""From the end of the question to a first clause. Transcript and voice take 0.3 s more."""
SPOKEN_TOKENS_PER_S: Final = 5.0
"""Somebody who speaks quickly says three and a half words a second."""
STANDING_TOKENS: Final = 900
"""Of an NPC's prompt in front of all talk, read once for each NPC and kept on disk."""
OPENS_WITHIN_S: Final = 60.0
OTHERS_BYTES: Final = 1_300_000_000
"""Recogniser, voice, embeddings, database, program."""


@dataclass(frozen=True, slots=True)
class ChatModel:
    """
    Attributes:
        name: As the hub has it, see `glyphoxa models fetch`; or of the manifest.
        billions: Of parameters.
        bytes: Of the file.
        cache_bytes: Of a prompt cache, for one token: 4 bytes for each layer and each number of its keys.
    """

    name: str
    billions: float
    bytes: int
    cache_bytes: int
    licence: str
    quantisation: str = "Q4_K_M"


@dataclass(frozen=True, slots=True)
class Measured:
    """What one model does on this machine.

    Attributes:
        reads_per_s, speaks_per_s: Tokens.
    """

    billions: float
    bytes: int
    reads_per_s: float
    speaks_per_s: float


@dataclass(frozen=True, slots=True)
class Machine:
    """
    Attributes:
        free_bytes: Of memory, when no model is loaded.
        n_npcs: Each has a prompt cache of its own.
        context_tokens: Of each.
    """

    free_bytes: int
    n_npcs: int = 3
    context_tokens: int = 2_048


@dataclass(frozen=True, slots=True)
class Reckoned:
    """
    Attributes:
        first_clause_s, opens_s: How long to a first clause, and for what an NPC's prompt begins with.
        bytes: Of memory, everything included.
        against: Why no table is held with it; empty: one is.
    """

    model: ChatModel
    reads_per_s: float
    speaks_per_s: float
    first_clause_s: float
    opens_s: float
    bytes: int
    against: tuple[str, ...]


def judged(model: ChatModel, measured: Measured, machine: Machine) -> Reckoned:
    """Whether that machine holds a table with a model that was not measured there."""
    reads = measured.reads_per_s * measured.billions / model.billions
    speaks = measured.speaks_per_s * measured.bytes / model.bytes
    first_s = UNREAD_TOKENS / reads + FIRST_CLAUSE_TOKENS / speaks
    opens_s = STANDING_TOKENS / reads
    needed = OTHERS_BYTES + model.bytes + model.cache_bytes * machine.context_tokens * machine.n_npcs
    against = []
    if needed > machine.free_bytes:
        against.append(f"needs {_gb(needed)} of memory, {_gb(machine.free_bytes)} are free")
    if first_s > WITHIN_S:
        against.append(f"first words after {first_s:.1f} s, more than {WITHIN_S:g}")
    if speaks < SPOKEN_TOKENS_PER_S:
        against.append(f"{speaks:.1f} tokens a second are slower than speech")
    if opens_s > OPENS_WITHIN_S:
        against.append(f"{opens_s:.0f} s to read each NPC the first time")
    return Reckoned(model, reads, speaks, first_s, opens_s, needed, tuple(against))


def best(verdicts: Sequence[Reckoned]) -> Reckoned | None:
    """The largest model that a table is held with; of equal ones the first."""
    return max((one for one in verdicts if not one.against), key=lambda one: one.model.billions, default=None)


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"


CHAT_MODELS: Final = (
    ChatModel(
        "bartowski/Llama-3.2-1B-Instruct-GGUF/Llama-3.2-1B-Instruct-Q4_K_M.gguf",
        1.24,
        808_000_000,
        16 * 512 * 4,
        "Llama 3.2",
    ),
    ChatModel("qwen2.5-coder-1.5b-instruct-q4_k_m", 1.54, 1_117_320_768, 28 * 256 * 4, "Apache-2.0"),
    ChatModel(
        "Qwen/Qwen2.5-1.5B-Instruct-GGUF/qwen2.5-1.5b-instruct-q4_k_m.gguf",
        1.54,
        1_117_000_000,
        28 * 256 * 4,
        "Apache-2.0",
    ),
    ChatModel(
        "bartowski/SmolLM2-1.7B-Instruct-GGUF/SmolLM2-1.7B-Instruct-Q4_K_M.gguf",
        1.71,
        1_060_000_000,
        24 * 2_048 * 4,
        "Apache-2.0",
    ),
    ChatModel(
        "bartowski/Llama-3.2-3B-Instruct-GGUF/Llama-3.2-3B-Instruct-Q4_K_M.gguf",
        3.21,
        2_020_000_000,
        28 * 1_024 * 4,
        "Llama 3.2",
    ),
    ChatModel(
        "bartowski/Phi-3.5-mini-instruct-GGUF/Phi-3.5-mini-instruct-Q4_K_M.gguf",
        3.82,
        2_390_000_000,
        32 * 3_072 * 4,
        "MIT",
    ),
    ChatModel(
        "bartowski/google_gemma-3-4b-it-GGUF/google_gemma-3-4b-it-Q4_K_M.gguf",
        3.88,
        2_490_000_000,
        34 * 1_024 * 4,
        "Gemma",
    ),
    ChatModel(
        "bartowski/Mistral-7B-Instruct-v0.3-GGUF/Mistral-7B-Instruct-v0.3-Q4_K_M.gguf",
        7.25,
        4_370_000_000,
        32 * 1_024 * 4,
        "Apache-2.0",
    ),
    ChatModel(
        "bartowski/Qwen2.5-7B-Instruct-GGUF/Qwen2.5-7B-Instruct-Q4_K_M.gguf",
        7.62,
        4_680_000_000,
        28 * 512 * 4,
        "Apache-2.0",
    ),
    ChatModel(
        "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
        8.03,
        4_920_000_000,
        32 * 1_024 * 4,
        "Llama 3.1",
    ),
)
"""Instruction-tuned, of 1 to 8 billion parameters, each a single file. Sizes of files are rounded."""
