"""Define the prompt of an engine, and add the hot context to it.

Recalled memory is in the last user message, after the question. Everything before it stays the same from turn to turn,
and the question is read while it is still being spoken, so a prompt cache (a provider's, or the local model's KV cache)
is hit. The small local model also uses facts better there than before the question. An NPC's examples have the same
form. For a large model, recalled memory is before the conversation, and only what precedes it is cached.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from string import digits
from typing import Final, Protocol

from glyphoxa.domain.budgets import BEHIND_THE_QUESTION, Budgets, Placement, Role
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import Recalled
from glyphoxa.domain.turn_record import SAFETY, AssembledPrompt, PromptPart, Rejected, TierChoice
from glyphoxa.judgement.small_model import LIKELY, may_answer
from glyphoxa.language.language_data import primary_language
from glyphoxa.language.prompt_quotes import SAYS, as_fact, as_told, in_one_line, recalled_line
from glyphoxa.language.sentences import RoomLeft, characters_in, n_too_old, tokens_of
from glyphoxa.prompt.wording import DIRECTION, FACTS, PAST, REMEMBERED, SCENE, wording

# The interface between a pipeline's hot-context injector and the assembly of hot context.


@dataclass(frozen=True, slots=True)
class Doubt:
    """Uncertainty about whether the NPC knows the answer.

    Attributes:
        log_odds: Log odds that it may answer, by the wording of the question and the evidence.
        notes: The evidence and the question, for a model that is asked whether the one answers the other.
        not_known, shrugs: Those of the hot context if the NPC does not know the answer.
    """

    log_odds: float
    notes: str
    not_known: tuple[str, ...] = ()
    shrugs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HotContext:
    """Everything that an NPC has in mind for one turn.

    Attributes:
        facts: Its knowledge of the world: short sentences in reading order, already visible to this NPC.
        not_known: The facts that say that it knows nothing about the question.
        shrugs: Replies to that without a model, of which one is enough; empty if it needs the model.
        distant: A past utterance that is not near to the question. It is in the notes of the doubt, and enters the
            prompt if a model finds the answer there.
        doubt: Set if a model should be asked. Until then, `not_known` is the best guess.
        told: Replies from what the asker told it about this, the best first.
        remembered: Past utterances, each with its speaker; they need not be true. Also visible and in order.
        recalled: Both with their provenance.
        omitted: "scene: late by 12 ms", "recall: database away": missing parts, each with its reason.
        identity: Its knowledge of itself: its description, its relationships. The same from turn to turn.
        orders: The lines of `identity` that stay in a smaller model's prompt, whatever its budgets.
        glossary: Terms of the campaign, each with its meaning. Others that the question or the talk has are in `facts`.
        scenes: Where it is and was, when, and with whom: a line for each scene of this session in which it is present.
        kept: Its secrets that the question touches, in the form of `facts`.
        guarded: Its secrets that are not in the prompt, and that its reply must not reveal either.
        past: Events of earlier sessions that it recalls unasked.
        direction: How to answer, if what it recalls must not be described.
        rejected: Other recalled items that are not in the prompt, each with the reason.
        gathered: How each part was gathered, by its name. It is not counted yet.
    """

    facts: tuple[str, ...] = ()
    not_known: tuple[str, ...] = ()
    shrugs: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    remembered: tuple[str, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    omitted: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    glossary: tuple[str, ...] = ()
    scenes: Mapping[Scene, str] = field(default_factory=dict)
    past: str = ""
    direction: str = ""
    rejected: tuple[Rejected, ...] = ()
    kept: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    gathered: Mapping[str, PromptPart] = field(default_factory=dict)
    distant: tuple[str, ...] = ()
    doubt: Doubt | None = None

    def resolved(self, by_model: float | None) -> HotContext:
        """Return it without the doubt.

        Args:
            by_model: Log odds that the notes hold the answer; None: the model was not asked, or could not tell.
        """
        if self.doubt is None or by_model is None:
            return replace(self, distant=(), doubt=None)
        is_known = may_answer(self.doubt.log_odds, by_model)
        unknown, shrugs = ((), ()) if is_known else (self.doubt.not_known, self.doubt.shrugs)
        more = self.distant if is_known and by_model > LIKELY else ()
        found = tuple(one.recalled for one in self.rejected if recalled_line(one.recalled) in more)
        return replace(
            self,
            facts=(*(fact for fact in self.facts if fact not in self.not_known), *unknown),
            not_known=unknown,
            shrugs=shrugs,
            told=self.told if is_known else (),
            remembered=(*self.remembered, *more),
            recalled=(*self.recalled, *found),
            rejected=tuple(one for one in self.rejected if one.recalled not in found),
            distant=(),
            doubt=None,
        )


CheckNotes = Callable[[str], Awaitable[float | None]]
"""Takes `Doubt.notes`. Returns the log odds that they hold the answer; None if no model can tell. Never raises."""


class HotContextSource(Protocol):
    """Gathers hot contexts."""

    async def gather(self, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0) -> HotContext:
        """Return all parts, for an answer. Never raises, never takes longer than the deadline for memory.

        Args:
            asker: The asker's name; empty if it is unknown.
            within_ms: The deadline, if it is longer and the question asks for a session or a time.
        """
        ...

    def gather_nowait(self, npc: NpcId, question: str, *, asker: str = "") -> HotContext:
        """Return what is already in memory (pre-fetched on partial transcripts), to prepare a prompt cache."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a prompt.

    Attributes:
        is_synthetic: Nobody said it: it summarises lines that are not in the prompt.
    """

    role: Role
    content: str
    is_synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """The request to an NPC's engine, before the injector adds the hot context.

    Attributes:
        messages: Persona, examples, summary of this session, transcript; the last one is the user's and contains the
            question.
        scenes: Each scene of the transcript, and the user's message with which it starts.
        question: The words to answer, for recall.
        speaker_name: The asker; empty if it is unknown.
        n_examples: Messages after the first that precede the transcript.
        tier: How deep the answer may search memory; None without a question.
        direction: The DM's direction for this answer. It is for this NPC only, and not part of the transcript.
        flags: Topics that the question touches: see `glyphoxa.judgement.safety`. Then `direction` leads away from it,
            too.
        words: An answer from the DM: then no model is asked.
        is_brief: The answer is one sentence.
        language: BCP 47 tag of the talk.
    """

    npc: NpcId
    messages: tuple[Message, ...]
    question: str
    speaker_name: str
    scenes: tuple[tuple[int, Scene], ...] = ()
    n_examples: int = 0
    tier: TierChoice | None = None
    direction: str = ""
    flags: tuple[str, ...] = ()
    words: str = ""
    is_brief: bool = False
    language: str = "en"

    @property
    def is_bare(self) -> bool:
        """Return whether it has no transcript and no question yet."""
        return not self.question and len(self.messages) == self.n_examples + 2

    @property
    def summary(self) -> tuple[str, ...]:
        """Return the messages about lines of this session that are not in the prompt."""
        return tuple(message.content for message in self.messages if message.is_synthetic)

    @property
    def before(self) -> tuple[tuple[str, str], ...]:
        """Return what was said to the NPC and what it answered, oldest first."""
        talk = self.messages[self.n_examples + 1 : -1]
        return tuple(
            (SAYS.sub("", asked.content, count=1), reply.content)
            for asked, reply in pairwise(talk)
            if asked.role == "user" and reply.role == "assistant" and not asked.is_synthetic
        )


def with_hot_context(prompt: Prompt, hot: HotContext, facts_at: Placement = BEHIND_THE_QUESTION) -> Prompt:
    """Return a copy of the prompt with the hot context in it.

    The persona joins the system message, and summaries of earlier sessions the first words of the transcript. A scene
    is placed where its part of the transcript starts and stays there, so that a prompt cache stays valid with the next
    question and after a move. Recalled items are placed at `facts_at`. Secrets follow, separate from what the NPC may
    tell, and the DM's direction is last.
    """
    messages = list(prompt.messages)
    for at, scene in prompt.scenes:
        if line := hot.scenes.get(scene):
            messages[at] = replace(messages[at], content=f"{SCENE}{as_fact(line)}\n{messages[at].content}")
    if hot.past:
        talk_begins = next(at for at in range(prompt.n_examples + 1, len(messages)) if messages[at].role == "user")
        messages[talk_begins] = replace(
            messages[talk_begins], content=f"{PAST}{as_told(hot.past)}\n{messages[talk_begins].content}"
        )
    first, *between, last = messages
    for standing in (hot.identity, hot.glossary):
        if standing:
            first = replace(first, content=f"{first.content}\n{as_fact(' '.join(standing))}")
    facts, remembered = as_fact(" ".join(hot.facts)), in_one_line(" ".join(hot.remembered))
    asked = last.content if facts_at.depth is not None else with_facts(last.content, facts, remembered)
    asked = with_kept(asked, wording(prompt.language).keeps, as_fact(" ".join(hot.kept)))
    if direction := direction_of(prompt, hot):
        asked = f"{asked}\n{DIRECTION}{in_one_line(direction)}"
    talk = [*between, replace(last, content=asked)]
    if facts_at.depth is not None:
        at = max(prompt.n_examples, len(talk) - facts_at.depth)
        talk[at:at] = _apart(facts_at.role, facts, remembered)
    return replace(prompt, messages=(first, *talk))


def direction_of(prompt: Prompt, hot: HotContext) -> str:
    """Return the direction for an answer, in which nothing is twice."""
    return prompt.direction if hot.direction in prompt.direction else f"{prompt.direction} {hot.direction}".strip()


def with_kept(question: str, keeps: str, secret: str) -> str:
    """Append a secret that bears on the question, after the words that mark it."""
    return f"{question}\n{keeps}{secret}" if secret else question


def with_facts(question: str, facts: str, remembered: str = "") -> str:
    """Append the facts and the remembered lines that bear on a question, as the model reads them.

    Remembered lines are separate from facts.
    """
    return "\n".join((question, *_in_mind(facts, remembered)))


def _in_mind(facts: str, remembered: str) -> list[str]:
    return [f"{label}{text}" for label, text in ((FACTS, facts), (REMEMBERED, remembered)) if text]


def _apart(role: Role, facts: str, remembered: str) -> list[Message]:
    apart: list[tuple[Role, list[str]]] = [(role, _in_mind(facts, remembered))]
    if role == "system":
        apart = [("system", _in_mind(facts, "")), ("user", _in_mind("", remembered))]
    return [Message(each, "\n".join(lines)) for each, lines in apart if lines]


@dataclass(frozen=True, slots=True)
class PromptShape:
    """The shape of one engine's prompts.

    Attributes:
        facts_at: The place of recalled items.
        window_tokens: See `Budgets`.
        smaller: The budgets of a smaller model that answers instead of the one that the context is gathered for.
    """

    facts_at: Placement = BEHIND_THE_QUESTION
    window_tokens: int = sys.maxsize
    smaller: Budgets | None = None


USUAL_SHAPE: Final = PromptShape()


# A whole prompt is estimated with care, because a longer one is refused.


_BYTES_PER_TOKEN: Final = {"en": 3.4}
_BYTES_PER_OTHER_TOKEN: Final = 3.0
"""The local model's tokenizer: 3.9 bytes in the demo's prompts, 3.3 in German, 2.5 in invented names."""
_TOKENS_PER_MESSAGE: Final = 6


def tokens_at_most(prompt: Prompt) -> int:
    """Return how many tokens a whole prompt takes at most, with the marks around its messages."""
    text = "".join(message.content for message in prompt.messages)
    n_digits = sum(map(text.count, digits))  # each is a token
    by_language = _BYTES_PER_TOKEN.get(primary_language(prompt.language), _BYTES_PER_OTHER_TOKEN)
    return n_digits + round((len(text.encode()) - n_digits) / by_language) + _TOKENS_PER_MESSAGE * len(prompt.messages)


# Compose the prompt for an answer, the same way for an NPC's mouth and for `glyphoxa show context`.


OF_FILE: Final = "the campaign's file"
THE_SESSION: Final = "this session"
EARLIER_SESSIONS: Final = "summaries of earlier sessions"
THE_DM: Final = "the DM"


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """
    Attributes:
        prompt: The prompt that is sent.
        hot: The part that was added to it.
        parts: Its parts, in reading order.
    """

    prompt: Prompt
    hot: HotContext
    parts: tuple[PromptPart, ...]

    @property
    def assembled(self) -> AssembledPrompt:
        """Return it for a turn's record and for a DM."""
        text = "\n\n".join(f"[{message.role}]\n{message.content}" for message in self.prompt.messages)
        hot = self.hot
        return AssembledPrompt(text, self.parts, hot.recalled, hot.rejected, hot.omitted)


