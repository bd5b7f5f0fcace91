"""Fit and measure the model that tells which words of an utterance are a new name.

    python -m benchmarks.new_names [FILE] [--scenes DIR ... --turns FILE] [--out FILE]

A line of `FILE` has a language and a text with its names in `[]`, separated by a tab. The lines of
`benchmarks.statements` and `benchmarks.sayings` are read too, and those of `benchmarks.address`, where the people
present have the only names. `DIR` has labelled scenes as `benchmarks.extraction` reads them, with their transcript in
`--turns`: there, a name is what a label of any scene has. What `NameFinder.candidates_in` yields is an example, and a
logistic regression is fitted to its signs, one for each way to write nouns. The figures are of each part of the
examples by weights fitted to the others, for each probability that a name needs. `--out` writes weights that are fitted
to all of them. The result is the same each time.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import labelled
from benchmarks.extraction import read_gold, read_scenes
from benchmarks.labelled import (
    DATA,
    Example,
    by_threshold,
    cross_validated,
    fit_command,
    read_columns,
    write_weights,
)
from benchmarks.runner import json_lines, run
from glyphoxa.chronicle.effects import folded
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.language.language_data import vocabulary_of
from glyphoxa.language.new_names import NameFinder

LANGUAGES: Final = ("de", "en")
PENALTY: Final = 1.0
_FOLDS: Final = 5
_THRESHOLDS: Final = (0.3, 0.4, 0.5, 0.6)
_MOST: Final = 8
"""Examples of one name from lines of other sets, which repeat few names."""
_WRITTEN: Final = "a written line"
"""Sign of lines that were written as examples: they have more names than talk. No weight of it is kept."""
_NAME: Final = re.compile(r"\[([^\]]+)\]")
_NOUNS: Final = {f"before: {word}" for word in vocabulary_of("de").stop}
"""Signs of names such as "der Salzpalast", which other sets have for statements, and which no rule can tell apart."""
_FINDERS: Final = {language: NameFinder(language) for language in LANGUAGES}


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    recorded = [example for each in options.scenes for example in of_scenes(each, options.turns)]
    written = {language: list(of_lines(options.file, language)) for language in LANGUAGES}
    if options.out is not None:
        fits = {each: fitted([*written[each], *(recorded if each == "en" else ())]) for each in LANGUAGES}
        write_weights(options.out, fits)
    figures = {language: figures_of(examples) for language, examples in written.items()}
    return {**figures, "recorded": figures_of(recorded, written["en"])}


def figures_of(examples: Sequence[Example], others: Sequence[Example] = ()) -> dict[str, Any]:
    """Return what is found from each probability on: how many, the share that is right, and the share of right ones."""
    size = max(-(-len(examples) // _FOLDS), 1)
    folds = [place // size for place in range(len(examples))]
    odds = cross_validated(examples, folds, lambda rest: fitted([*rest, *others]))
    return by_threshold(odds, examples, _THRESHOLDS)


def fitted(examples: Sequence[Example]) -> Mapping[str, float]:
    weights = labelled.fitted(examples, penalty=PENALTY)
    return {sign: weight for sign, weight in weights.items() if sign != _WRITTEN}


def of_lines(path: Path, language: str) -> Iterator[Example]:
    """Yield the examples of a language in a file of lines and in the lines of other sets.

    Raises:
        InvalidInput: A line has another form; the message has its place.
    """
    often = Counter[str]()
    for text, most in _lines(path, language):
        spans, cut = list[tuple[int, int]](), 0
        for match in _NAME.finditer(text):
            spans.append((match.start() - cut, match.end() - cut - 2))
            cut += 2
        plain = _NAME.sub(r"\1", text)
        names = {folded(plain[start:end]) for start, end in spans}
        for example, name, start in _examples(plain, language, names.__contains__):
            often[name] += 1
            is_part = not example.is_wanted and any(first <= start < last for first, last in spans)
            is_like_a_noun = language == "de" and most == _MOST and not _NOUNS.isdisjoint(example.signs)
            if not is_part and often[name] <= most and not (example.is_wanted and is_like_a_noun):
                yield Example(
                    example.signs | ({_WRITTEN} if most == _MOST and language == "en" else set()), example.is_wanted
                )
    yield from _address(language)


def _lines(path: Path, language: str) -> Iterator[tuple[str, int]]:
    """Yield the lines of a language, each with how often one name may occur."""
    valid = f"{' or '.join(LANGUAGES)}, and a text with names in []"
    for tag, text in read_columns(path, _line, valid=valid):
        if tag == language:
            yield text, len(text)
    for name in ("statements", "sayings"):
        for row in (DATA / name / "lines.tsv").read_text("utf-8").splitlines():
            tag, *_, text = row.split("\t")
            if tag == language:
                yield text.replace("<", "").replace(">", " "), _MOST


def _line(columns: Sequence[str]) -> tuple[str, str] | None:
    match columns:
        case [tag, text] if tag in LANGUAGES:
            return tag, text
    return None


def _address(language: str) -> Iterator[Example]:
    for _, row in json_lines(DATA / "address" / "tune.jsonl"):
        if row["language"] == language:
            people = [
                name for each in (*row["npcs"], *row["players"]) for name in (each["name"], *each.get("aliases", ()))
            ]
            names = {folded(name) for each in people for name in (each, *each.split())}
            yield from (example for example, *_ in _examples(row["text"], language, names.__contains__))


def _examples(
    text: str, language: str, is_name: Callable[[str], bool], taken: Collection[tuple[int, int]] = ()
) -> Iterator[tuple[Example, str, int]]:
    for found, signs in _FINDERS[language].candidates_in(text, taken=taken, nobody=()):
        name = folded(found.text)
        yield Example(signs, is_name(name) and name not in vocabulary_of(language).stop), name, found.start


def of_scenes(directory: Path, turns: Path) -> Iterator[Example]:
    """Yield what is written like a name in lines of recorded scenes."""
    labels = read_gold(directory / "gold.jsonl")
    names = {folded(name) for each in labels for one in each["entities"] for name in (one["name"], *one["aliases"])}
    for scene in read_scenes(directory, turns):
        language = scene.campaign.language
        gazetteer = names_of(scene.known, language)
        for said in scene.talk.said:
            text = said.utterance.text
            taken = [(each.start, each.end) for each in gazetteer.mentions(text)]
            yield from (example for example, *_ in _examples(text, language, names.__contains__, taken))


def _options() -> argparse.ArgumentParser:
    options = fit_command("new_names", __doc__)
    options.add_argument(
        "--scenes", type=Path, metavar="DIR", nargs="*", default=[], help="recorded scenes to fit to, too"
    )
    options.add_argument("--turns", type=Path, metavar="FILE", help="the transcript of the scenes")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
