"""Fit and measure the model that tells whether a saying, such as a promise or a plan, is worth storing.

    python -m benchmarks.sayings [FILE] [--scenes DIR --turns FILE] [--out FILE]

`FILE` has a line for each sentence: its language, 1 if it is worth storing and 0 if not, and its text with names in
`[]`, separated by tabs. `DIR` has labelled scenes as `benchmarks.extraction` reads them, with their transcript in
`--turns`: a saying there is worth storing if a label says it. A logistic regression is fitted to the signs of
`glyphoxa.chronicle.statements.saying_signs`. The figures are of each part of the examples by weights fitted to the
others. `--out` writes weights that are fitted to all of them. The result is the same each time.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Any, Final

from benchmarks import logistic
from benchmarks.extraction import known_of, players_of, read_gold, scene_of
from benchmarks.logistic import Example
from benchmarks.recall_data import read_turns
from benchmarks.runner import command, percent, run
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.salience import names_in
from glyphoxa.chronicle.statements import SPEAKER, NameSpan, facts_in, saying_signs, sentences_of
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId
from glyphoxa.language.new_names import NameFinder
from glyphoxa.language.text import Text, log_odds

PENALTY: Final = 0.5
_FOLDS: Final = 6
_SHARED: Final = 1
_THRESHOLDS: Final = (0.0, 0.3, 0.4, 0.5, 0.7)
_DATA: Final = Path(__file__).parent / "data" / "sayings" / "lines.tsv"
_NAME: Final = re.compile(r"\[([^\]]+)\]")


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    lines = read(options.file)
    recorded = [] if options.scenes is None else list(of_scenes(options.scenes, options.turns))
    if options.out is not None:
        options.out.write_text(json.dumps(fitted([*lines, *recorded]), ensure_ascii=False) + "\n", "utf-8")
    return {"lines": figures_of(lines, recorded), "recorded": figures_of(recorded, lines)}


def figures_of(examples: Sequence[Example], others: Sequence[Example]) -> dict[str, Any]:
    """Return what is kept from each probability on: how many, the share that is right, and the share of right ones."""
    judged = [
        (1 / (1 + exp(-log_odds(example.signs, weights))), example.is_wanted)
        for fold in range(_FOLDS)
        for weights in [fitted([*(each for n, each in enumerate(examples) if n % _FOLDS != fold), *others])]
        for example in examples[fold::_FOLDS]
    ]
    kept = {least: [is_wanted for sure, is_wanted in judged if sure >= least] for least in _THRESHOLDS}
    return {
        str(least): {
            "found": len(each),
            "precision": percent(sum(each), len(each)),
            "recall": percent(sum(each), sum(kept[0.0])),
        }
        for least, each in kept.items()
    }


def fitted(examples: Sequence[Example]) -> Mapping[str, float]:
    return logistic.fitted(examples, penalty=PENALTY)


def read(path: Path) -> list[Example]:
    """
    Raises:
        InvalidInput: A line has another form, or the rules find nothing in it; the message has its place.
    """
    examples = []
    for number, row in enumerate(path.read_text("utf-8").splitlines(), start=1):
        match row.split("\t"):
            case [_, "0" | "1" as label, text] if signs := _signs_of(text):
                examples += [Example(each, label == "1") for each in signs]
            case _:
                raise InvalidInput(
                    f"{path}:{number}: {row!r}; valid: a language, 1 or 0, and a text with a saying and its names in []"
                )
    return examples


def _signs_of(text: str) -> list[frozenset[str]]:
    names, cut = list[NameSpan](), 0
    for match in _NAME.finditer(text):
        names.append(NameSpan(match[1], match.start() - cut, match.end() - cut - 2))
        cut += 2
    sentences = sentences_of(_NAME.sub(r"\1", text), names)
    return [saying_signs(fact.about, sentence) for sentence in sentences for fact in facts_in(sentence)]


def of_scenes(directory: Path, turns: Path) -> Iterator[Example]:
    """Yield what the rules find in lines of recorded scenes. It is worth storing if a label of the line says it."""
    talk_of = read_turns(turns)
    for scene in read_gold(directory / "gold.jsonl"):
        campaign = read_campaign(directory / f"{scene['campaign']}.yaml").campaign
        language, names = campaign.language, names_of(known_of(campaign), campaign.language)
        plays = players_of(campaign, str(scene.get("session", "")))
        for each in scene_of(scene, talk_of[CampaignId(scene["campaign"])], language, plays).said:
            is_known = each.utterance.speaker_name in plays.values()
            line, turn = each.utterance.text, each.utterance.id.split("/")[-1]
            labels = [Text.of(fact["value"]) for fact in scene.get("facts", ()) if turn in fact["evidence"]]
            for sentence in sentences_of(line, list(names_in(line, NameFinder(language), names))):
                telling = Text.of(sentence.text).telling(language)
                is_wanted = any(len(telling & label.telling(language)) >= _SHARED for label in labels)
                for fact in facts_in(sentence):
                    if is_known or fact.subject != SPEAKER:
                        yield Example(saying_signs(fact.about, sentence), is_wanted)


def _options() -> argparse.ArgumentParser:
    options = command("sayings", __doc__)
    options.add_argument("file", nargs="?", type=Path, metavar="FILE", default=_DATA, help="labelled lines")
    options.add_argument("--scenes", type=Path, metavar="DIR", help="recorded scenes to fit to, too")
    options.add_argument("--turns", type=Path, metavar="FILE", help="the transcript of the scenes")
    options.add_argument("--out", type=Path, metavar="FILE", help="write the weights to this file")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
