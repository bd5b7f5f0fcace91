"""What correction does for names that were really spoken and really misheard.

    python -m benchmarks.spoken_names [--split tune|test] [--setting tiny ...] [--arm shipped|documents] [--show N]

Every transcript of the set in `data/names/spoken` is corrected with all names of its half loaded and compared
with what was said. The last line printed is a JSON object with the figures overall and of each setting:

- `name_wer_raw`, `name_wer`: wrong, missing and added words where a name was said, percent of the names' words
- `other_wer_raw`, `other_wer`: the same of all other words. A word of a garble that is left beside the restored name
  counts here; before, it counted as the name's
- `wer_raw`, `wer`: of all words; `nameless_wer_raw`, `nameless_wer`: in sentences without a name
- `names_right_raw`, `names_right`: names that are right as a whole, percent
- `wrong_name`: names over which another name was written, percent; `harmed`: names that were right and are not now
- `false_per_1000_words`: changed spans in 1,000 words of transcripts of sentences without a name
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.spoken_names.alignment import Errors, align, errors, heard_for, tokens, words_of
from benchmarks.spoken_names.dataset import (
    HERE,
    SPLITS,
    Heard,
    Sentence,
    SpokenName,
    heard_path,
    mention_spans,
    read_heard,
    read_names,
    read_sentences,
    settings_in,
)
from glyphoxa.domain.errors import GlyphoxaError, NotFound, did_you_mean
from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.correction.corrector import Corrected, Corrector
from glyphoxa.speech.correction.documents_correction import documents_corrector
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer


@dataclass(slots=True)
class Tally:
    """What was counted over some transcripts, before and after correction."""

    raw: Errors = field(default_factory=Errors)
    corrected: Errors = field(default_factory=Errors)
    wrong_name: int = 0
    harmed: int = 0
    nameless_words: int = 0
    nameless_errors: int = 0
    nameless_errors_raw: int = 0
    false_changes: int = 0

    def add(self, more: Tally) -> None:
        self.raw.add(more.raw)
        self.corrected.add(more.corrected)
        self.wrong_name += more.wrong_name
        self.harmed += more.harmed
        self.nameless_words += more.nameless_words
        self.nameless_errors += more.nameless_errors
        self.nameless_errors_raw += more.nameless_errors_raw
        self.false_changes += more.false_changes

    def figures(self) -> dict[str, float]:
        raw, corrected = self.raw, self.corrected
        return {
            "name_wer_raw": _percent(raw.name_errors, raw.name_words),
            "name_wer": _percent(corrected.name_errors, corrected.name_words),
            "other_wer_raw": _percent(raw.other_errors, raw.other_words),
            "other_wer": _percent(corrected.other_errors, corrected.other_words),
            "wer_raw": _percent(raw.name_errors + raw.other_errors, raw.name_words + raw.other_words),
            "wer": _percent(corrected.name_errors + corrected.other_errors, raw.name_words + raw.other_words),
            "nameless_wer_raw": _percent(self.nameless_errors_raw, self.nameless_words),
            "nameless_wer": _percent(self.nameless_errors, self.nameless_words),
            "names_right_raw": _percent(raw.mentions_right, raw.mentions),
            "names_right": _percent(corrected.mentions_right, corrected.mentions),
            "wrong_name": _percent(self.wrong_name, raw.mentions),
            "harmed": _percent(self.harmed, raw.mentions),
            "false_per_1000_words": _percent(10 * self.false_changes, self.nameless_words),
            "mentions": raw.mentions,
            "nameless_words": self.nameless_words,
        }


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    try:
        figures = run(options)
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(figures))
    return 0


def run(options: argparse.Namespace) -> dict[str, object]:
    """The figures of all settings asked for.

    Raises:
        NotFound: No such setting, or the set has not been made.
    """
    made = settings_in(options.data)
    settings: list[str] = options.setting or made
    for setting in settings:
        if setting not in made:
            raise NotFound(f"{options.data}: no transcripts of setting {setting!r}: {did_you_mean(setting, made)}")
    names = [name for name in read_names(options.data / "names.tsv") if name.split == options.split]
    sentences = [each for each in read_sentences(options.data / "sentences.tsv") if each.split == options.split]
    gazetteer = Gazetteer.build(entries_of(names))
    corrector = documents_corrector(gazetteer) if options.arm == "documents" else Corrector(gazetteer)
    everything = Tally()
    by_setting: dict[str, dict[str, float]] = {}
    to_show = options.show
    for setting in settings:
        tally = Tally()
        heard = read_heard(heard_path(setting, options.data))
        for sentence in sentences:
            if sentence.id not in heard:
                continue
            written = _with_confidences(heard[sentence.id], options.confidences)
            corrected = corrector.correct(written.text, heard=written.heard_words())
            tally.add(measured(sentence, written, corrected, corrector.gazetteer))
            if to_show and (line := _told(sentence, written, corrected, options.show_only)):
                print(f"{setting}  {line}")
                to_show -= 1
        by_setting[setting] = tally.figures()
        everything.add(tally)
    return {
        "split": options.split,
        "arm": options.arm,
        "names": len(names),
        "sentences": len(sentences),
        **everything.figures(),
        "settings": by_setting,
    }


def entries_of(names: Iterable[SpokenName]) -> list[Entry]:
    """As a campaign holds them: a short form that only some people use is an alias."""
    return [Entry(name.name, EntityId(name.name), name.type, (name.short,) if name.short else ()) for name in names]


def measured(sentence: Sentence, heard: Heard, corrected: Corrected, gazetteer: Gazetteer) -> Tally:
    """One transcript against what was said."""
    reference = tokens(sentence.text)
    right = [token.word for token in reference]
    mentions = mention_spans(sentence, reference)
    before, after = tokens(heard.text), words_of(corrected.text)
    got = [token.word for token in before]
    tally = Tally(raw=errors(right, got, mentions), corrected=errors(right, after, mentions))
    if not mentions:
        tally.nameless_words = len(right)
        tally.nameless_errors_raw = tally.raw.other_errors
        tally.nameless_errors = tally.corrected.other_errors
        tally.false_changes = len(corrected.corrections)
        return tally
    spans_before, spans_after = align(right, got), align(right, after)
    for mention, covered in zip(sentence.mentions, mentions, strict=True):
        said = right[covered.first : covered.end]
        old, new = heard_for(spans_before, covered), heard_for(spans_after, covered)
        if after[new.first : new.end] == said:
            continue
        tally.harmed += got[old.first : old.end] == said
        if not old.is_empty:
            start, end = before[old.first].start, before[old.end - 1].end
            written = (each.after for each in corrected.corrections if each.start < end and each.end > start)
            tally.wrong_name += any(mention.name not in _named(text, gazetteer) for text in written)
    return tally


def _named(text: str, gazetteer: Gazetteer) -> set[str]:
    return {mention.name.canonical for mention in gazetteer.mentions(text)}


def _with_confidences(heard: Heard, wanted: bool) -> Heard:
    return heard if wanted else Heard(heard.id, heard.text, heard.hinted)


def _told(sentence: Sentence, heard: Heard, corrected: Corrected, which: str) -> str:
    """A line for people, or nothing when the transcript is not of the kind asked for."""
    is_right = words_of(corrected.text) == words_of(sentence.text)
    wanted = {
        "changed": bool(corrected.corrections),
        "wrong": bool(corrected.corrections) and not is_right,
        "missed": bool(sentence.mentions) and not is_right and not corrected.corrections,
        "false": bool(corrected.corrections) and not sentence.mentions,
    }[which]
    if not wanted:
        return ""
    changes = "; ".join(f"{each.before} -> {each.after} ({each.reason})" for each in corrected.corrections)
    return f"{sentence.text!r} heard {heard.text!r}" + (f": {changes}" if changes else "")


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spoken_names", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--split", choices=SPLITS, default="tune", help="test is for the last word only (%(default)s)")
    parser.add_argument("--setting", action="append", metavar="NAME", help="only this one; may be repeated")
    arms = ("shipped", "documents")
    parser.add_argument("--arm", choices=arms, default="shipped")
    parser.add_argument(
        "--no-confidences",
        dest="confidences",
        action="store_false",
        help="as from a recogniser that tells none of its words",
    )
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N transcripts")
    parser.add_argument("--show-only", choices=("changed", "wrong", "missed", "false"), default="changed")
    parser.add_argument("--data", type=Path, default=HERE, metavar="DIR")
    return parser
