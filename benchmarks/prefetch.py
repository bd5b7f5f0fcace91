"""Whether what an answer needs is in the prompt when it is asked for, and what that costs in tokens.

    python -m benchmarks.prefetch DIR [--budget-tokens 1500] [--limit N]

Each question is spoken: a word at a time to the pre-fetcher as growing partial transcripts, each with as much time as a
word takes if it needs it, then as the final one to the assembly of the prompt. The last line printed is a JSON object.
Under `modes` stand the two ways that were rejected (R-001 to R-003), over the same talk. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np

from benchmarks.prefetch_modes import Injected, Modes, summary
from benchmarks.recall import data_options, positive, tell
from benchmarks.recall_data import WITNESS, Question, RecallData, campaign_of, read_data, turn_id
from benchmarks.recall_world import LoadedTalk, loaded_talk, place_for
from benchmarks.turn import STOPPED, stoppable
from benchmarks.turn_world import a_directory
from glyphoxa.adapters.local import native_env
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.budgets import Budgets
from glyphoxa.context.choice import tokens_of
from glyphoxa.context.ports import HotContext
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import PlayerId
from glyphoxa.memory.recall.recall import Recall, RecallSettings
from glyphoxa.observability import log
from glyphoxa.speech.names.gazetteer import Gazetteer, entries_of
from glyphoxa.speech.names.keywords import KeywordSpotter

_WORD_MS: Final = 300
_PATIENCE_MS: Final = 10_000
_OTHER_BUDGETS: Final = (90, 300, 750)
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
"""What needs no memory, and must not carry any (R-006)."""


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


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    native_env.prepare()
    log.set_up(level="WARNING")
    try:
        data = read_data(options.directory)
        with a_directory() as directory:
            measured = asyncio.run(stoppable(measure(data, place_for(options.data_dir, directory), options)))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    print(json.dumps(measured))
    return 0


async def measure(data: RecallData, directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    asked = data.first(options.limit)
    async with loaded_talk(data, directory, embeddings=options.embeddings, tell=tell) as talk:
        gc.collect()
        gc.freeze()
        tables: dict[str, Table] = {}
        spoken: dict[str, list[Spoken]] = defaultdict(list)
        small_talk: list[Injected] = []
        modes = Modes(talk)
        for n, question in enumerate(asked.questions, start=1):
            talk.ask_of(question.campaign)
            if question.campaign not in tables:
                table = tables[question.campaign] = Table(talk, question, budget_tokens=options.budget_tokens)
                small_talk += [(await table.speak(line, ())).final for line in _SMALL_TALK]
                await modes.chat(question, _SMALL_TALK)
            spoken[question.category].append(await tables[question.campaign].speak(question.text, question.evidence))
            await modes.ask(question)
            if n % 100 == 0:
                tell(f"{n} of {len(asked.questions)} questions are spoken")
        for table in tables.values():
            await table.close()
        every = [one for some in spoken.values() for one in some]
        small = summary(small_talk).get("tokens_mean", 0.0)
        hybrid = {**summary([one.final for one in every]), "small_talk_tokens_mean": small, "extra_trips": 0}
        return {
            **figures(every),
            "questions": len(every),
            "budget_tokens": options.budget_tokens,
            "by_category": {category: figures(some, times=False) for category, some in sorted(spoken.items())},
            "modes": {"hybrid": hybrid, **modes.figures()},
            "other_budgets": {
                str(tokens): {
                    key: value
                    for key, value in summary([one.other_budgets[tokens] for one in every]).items()
                    if key in ("coverage", "tokens_mean")
                }
                for tokens in _OTHER_BUDGETS
            },
            "no_tool_call_needed": hybrid.get("coverage", 0.0),
            "small_talk_tokens_mean": small,
            "late_parts": sum(table.n_late for table in tables.values()),
            **talk.figures,
        }


def figures(spoken: Sequence[Spoken], *, times: bool = True) -> dict[str, Any]:
    if not spoken:
        return {}
    final = summary([one.final for one in spoken])
    found: dict[str, Any] = {
        "coverage": final["coverage"],
        "coverage_before_final": summary([one.early for one in spoken])["coverage"],
        "coverage_before_last_word": summary([one.earlier for one in spoken])["coverage"],
        "tokens_mean": final["tokens_mean"],
        "tokens_max": max(one.final.tokens for one in spoken),
    }
    if times:
        ms = np.array([ms for one in spoken for ms in one.partial_ms])
        p50, p99 = np.percentile(ms, [50, 99]) if len(ms) else (0.0, 0.0)
        gather = np.percentile([one.final.ms for one in spoken], [50, 95])
        found |= {
            "partial_p50_ms": round(float(p50), 3),
            "partial_p99_ms": round(float(p99), 3),
            "partials": len(ms),
            "final_p50_ms": round(float(gather[0]), 3),
            "final_p95_ms": round(float(gather[1]), 3),
        }
    return found


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
        self._others = {tokens: self._assembly(_budgets(tokens)) for tokens in _OTHER_BUDGETS}
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
            if look_ups := asyncio.all_tasks() - before:
                await asyncio.wait(look_ups, timeout=_WORD_MS / 1_000)
            if n >= len(words) - 1:
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
            graph=self._talk.store.graph,
            talk=self._past,
            prefetch=self._prefetch,
            known_utterances=lambda _: (),
            budgets=budgets,
        )

    def _injected(self, hot: HotContext, evidence: Sequence[str], *, ms: float = 0.0) -> Injected:
        found = {turn_id(self._campaign.id, one.utterance_id) for one in hot.recalled if one.utterance_id is not None}
        return Injected(covers=not found.isdisjoint(evidence), tokens=sum(tokens_of(fact) for fact in hot.facts), ms=ms)


def _budgets(tokens: int) -> Budgets:
    return Budgets(facts_tokens=tokens, part_deadline_ms=_PATIENCE_MS, recall_deadline_ms=_PATIENCE_MS)


def _prefetch(campaign: Campaign, talk: LoadedTalk, past: Recall, *, most: int) -> Prefetch:
    present = {npc.id: npc.name for npc in campaign.npcs}
    return Prefetch(
        campaign.id,
        graph=talk.store.graph,
        talk=past,
        spotter=KeywordSpotter(Gazetteer.build(entries_of(campaign), language=campaign.language)),
        present=lambda: present,
        known_utterances=lambda _: (),
        names={entity.id: entity.name for entity in campaign.entities},
        max_recalled=most,
    )


def _options() -> argparse.ArgumentParser:
    parser = data_options("prefetch", "What is in the prompt when it is asked for.")
    parser.add_argument("--budget-tokens", type=positive, default=1_500, help="of what is injected")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
