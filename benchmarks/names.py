"""Measure how well misheard names are corrected, and how much that damages ordinary speech.

    python -m benchmarks.names --names N.tsv --pairs P.tsv --clean C.txt [--learn L.tsv] [--arm documents|shipped]

`N.tsv` contains a name and its type a line; `P.tsv` and `L.tsv` a wrong form and the intended name; `C.txt` sentences
that must not change. Without arguments the project's own small set is measured. benchmarks/README.md describes the
figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from benchmarks.labelled import DATA, read_columns
from benchmarks.runner import command, percent, percentiles, run, tell
from glyphoxa.domain.errors import did_you_mean
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import fold
from glyphoxa.names.corrector import Corrected, Corrector
from glyphoxa.names.first_design import first_corrector
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry

OWN = DATA / "names"


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    names = read_table(options.names)
    pairs = read_table(options.pairs)
    learned = read_table(options.learn) if options.learn else []
    clean = read_columns(options.clean, "\t".join, valid="a sentence")
    corrector = _corrector(entries_with(names, learned), options.arm, options.language)
    outcomes = [_outcome(corrector.correct(heard), name, corrector.gazetteer) for heard, name in pairs]
    times_us: list[float] = []
    n_changes = 0
    for sentence in clean:
        began = perf_counter_ns()
        corrected = corrector.correct(sentence)
        times_us.append((perf_counter_ns() - began) / 1000)
        n_changes += len(corrected.corrections)
        if options.show_changes:
            for change in corrected.corrections:
                print(f"changed: {change.before!r} -> {change.after!r}")
    n_words = sum(len(sentence.split()) for sentence in clean)
    return {
        "arm": options.arm,
        "names": len(names),
        "pairs": len(pairs),
        "clean_words": n_words,
        "recall": percent(outcomes.count("right"), len(pairs)),
        "wrong": percent(outcomes.count("wrong"), len(pairs)),
        "false_per_1000_words": percent(10 * n_changes, n_words, digits=2) or 0.0,
        **percentiles(times_us, 50, 99, form="p{}_us", digits=1),
    }


def _corrector(entries: Sequence[Entry], arm: str, language: str = "en") -> Corrector:
    gazetteer = Gazetteer.build(entries, language=language)
    return first_corrector(gazetteer) if arm == "documents" else Corrector(gazetteer)


def _outcome(corrected: Corrected, name: str, gazetteer: Gazetteer) -> str:
    """Right: the text now is the name itself, or one of its short forms, and nothing else."""
    if fold(corrected.text) == fold(name):
        return "right"
    mentions = gazetteer.mentions(corrected.text)
    if corrected.corrections and len(mentions) == 1 and fold(mentions[0].name.canonical) == fold(name):
        is_whole = mentions[0].end - mentions[0].start == len(corrected.text.strip(" .,!?"))
        return "right" if is_whole else "partly"
    return "wrong" if corrected.corrections else "missed"


def entries_with(names: Sequence[tuple[str, str]], learned: Sequence[tuple[str, str]]) -> list[Entry]:
    """Return entries for all names, each with its accepted wrong forms.

    A pair without a name is skipped and reported.
    """
    confirmed: dict[str, tuple[str, ...]] = {name: () for name, _ in names}
    spelled = {fold(name): name for name in confirmed}
    for heard, meant in learned:
        if (name := spelled.get(fold(meant))) is not None:
            confirmed[name] += (heard,)
        else:
            tell(f"{heard!r} is left out, no name {meant!r}: {did_you_mean(meant, confirmed)}")
    types = dict(names)
    return [Entry(name, EntityId(name), types[name], learned=heard) for name, heard in confirmed.items()]


def read_table(path: Path) -> list[tuple[str, str]]:
    """Return the first two columns of each line.

    Raises:
        InvalidInput: A line has fewer; the message has its place.
    """
    return read_columns(path, _pair, valid="two columns with a tab between them")


def _pair(columns: Sequence[str]) -> tuple[str, str] | None:
    stripped = [column.strip() for column in columns]
    return (stripped[0], stripped[1]) if len(stripped) > 1 and stripped[0] else None


def _options() -> argparse.ArgumentParser:
    parser = command("names", __doc__)
    parser.add_argument("--names", type=Path, default=OWN / "N.tsv", metavar="N.tsv")
    parser.add_argument("--pairs", type=Path, default=OWN / "P.tsv", metavar="P.tsv")
    parser.add_argument("--clean", type=Path, default=OWN / "C.txt", metavar="C.txt")
    parser.add_argument("--learn", type=Path, metavar="L.tsv", help="pairs that the DM accepted before")
    parser.add_argument("--arm", choices=("shipped", "documents"), default="shipped")
    parser.add_argument("--language", default="en", help="of the campaign (default: en)")
    parser.add_argument("--show-changes", action="store_true", help="print every replacement in clean text")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
