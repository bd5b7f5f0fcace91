"""Fit and measure the model that finds an assistant's refusals in an NPC's reply.

    python -m benchmarks.refusals [FILE] [--out FILE]

`FILE` has a line for each sentence: `assistant` or `character`, its language and its text, separated by tabs. The lines
of players in other sets here are further examples of `character`. A logistic regression with a penalty on the squares
of its weights is fitted to the phrases of `glyphoxa.language.text.phrases`. The figures are of cross-validation:
each sentence is judged by weights fitted to others. `--out` writes the weights. The result is the same each time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from benchmarks.logistic import Example, fitted, ordinary_talk
from benchmarks.runner import command, percent, run
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.language.text import log_odds, phrases

LABELS: Final = ("assistant", "character")
PENALTY: Final = 0.3
"""Chosen by cross-validation from 0.05 to 3."""
THRESHOLDS: Final = (-0.5, 1.0)
FOLDS: Final = 8
_DATA: Final = Path(__file__).parent / "data"


class Line(NamedTuple):
    is_refusal: bool
    text: str


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    lines = read(options.file)
    talk = [Line(False, text) for text in ordinary_talk()]
    found = examples(lines + talk)
    scores = cross_validated(found)[: len(lines)]
    is_refusal = np.array([line.is_refusal for line in lines])
    if options.out is not None:
        options.out.write_text(json.dumps(fitted(found, penalty=PENALTY), ensure_ascii=False) + "\n", "utf-8")
    return {
        "lines": len(lines),
        "talk": len(talk),
        **{
            f"above {threshold}": {
                "refusals_found_percent": percent(
                    float((scores[is_refusal] > threshold).sum()), float(is_refusal.sum())
                ),
                "in_character_percent": percent(
                    float((scores[~is_refusal] > threshold).sum()), float((~is_refusal).sum())
                ),
            }
            for threshold in THRESHOLDS
        },
    }


def read(path: Path) -> list[Line]:
    """
    Raises:
        InvalidInput: A line has another form; the message has its place.
    """
    lines = []
    for number, row in enumerate(path.read_text("utf-8").splitlines(), start=1):
        match row.split("\t"):
            case [label, _, text] if label in LABELS and text.strip():
                lines.append(Line(label == LABELS[0], text))
            case _:
                raise InvalidInput(f"{path}:{number}: {row!r}; valid: {' or '.join(LABELS)}, a language, a sentence")
    return lines


def examples(lines: Sequence[Line]) -> list[Example]:
    return [Example(phrases(line.text), line.is_refusal) for line in lines]


def cross_validated(found: Sequence[Example]) -> NDArray[float64]:
    """Return the score of each example, by weights that were fitted to others; shape (n,)."""
    fold = np.random.default_rng(1).permutation(len(found)) % FOLDS
    scores = np.zeros(len(found))
    for out in range(FOLDS):
        weights = fitted([example for example, at in zip(found, fold, strict=True) if at != out], penalty=PENALTY)
        for place in np.flatnonzero(fold == out).tolist():
            scores[place] = log_odds(found[place].signs, weights)
    return scores


def _options() -> argparse.ArgumentParser:
    options = command("refusals", __doc__)
    options.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", default=_DATA / "refusals" / "lines.tsv", help="labelled lines"
    )
    options.add_argument("--out", type=Path, metavar="FILE", help="write the weights to this file")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