async def compose(source: HotContextSource, prompt: Prompt, shape: PromptShape = USUAL_SHAPE) -> ComposedPrompt:
    """Return the prompt with what its NPC has in mind. Never raises."""
    within_ms = 0 if prompt.tier is None else prompt.tier.ceiling_ms
    hot = await source.gather(prompt.npc, prompt.question, asker=prompt.speaker_name, within_ms=within_ms)
    return composed(prompt, hot, shape)


def composed(prompt: Prompt, hot: HotContext, shape: PromptShape = USUAL_SHAPE) -> ComposedPrompt:
    """Return the prompt with the hot context, as far as the model's window has room.

    A prompt that is too long is refused, or loses its beginning. What has no room is left out in this order: the oldest
    lines of the talk, recalled facts and lines from the lowest score up, terms of the glossary from the last one up,
    and the summaries of earlier sessions. Persona, examples, the summary of this session, the scenes and the question
    always stay.
    """
    if shape.smaller is not None:
        prompt, hot = fit_prompt(prompt, shape.smaller), fit_hot(hot, shape.smaller)
    for kept, left in _ever_shorter(prompt, hot):
        whole = with_hot_context(kept, left, shape.facts_at)
        if tokens_at_most(whole) <= shape.window_tokens:
            break
    return ComposedPrompt(whole, left, tuple(_parts(kept, left)))


