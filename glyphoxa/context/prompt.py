"""The words an engine is given, and the one place where hot context joins them.

Memory stands in the last user message, behind the question: everything in front of it stays the same from turn to
turn, and the question is read while it is still being spoken, so that a prompt cache (a provider's, or the local
model's KV cache) is hit. The small local model also uses facts better there than in front of the question (the
examples of an NPC are put in the same form).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from glyphoxa.context.ports import HotContext
from glyphoxa.domain.ids import NpcId


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an NPC's engine is asked, before the injector adds the hot context.

    Attributes:
        messages: Persona, examples, talk so far; the last one is the user's and holds what is to be answered.
        question: The words to answer, for recall.
        speaker_name: Who said them.
    """

    npc: NpcId
    messages: tuple[Message, ...]
    question: str
    speaker_name: str


def with_hot_context(prompt: Prompt, hot: HotContext) -> Prompt:
    """A copy of the prompt with the hot context in it. The given prompt stays as it is.

    Who the NPC is joins the system message, which does not change during a scene; where it is stands right before
    the question, and what it is reminded of behind it.
    """
    first, *between, last = prompt.messages
    if hot.identity:
        first = replace(first, content=f"{first.content}\n{' '.join(hot.identity)}")
    scene = f"Scene: {hot.scene}\n" if hot.scene else ""
    asked = f"{scene}{with_facts(last.content, ' '.join(hot.facts))}"
    return replace(prompt, messages=(first, *between, replace(last, content=asked)))


def with_facts(question: str, facts: str) -> str:
    """A question and what the NPC knows that bears on it, as the model reads them."""
    return f"{question}\nFacts: {facts}" if facts else question
