"""Whether NPCs say what they know, and nothing that they do not.

    python -m benchmarks.grounding DIR [--llm NAME] [--repeat N] [--limit N]

`DIR` holds `campaign.yaml`; `evening.jsonl`, what was said before; and `questions.jsonl`. Each question is asked in a
session of its own, through the whole path of a turn. The last line printed is a JSON object; what it holds, and the
forms of the files, stand in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.asking import add_options, llm_of, note, print_figures, tell
from benchmarks.grounding_data import KINDS, Question, read
from benchmarks.grounding_play import Answer, settings_of, tables
from benchmarks.grounding_rules import Verdict, judged
from benchmarks.names import percentile
from benchmarks.turn import positive

_CHARS_A_TOKEN: Final = 4
Judged = tuple[Answer, Verdict]


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    return print_figures(partial(_measure, options))


async def _measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    world = read(options.directory)
    settings = settings_of(directory / "data", llm_of(options))
    found: list[Judged] = []
    async with tables(settings, world, tell=tell) as at:
        for number, question in enumerate(sample(world.questions, options.limit) * options.repeat):
            answer = await at.ask(question, f"{number}")
            if not answer.text:  # a busy machine, or a model's hiccup; an NPC that has nothing to say does so twice
                answer = await at.ask(question, f"{number}-again")
            verdict = judged(question, answer.text, language=world.campaign.language)
            found.append((answer, verdict))
            tell(_line(answer, verdict))
            note(options.answers, _noted(answer, verdict))
    return figures(found)


def sample(questions: Sequence[Question], limit: int | None) -> list[Question]:
    """So many of them, the same in every run, in their order."""
    if limit is None or limit >= len(questions):
        return list(questions)
    chosen = {each.id for each in random.Random("grounding").sample(list(questions), limit)}
    return [each for each in questions if each.id in chosen]


def figures(found: Sequence[Judged]) -> dict[str, Any]:
    knows = [each for each in found if each[0].question.knows]
    others = [each for each in found if not each[0].question.knows]
    shown = [(answer, verdict) for answer, verdict in knows if _is_shown(answer)]
    first = [answer.first_word_ms for answer, _ in found if answer.first_word_ms is not None]
    wrong = Counter(answer.question.kind for answer, verdict in found if verdict.is_false)
    return {
        "questions": len(found),
        "right": _percent(knows, "is_right"),
        "false_memory": _percent(others, "is_false"),
        "refused": _percent(knows, "knows_not"),
        "secret_leaks": sum(verdict.leaks for _, verdict in found),
        "persona_breaks": sum(verdict.breaks for _, verdict in found),
        "first_word_p50_ms": round(percentile(first, 50)) if first else None,
        "tokens_mean": round(sum(len(answer.prompt) for answer, _ in found) / max(1, len(found)) / _CHARS_A_TOKEN),
        "evidence_in_prompt": round(100 * len(shown) / len(knows), 1) if knows else None,
        "right_with_evidence": _percent(shown, "is_right"),
        "refused_with_evidence": _percent(shown, "knows_not"),
        "asserted": _percent(others, "asserts"),
        "knows": len(knows),
        "knows_not": len(others),
        "false_by_kind": {kind: wrong[kind] for kind in KINDS if wrong[kind]},
    }


def _is_shown(answer: Answer) -> bool:
    """Whether what makes a right answer stands in the prompt, its question aside."""
    prompt = answer.prompt.casefold().replace(answer.question.text.casefold(), "")
    return any(word.casefold() in prompt for word in answer.question.any_of)


def _percent(of: Sequence[Judged], what: str) -> float | None:
    return round(100 * sum(getattr(verdict, what) for _, verdict in of) / len(of), 1) if of else None


def _line(answer: Answer, verdict: Verdict) -> str:
    said = [name for name in ("is_right", "knows_not", "is_false", "leaks", "breaks") if getattr(verdict, name)]
    question = answer.question
    return f"{question.id} {question.kind} {'+' if question.knows else '-'} {question.text!r} -> {answer.text!r} {said}"


def _noted(answer: Answer, verdict: Verdict) -> dict[str, object]:
    kept = {"id": answer.question.id, "question": answer.question.text, "answer": answer.text}
    judgement = {name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}
    return {**kept, **judgement, "prompt": answer.prompt}


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grounding", description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--repeat", type=positive, default=1, metavar="N", help="ask each question so often")
    add_options(parser, asked="questions")
    return parser


if __name__ == "__main__":
    sys.exit(main())