_LINES_AT_ONCE: Final = 8
"""Lines that leave together, so that a prompt cache is valid for the next ones."""
_NO_ROOM: Final = "the model's window has no room for it"


def _ever_shorter(prompt: Prompt, hot: HotContext) -> Iterator[tuple[Prompt, HotContext]]:
    yield prompt, hot
    whole, n_lines = prompt, len(prompt.messages) - _talk_begins(prompt) - 1
    for n_oldest in range(_LINES_AT_ONCE, n_lines + _LINES_AT_ONCE, _LINES_AT_ONCE):
        prompt = _without_oldest(whole, min(n_oldest, n_lines))
        yield prompt, hot
    for one in sorted(hot.recalled, key=lambda one: one.score):
        hot = _without(hot, one)
        yield prompt, hot
    while hot.glossary:
        hot = replace(hot, glossary=hot.glossary[:-1])
        yield prompt, hot
    yield prompt, replace(hot, past="")


def _without(hot: HotContext, one: Recalled) -> HotContext:
    """Return the context without a fact or a line, unless it is a secret that the question touches."""
    line = recalled_line(one)
    if line not in (*hot.facts, *hot.remembered):
        return hot
    return replace(
        hot,
        facts=tuple(fact for fact in hot.facts if fact != line),
        remembered=tuple(said for said in hot.remembered if said != line),
        recalled=tuple(other for other in hot.recalled if other is not one),
        rejected=(*hot.rejected, Rejected(one, _NO_ROOM)),
    )


