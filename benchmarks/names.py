"""How well misheard names are put right, and how much ordinary speech is damaged by it.

    python -m benchmarks.names --names N.tsv --pairs P.tsv --clean C.txt [--learn L.tsv] [--arm documents|shipped]

`N.tsv` holds a name and its type a line; `P.tsv` and `L.tsv` a wrong form and the name that was meant; `C.txt`
sentences that must not change. Without arguments the project's own small set is measured. The last line
printed is a JSON object: `recall` and `wrong` in percent of the pairs, `false_per_1000_words`,
`p50_us` and `p99_us` of one sentence, `names`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, did_you_mean
from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.correction.corrector import Corrected, Corrector
from glyphoxa.speech.correction.documents_correction import documents_corrector
from glyphoxa.speech.language.words import fold
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer

OWN = Path(__file__).parent / "data" / "names"


@dataclass(frozen=True, slots=True)
class Pair:
    heard: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Figures:
    names: int
    pairs: int
    clean_words: int
    recall: float
    wrong: float
    false_per_1000_words: float
    p50_us: float
    p99_us: float


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    try:
        names = read_table(options.names)
        pairs = [Pair(heard, name, line) for heard, name, line in read_table(options.pairs)]
        learned = [Pair(heard, name, line) for heard, name, line in read_table(options.learn)] if options.learn else []
        clean = [line for line in read_lines(options.clean) if line.strip()]
        entries = entries_with(names, learned, learned_file=options.learn)
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    gazetteer = Gazetteer.build(entries, language=options.language)
    corrector = documents_corrector(gazetteer) if options.arm == "documents" else Corrector(gazetteer)
    figures, changes = measure(corrector, pairs, clean)
    if options.show_changes:
        for before, after in changes:
            print(f"changed: {before!r} -> {after!r}")
    print(
        json.dumps(
            {
                "arm": options.arm,
                "names": len(names),
                "pairs": figures.pairs,
                "clean_words": figures.clean_words,
                "recall": round(figures.recall, 1),
                "wrong": round(figures.wrong, 1),
                "false_per_1000_words": round(figures.false_per_1000_words, 2),
                "p50_us": round(figures.p50_us, 1),
                "p99_us": round(figures.p99_us, 1),
            }
        )
    )
    return 0


def measure(corrector: Corrector, pairs: Sequence[Pair], clean: Sequence[str]) -> tuple[Figures, list[tuple[str, str]]]:
    """The figures, and every replacement in clean text. A changed span counts once, whatever its length."""
    outcomes = [_outcome(corrector.correct(pair.heard), pair, corrector.gazetteer) for pair in pairs]
    times_us: list[float] = []
    changes: list[tuple[str, str]] = []
    for sentence in clean:
        started = perf_counter_ns()
        corrected = corrector.correct(sentence)
        times_us.append((perf_counter_ns() - started) / 1000)
        changes += [(correction.before, correction.after) for correction in corrected.corrections]
    n_words = sum(len(sentence.split()) for sentence in clean)
    figures = Figures(
        names=len(corrector.gazetteer.names),
        pairs=len(pairs),
        clean_words=n_words,
        recall=100 * outcomes.count("right") / len(pairs) if pairs else 0.0,
        wrong=100 * outcomes.count("wrong") / len(pairs) if pairs else 0.0,
        false_per_1000_words=1000 * len(changes) / n_words if n_words else 0.0,
        p50_us=percentile(times_us, 50),
        p99_us=percentile(times_us, 99),
    )
    return figures, changes


def _outcome(corrected: Corrected, pair: Pair, gazetteer: Gazetteer) -> str:
    """Right: the name itself stands there now, or one of its short forms. Nothing else may be left over."""
    if fold(corrected.text) == fold(pair.name):
        return "right"
    mentions = gazetteer.mentions(corrected.text)
    if corrected.corrections and len(mentions) == 1 and fold(mentions[0].name.canonical) == fold(pair.name):
        is_whole = mentions[0].end - mentions[0].start == len(corrected.text.strip(" .,!?"))
        return "right" if is_whole else "partly"
    return "wrong" if corrected.corrections else "missed"


def entries_with(
    names: Sequence[tuple[str, str, int]], learned: Sequence[Pair], *, learned_file: Path | None
) -> list[Entry]:
    """Entries for all names, each with the wrong forms that were confirmed for it.

    A pair that belongs to no name is left out, and said so.
    """
    confirmed: dict[str, tuple[str, ...]] = {name: () for name, _, _ in names}
    spelled = {fold(name): name for name in confirmed}
    for pair in learned:
        if (name := spelled.get(fold(pair.name))) is not None:
            confirmed[name] += (pair.heard,)
        else:
            guess = did_you_mean(pair.name, confirmed)
            print(f"{learned_file}, line {pair.line}: left out, no name {pair.name!r}: {guess}", file=sys.stderr)
    types = {name: kind for name, kind, _ in names}
    return [Entry(name, EntityId(name), types[name], learned=heard) for name, heard in confirmed.items()]


def read_table(path: Path) -> list[tuple[str, str, int]]:
    """The rows of a file of two columns with a tab between them, and the number of each line.

    Raises:
        InvalidInput: The file cannot be read, or a line has not two columns.
    """
    rows: list[tuple[str, str, int]] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) < 2 or not columns[0]:
            raise InvalidInput(f"{path}, line {number}: {line[:80]!r} is not two columns with a tab between them")
        rows.append((columns[0], columns[1], number))
    if not rows:
        raise InvalidInput(f"{path}: holds no line with two columns")
    return rows


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file.

    Raises:
        InvalidInput: It cannot be read or is not UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidInput(f"{path}, line {line}: not UTF-8 (byte {error.start})") from error


def percentile(values: Sequence[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else 0.0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.names", description=__doc__.splitlines()[0])
    parser.add_argument("--names", type=Path, default=OWN / "N.tsv", metavar="N.tsv")
    parser.add_argument("--pairs", type=Path, default=OWN / "P.tsv", metavar="P.tsv")
    parser.add_argument("--clean", type=Path, default=OWN / "C.txt", metavar="C.txt")
    parser.add_argument("--learn", type=Path, metavar="L.tsv", help="pairs the DM has confirmed before")
    arms = ("shipped", "documents")
    parser.add_argument("--arm", choices=arms, default="shipped")
    parser.add_argument("--language", default="en", help="of the campaign (default: en)")
    parser.add_argument("--show-changes", action="store_true", help="print every replacement in clean text")
    return parser


if __name__ == "__main__":
    sys.exit(main())
