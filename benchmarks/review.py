"""What a local language model puts right of the names that the stage by sound has missed, and what it would damage.

    python -m benchmarks.review [--model qwen-1.5b] [--names N.tsv] [--pairs P.tsv] [--clean C.txt] [--limit 60]

Each wrong form that the stage by sound leaves as it is stands in a sentence, marked as words the recogniser was unsure
of; the model is asked as it is asked at a table. In clean sentences one ordinary word is marked instead: whatever
changes there is damage. The last line printed is a JSON object: of `garbles` asked about, `right`, `wrong` (another
name) and `left` as they were; `withheld`: the model changed something and the check reverted it all, and
`withheld_right` what would have been right; of `clean` sentences, those `damaged`; `p50_ms` and `p95_ms` of a question.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from benchmarks.names import OWN, read_lines, read_table
from benchmarks.turn import positive
from glyphoxa.adapters.llm.local import LocalStructuredLlm
from glyphoxa.adapters.local.llama import LlamaServer
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.bootstrap.correction import LOCAL_DEADLINE_MS, LOCAL_NAMES
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import EntityId
from glyphoxa.llm.structured import StructuredLlm, Unparseable
from glyphoxa.providers.registry import LLM, find
from glyphoxa.providers.rows import ROWS
from glyphoxa.speech.correction.corrector import Corrector
from glyphoxa.speech.language.spans import applied
from glyphoxa.speech.language.words import fold, words
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer
from glyphoxa.speech.review.doubt import Span
from glyphoxa.speech.review.edits import declared_in, verified
from glyphoxa.speech.review.likely_names import LikelyNames
from glyphoxa.speech.review.question import TEMPERATURE, question_about

CARRIERS = (
    "so what did {} say when you asked about the road",
    "we should go and look for {} before it gets dark",
    "I think {} has something to do with it",
    "last night we talked about {} for a while",
)
CTX_PER_SLOT = 2_048
VERDICTS = ("right", "wrong", "withheld", "withheld_right", "left", "unanswered")


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence, its doubtful words, and the text that would be right."""

    text: str
    doubtful: Span
    wanted: str
    is_clean: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    case: Case
    answer: dict[str, Any] | None
    result: str
    ms: float

    @property
    def verdict(self) -> str:
        if fold(self.result) == fold(self.case.wanted):
            return "right"
        if self.result != self.case.text:
            return "wrong"
        if self.answer is None:
            return "unanswered"
        text = str(self.answer.get("corrected_text"))
        if fold(text) == fold(self.case.wanted):
            return "withheld_right"
        return "withheld" if text != self.case.text else "left"


def cases_of(pairs: Sequence[tuple[str, str]], clean: Sequence[str], corrector: Corrector, *, limit: int) -> list[Case]:
    """Evenly spread over the files; the same for the same files."""
    garbles: list[Case] = []
    for number, (heard, name) in enumerate(pairs):
        before, after = CARRIERS[number % len(CARRIERS)].split("{}")
        text = before + heard + after
        if corrector.correct(text).text == text:
            span = Span(len(before), len(before) + len(heard))
            garbles.append(Case(text, span, before + name + after, is_clean=False))
    dice = random.Random(1)
    kept: list[Case] = []
    for line in clean:
        content = [word for word in words(line) if len(word.folded) > 3 and not word.is_capital]
        if content:
            word = dice.choice(content)
            kept.append(Case(line, Span(word.start, word.end), line, is_clean=True))
    return [*_spread(garbles, limit), *_spread(kept, limit)]


def _spread(cases: Sequence[Case], limit: int) -> list[Case]:
    step = max(1.0, len(cases) / limit)
    return [cases[int(n * step)] for n in range(min(limit, len(cases)))]


async def look(case: Case, llm: StructuredLlm, likely: LikelyNames) -> Outcome:
    names = likely.pick(case.text, [case.doubtful], limit=LOCAL_NAMES)
    question = question_about(case.text, [case.doubtful], names)
    started = perf_counter_ns()
    answer: dict[str, Any] | None = None
    result = case.text
    with contextlib.suppress(Unparseable):  # the text stays as it was
        answer = await llm.complete(
            question.system, question.user, question.schema, temperature=TEMPERATURE, deadline_ms=LOCAL_DEADLINE_MS
        )
    ms = (perf_counter_ns() - started) / 1_000_000
    if answer is not None:
        declared = declared_in(answer)
        corrected = str(answer["corrected_text"])
        edits = verified(case.text, corrected, declared, doubtful=[case.doubtful], names=likely)
        result = applied(case.text, edits)
    return Outcome(case, answer, result, ms)


async def measure(options: argparse.Namespace, cases: Sequence[Case], gazetteer: Gazetteer) -> list[Outcome]:
    likely = LikelyNames(gazetteer)
    path = await asyncio.to_thread(WeightStore().path, find(LLM, options.model).weights[0])
    async with LlamaServer(model_path=path, slots=1, ctx_per_slot=CTX_PER_SLOT) as server:
        llm = LocalStructuredLlm(server, slot=0)
        try:
            outcomes = []
            for case in cases:
                outcome = await look(case, llm, likely)
                outcomes.append(outcome)
                if options.show:
                    print(f"{outcome.verdict}: {case.text!r} -> {outcome.result!r}; {outcome.answer}", flush=True)
        finally:
            await llm.close()
    return outcomes


def figures(outcomes: Sequence[Outcome], *, model: str) -> dict[str, Any]:
    garbles = Counter(outcome.verdict for outcome in outcomes if not outcome.case.is_clean)
    clean = [outcome for outcome in outcomes if outcome.case.is_clean]
    times = sorted(outcome.ms for outcome in outcomes) or [0.0]
    return {
        "model": model,
        "garbles": sum(garbles.values()),
        **{verdict: garbles[verdict] for verdict in VERDICTS},
        "clean": len(clean),
        "damaged": sum(outcome.result != outcome.case.text for outcome in clean),
        "p50_ms": round(times[len(times) // 2]),
        "p95_ms": round(times[min(len(times) - 1, len(times) * 95 // 100)]),
    }


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    try:
        entries = [Entry(name, EntityId(name), kind) for name, kind, _ in read_table(options.names)]
        gazetteer = Gazetteer.build(entries)
        pairs = [(heard, name) for heard, name, _ in read_table(options.pairs)]
        clean = [line for line in read_lines(options.clean) if line.strip()]
        cases = cases_of(pairs, clean, Corrector(gazetteer), limit=options.limit)
        outcomes = asyncio.run(measure(options, cases, gazetteer))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(figures(outcomes, model=options.model)))
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.review", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", choices=[row.name for row in ROWS if row.kind == "llm" and row.weights], default="qwen-1.5b"
    )
    parser.add_argument("--names", type=Path, default=OWN / "N.tsv", metavar="N.tsv")
    parser.add_argument("--pairs", type=Path, default=OWN / "P.tsv", metavar="P.tsv")
    parser.add_argument("--clean", type=Path, default=OWN / "C.txt", metavar="C.txt")
    parser.add_argument("--limit", type=positive, default=60, help="of each kind (default: 60)")
    parser.add_argument("--show", action="store_true", help="print every answer")
    return parser


if __name__ == "__main__":
    sys.exit(main())
