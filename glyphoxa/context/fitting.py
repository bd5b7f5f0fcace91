"""A prompt that was made for a large model, cut for a smaller one that answers in its place.

Nothing new is looked up: what stands first is kept, of the talk what was said last. Who the NPC is stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from glyphoxa.context.budgets import Budgets
from glyphoxa.context.ports import HotContext, HotContextSource
from glyphoxa.context.prompt import Prompt
from glyphoxa.context.tokens import characters_in
from glyphoxa.domain.ids import NpcId


def fit_prompt(prompt: Prompt, budgets: Budgets) -> Prompt:
    """With so much of the talk as `budgets.history_tokens` hold: the latest, from a line of a player's on."""
    begins = prompt.n_examples + 1
    talk, asked = prompt.messages[begins:-1], prompt.messages[-1]
    left = characters_in(budgets.history_tokens)
    first = len(talk)
    while first > 0 and (left := left - len(talk[first - 1].content)) >= 0:
        first -= 1
    while first < len(talk) and talk[first].role != "user":
        first += 1
    scenes = tuple((at - first, scene) for at, scene in prompt.scenes if at >= begins + first)
    if first and (earlier := [scene for at, scene in prompt.scenes if at < begins + first]):
        # The talk that is left begins in the scene that was there then.
        begins_in = (begins, earlier[-1])
        scenes = scenes if scenes and scenes[0][0] == begins else (begins_in, *scenes)
    return replace(prompt, messages=(*prompt.messages[:begins], *talk[first:], asked), scenes=scenes)


def fit_hot(hot: HotContext, budgets: Budgets) -> HotContext:
    """With so many facts, lines and summaries as the budgets hold. What it knows nothing of is kept first."""
    left = characters_in(budgets.facts_tokens)
    unknown = [text for text in hot.facts if text in hot.not_known]
    known = [text for text in hot.facts if text not in hot.not_known]
    facts, left = _within([*unknown, *known], left)
    remembered, _ = _within(hot.remembered, left)
    identity, _ = _within(hot.identity, characters_in(budgets.identity_tokens))
    return replace(
        hot,
        facts=tuple(text for text in hot.facts if text in facts),
        remembered=tuple(remembered),
        identity=tuple(identity),
        past=hot.past if len(hot.past) <= characters_in(budgets.past_tokens) else "",
    )


def _within(texts: Sequence[str], left: int) -> tuple[list[str], int]:
    """The first ones that fit in so many characters, and how many are left."""
    fitting: list[str] = []
    for text in texts:
        if len(text) > left:
            break
        fitting.append(text)
        left -= len(text)
    return fitting, left


class FittedContext:
    """A `HotContextSource` for a smaller model.

    Args:
        source: As the table's first model is given it.
        budgets: Of the smaller one.
    """

    def __init__(self, source: HotContextSource, budgets: Budgets) -> None:
        self._source = source
        self._budgets = budgets

    async def gather(self, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0) -> HotContext:
        """See `HotContextSource`."""
        return fit_hot(await self._source.gather(npc, question, asker=asker, within_ms=within_ms), self._budgets)

    def gather_nowait(self, npc: NpcId, question: str, *, asker: str = "") -> HotContext:
        """See `HotContextSource`."""
        return fit_hot(self._source.gather_nowait(npc, question, asker=asker), self._budgets)
