"""Measure how well misheard names are corrected, and how much that damages ordinary speech.

    python -m benchmarks.names --names N.tsv --pairs P.tsv --clean C.txt [--learn L.tsv] [--arm documents|shipped]
    python -m benchmarks.names --spoken tune|test [--arm documents|shipped]

`N.tsv` contains a name and its type a line; `P.tsv` and `L.tsv` a wrong form and the intended name; `C.txt` sentences
that must not change. Without arguments the project's own small set is measured. `--spoken` corrects instead the
transcripts of `data/names/spoken` with all names of that half loaded, and compares them with what was said.
benchmarks/README.md describes the figures.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from rapidfuzz.distance import Levenshtein

from benchmarks.labelled import DATA, read_columns
from benchmarks.runner import command, percent, percentiles, run, tell
from glyphoxa.domain.errors import did_you_mean
from glyphoxa.domain.heard import HeardWord
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import fold
from glyphoxa.names.corrector import Corrected, Corrector
from glyphoxa.names.first_design import first_corrector
from glyphoxa.names.gazetteer import Entry, Gazetteer

OWN = DATA / "names"
SPOKEN = OWN / "spoken"
_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f]|['’](?=[^\W_]))*")


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    if options.spoken:
        return spoken_figures(SPOKEN, options.spoken, options.arm)
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


# -- spoken names


@dataclass(slots=True)
class Tally:
    """Counts over some transcripts, before ("raw") and after correction.

    Attributes:
        right: Names whose words are in the transcript, one after the other.
        harmed: Names that were right before and are not afterwards.
        wrong_name: Names that were written and do not belong to the sentence.
        errors: Words to be changed, added or removed, of `words`.
        false_changes: Changes in sentences without a name, of `nameless_words`.
    """

    names: int = 0
    right_raw: int = 0
    right: int = 0
    harmed: int = 0
    wrong_name: int = 0
    words: int = 0
    errors_raw: int = 0
    errors: int = 0
    nameless_words: int = 0
    false_changes: int = 0

    def count(self, sentence: Sentence, heard: str, corrected: Corrected, gazetteer: Gazetteer) -> None:
        said, before, after = bare_words(sentence.text), bare_words(heard), bare_words(corrected.text)
        self.words += len(said)
        self.errors_raw += Levenshtein.distance(said, before)
        self.errors += Levenshtein.distance(said, after)
        if not sentence.names:
            self.nameless_words += len(said)
            self.false_changes += len(corrected.corrections)
        for start, end in sentence.names.values():
            name = [bare(word) for word, at in _words(sentence.text) if at < end and at + len(word) > start]
            was_right, is_right = _has(before, name), _has(after, name)
            self.names += 1
            self.right_raw += was_right
            self.right += is_right
            self.harmed += was_right and not is_right
        for change in corrected.corrections if sentence.names else ():
            written = {mention.name.canonical for mention in gazetteer.mentions(change.after)}
            self.wrong_name += not written <= sentence.names.keys()

    def figures(self) -> dict[str, float | None]:
        return {
            "mentions": self.names,
            "names_right_raw": percent(self.right_raw, self.names, digits=2),
            "names_right": percent(self.right, self.names, digits=2),
            "harmed": percent(self.harmed, self.names, digits=2),
            "wrong_name": percent(self.wrong_name, self.names, digits=2),
            "wer_raw": percent(self.errors_raw, self.words, digits=2),
            "wer": percent(self.errors, self.words, digits=2),
            "false_per_1000_words": percent(10 * self.false_changes, self.nameless_words, digits=2),
        }


@dataclass(frozen=True, slots=True)
class Sentence:
    """
    Attributes:
        names: The place of each name of the set in the text, without an ending.
    """

    id: str
    text: str
    names: dict[str, tuple[int, int]]


def spoken_figures(directory: Path, half: str, arm: str) -> dict[str, Any]:
    """Return figures of all settings of the recogniser together, and of each under `settings`."""
    names = [row for row in _rows(directory / "names.tsv", 6) if row[2] == half]
    entries = [Entry(row[0], EntityId(row[0]), row[1], (row[5],) if row[5] else ()) for row in names]
    sentences = [_sentence(row) for row in _rows(directory / "sentences.tsv", 5) if row[1] == half]
    corrector = _corrector(entries, arm)
    every, by_setting = Tally(), dict[str, Any]()
    for path in sorted(directory.glob("heard-*.tsv.gz")):
        transcripts = {row[0]: (row[3], row[2]) for row in _rows(path, 4)}
        setting = Tally()
        for sentence in sentences:
            if sentence.id in transcripts:
                text, confidences = transcripts[sentence.id]
                corrected = corrector.correct(text, heard=heard_words(text, confidences))
                for tally in (every, setting):
                    tally.count(sentence, text, corrected, corrector.gazetteer)
        by_setting[path.name.removeprefix("heard-").removesuffix(".tsv.gz")] = setting.figures()
    return {"arm": arm, "half": half, "names": len(names), **every.figures(), "settings": by_setting}


def heard_words(text: str, confidences: str) -> tuple[HeardWord, ...]:
    """Return the words between spaces with their confidences, which are in percent."""
    found: list[HeardWord] = []
    end = 0
    for word, confidence in zip(text.split(), confidences.split(), strict=False):
        start = text.index(word, end)
        end = start + len(word)
        found.append(HeardWord(start, end, int(confidence) / 100))
    return tuple(found)


def bare_words(text: str) -> list[str]:
    return [bare(word) for word, _ in _words(text)]


def bare(word: str) -> str:
    """Return its letters and digits in lower case, without accents and apostrophes."""
    return "".join(char for char in fold(word) if char.isalnum())


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Yield each word with its place; a hyphen separates two words, an apostrophe does not."""
    return ((match.group(), match.start()) for match in _WORD.finditer(text))


def _has(words: Sequence[str], name: Sequence[str]) -> bool:
    return any(words[at : at + len(name)] == name for at in range(len(words) - len(name) + 1))


def _sentence(row: Sequence[str]) -> Sentence:
    """Parse a row: id, half, voice, NAME@START-END;..., text."""
    names = {}
    for each in filter(None, row[3].split(";")):
        name, _, place = each.rpartition("@")
        start, _, end = place.partition("-")
        names[name] = (int(start), int(end))
    return Sentence(row[0], row[4], names)


def _rows(path: Path, n_columns: int) -> list[list[str]]:
    """
    Raises:
        InvalidInput: A row has other columns.
    """
    return read_columns(path, lambda row: row if len(row) == n_columns else None, valid=f"{n_columns} columns")


def _options() -> argparse.ArgumentParser:
    parser = command("names", __doc__)
    parser.add_argument("--names", type=Path, default=OWN / "N.tsv", metavar="N.tsv")
    parser.add_argument("--pairs", type=Path, default=OWN / "P.tsv", metavar="P.tsv")
    parser.add_argument("--clean", type=Path, default=OWN / "C.txt", metavar="C.txt")
    parser.add_argument("--learn", type=Path, metavar="L.tsv", help="pairs that the DM accepted before")
    parser.add_argument("--spoken", choices=("tune", "test"), help="this half of the spoken set; quote test")
    parser.add_argument("--arm", choices=("shipped", "documents"), default="shipped")
    parser.add_argument("--language", default="en", help="of the campaign (default: en)")
    parser.add_argument("--show-changes", action="store_true", help="print every replacement in clean text")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
