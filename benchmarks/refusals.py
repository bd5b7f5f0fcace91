"""Fit and measure the model that finds an assistant's refusals in an NPC's reply.

    python -m benchmarks.refusals [FILE] [--out FILE]

`FILE` has a line for each sentence: `assistant` or `character`, its language and its text, separated by tabs. The lines
of players in other sets here are further examples of `character`. A logistic regression with a penalty on the squares
of its weights is fitted to the phrases of `glyphoxa.language.text.phrases`. The figures are of cross-validation:
each sentence is judged by weights fitted to others. `--out` writes the weights. The result is the same each time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.labelled import (
    Example,
    cross_validated,
    fit_command,
    fitted,
    ordinary_talk,
    read_columns,
    shuffled_folds,
    write_weights,
)
from benchmarks.runner import percent, run
from glyphoxa.language.text import phrases

LABELS: Final = ("assistant", "character")
PENALTY: Final = 0.3
"""Chosen by cross-validation from 0.05 to 3."""
THRESHOLDS: Final = (-0.5, 1.0)
FOLDS: Final = 8


def main(argv: Sequence[str] | None = None) -> int:
    return run(fit_command("refusals", __doc__).parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    lines = read_columns(options.file, _example, valid=f"{' or '.join(LABELS)}, a language, a sentence")
    examples = [*lines, *(Example(phrases(text), False) for text in ordinary_talk())]
    fit = partial(fitted, penalty=PENALTY)
    scores = cross_validated(examples, shuffled_folds(len(examples), FOLDS), fit)[: len(lines)]
    if options.out is not None:
        write_weights(options.out, fit(examples))
    refusals = [score for score, line in zip(scores, lines, strict=True) if line.is_wanted]
    others = [score for score, line in zip(scores, lines, strict=True) if not line.is_wanted]
    return {
        "lines": len(lines),
        "talk": len(examples) - len(lines),
        **{
            f"above {threshold}": {
                "refusals_found_percent": _above(threshold, refusals),
                "in_character_percent": _above(threshold, others),
            }
            for threshold in THRESHOLDS
        },
    }


def _example(columns: Sequence[str]) -> Example | None:
    match columns:
        case [label, _, text] if label in LABELS and text.strip():
            return Example(phrases(text), label == LABELS[0])
    return None


def _above(threshold: float, scores: Sequence[float]) -> float | None:
    return percent(sum(score > threshold for score in scores), len(scores))


if __name__ == "__main__":
    raise SystemExit(main())