def _parts(prompt: Prompt, hot: HotContext) -> Iterator[PromptPart]:
    """Yield the parts; missing ones only if they were requested, because an empty or late result is worth knowing."""
    persona, *between, question = prompt.messages
    examples = [message.content for message in between[: prompt.n_examples]]
    talk = [message.content for message in between[prompt.n_examples :] if not message.is_synthetic]
    scenes = [hot.scenes.get(scene, "") for _, scene in prompt.scenes]
    yield PromptPart("persona", OF_FILE, tokens_of(persona.content))
    for name, texts, source in (
        ("identity", hot.identity, ""),
        ("glossary", hot.glossary, OF_FILE),
        ("examples", examples, OF_FILE),
        ("past", (hot.past,), EARLIER_SESSIONS),
        ("summary", prompt.summary, THE_SESSION),
        ("talk", talk, THE_SESSION),
        ("scene", scenes, OF_FILE),
        ("question", (question.content,), prompt.speaker_name),
        ("facts", hot.facts, ""),
        ("recall", hot.remembered, ""),
        ("secrets", hot.kept, ""),
        (SAFETY if prompt.flags else "direction", (direction_of(prompt, hot),), ", ".join(prompt.flags) or THE_DM),
    ):
        tokens = sum(map(tokens_of, texts))
        if tokens or name in hot.gathered or name == SAFETY:
            yield replace(hot.gathered.get(name, PromptPart(name, source)), tokens=tokens)


