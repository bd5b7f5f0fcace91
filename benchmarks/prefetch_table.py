"""One NPC that listens to questions as they are spoken, with the shipped pre-fetch and the shipped assembly."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from benchmarks.prefetch_modes import Injected
from benchmarks.recall_data import WITNESS, Question, campaign_of, turn_id
from benchmarks.recall_world import LoadedTalk
from benchmarks.table_memory import memory_of
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.budgets import Budgets
from glyphoxa.context.by_name import ByName
from glyphoxa.context.ports import HotContext
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.tokens import tokens_of
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import PlayerId
from glyphoxa.domain.recalled import learned_from
from glyphoxa.providers.profiles import PROFILES
from glyphoxa.recall.recall import Recall, RecallSettings

OTHER_BUDGETS: Final = tuple(sorted({300, *(profile.facts_tokens for profile in PROFILES)}))
_WORD_MS: Final = 300
_WAITED_FOR: Final = 4
"""What is looked up for other partials the next one ends anyway; not to wait for it saves most of the time."""
_PATIENCE_MS: Final = 10_000
_PLAYER: Final = PlayerId("the-one-who-asks")


@dataclass(frozen=True, slots=True)
class Spoken:
    """
    Attributes:
        early: Had at the last partial transcript.
        earlier: At the one before it, when a word was still missing.
        partial_ms: What each partial took of the event loop.
        other_budgets: The same with other budgets.
    """

    final: Injected
    early: Injected
    earlier: Injected
    partial_ms: tuple[float, ...]
    other_budgets: Mapping[int, Injected]


class Table:
    """One NPC that listens to one campaign's questions, with the product's own pre-fetch and assembly.

    Attributes:
        n_late: Parts of a prompt that were left out.
    """

    def __init__(self, talk: LoadedTalk, question: Question, *, budget_tokens: int) -> None:
        self._talk = talk
        self._campaign = campaign_of(question.campaign, talk.data.turns[question.campaign])
        self._past = talk.recall_with(RecallSettings())
        budgets = _budgets(budget_tokens)
        self._prefetch = _prefetch(self._campaign, talk, self._past, most=budgets.max_recalled)
        self._context = self._assembly(budgets)
        self._others = {tokens: self._assembly(_budgets(tokens)) for tokens in OTHER_BUDGETS}
        # What is there before the end is looked at without being shown: what was shown once is kept.
        self._onlooker = self._assembly(budgets)
        self.n_late = 0

    async def speak(self, text: str, evidence: Sequence[str]) -> Spoken:
        """Say something to the NPC."""
        self._prefetch.forget(_PLAYER)
        self._context.new_speech()
        words = text.split()
        partial_ms: list[float] = []
        seen = [Injected(), Injected()]
        for n in range(1, len(words) + 1):
            partial = " ".join(words[:n])
            before = asyncio.all_tasks()
            began = perf_counter()
            self._prefetch.on_partial(_PLAYER, partial)
            partial_ms.append(1_000 * (perf_counter() - began))
            is_looked_at = n >= len(words) - 1
            look_ups = asyncio.all_tasks() - before
            if look_ups and (is_looked_at or n % _WAITED_FOR == 0):
                await asyncio.wait(look_ups, timeout=_WORD_MS / 1_000)
            if is_looked_at:
                self._onlooker.new_speech()
                seen.append(self._injected(self._onlooker.gather_nowait(WITNESS, partial), evidence))
        began = perf_counter()
        hot = await self._context.gather(WITNESS, text)
        took_ms = 1_000 * (perf_counter() - began)
        self.n_late += len(hot.omitted)
        others: dict[int, Injected] = {}
        for tokens, context in self._others.items():
            context.new_speech()
            others[tokens] = self._injected(await context.gather(WITNESS, text), evidence)
        return Spoken(self._injected(hot, evidence, ms=took_ms), seen[-1], seen[-2], tuple(partial_ms), others)

    async def close(self) -> None:
        await self._prefetch.close()

    def _assembly(self, budgets: Budgets) -> HotContextAssembly:
        return HotContextAssembly(
            self._campaign,
            graph=memory_of(self._talk.store),
            talk=self._past,
            prefetch=self._prefetch,
            known_utterances=lambda _: (),
            budgets=budgets,
        )

    def _injected(self, hot: HotContext, evidence: Sequence[str], *, ms: float = 0.0) -> Injected:
        found = {turn_id(self._campaign.id, said) for one in hot.recalled if (said := learned_from(one)) is not None}
        tokens = sum(tokens_of(line) for line in (*hot.facts, *hot.remembered))
        return Injected(covers=not found.isdisjoint(evidence), tokens=tokens, ms=ms)


def _budgets(tokens: int) -> Budgets:
    return Budgets(facts_tokens=tokens, part_deadline_ms=_PATIENCE_MS, recall_deadline_ms=_PATIENCE_MS)


def _prefetch(campaign: Campaign, talk: LoadedTalk, past: Recall, *, most: int) -> Prefetch:
    present = {npc.id: npc.name for npc in campaign.npcs}
    return Prefetch(
        campaign.id,
        by_name=ByName(campaign, memory_of(talk.store)),
        talk=past,
        language=campaign.language,
        present=lambda: present,
        known_utterances=lambda _: (),
        max_recalled=most,
    )
