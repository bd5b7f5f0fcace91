"""Whether what an answer needs is in the prompt when it is asked for, and what that costs in tokens.

    python -m benchmarks.prefetch DIR [--budget-tokens 1500] [--limit N]

Each question is spoken: a word at a time to the pre-fetcher as growing partial transcripts, each with as much time as a
word takes if it needs it, then as the final one to the assembly of the prompt. The last line printed is a JSON object.
Under `modes` stand the two ways that were rejected, over the same talk. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.prefetch_modes import Injected, Modes, summary
from benchmarks.prefetch_table import OTHER_BUDGETS, Spoken, Table
from benchmarks.recall import data_options, tell
from benchmarks.recall_data import RecallData, read_data
from benchmarks.recall_world import loaded_talk, place_for
from benchmarks.turn import STOPPED, positive, stoppable
from benchmarks.turn_world import a_directory
from glyphoxa.adapters.local import native_env
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.observability import log
from glyphoxa.providers.profiles import PROFILES

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
"""What needs no memory, and must not carry any."""


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
        others = {tokens: _covered([one.other_budgets[tokens] for one in every]) for tokens in OTHER_BUDGETS}
        hybrid = {**summary([one.final for one in every]), "small_talk_tokens_mean": small, "extra_trips": 0}
        return {
            **figures(every),
            "questions": len(every),
            "budget_tokens": options.budget_tokens,
            "by_category": {category: figures(some, times=False) for category, some in sorted(spoken.items())},
            "modes": {"hybrid": hybrid, **modes.figures()},
            "other_budgets": {str(tokens): others[tokens] for tokens in OTHER_BUDGETS},
            "profiles": {profile.name: others[profile.facts_tokens] for profile in PROFILES},
            "no_tool_call_needed": hybrid.get("coverage", 0.0),
            "small_talk_tokens_mean": small,
            "late_parts": sum(table.n_late for table in tables.values()),
            **talk.figures,
        }


def _covered(injected: Sequence[Injected]) -> dict[str, Any]:
    return {key: value for key, value in summary(injected).items() if key in ("coverage", "tokens_mean")}


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


def _options() -> argparse.ArgumentParser:
    parser = data_options("prefetch", "What is in the prompt when it is asked for.")
    parser.add_argument("--budget-tokens", type=positive, default=1_500, help="of what is injected")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
