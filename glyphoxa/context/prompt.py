"""The words an engine is given, and the one place where hot context joins them.

Unless a DM wants it elsewhere, memory stands in the last user message, behind the question: everything in front of it
stays the same from turn to turn, and the question is read while it is still being spoken, so that a prompt cache (a
provider's, or the local model's KV cache) is hit. The small local model also uses facts better there than in front of
the question (the examples of an NPC are put in the same form).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from glyphoxa.context.ports import HotContext
from glyphoxa.context.wording import FACTS, REMEMBERED, SCENE
from glyphoxa.domain.ids import NpcId

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where what an NPC recalls stands.

    Attributes:
        depth: In a message of its own, with so many messages of talk behind it: 0 is behind the question, and a number
            larger than there are messages is in front of all talk. None: in the question's message, behind it.
        role: Of that message of its own.
    """

    depth: int | None = None
    role: Role = "system"


BEHIND_THE_QUESTION: Final = Placement()


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


def with_hot_context(prompt: Prompt, hot: HotContext, facts_at: Placement = BEHIND_THE_QUESTION) -> Prompt:
    """A copy of the prompt with the hot context in it. The given prompt stays as it is.

    Who the NPC is and what its place looks like join the system message, which does not change during a scene. Where it
    is stands right before the question, and what it recalls where `facts_at` says. What it keeps to itself stands last,
    apart from what it may tell.
    """
    first, *between, last = prompt.messages
    if standing := " ".join((*hot.identity, *filter(None, (hot.place,)))):
        first = replace(first, content=f"{first.content}\n{standing}")
    in_mind = _in_mind(" ".join(hot.facts), " ".join(hot.remembered))
    scene = f"{SCENE}{hot.scene}\n" if hot.scene else ""
    asked = last.content if facts_at.depth is not None else _joined(last.content, *in_mind)
    asked = with_kept(f"{scene}{asked}", hot.keeps, " ".join(hot.kept))
    talk = [*between, replace(last, content=asked)]
    if in_mind and facts_at.depth is not None:
        talk.insert(max(0, len(talk) - facts_at.depth), Message(facts_at.role, _joined(*in_mind)))
    return replace(prompt, messages=(first, *talk))


def with_kept(question: str, keeps: str, secret: str) -> str:
    """A question and what the NPC knows that bears on it and does not tell, behind the words that say so."""
    return f"{question}\n{keeps}{secret}" if secret else question


def with_facts(question: str, facts: str, remembered: str = "") -> str:
    """A question, what the NPC knows and what it heard that bears on it, as the model reads them. What somebody said
    stands apart from what is so.
    """
    return _joined(question, *_in_mind(facts, remembered))


def _in_mind(facts: str, remembered: str) -> list[str]:
    return [f"{label}{text}" for label, text in ((FACTS, facts), (REMEMBERED, remembered)) if text]


def _joined(*lines: str) -> str:
    return "\n".join(lines)
