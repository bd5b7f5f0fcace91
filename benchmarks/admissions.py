"""Fit and measure the model that finds admissions in replies to a guess of an NPC's secret.

    python -m benchmarks.admissions [FILE] [--out FILE]

`FILE` has a line for each reply: `admits` or `keeps`, the question that guesses, and the reply, separated by tabs. A
logistic regression with a penalty on the squares of its weights is fitted to the signs of
`glyphoxa.judgement.reply.admission_signs`. The figures are of cross-validation: each reply is judged by weights fitted
to other replies to other questions. `--out` writes the weights. The result is the same each time.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.labelled import Example, cross_validated, fit_command, fitted, read_columns, write_weights
from benchmarks.runner import percent, run
from glyphoxa.judgement.reply import admission_signs

LABELS: Final = ("admits", "keeps")
PENALTY: Final = 1.0
"""Chosen by cross-validation from 0.1 to 1."""
THRESHOLDS: Final = (0.0, 0.5, 1.0)
FOLDS: Final = 5


class Reply(NamedTuple):
    question: str
    text: str
    admits: bool


def main(argv: Sequence[str] | None = None) -> int:
    return run(fit_command("admissions", __doc__).parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    replies = read_columns(options.file, _reply, valid=f"{' or '.join(LABELS)}, a question, a reply")
    examples = [Example(admission_signs(one.question, one.text), one.admits) for one in replies]
    fit = partial(fitted, penalty=PENALTY)
    odds = cross_validated(examples, _folds(replies), fit)
    if options.out is not None:
        write_weights(options.out, fit(examples))
    of = {
        name: [score for score, one in zip(odds, replies, strict=True) if one.admits is admits]
        for name, admits in (("admissions_found_percent", True), ("others_rejected_percent", False))
    }
    return {
        "replies": len(replies),
        **{
            f"above {least}": {
                name: percent(sum(score > least for score in all_), len(all_)) for name, all_ in of.items()
            }
            for least in THRESHOLDS
        },
    }


def _folds(replies: Sequence[Reply]) -> list[int]:
    """Return the fold of each: that of its words, if it answers several questions, and else that of its question."""
    often = Counter(one.text for one in replies)
    keys = [one.text if often[one.text] > 1 else one.question for one in replies]
    order = list(dict.fromkeys(keys))
    return [order.index(key) % FOLDS for key in keys]


def _reply(columns: Sequence[str]) -> Reply | None:
    match columns:
        case [label, question, text] if label in LABELS and text.strip():
            return Reply(question, text, label == LABELS[0])
    return None


if __name__ == "__main__":
    raise SystemExit(main())
