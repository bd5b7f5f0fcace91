"""How much of what matters is recalled, how soon, and what each stage of the ranking is worth.

    python -m benchmarks.recall DIR [--arm NAME ...] [--per-question FILE] [--misses FILE] [--limit N]

Talk is brought into an embedded server of the benchmark's own, in the way in which a table does it, and asked for
through the shipped recall, in the name of an NPC that heard everything. The last line printed is a JSON object: the
figures of what is shipped, and those of each `--arm` under `arms`. What they mean stands in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from benchmarks.recall_arms import FULL, LEXICAL, arms, chosen
from benchmarks.recall_asking import Ask
from benchmarks.recall_data import Question, RecallData, read_data
from benchmarks.recall_figures import Answer, as_line, compared, figures, missed, times
from benchmarks.recall_world import LoadedTalk, loaded_talk, place_for
from benchmarks.turn import STOPPED, positive, stoppable
from benchmarks.turn_world import a_directory
from glyphoxa.adapters.local import native_env
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.observability import log

_WARM_UP: Final = (
    "Who was it that we met on the road?",
    "What did the old man say about the harvest?",
    "Good morning.",
)


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    native_env.prepare()
    log.set_up(level="WARNING")
    try:
        wanted = chosen(options.arm, arms())
        data = read_data(options.directory)
        with a_directory() as directory:
            where = place_for(options.data_dir, directory)
            answers, measured = asyncio.run(stoppable(measure(data, where, options, wanted)))
        if options.per_question is not None:
            _write_lines(options.per_question, answers)
        if options.misses is not None:
            options.misses.write_text(json.dumps(missed(answers[FULL]), indent=1, ensure_ascii=False) + "\n", "utf-8")
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    print(json.dumps(measured))
    return 0


async def measure(
    data: RecallData, directory: Path, options: argparse.Namespace, wanted: Sequence[str]
) -> tuple[Mapping[str, Sequence[Answer]], dict[str, Any]]:
    """The answers of each arm, and the figures."""
    asked = data.first(options.limit)
    async with loaded_talk(data, directory, embeddings=options.embeddings, tell=tell) as talk:
        there_are = arms()
        # As a table does it when it is open.
        gc.collect()
        gc.freeze()
        answers: dict[str, list[Answer]] = {}
        late: dict[str, int] = {}
        for name in dict.fromkeys((FULL, LEXICAL, *wanted)):
            talk.questions.n_late = 0
            answers[name] = await ask_all(talk, there_are[name](talk), asked.questions)
            late[name] = talk.questions.n_late
            tell(f"{name}: {_short(figures(answers[name]))}")
        of_arm = {name: arm_figures(answers[name], answers[FULL]) for name in wanted}
        for name in of_arm:
            of_arm[name]["late_embeddings"] = late[name]
        return {name: answers[name] for name in dict.fromkeys((FULL, *wanted))}, {
            **figures(answers[FULL]),
            **times((answer.ms for answer in answers[LEXICAL]), prefix="lexical_"),
            **talk.figures,
            "late_embeddings": late[FULL],
            "without_evidence": data.without_evidence,
            "evidence_dropped": data.evidence_dropped,
            "talk_mb": talk_mb(talk),
            "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
            "arms": of_arm,
        }


async def ask_all(talk: LoadedTalk, ask: Ask, questions: Sequence[Question]) -> list[Answer]:
    """One after the other. The first of each campaign is preceded by others that are not counted: they do what is done
    once.
    """
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


def arm_figures(answers: Sequence[Answer], full: Sequence[Answer]) -> dict[str, Any]:
    return {**figures(answers), "vs_full": compared(answers, full)}


def talk_mb(talk: LoadedTalk) -> float:
    """About what the talk takes in memory."""
    return round(sum(talk.index(campaign).size_bytes for campaign in talk.data.turns) / 2**20, 1)


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _write_lines(path: Path, answers: Mapping[str, Iterable[Answer]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for arm, given in answers.items():
            for answer in given:
                file.write(json.dumps(as_line(arm, answer), ensure_ascii=False) + "\n")


def _short(measured: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {measured[key]}" for key in ("r5", "r10", "r20", "mrr", "p50_ms") if key in measured)


def to_write(text: str) -> Path:
    """A file that is written when all is measured."""
    path = Path(text)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: no file can be written there")
    return path


def data_options(prog: str, description: str) -> argparse.ArgumentParser:
    """What all benchmarks of recall are told."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{prog}", description=description)
    parser.add_argument("directory", type=Path, metavar="DIR", help="with turns.jsonl and questions.jsonl")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N questions; all talk is loaded")
    parser.add_argument(
        "--embeddings",
        choices=("minilm", "invented", "none"),
        default="minilm",
        help="the shipped model, vectors by spelling only, or words alone",
    )
    parser.add_argument("--data-dir", type=Path, help="kept, and not filled again in the next run")
    return parser


def _options() -> argparse.ArgumentParser:
    parser = data_options("recall", "Recall of talk.")
    parser.add_argument("--arm", nargs="+", action="extend", default=[], metavar="NAME", help="or all")
    parser.add_argument("--per-question", type=to_write, metavar="FILE", help="JSON lines: each arm's ranking of each")
    parser.add_argument(
        "--misses", type=to_write, metavar="FILE", help="JSON: questions of which nothing is found in ten"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
