"""The spoken set of names: what was said, by whom, and what the recogniser made of it. Tables with tabs, UTF-8."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from benchmarks.spoken_names.alignment import Span, Token
from glyphoxa.domain.errors import Corrupt, InvalidInput, NotFound
from glyphoxa.domain.utterance import HeardWord

Split = Literal["tune", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
HERE = Path(__file__).parents[1] / "data" / "names" / "spoken"


@dataclass(frozen=True, slots=True)
class SpokenName:
    """A name of the set.

    Attributes:
        origin: "own", or "srd" for the System Reference Document 5.1.
        article: "the" where it is said with one, else nothing.
        short: What people also say for it ("Holt" for "Mayor Holt"), or nothing.
    """

    name: str
    type: str
    split: Split
    origin: str
    article: str = ""
    short: str = ""


@dataclass(frozen=True, slots=True)
class SpokenMention:
    """A name in a sentence: characters `start` to `end`, without a possessive or plural ending."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sentence:
    id: str
    split: Split
    voice: str
    text: str
    mentions: tuple[SpokenMention, ...] = ()


@dataclass(frozen=True, slots=True)
class Heard:
    """What the recogniser wrote.

    Attributes:
        hinted: The names of the sentence were in the recogniser's glossary.
        confidences: 0 to 100, one for each word between spaces of `text`; empty when the recogniser told none.
    """

    id: str
    text: str
    hinted: bool = False
    confidences: tuple[int, ...] = ()

    def heard_words(self) -> tuple[HeardWord, ...]:
        """The confidences as the corrector takes them."""
        found: list[HeardWord] = []
        end = 0
        for word, percent in zip(self.text.split(), self.confidences, strict=False):
            start = self.text.index(word, end)
            end = start + len(word)
            found.append(HeardWord(start, end, percent / 100))
        return tuple(found)


def mention_spans(sentence: Sentence, reference: Sequence[Token]) -> list[Span]:
    """Which words of the reference each mention covers; a possessive ending belongs to the name's last word."""
    spans: list[Span] = []
    for mention in sentence.mentions:
        covered = [at for at, token in enumerate(reference) if token.start < mention.end and token.end > mention.start]
        spans.append(Span(covered[0], covered[-1] + 1))
    return spans


def read_names(path: Path = HERE / "names.tsv") -> list[SpokenName]:
    rows = _rows(path, 6)
    return [SpokenName(row[0], row[1], _split(row[2], path), row[3], row[4], row[5]) for row in rows[1:]]


def write_sentences(path: Path, sentences: Iterable[Sentence]) -> None:
    lines = (
        "\t".join(
            (
                each.id,
                each.split,
                each.voice,
                ";".join(f"{mention.name}@{mention.start}-{mention.end}" for mention in each.mentions),
                each.text,
            )
        )
        for each in sentences
    )
    _write(path, lines)


def read_sentences(path: Path = HERE / "sentences.tsv") -> list[Sentence]:
    return [
        Sentence(row[0], _split(row[1], path), row[2], row[4], tuple(_mentions(row[3], path))) for row in _rows(path, 5)
    ]


def heard_path(setting: str, directory: Path = HERE) -> Path:
    return directory / f"heard-{setting}.tsv.gz"


def settings_in(directory: Path = HERE) -> list[str]:
    return sorted(path.name.removeprefix("heard-").removesuffix(".tsv.gz") for path in directory.glob("heard-*.tsv.gz"))


def write_heard(path: Path, heard: Iterable[Heard]) -> None:
    lines = (
        "\t".join((each.id, "1" if each.hinted else "0", " ".join(map(str, each.confidences)), each.text))
        for each in heard
    )
    _write(path, lines)


def read_heard(path: Path) -> Mapping[str, Heard]:
    """By the sentence's id."""
    rows = _rows(path, 4)
    return {row[0]: Heard(row[0], row[3], row[1] == "1", tuple(map(int, row[2].split()))) for row in rows}


def _write(path: Path, lines: Iterable[str]) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    # No time and no name in the archive: the same transcripts are the same bytes.
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def _rows(path: Path, n_columns: int) -> list[list[str]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotFound(f"{path}: {error.strerror}; python -m benchmarks.spoken_names.make makes it") from error
    try:
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Corrupt(f"{path}: {error}") from error
    rows = [line.split("\t") for line in text.split("\n") if line]
    for number, row in enumerate(rows, start=1):
        if len(row) != n_columns:
            raise InvalidInput(f"{path}, line {number}: {len(row)} columns, expected {n_columns}")
    return rows


def _split(text: str, path: Path) -> Split:
    for split in SPLITS:
        if text == split:
            return split
    raise InvalidInput(f"{path}: no such half {text!r}; one of {', '.join(SPLITS)}")


def _mentions(column: str, path: Path) -> Iterable[SpokenMention]:
    for each in filter(None, column.split(";")):
        name, _, place = each.rpartition("@")
        start, _, end = place.partition("-")
        if not (name and start.isdigit() and end.isdigit()):
            raise InvalidInput(f"{path}: {each!r} is not NAME@START-END")
        yield SpokenMention(name, int(start), int(end))
