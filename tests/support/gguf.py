"""GGUF files of no size: with a vocabulary only, or whole models that llama.cpp loads and that say nothing sensible."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

TEMPLATE = (
    "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
"""A chat template that belongs to no real model."""

_U32, _I32, _F32, _TEXT, _ARRAY = 4, 5, 6, 8, 9
_WIDTH, _HIDDEN, _HEADS = 32, 64, 2
_ALIGNED = 32

Value = str | int | float | Sequence[str] | Sequence[int]


def gguf(path: Path, values: Mapping[str, Value], tensors: Mapping[str, tuple[int, ...]] | None = None) -> Path:
    """A file with these values, and tensors of chance with these extents."""
    shapes = tensors or {}
    header = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(values))
    header += b"".join(_text(key) + _value(value) for key, value in values.items())
    at = 0
    for name, extents in shapes.items():
        header += _text(name) + struct.pack(f"<I{len(extents)}Q", len(extents), *extents)
        header += struct.pack("<IQ", 0, at)
        at += _padded(4 * _product(extents))
    weights = random.Random(0)
    body = b""
    for extents in shapes.values():
        numbers = [weights.uniform(-0.1, 0.1) for _ in range(_product(extents))]
        raw = struct.pack(f"<{len(numbers)}f", *numbers)
        body += raw.ljust(_padded(len(raw)), b"\0")
    padding = b"\0" * (_padded(len(header)) - len(header)) if shapes else b""
    path.write_bytes(header + padding + body)
    return path


def chat_model(path: Path, *, template: str = TEMPLATE, context_length: int = 4_096) -> Path:
    """A model of one layer that llama.cpp loads. Its tokens are single bytes."""
    letters = [*_byte_letters(), "<|end|>"]
    values: dict[str, Value] = {
        "general.architecture": "llama",
        "general.name": "nobody",
        "llama.context_length": context_length,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": _HIDDEN,
        "llama.attention.head_count": _HEADS,
        "llama.attention.head_count_kv": _HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": _WIDTH // _HEADS,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": letters,
        "tokenizer.ggml.token_type": [*(1 for _ in letters[:-1]), 3],
        "tokenizer.ggml.merges": [f"{letters[97]} {letters[98]}"],
        "tokenizer.ggml.bos_token_id": len(letters) - 1,
        "tokenizer.ggml.eos_token_id": len(letters) - 1,
    }
    if template:
        values["tokenizer.chat_template"] = template
    square, up, down = (_WIDTH, _WIDTH), (_WIDTH, _HIDDEN), (_HIDDEN, _WIDTH)
    return gguf(
        path,
        values,
        {
            "token_embd.weight": (_WIDTH, len(letters)),
            "blk.0.attn_norm.weight": (_WIDTH,),
            "blk.0.attn_q.weight": square,
            "blk.0.attn_k.weight": square,
            "blk.0.attn_v.weight": square,
            "blk.0.attn_output.weight": square,
            "blk.0.ffn_norm.weight": (_WIDTH,),
            "blk.0.ffn_gate.weight": up,
            "blk.0.ffn_up.weight": up,
            "blk.0.ffn_down.weight": down,
            "output_norm.weight": (_WIDTH,),
            "output.weight": (_WIDTH, len(letters)),
        },
    )


def _byte_letters() -> list[str]:
    """GPT-2's: one printable character for each byte."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def _value(value: Value) -> bytes:
    match value:
        case str():
            return struct.pack("<I", _TEXT) + _text(value)
        case int():
            return struct.pack("<II", _U32, value)
        case float():
            return struct.pack("<If", _F32, value)
        case [str(), *_]:
            return struct.pack("<IIQ", _ARRAY, _TEXT, len(value)) + b"".join(_text(str(each)) for each in value)
        case _:
            return struct.pack("<IIQ", _ARRAY, _I32, len(value)) + struct.pack(f"<{len(value)}i", *value)


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _product(extents: Sequence[int]) -> int:
    product = 1
    for extent in extents:
        product *= extent
    return product


def _padded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
