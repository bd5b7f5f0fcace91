"""Measure how much relevant evidence is recalled, how fast, and what each stage of the ranking is worth.

    python -m benchmarks.recall DIR [--arm NAME ...] [--per-question FILE] [--limit N]

Utterances are loaded into an embedded server as a table does it, and queried through the shipped recall, in the name of
an NPC that heard everything. The last line has the figures of the shipped ranking, and those of each `--arm` under
`arms`. benchmarks/README.md describes them.
"""

from __future__ import annotations

import argparse
import gc
import resource
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from benchmarks.recall_arms import FULL, LEXICAL, Ask, arms, chosen
from benchmarks.recall_data import Question, read_data
from benchmarks.recall_world import LoadedTalk, loaded_talk, place_for
from benchmarks.runner import command, percentiles, positive, run, tell, to_write, write_rows

SHOWN: Final = 20
RESAMPLES: Final = 2_000
SEED: Final = 7
_WARM_UP: Final = (
    "Who was it that we met on the road?",
    "What did the old man say about the harvest?",
    "Good morning.",
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    wanted = chosen(options.arm, arms())
    data = read_data(options.directory)
    answers: dict[str, list[Answer]] = {}
    late: dict[str, int] = {}
    where = place_for(options.data_dir, directory)
    async with loaded_talk(data, where, embeddings=options.embeddings) as talk:
        there_are = arms()
        # As a table does when it is open.
        gc.collect()
        gc.freeze()
        for name in dict.fromkeys((FULL, LEXICAL, *wanted)):
            talk.questions.n_late = 0
            answers[name] = await ask_all(talk, there_are[name](talk), data.first(options.limit).questions)
            late[name] = talk.questions.n_late
            tell(f"{name}: {_short(figures(answers[name]))}")
    if options.per_question is not None:
        arms_asked = dict.fromkeys((FULL, *wanted))
        write_rows(options.per_question, (as_line(arm, answer) for arm in arms_asked for answer in answers[arm]))
    return {
        **figures(answers[FULL]),
        **percentiles((answer.ms for answer in answers[LEXICAL]), 50, 95, form="lexical_p{}_ms"),
        **talk.figures,
        "late_embeddings": late[FULL],
        "without_evidence": data.without_evidence,
        "evidence_dropped": data.evidence_dropped,
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "arms": {
            name: {
                **figures(answers[name]),
                "vs_full": compared(answers[name], answers[FULL]),
                "late_embeddings": late[name],
            }
            for name in wanted
        },
    }


async def ask_all(talk: LoadedTalk, ask: Ask, questions: Sequence[Question]) -> list[Answer]:
    """Ask one question after the other. Uncounted questions before the first of each campaign do one-time work."""
    answers: list[Answer] = []
    warm: set[str] = set()
    for question in questions:
        talk.ask_of(question.campaign)
        if question.campaign not in warm:
            warm.add(question.campaign)
            for text in _WARM_UP:
                await ask(Question("", question.campaign, text, "", ()))
        began = perf_counter()
        ranked = await ask(question)
        took_ms = 1_000 * (perf_counter() - began)
        answers.append(Answer(question, tuple(ranked), took_ms))
    return answers


def _short(measured: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {measured[key]}" for key in ("r5", "r10", "r20", "mrr", "p50_ms") if key in measured)


# -- figures


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one question.

    Attributes:
        ranked: Ids of turns, best first, at most `recall_arms.DEPTH`.
        ms: Its time.
    """

    question: Question
    ranked: tuple[str, ...]
    ms: float = 0.0

    def recall_at(self, k: int) -> float:
        """Return the share of the evidence among the first `k`."""
        return len(set(self.ranked[:k]).intersection(self.question.evidence)) / len(self.question.evidence)

    @property
    def reciprocal_rank(self) -> float:
        return 1 / self.first_rank if self.first_rank else 0.0

    @property
    def first_rank(self) -> int | None:
        """Return the rank of the first evidence, from 1."""
        evidence = set(self.question.evidence)
        return next((rank for rank, id_ in enumerate(self.ranked, start=1) if id_ in evidence), None)

    @property
    def is_missed(self) -> bool:
        """Return whether no evidence is among the first ten."""
        return self.first_rank is None or self.first_rank > 10


def figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return percentages as means over the questions, and the same for each category."""
    by_category: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_category[answer.question.category].append(answer)
    return {
        **quality(answers),
        "by_category": {category: quality(found) for category, found in sorted(by_category.items())},
        **percentiles((answer.ms for answer in answers), 50, 95),
    }


def quality(answers: Sequence[Answer]) -> dict[str, float]:
    """Return quality figures; without questions only their number."""
    n: dict[str, float] = {"questions": len(answers)}
    if not answers:
        return n
    return n | {
        **{f"r{k}": _mean_percent(answer.recall_at(k) for answer in answers) for k in (5, 10, 20)},
        "mrr": _mean_percent(answer.reciprocal_rank for answer in answers),
        "hit10": _mean_percent(not answer.is_missed for answer in answers),
    }


def compared(arm: Sequence[Answer], base: Sequence[Answer]) -> dict[str, Any]:
    """Return the gain of an arm in R@10 over another with the same questions, in points, with the 95 % interval.

    `mrr` and `hit10` have the same for those, `by_category` has it for R@10 in each category.
    """
    pairs = list(zip(arm, base, strict=True))
    gains: dict[str, list[float]] = defaultdict(list)
    for a, b in pairs:
        gains[a.question.category].append(a.recall_at(10) - b.recall_at(10))
    return {
        **_interval([a.recall_at(10) - b.recall_at(10) for a, b in pairs]),
        "by_category": {category: _interval(found) for category, found in sorted(gains.items())},
        "mrr": _interval([a.reciprocal_rank - b.reciprocal_rank for a, b in pairs]),
        "hit10": _interval([float(b.is_missed) - float(a.is_missed) for a, b in pairs]),
    }


def _interval(differences: Sequence[float]) -> dict[str, float]:
    diff, low, high = paired_interval(differences)
    return {"diff": round(100 * diff, 2), "low": round(100 * low, 2), "high": round(100 * high, 2)}


def paired_interval(
    differences: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float, float]:
    """Return the mean of paired differences with its 95 % interval, by percentiles of resampled means (Efron, 1979)."""
    values: NDArray[float64] = np.asarray(differences, float64)
    if not len(values):
        return 0.0, 0.0, 0.0
    dice = np.random.default_rng(seed)
    means = np.array([values[dice.integers(0, len(values), len(values))].mean() for _ in range(resamples)])
    low, high = np.percentile(means, [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def as_line(arm: str, answer: Answer) -> dict[str, Any]:
    """Return a row for the file with every question's ranking."""
    return {
        "id": answer.question.id,
        "campaign": answer.question.campaign,
        "category": answer.question.category,
        "arm": arm,
        "evidence": list(answer.question.evidence),
        "ranked": list(answer.ranked[:SHOWN]),
        "r10": round(answer.recall_at(10), 4),
        "rr": round(answer.reciprocal_rank, 4),
    }


def _mean_percent(shares: Iterable[float]) -> float:
    return round(100 * float(np.mean([float(share) for share in shares])), 2)


# -- options


def data_options(name: str, doc: str | None) -> argparse.ArgumentParser:
    """Return the options of all benchmarks of recall."""
    parser = command(name, doc)
    parser.add_argument("directory", type=Path, metavar="DIR", help="with turns.jsonl and questions.jsonl")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N questions; all turns are loaded")
    parser.add_argument(
        "--embeddings",
        choices=("minilm", "invented", "none"),
        default="minilm",
        help="the shipped model, vectors by spelling only, or words only",
    )
    parser.add_argument("--data-dir", type=Path, help="kept, and not filled again in the next run")
    return parser


def _options() -> argparse.ArgumentParser:
    parser = data_options("recall", __doc__)
    parser.add_argument("--arm", nargs="+", action="extend", default=[], metavar="NAME", help="or all")
    parser.add_argument("--per-question", type=to_write, metavar="FILE", help="JSON lines: each arm's ranking of each")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
