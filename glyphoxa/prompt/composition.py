"""Compose the prompt for an answer, the same way for an NPC's mouth and for `glyphoxa show context`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.domain.knowledge import Recalled
from glyphoxa.domain.turn import SAFETY, AssembledPrompt, PromptPart, Rejected
from glyphoxa.prompt.gather import OF_FILE
from glyphoxa.prompt.prompt import (
    BEHIND_THE_QUESTION,
    UNLIMITED,
    Budgets,
    Gathered,
    HotContext,
    HotContextSource,
    Placement,
    Prompt,
    PromptLimits,
    RoomLeft,
    characters_in,
    direction_of,
    n_too_old,
    tokens_at_most,
    tokens_of,
    with_hot_context,
)
from glyphoxa.prompt.wording import recalled_line

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


async def compose(
    source: HotContextSource,
    prompt: Prompt,
    facts_at: Placement = BEHIND_THE_QUESTION,
    *,
    limits: PromptLimits = UNLIMITED,
) -> ComposedPrompt:
    """Return the prompt with what its NPC has in mind. Never raises."""
    within_ms = 0 if prompt.tier is None else prompt.tier.ceiling_ms
    hot = await source.gather(prompt.npc, prompt.question, asker=prompt.speaker_name, within_ms=within_ms)
    return composed(prompt, hot, facts_at, limits)


def composed(
    prompt: Prompt, hot: HotContext, facts_at: Placement = BEHIND_THE_QUESTION, limits: PromptLimits = UNLIMITED
) -> ComposedPrompt:
    """Return the prompt with the hot context, as far as the model's window has room.

    A prompt that is too long is refused, or loses its beginning. What has no room is left out in this order: the oldest
    lines of the talk, recalled facts and lines from the lowest score up, terms of the glossary from the last one up,
    and the summaries of earlier sessions. Persona, examples, the summary of this session, the scenes and the question
    always stay.
    """
    if limits.smaller is not None:
        prompt, hot = fit_prompt(prompt, limits.smaller), fit_hot(hot, limits.smaller)
    for kept, left in _ever_shorter(prompt, hot):
        whole = with_hot_context(kept, left, facts_at)
        if tokens_at_most(whole) <= limits.window_tokens:
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
        gathered = hot.gathered.get(name, Gathered(source, None))
        if tokens or name in hot.gathered or name == SAFETY:
            yield PromptPart(name, gathered.source, tokens, gathered.took_us)


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
    return replace(
        hot,
        facts=tuple(text for text in hot.facts if text in facts),
        remembered=tuple(room.fitting(hot.remembered)),
        identity=tuple(RoomLeft.of(budgets.bible_tokens + budgets.identity_tokens).fitting(hot.identity)),
        glossary=tuple(RoomLeft.of(budgets.glossary_tokens).fitting(hot.glossary)),
        past="".join(RoomLeft.of(budgets.past_tokens).fitting([hot.past])),
    )
