"""What a prompt may hold for a model: a small one attends to little and reads slowly, a large one makes use of more.

A setting of the same name in `context` replaces a budget of the profile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Profile:
    """
    Attributes:
        context_tokens: Of prompt and reply together that can be relied on.
        identity_tokens, scene_tokens, bible_tokens, past_tokens, facts_tokens, history_tokens: See
            `glyphoxa.context.prompt.Budgets`.
        takes_tools: Whether it is given tools. A small model answers small talk with tool calls.
        needs_repairs: Whether slips of a small model are repaired (see `glyphoxa.judgement.repairs`), the prompt says
            what the NPC does not know (see `glyphoxa.context.repairs`), and the model is not asked that.
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


SMALL: Final = Profile("small", 2_048, 120, 60, 120, 60, 90, 500, takes_tools=False, needs_repairs=True)
MIDDLE: Final = Profile("middle", 4_096, 200, 100, 200, 150, 750, 1_000, takes_tools=True)
"""A server of one's own may cut a prompt without a word: Ollama's usual context is 4,096 tokens."""
LARGE: Final = Profile("large", 128_000, 500, 300, 600, 600, 1_500, 1_500, takes_tools=True)

PROFILES: Final = (SMALL, MIDDLE, LARGE)

_HOSTED: Final = re.compile(r"(^|/)(gpt-|chatgpt|claude|gemini)", re.IGNORECASE)
_BILLIONS: Final = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
_SMALL_UP_TO: Final = 2


def profile_by_name(model: str) -> Profile:
    """For a provider with models of any size: as the model's name tells, `MIDDLE` where it tells nothing.

    >>> [profile_by_name(name).name for name in ("llama3.2:1b", "qwen2.5-7b", "llama3.2", "openai/gpt-4.1")]
    ['small', 'middle', 'middle', 'large']
    """
    if _HOSTED.search(model):
        return LARGE
    billions = [float(size) for size in _BILLIONS.findall(model)]
    return SMALL if billions and max(billions) <= _SMALL_UP_TO else MIDDLE
