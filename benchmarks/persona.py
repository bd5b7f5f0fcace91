"""Whether NPCs with nothing but a persona stay who they are.

    python -m benchmarks.persona [DIR] [--half tune|test] [--limit N] [--language en|de] [--answers FILE]

Each folder of `DIR` holds a campaign, lines to say to its NPCs and what tells their secrets. The lines of an NPC are
typed one after the other in one session, through the whole path of a turn. The last line printed is a JSON object; what
it holds, and the forms of the files, stand in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.asking import add_options, llm_of, note, print_figures, tell
from benchmarks.names import percentile
from benchmarks.persona_data import HALVES, Asked, read_all
from benchmarks.persona_play import Answer, play
from benchmarks.persona_rules import Verdict, judged

OWN_DATA: Final = Path(__file__).parent / "data" / "persona"
_BREAKS: Final = ("third_person", "assistant", "stage_directions", "labels", "wrong_language", "echo")
Judged = tuple[Answer, Verdict]


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    return print_figures(partial(_measure, options))


async def _measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    found: list[Judged] = []
    for one in sample(read_all(options.directory, options.half), options.limit, options.language):
        async for answer in play(one, directory, llm_of(options), tell):
            verdict = judged(answer.line, answer.text)
            found.append((answer, verdict))
            tell(_line(answer, verdict))
            note(options.answers, _noted(answer, verdict))
    return figures(found)


def sample(all_asked: Sequence[Asked], limit: int | None, language: str | None = None) -> list[Asked]:
    """So many lines of that language over all campaigns, the same in every run, in their order."""
    wanted = [line for asked in all_asked for line in asked.lines if language in (None, line.language)]
    if limit is not None and limit < len(wanted):
        wanted = random.Random("persona").sample(wanted, limit)
    chosen = {line.id for line in wanted}
    cut = [replace(asked, lines=tuple(line for line in asked.lines if line.id in chosen)) for asked in all_asked]
    return [asked for asked in cut if asked.lines]


def figures(found: Sequence[Judged]) -> dict[str, Any]:
    """Percentages are of the lines that were meant for an NPC."""
    meant = [(answer, verdict) for answer, verdict in found if answer.is_meant]
    first = [answer.first_word_ms for answer, _ in meant if answer.first_word_ms is not None]
    told = Counter(answer.line.kind for answer, verdict in meant if verdict.secret_told)
    return {
        "lines": len(meant),
        **{name: sum(getattr(verdict, name) for _, verdict in meant) for name in _BREAKS},
        "together_percent": _percent([verdict.breaks for _, verdict in meant]),
        "own_secret_told_percent": _percent([verdict.secret_told for _, verdict in meant]),
        "silent": sum(answer.is_silent for answer, _ in meant),
        "second_tries": sum(answer.n_tries > 1 for answer, _ in meant),
        "stand_ins": sum(answer.is_stand_in for answer, _ in meant),
        "first_word_p50_ms": round(percentile(first, 50)) if first else None,
        "not_addressed": len(found) - len(meant),
        "own_secret_told_by_kind": dict(told),
    }


def _percent(of: Sequence[bool]) -> float | None:
    return round(100 * sum(of) / len(of), 1) if of else None


def _line(answer: Answer, verdict: Verdict) -> str:
    said = [name for name, is_so in asdict(verdict).items() if is_so]
    said += [f"{answer.n_tries} tries"] * (answer.n_tries > 1) + ["stand-in"] * answer.is_stand_in
    said += ["silent"] * answer.is_silent + ["not addressed"] * (not answer.is_meant)
    return f"{answer.line.id} {answer.line.kind} {answer.line.text!r} -> {answer.text!r} {said or ''}"


def _noted(answer: Answer, verdict: Verdict) -> dict[str, object]:
    record = answer.record
    return {
        "id": answer.line.id,
        "line": answer.line.text,
        "answer": answer.text,
        **asdict(verdict),
        "silent": answer.is_silent,
        "tries": answer.n_tries,
        "stand_in": answer.is_stand_in,
        "unsaid": [[unsaid.fault, unsaid.text] for unsaid in record.unsaid] if record is not None else [],
        "error": "" if record is None else record.error,
        "prompt": "" if record is None else record.prompt_text,
    }


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.persona", description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR", nargs="?", default=OWN_DATA)
    parser.add_argument("--half", choices=HALVES, default="test", help="which lines; default: those for figures only")
    parser.add_argument("--language", choices=("en", "de"), help="only lines in it")
    add_options(parser, asked="lines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
