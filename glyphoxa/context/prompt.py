"""The words an engine is given, and the one place where hot context joins them.

Unless a DM wants it elsewhere, memory stands in the last user message, behind the question: everything in front of it
stays the same from turn to turn, and the question is read while it is still being spoken, so that a prompt cache (a
provider's, or the local model's KV cache) is hit. The small local model also uses facts better there than in front of
the question (the examples of an NPC are put in the same form).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from glyphoxa.context.ports import HotContext
from glyphoxa.context.wording import DIRECTION, FACTS, PAST, REMEMBERED, SAYS, SCENE
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn import TierChoice
from glyphoxa.speech.language.quoted import as_fact, as_told, in_one_line

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
        role: Of that message of its own. What somebody said is never the system's: it stands behind, as the user's.
    """

    depth: int | None = None
    role: Role = "system"


BEHIND_THE_QUESTION: Final = Placement()


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an NPC's engine is asked, before the injector adds the hot context.

    Attributes:
        messages: Persona, examples, talk so far; the last one is the user's and holds what is to be answered.
        scenes: Each scene of that talk, and the user's message with which the talk in it begins.
        question: The words to answer, for recall.
        speaker_name: Who said them.
        n_examples: Messages behind the first that stand in front of all talk.
        tier: How deep memory may be looked into for the answer; None while there is no question yet.
        direction: What the DM wants of this answer. It is the NPC's alone, and no part of the talk.
        words: What the DM gave it to say: then no model is asked.
        is_brief: A sentence is enough for an answer.
    """

    npc: NpcId
    messages: tuple[Message, ...]
    question: str
    speaker_name: str
    scenes: tuple[tuple[int, Scene], ...] = ()
    n_examples: int = 0
    tier: TierChoice | None = None
    direction: str = ""
    words: str = ""
    is_brief: bool = False

    @property
    def is_bare(self) -> bool:
        """No talk stands in it, and no question yet."""
        return not self.question and len(self.messages) == self.n_examples + 2

    @property
    def before(self) -> tuple[tuple[str, str], ...]:
        """Of the talk so far, what was said to the NPC and what it answered, oldest first."""
        talk = self.messages[self.n_examples + 1 : -1]
        return tuple(
            (SAYS.sub("", asked.content, count=1), reply.content)
            for asked, reply in pairwise(talk)
            if asked.role == "user" and reply.role == "assistant"
        )


def with_hot_context(prompt: Prompt, hot: HotContext, facts_at: Placement = BEHIND_THE_QUESTION) -> Prompt:
    """A copy of the prompt with the hot context in it. The given prompt stays as it is.

    Who the NPC is joins the system message, and what it recalls of earlier sessions the first words of the talk. Where
    it is stands where the talk in that scene begins, and stays there: what a prompt cache has read is not read again,
    neither with the next question nor when the table moves. What the NPC recalls stands where `facts_at` says. What it
    keeps to itself stands behind that, apart from what it may tell, and what the DM wants of this answer stands last.
    """
    messages = list(prompt.messages)
    for at, scene in prompt.scenes:
        if line := hot.scenes.get(scene):
            messages[at] = replace(messages[at], content=_joined(f"{SCENE}{as_fact(line)}", messages[at].content))
    if hot.past:
        talk_begins = next(at for at in range(prompt.n_examples + 1, len(messages)) if messages[at].role == "user")
        messages[talk_begins] = replace(
            messages[talk_begins], content=_joined(f"{PAST}{as_told(hot.past)}", messages[talk_begins].content)
        )
    first, *between, last = messages
    if hot.identity:
        first = replace(first, content=_joined(first.content, as_fact(" ".join(hot.identity))))
    facts, remembered = as_fact(" ".join(hot.facts)), in_one_line(" ".join(hot.remembered))
    in_mind = _in_mind(facts, remembered)
    asked = last.content if facts_at.depth is not None else _joined(last.content, *in_mind)
    asked = with_kept(asked, hot.keeps, as_fact(" ".join(hot.kept)))
    if prompt.direction:
        asked = _joined(asked, f"{DIRECTION}{in_one_line(prompt.direction)}")
    talk = [*between, replace(last, content=asked)]
    if facts_at.depth is not None:
        at = max(0, len(talk) - facts_at.depth)
        talk[at:at] = _apart(facts_at.role, facts, remembered)
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


def _apart(role: Role, facts: str, remembered: str) -> list[Message]:
    apart: list[tuple[Role, list[str]]] = [(role, _in_mind(facts, remembered))]
    if role == "system":
        apart = [("system", _in_mind(facts, "")), ("user", _in_mind("", remembered))]
    return [Message(each, _joined(*lines)) for each, lines in apart if lines]


def _joined(*lines: str) -> str:
    return "\n".join(lines)
