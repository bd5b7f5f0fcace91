"""The words an engine is given, and the one place where hot context joins them.

Unless a DM wants it elsewhere, memory stands in the last user message, behind the question: everything in front of it
stays the same from turn to turn, and the question is read while it is still being spoken, so that a prompt cache (a
provider's, or the local model's KV cache) is hit. The small local model also uses facts better there than in front of
the question (the examples of an NPC are put in the same form).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Literal, Protocol

from glyphoxa.context.wording import DIRECTION, FACTS, PAST, REMEMBERED, SAYS, SCENE
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import Recalled
from glyphoxa.domain.turn import Rejected, TierChoice
from glyphoxa.language.quoted import as_fact, as_told, in_one_line

# The seam between a graph's hot-context injector and the assembly of hot context.


@dataclass(frozen=True, slots=True)
class Gathered:
    """How a part of a hot context was gathered.

    Attributes:
        source: Where its words come from.
        took_us: How long it took, in microseconds; None for what was there.
    """

    source: str
    took_us: int | None


@dataclass(frozen=True, slots=True)
class HotContext:
    """What an NPC has in mind for one turn.

    Attributes:
        facts: What it knows of the world: short sentences in the order in which they are to be read, already visible to
            this NPC.
        not_known: Of the facts, those which say that it knows nothing of what is asked.
        shrugs: What the NPC can say to that without thinking, of which one is enough; empty where it has to think.
        told: What the NPC can say from what the asker told it of just this, the best first.
        remembered: What was said, each line with who said it; it need not be so. Likewise visible and in order.
        recalled: Both with their provenance.
        omitted: "scene: late by 12 ms", "recall: database away": parts left out, each with its reason.
        identity: What it knows of itself: its description, its relationships. The same from turn to turn.
        scenes: Where it is and where it was, when, and with whom: a line for each scene of this session that it is in.
        kept: Its secrets that the question touches, in the form of `facts`; `keeps` are the words in front of them.
        past: What happened in earlier sessions, as far as it recalls that without being asked.
        rejected: What it recalled as well and is not told, each with the reason.
        gathered: How each part was gathered, by its name.
    """

    facts: tuple[str, ...] = ()
    not_known: tuple[str, ...] = ()
    shrugs: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    remembered: tuple[str, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    omitted: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    scenes: Mapping[Scene, str] = field(default_factory=dict)
    past: str = ""
    rejected: tuple[Rejected, ...] = ()
    kept: tuple[str, ...] = ()
    keeps: str = ""
    gathered: Mapping[str, Gathered] = field(default_factory=dict)


class HotContextSource(Protocol):
    """Assembles hot context. Each part has its own deadline; a late one is left out and said so."""

    async def gather(self, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0) -> HotContext:
        """All parts, for an answer. Never raises, never takes longer than the longest deadline.

        Args:
            asker: The name of who asks; empty if that is not known.
            within_ms: For what the question asks to have looked up: a session, a time, how two are related. Any other
                part keeps its own deadline.
        """
        ...

    def gather_nowait(self, npc: NpcId, question: str, *, asker: str = "") -> HotContext:
        """What is already in memory (pre-fetched on partial transcripts), for priming a prompt cache."""
        ...


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


# How much of each part goes into a prompt, and how long it may take to gather.


PERSONA_TOKENS = 300
"""Of what an author writes of an NPC: beyond that little is left for the talk in a small model's 2,048 tokens."""
STANDING_TOKENS = 800
"""Persona, frame and examples of an NPC, which stand in front of what has a budget, and its reply."""
BUDGETS = ("identity_tokens", "scene_tokens", "bible_tokens", "past_tokens", "facts_tokens", "history_tokens")
"""Of `Budgets`, those that a model's profile decides."""
_TOKENS_A_LINE = 22
"""Of talk at a table, with who says it."""
_SHORTEST_LINE = 12
_LEAST_RECALLED = 15


@dataclass(frozen=True, slots=True)
class Budgets:
    """
    Attributes:
        identity_tokens: Of what an NPC knows of itself, and of each secret it has in mind. A small local model is given
            few: they cost it its voice.
        scene_tokens: Of the line that says where the NPC is. From 100 it says more than where, see
            `glyphoxa.context.scene`.
        bible_tokens: Of the campaign's bible and coined words, see `glyphoxa.context.identity`.
        past_tokens: Of the summaries of earlier sessions, see `glyphoxa.context.scene`.
        facts_tokens: Of recalled and looked-up sentences together, tokens of 4 characters. A small model has use for
            few; what a large one is given nearly covers what is found at all (94 % of LoCoMo's questions in 1,500).
        max_facts: The same in lines; None: as many as usually fit.
        history_tokens: Of the talk so far.
    """

    identity_tokens: int = 120
    scene_tokens: int = 60
    bible_tokens: int = 120
    past_tokens: int = 60
    facts_tokens: int = 90
    max_facts: int | None = None
    history_tokens: int = 500
    part_deadline_ms: int = 50
    recall_deadline_ms: int = 50

    @property
    def most_facts(self) -> int:
        return self.facts_tokens // _TOKENS_A_LINE if self.max_facts is None else self.max_facts

    @property
    def max_recalled(self) -> int:
        """Utterances that memory is asked for, from which these are chosen."""
        return max(_LEAST_RECALLED, self.facts_tokens // _SHORTEST_LINE)


# How many tokens a text takes, for every budget and every record alike.
#
# No chat model's own tokenizer is at hand within a turn: a local model's server has it behind HTTP, and a provider's
# is far away. Budgets need no more than an estimate.


CHARS_PER_TOKEN: Final = 4
"""Rough size of a token in English text."""


def tokens_of(text: str) -> int:
    """About how many tokens a text takes; an empty one takes none, any other at least one."""
    return max(1, len(text) // CHARS_PER_TOKEN) if text else 0


def characters_in(tokens: int) -> int:
    """How long a text of so many tokens may be."""
    return tokens * CHARS_PER_TOKEN
