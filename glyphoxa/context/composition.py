"""How a prompt is made for an answer: the one way, for an NPC's mouth and for `glyphoxa show context` alike."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from glyphoxa.context.gathering import OF_FILE
from glyphoxa.context.ports import Gathered, HotContext, HotContextSource
from glyphoxa.context.prompt import BEHIND_THE_QUESTION, Placement, Prompt, with_hot_context
from glyphoxa.context.tokens import tokens_of
from glyphoxa.domain.turn import PromptPart

THE_SESSION: Final = "this session"
EARLIER_SESSIONS: Final = "summaries of earlier sessions"
THE_DM: Final = "the DM"
AT_MOST_LATER_MS: Final = 450
"""A source keeps deadlines of its own. One that does not is waited for so much longer than the longest of them."""


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """
    Attributes:
        prompt: As it is sent.
        hot: What was put into it.
        parts: What it consists of, in the order in which it is read.
    """

    prompt: Prompt
    hot: HotContext
    parts: tuple[PromptPart, ...]

    @property
    def text(self) -> str:
        """As a DM reads it: one paragraph a message, headed by its role."""
        return "\n\n".join(f"[{message.role}]\n{message.content}" for message in self.prompt.messages)


async def compose(
    source: HotContextSource,
    prompt: Prompt,
    facts_at: Placement = BEHIND_THE_QUESTION,
    *,
    deadline_ms: int,
) -> ComposedPrompt:
    """The prompt with what its NPC has in mind. Never raises.

    Args:
        deadline_ms: Of the source.
    """
    hot = await _gathered(source, prompt, deadline_ms)
    return ComposedPrompt(with_hot_context(prompt, hot, facts_at), hot, tuple(_parts(prompt, hot)))


async def _gathered(source: HotContextSource, prompt: Prompt, deadline_ms: int) -> HotContext:
    within_ms = 0 if prompt.tier is None else prompt.tier.ceiling_ms
    deadline_ms += within_ms
    try:
        async with asyncio.timeout(deadline_ms / 1_000):
            return await source.gather(prompt.npc, prompt.question, asker=prompt.speaker_name, within_ms=within_ms)
    except TimeoutError:
        return HotContext(omitted=(f"hot context: later than {deadline_ms} ms",))
    except Exception as error:  # a source of somebody else's: the NPC answers without memory rather than not
        return HotContext(omitted=(f"hot context: {error}",))


def _parts(prompt: Prompt, hot: HotContext) -> Iterator[PromptPart]:
    """Of what is not there only what was asked for: that it brought nothing, or was late, is worth knowing."""
    persona, *between, question = (message.content for message in prompt.messages)
    examples = between[: prompt.n_examples]
    talk = between[prompt.n_examples :]
    scenes = [hot.scenes.get(scene, "") for _, scene in prompt.scenes]
    yield PromptPart("persona", OF_FILE, tokens_of(persona))
    for name, texts, source in (
        ("identity", hot.identity, ""),
        ("examples", examples, OF_FILE),
        ("past", (hot.past,), EARLIER_SESSIONS),
        ("talk", talk, THE_SESSION),
        ("scene", scenes, OF_FILE),
        ("question", (question,), prompt.speaker_name),
        ("facts", hot.facts, ""),
        ("recall", hot.remembered, ""),
        ("secrets", hot.kept, ""),
        ("direction", (prompt.direction,), THE_DM),
    ):
        tokens = sum(map(tokens_of, texts))
        gathered = hot.gathered.get(name, Gathered(source, None))
        if tokens or name in hot.gathered:
            yield PromptPart(name, gathered.source, tokens, gathered.took_us)