# Shorten a large model's prompt for a smaller one that answers in its place.
#
# Nothing new is looked up: the first facts and the latest lines are kept. The persona stays whole.


def fit_prompt(prompt: Prompt, budgets: Budgets) -> Prompt:
    """Return the prompt with the latest lines that fit `budgets.history_tokens`, starting with a player's line.

    The summary before them stays.
    """
    talk = prompt.messages[_talk_begins(prompt) : -1]
    room = characters_in(budgets.history_tokens) - sum(map(len, prompt.summary))
    return _without_oldest(prompt, n_too_old([len(line.content) for line in talk], room))


def _talk_begins(prompt: Prompt) -> int:
    return prompt.n_examples + 1 + len(prompt.summary)


def _without_oldest(prompt: Prompt, first: int) -> Prompt:
    """Return the prompt from that line of the talk on, or from the next line of a player."""
    begins = _talk_begins(prompt)
    talk, asked = prompt.messages[begins:-1], prompt.messages[-1]
    while first < len(talk) and talk[first].role != "user":
        first += 1
    scenes = tuple((at - first, scene) for at, scene in prompt.scenes if at >= begins + first)
    if first and (earlier := [scene for at, scene in prompt.scenes if at < begins + first]):
        # The remaining lines start in the scene of that time.
        begins_in = (begins, earlier[-1])
        scenes = scenes if scenes and scenes[0][0] == begins else (begins_in, *scenes)
    return replace(prompt, messages=(*prompt.messages[:begins], *talk[first:], asked), scenes=scenes)


def fit_hot(hot: HotContext, budgets: Budgets) -> HotContext:
    """Return the facts, lines and summaries that fit the budgets. What the NPC does not know is kept first."""
    room = RoomLeft.of(budgets.facts_tokens)
    facts = room.fitting(sorted(hot.facts, key=lambda text: text not in hot.not_known))
    own = RoomLeft.of(budgets.bible_tokens + budgets.identity_tokens)
    identity = own.fitting(line for line in hot.identity if line not in hot.orders)
    return replace(
        hot,
        facts=tuple(text for text in hot.facts if text in facts),
        remembered=tuple(room.fitting(hot.remembered)),
        identity=tuple(line for line in hot.identity if line in (*hot.orders, *identity)),
        glossary=tuple(RoomLeft.of(budgets.glossary_tokens).fitting(hot.glossary)),
        past="".join(RoomLeft.of(budgets.past_tokens).fitting([hot.past])),
    )
