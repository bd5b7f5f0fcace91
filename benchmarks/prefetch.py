"""Measure whether the prompt contains what an answer needs, and how many tokens that costs.

    python -m benchmarks.prefetch DIR [--budget-tokens 1500] [--limit N]

Each question is spoken: a word at a time to the shipped pre-fetch as growing partial transcripts, each with up to the
time of a word, then as the final one to the shipped assembly of the prompt. benchmarks/README.md describes the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final, cast

from benchmarks.recall import data_options
from benchmarks.recall_data import WITNESS, Question, campaign_of, read_data, turn_id
from benchmarks.recall_world import LoadedTalk, loaded_talk, place_for
from benchmarks.runner import percent, percentiles, positive, run, tell
from glyphoxa.domain.budgets import TIER_RULES, Budgets
from glyphoxa.domain.ids import PlayerId
from glyphoxa.domain.knowledge import learned_from
from glyphoxa.language.prompt_quotes import as_said
from glyphoxa.language.sentences import tokens_of
from glyphoxa.npc.memory_tools import LookUps, NpcMemory
from glyphoxa.npc.tool_spec import Found
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import HotContext
from glyphoxa.recall.recall import RecallSettings

_WORD_MS: Final = 300
_WAITED_FOR: Final = 4
"""The next partial cancels look-ups of the others anyway; not waiting for them saves most of the time."""
_PATIENCE_MS: Final = 10_000
_PLAYER: Final = PlayerId("the-one-who-asks")
_SMALL_TALK: Final = (
    "Pass me the salt, please.",
    "Good evening to you.",
    "Two ales and some bread.",
    "Well, let's see.",
    "It is cold in here, isn't it?",
    "Thanks, that will do.",
    "Hm, I am not so sure.",
    "Shall we go on?",
    "Wait for me!",
    "Here you are, keep the change.",
)
"""Lines that need no memory, and must not add any."""


@dataclass(frozen=True, slots=True)
class Injected:
    """The lines that one question adds to a prompt.

    Attributes:
        covers: It contains some of the evidence.
        tokens: Tokens of 4 characters.
    """

    covers: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Spoken:
    """
    Attributes:
        early: At the last partial transcript.
        earlier: At the one before it, when a word was still missing.
        final_ms: The time of gathering at the final transcript.
        partial_ms: The event-loop time of each partial.
        tool_covers: `found_by_tools` has some of the evidence. It is called only if the prompt has none.
    """

    final: Injected
    early: Injected
    earlier: Injected
    final_ms: float
    partial_ms: tuple[float, ...]
    tool_covers: bool = False


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    data = read_data(options.directory)
    asked = data.first(options.limit).questions
    async with loaded_talk(data, place_for(options.data_dir, directory), embeddings=options.embeddings) as talk:
        gc.collect()
        gc.freeze()
        tables: dict[str, Table] = {}
        spoken: dict[str, list[Spoken]] = defaultdict(list)
        small_talk: list[Injected] = []
        for n, question in enumerate(asked, start=1):
            talk.ask_of(question.campaign)
            if question.campaign not in tables:
                table = tables[question.campaign] = Table(talk, question, budget_tokens=options.budget_tokens)
                small_talk += [(await table.speak(line, ())).final for line in _SMALL_TALK]
            spoken[question.category].append(await tables[question.campaign].speak(question.text, question.evidence))
            if n % 100 == 0:
                tell(f"{n} of {len(asked)} questions are spoken")
        for table in tables.values():
            await table.close()
        every = [one for some in spoken.values() for one in some]
        return {
            **figures(every),
            **percentiles((ms for one in every for ms in one.partial_ms), 50, 99, form="partial_p{}_ms"),
            **percentiles((one.final_ms for one in every), 50, 95, form="final_p{}_ms"),
            "questions": len(every),
            "budget_tokens": options.budget_tokens,
            "by_category": {category: figures(some) for category, some in sorted(spoken.items())},
            "small_talk_tokens_mean": _tokens_mean(small_talk),
            "late_parts": sum(table.n_late for table in tables.values()),
            **talk.figures,
        }


def figures(spoken: Sequence[Spoken]) -> dict[str, Any]:
    """Return coverage in percent of the questions."""
    beyond = [one for one in spoken if not one.final.covers]
    return {
        "beyond_prompt": percent(len(beyond), len(spoken), digits=2),
        "found_by_tool": percent(sum(one.tool_covers for one in beyond), len(spoken), digits=2),
        "found_by_neither": percent(sum(not one.tool_covers for one in beyond), len(spoken), digits=2),
        "coverage": _coverage([one.final for one in spoken]),
        "coverage_before_final": _coverage([one.early for one in spoken]),
        "coverage_before_last_word": _coverage([one.earlier for one in spoken]),
        "tokens_mean": _tokens_mean([one.final for one in spoken]),
        "tokens_max": max((one.final.tokens for one in spoken), default=0),
    }


def _coverage(injected: Sequence[Injected]) -> float | None:
    return percent(sum(one.covers for one in injected), len(injected), digits=2)


def _tokens_mean(injected: Sequence[Injected]) -> float:
    return round(sum(one.tokens for one in injected) / max(1, len(injected)), 1)


class Table:
    """One NPC that listens to one campaign's questions, with the product's own pre-fetch and assembly.

    Attributes:
        n_late: Parts of a prompt that were left out.
    """

    def __init__(self, talk: LoadedTalk, question: Question, *, budget_tokens: int) -> None:
        self._talk = talk
        self._campaign = campaign_of(question.campaign, talk.data.turns[question.campaign])
        past = talk.recall_with(RecallSettings())
        self._memory = NpcMemory(self._campaign.id, WITNESS, talk.store.world_memory(self._campaign.id), past)
        self._said = {turn.id: turn for turn in talk.data.turns[question.campaign]}
        budgets = Budgets(facts_tokens=budget_tokens, recall_deadline_ms=_PATIENCE_MS)
        present = {npc.id: npc.name for npc in self._campaign.npcs}
        self._prefetch = Prefetch(
            KnownWorld(self._campaign, self._memory.world),
            talk=past,
            present=lambda: present,
            max_recalled=budgets.max_recalled,
        )
        self._context = self._assembly(budgets)
        # A second assembly looks before the end, because the first keeps what it has shown.
        self._onlooker = self._assembly(budgets)
        self.n_late = 0

    async def speak(self, text: str, evidence: Sequence[str]) -> Spoken:
        """Say something to the NPC."""
        self._prefetch.begin(_PLAYER)
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
                seen.append(self._injected(self._onlooker.gather_nowait(WITNESS, partial), evidence))
        began = perf_counter()
        hot = await self._context.gather(WITNESS, text)
        took_ms = 1_000 * (perf_counter() - began)
        self.n_late += len(hot.omitted)
        final = self._injected(hot, evidence)
        is_found = bool(evidence) and not final.covers and await self._tool_finds(text, evidence)
        return Spoken(final, seen[-1], seen[-2], took_ms, tuple(partial_ms), is_found)

    async def _tool_finds(self, text: str, evidence: Sequence[str]) -> bool:
        found, said = await found_by_tools(self._memory, text), [self._said[each] for each in evidence]
        return any(line.startswith(one.speaker) and line.endswith(as_said(one.text)) for line in found for one in said)

    async def close(self) -> None:
        await self._prefetch.close()

    def _assembly(self, budgets: Budgets) -> HotContexts:
        return HotContexts(
            self._prefetch,
            budgets=budgets,
        )

    def _injected(self, hot: HotContext, evidence: Sequence[str]) -> Injected:
        found = {turn_id(self._campaign.id, said) for one in hot.recalled if (said := learned_from(one)) is not None}
        tokens = sum(tokens_of(line) for line in (*hot.facts, *hot.remembered))
        return Injected(covers=not found.isdisjoint(evidence), tokens=tokens)


async def found_by_tools(memory: NpcMemory, question: str) -> list[str]:
    """Return what a model reads that calls the searches of an NPC's memory with the words of a question."""
    look_ups = LookUps(memory, "STANDARD", TIER_RULES["STANDARD"])
    found = [await look_ups.search_facts(query=question), await look_ups.search_sessions(query=question)]
    return [str(value) for each in found for one in cast(list[Found], each["found"]) for value in one.values()]


def _options() -> argparse.ArgumentParser:
    parser = data_options("prefetch", __doc__)
    parser.add_argument("--budget-tokens", type=positive, default=1_500, help="budget of the injected text")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
