"""Fit and measure the model that tells whether a statement holds now.

    python -m benchmarks.statements [FILE] [--failures FILE] [--out FILE]

`FILE` has a line for each statement: its language, its world, its kind (`now`, `past`, `denied`, `rumour`, `plan` or
`unreal`) and its text, separated by tabs. In the text, `[]` mark names and `<>` the claim. A logistic regression for
each kind is fitted to the features of `glyphoxa.chronicle.statements`. The figures are of the worlds in `HELD_BACK`,
about a third of the lines, by weights fitted to the others. `--failures` writes what these get wrong. `--out` writes
weights that are fitted to all lines. The result is the same each time.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import labelled
from benchmarks.labelled import Example, fit_command, read_columns, write_weights
from benchmarks.runner import percent, run, to_write, write_rows
from glyphoxa.chronicle.statements import features, kind_of, sentences_of
from glyphoxa.chronicle.talk import Kind
from glyphoxa.language.calls import NamedPlace

HELD_BACK: Final = ("court", "desert")
PENALTY: Final = 0.5
"""Chosen by cross-validation of the other worlds, each wording judged by weights fitted to others."""
_LEAST_WEIGHT: Final = 0.03
_SIGNS: Final = re.compile(r"[\[\]<>]")
_BEGINS, _ENDS = "\x02", "\x03"
"""Marks of the claim in a text. They survive the marking of names, which changes offsets."""


class Statement(NamedTuple):
    """A labelled statement. `found` are its features."""

    language: str
    world: str
    kind: Kind
    text: str
    found: frozenset[str]


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    statements = read(options.file)
    rest = [each for each in statements if each.world not in HELD_BACK]
    held_back = [each for each in statements if each.world in HELD_BACK]
    if options.out is not None:
        write_weights(options.out, fitted(statements))
    weights = fitted(rest)
    judgements = [(each, kind_of(each.found, weights)) for each in held_back]
    if options.failures is not None:
        wrong = [(each, kind) for each, kind in judgements if each.kind is not kind]
        write_rows(options.failures, [{"text": each.text, "kind": each.kind, "found": kind} for each, kind in wrong])
    return {
        "statements": len(statements),
        **{
            language: figures_of([each for each in judgements if each[0].language == language])
            for language in sorted({each.language for each in held_back})
        },
    }


def figures_of(judgements: Sequence[tuple[Statement, Kind]]) -> dict[str, float | None]:
    """Return the shares of other kinds taken for now, of now taken for others, and of kinds that are right."""
    now = [kind for each, kind in judgements if each.kind is Kind.NOW]
    other = [kind for each, kind in judgements if each.kind is not Kind.NOW]
    right = sum(each.kind is kind for each, kind in judgements)
    return {
        "statements": len(judgements),
        "wrong_now_percent": percent(other.count(Kind.NOW), len(other)),
        "lost_now_percent": percent(len(now) - now.count(Kind.NOW), len(now)),
        "kind_right_percent": percent(right, len(judgements)),
    }


def fitted(statements: Sequence[Statement]) -> dict[str, dict[str, float]]:
    """Return the weights of each kind, without the smallest."""
    weights = {
        kind: labelled.fitted([Example(each.found, each.kind is kind) for each in statements], penalty=PENALTY)
        for kind in Kind
    }
    return {
        kind: {phrase: weight for phrase, weight in each.items() if not phrase or abs(weight) >= _LEAST_WEIGHT}
        for kind, each in weights.items()
    }


def read(path: Path) -> list[Statement]:
    """
    Raises:
        InvalidInput: A line has another form; the message has its place.
    """
    text = "and a text with a claim in <> and its names in []"
    return read_columns(path, _statement, valid=f"a language, a world, {' or '.join(Kind)}, {text}")


def _statement(columns: Sequence[str]) -> Statement | None:
    match columns:
        case [language, world, kind, text] if kind in list(Kind) and (found := found_in(text)) is not None:
            return Statement(language, world, Kind(kind), text, found)
    return None


def found_in(text: str) -> frozenset[str] | None:
    """Return the features of the claim that a text marks; None if it does not mark one."""
    plain, names = "", list[NamedPlace]()
    start = at = 0
    for sign in _SIGNS.finditer(text):
        plain += text[at : sign.start()]
        at = sign.end()
        match sign.group():
            case "[":
                start = len(plain)
            case "]":
                names.append(NamedPlace(f"name {len(names)}", start, len(plain)))
            case other:
                plain += _BEGINS if other == "<" else _ENDS
    for sentence in sentences_of(plain + text[at:], names):
        begins, ends = sentence.marked.find(_BEGINS), sentence.marked.find(_ENDS)
        if 0 <= begins < ends:
            marked = sentence.marked.replace(_BEGINS, "").replace(_ENDS, "")
            return features(replace(sentence, marked=marked).parts(begins, ends - 1))
    return None


def _options() -> argparse.ArgumentParser:
    options = fit_command("statements", __doc__)
    options.add_argument("--failures", type=to_write, metavar="FILE", help="write what the held-back lines get wrong")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
