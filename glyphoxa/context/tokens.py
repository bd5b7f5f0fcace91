"""How many tokens a text takes, for every budget and every record alike.

No chat model's own tokenizer is at hand within a turn: a local model's server has it behind HTTP, and a provider's
is far away. Budgets need no more than an estimate.
"""

from __future__ import annotations

from typing import Final

CHARS_PER_TOKEN: Final = 4
"""Rough size of a token in English text."""


def tokens_of(text: str) -> int:
    """About how many tokens a text takes; an empty one takes none, any other at least one."""
    return max(1, len(text) // CHARS_PER_TOKEN) if text else 0


def characters_in(tokens: int) -> int:
    """How long a text of so many tokens may be."""
    return tokens * CHARS_PER_TOKEN
