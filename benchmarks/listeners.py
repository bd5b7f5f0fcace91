"""Fit and measure the model that tells a listener's words from words that take the floor of a speaking NPC.

    python -m benchmarks.listeners [FILE] [--out FILE]

`FILE` has a line for each text: `stops` or `goes on`, its language, its family and the words, separated by tabs. The
longer lines of players in other sets here are further examples of `stops`. The signs are those of
`glyphoxa.turns.barge_in.signs_of`. All lines are also examples after a listener's word. Their beginnings are examples
of words so far; those that may become a listener's go on.

The figures are of texts that their weights were not fitted to: a third of the families (`family`), or a third of the
lines (`line`), is held back, three times. `--out` writes the weights of all lines.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.labelled import (
    Example,
    fit_command,
    fitted,
    ordinary_talk,
    read_columns,
    shuffled_folds,
    write_weights,
)
from benchmarks.runner import percent, run
from glyphoxa.turns.barge_in import cuts_off, signs_of

KINDS: Final = ("stops", "goes on")
PENALTY: Final = 0.1
FOLDS: Final = 3
_BEGINNINGS: Final = 4
"""Words of the longest beginning: later ones decide little."""
_TALK_WORDS: Final = 5
"""Shorter lines of other sets may be a listener's."""


class Line(NamedTuple):
    stops: bool
    language: str
    family: str
    text: str


def main(argv: Sequence[str] | None = None) -> int:
    return run(fit_command("listeners", __doc__).parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    lines = read(options.file)
    talk = [Line(True, "", "", text) for text in ordinary_talk() if len(text.split()) >= _TALK_WORDS]
    if options.out is not None:
        write_weights(options.out, fitted(examples(lines + talk), penalty=PENALTY))
    families = sorted({(line.language, line.family) for line in lines})
    of_family = dict(zip(families, shuffled_folds(len(families), FOLDS), strict=True))
    by_family = [of_family[line.language, line.family] for line in lines]
    return {
        "lines": len(lines),
        "talk": len(talk),
        "fitted": figures(lines, [cuts_off(line.text) for line in lines]),
        "family": figures(lines, held_back(lines, talk, by_family)),
        "line": figures(lines, held_back(lines, talk, shuffled_folds(len(lines), FOLDS))),
    }


def read(path: Path) -> list[Line]:
    """
    Raises:
        InvalidInput: A line has another form; the message has its place.
    """
    return read_columns(path, _line, valid=f"{' or '.join(KINDS)}, a language, a family, words")


def _line(columns: Sequence[str]) -> Line | None:
    match columns:
        case [kind, language, family, text] if kind in KINDS and text.strip():
            return Line(kind == KINDS[0], language, family, text)
    return None


def examples(lines: Sequence[Line]) -> list[Example]:
    """Return the whole lines, the same after a listener's word of their language, and the beginnings of all these."""
    every = [*lines, *_opened(lines)]
    begins = [(line.stops, begin) for line in every for begin in _beginnings(line)]
    listens = {begin for stops, begin in begins if not stops}
    begun = [(stops, begin) for stops, begin in begins if not (stops and listens & {begin, begin.partition(" ")[2]})]
    return [
        *(Example(signs_of(line.text), line.stops) for line in every),
        *(Example(signs_of(begin, is_whole=False), stops) for stops, begin in begun),
    ]


def _opened(lines: Sequence[Line]) -> list[Line]:
    known = {_bare(line.text) for line in lines}
    openers = [line for line in lines if not line.stops and " " not in line.text]
    opened = []
    for number, line in enumerate(lines):
        own = [opener.text for opener in openers if opener.language == line.language]
        text = f"{own[number % len(own)].strip('.!?')}, {line.text}" if own else ""
        if text and _bare(text) not in known:
            opened.append(line._replace(text=text))
    return opened


def _beginnings(line: Line) -> list[str]:
    words = line.text.lower().split()
    return [_bare(" ".join(words[:n])) for n in range(1, min(_BEGINNINGS, len(words)) + 1)]


def _bare(text: str) -> str:
    return " ".join(text.lower().replace(",", " ").split()).strip(".!?")


def held_back(lines: Sequence[Line], talk: Sequence[Line], folds: Sequence[int]) -> list[bool]:
    """Return which lines stop an NPC, by weights that were fitted to the lines of other folds."""
    stops = [False] * len(lines)
    for fold in range(FOLDS):
        others = [line for line, at in zip(lines, folds, strict=True) if at != fold]
        weights = fitted(examples([*others, *talk]), penalty=PENALTY)
        for place, at in enumerate(folds):
            if at == fold:
                stops[place] = cuts_off(lines[place].text, weights=weights)
    return stops


def figures(lines: Sequence[Line], stops: Sequence[bool]) -> dict[str, float | None]:
    """Return the percentage of listeners' words that stop an NPC, and of others that do not."""
    pairs = list(zip(lines, stops, strict=True))
    listens = [is_stopped for line, is_stopped in pairs if not line.stops]
    takes = [is_stopped for line, is_stopped in pairs if line.stops]
    return {
        "listener_stops_percent": percent(sum(listens), len(listens)),
        "floor_goes_on_percent": percent(len(takes) - sum(takes), len(takes)),
    }


if __name__ == "__main__":
    raise SystemExit(main())
