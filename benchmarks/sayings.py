"""Fit and measure the models that tell whether a saying, such as a promise or a plan, or any sentence is worth storing.

    python -m benchmarks.sayings [FILE] [--scenes DIR --turns FILE] [--out FILE] [--remarks FILE]

`FILE` has a line for each sentence: its language, 1 if it is worth storing and 0 if not, and its text with names in
`[]`, separated by tabs. `DIR` has labelled scenes as `benchmarks.extraction` reads them, with their transcript in
`--turns`: a saying there is worth storing if a label says it. A logistic regression is fitted to the signs of
`glyphoxa.chronicle.statements.saying_signs`. The figures are of each part of the examples by weights fitted to the
others. `--out` writes weights that are fitted to all of them. The result is the same each time.

The model of any sentence ranks what the wrap-up proposes. It is fitted to `worth.tsv` beside `FILE`, where the third
column is who speaks ("-": the DM), and to the evenings of `--turns` with `DIR/worth.tsv`: the id of a line, the number
of its sentence from 0, and 1 or 0. Of other lines, the sentence that has most words of a label is worth storing. The
figures are of each evening by weights fitted to the others: of the sentences ranked first, how many are worth storing.
`--remarks` writes weights that are fitted to all evenings.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Final

from benchmarks import labelled
from benchmarks.extraction import known_of, players_of, read_gold, read_scenes
from benchmarks.labelled import (
    Example,
    by_threshold,
    cross_validated,
    fit_command,
    read_columns,
    write_weights,
)
from benchmarks.recall_data import Turn, read_turns, utterances_of
from benchmarks.runner import run
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.salience import names_in
from glyphoxa.chronicle.statements import SPEAKER, facts_in, saying_signs, sentences_of
from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.dm.wrap_up import Remark, WrapUp
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.language.calls import NamedPlace
from glyphoxa.language.text import Text, log_odds

PENALTY: Final = 0.5
PENALTY_OF_REMARKS: Final = 30.0
_COPIES: Final = 4
"""Weight of a verdict on a sentence, compared with a label of its line."""
_FIRST: Final = (20, 40)
_WORTH: Final = "worth.tsv"
_PASSING: Final = (
    "did",
    "condition",
    "state",
    "happened",
    "where",
    "size",
    "light",
    "price",
    "wounded",
    "position",
    "gave",
)
"""Attributes of labelled facts that no DM wants to read again after the evening."""
_FOLDS: Final = 6
_SHARED: Final = 1
_THRESHOLDS: Final = (0.0, 0.3, 0.4, 0.5, 0.7)
_NAME: Final = re.compile(r"\[([^\]]+)\]")


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    lines = read(options.file)
    recorded = [] if options.scenes is None else list(of_scenes(options.scenes, options.turns))
    if options.out is not None:
        write_weights(options.out, fitted([*lines, *recorded]))
    figures = {"lines": figures_of(lines, recorded), "recorded": figures_of(recorded, lines)}
    invented = list(invented_remarks(options.file.with_name(_WORTH)))
    evenings = {} if options.scenes is None else evenings_of(options.scenes, options.turns)
    if options.remarks is not None:
        every = [*invented, *(example for each in evenings.values() for example in each)]
        write_weights(options.remarks, fitted(every, PENALTY_OF_REMARKS))
    return figures | {"remarks": {name: best_of(evenings, name, invented) for name in evenings}}


def best_of(evenings: Mapping[str, Sequence[Example]], measured: str, invented: Sequence[Example]) -> dict[str, int]:
    """Return how many of the first sentences of an evening are worth storing, by weights fitted without it."""
    others = [example for name, each in evenings.items() if name != measured for example in each]
    weights = fitted([*invented, *others], PENALTY_OF_REMARKS)
    ranked = sorted(dict.fromkeys(evenings[measured]), key=lambda each: -log_odds(each.signs, weights))
    return {f"of {n}": sum(each.is_wanted for each in ranked[:n]) for n in _FIRST}


def figures_of(examples: Sequence[Example], others: Sequence[Example]) -> dict[str, Any]:
    """Return what is kept from each probability on: how many, the share that is right, and the share of right ones."""
    folds = [place % _FOLDS for place in range(len(examples))]
    odds = cross_validated(examples, folds, lambda rest: fitted([*rest, *others]))
    return by_threshold(odds, examples, _THRESHOLDS)


def fitted(examples: Sequence[Example], penalty: float = PENALTY) -> Mapping[str, float]:
    return labelled.fitted(examples, penalty=penalty)


def read(path: Path) -> list[Example]:
    """
    Raises:
        InvalidInput: A line has another form, or the rules find nothing in it; the message has its place.
    """
    valid = "a language, 1 or 0, and a text with a saying and its names in []"
    return list(chain.from_iterable(read_columns(path, _examples, valid=valid)))


def _examples(columns: Sequence[str]) -> list[Example] | None:
    match columns:
        case [_, "0" | "1" as label, text] if signs := _signs_of(text):
            return [Example(each, label == "1") for each in signs]
    return None


def _signs_of(text: str) -> list[frozenset[str]]:
    names, cut = list[NamedPlace](), 0
    for match in _NAME.finditer(text):
        names.append(NamedPlace(match[1], match.start() - cut, match.end() - cut - 2))
        cut += 2
    sentences = sentences_of(_NAME.sub(r"\1", text), names)
    return [saying_signs(fact.about, sentence) for sentence in sentences for fact in facts_in(sentence)]


def of_scenes(directory: Path, turns: Path) -> Iterator[Example]:
    """Yield what the rules find in lines of recorded scenes. It is worth storing if a label of the line says it."""
    for scene in read_scenes(directory, turns):
        language = scene.campaign.language
        names = names_of(scene.known, language)
        for each in scene.talk.said:
            is_known = each.utterance.speaker_name in scene.plays.values()
            line, turn = each.utterance.text, each.utterance.id.split("/")[-1]
            labels = [Text.of(fact["value"]) for fact in scene.labels.get("facts", ()) if turn in fact["evidence"]]
            for sentence in sentences_of(line, list(names_in(line, language, names))):
                telling = Text.of(sentence.text).telling(language)
                is_wanted = any(len(telling & label.telling(language)) >= _SHARED for label in labels)
                for fact in facts_in(sentence):
                    if is_known or fact.subject != SPEAKER:
                        yield Example(saying_signs(fact.about, sentence), is_wanted)


def invented_remarks(path: Path) -> Iterator[Example]:
    """Yield the sentences of lines that are invented, those of a language as one session.

    Raises:
        InvalidInput: A line has another form; the message has its place.
    """
    rows = defaultdict[str, list[tuple[str, str, str]]](list)
    valid = "a language, 1 or 0, a speaker or -, and a text"
    for language, label, speaker, text in read_columns(path, _remark, valid=valid):
        rows[language].append((label, speaker, text))
    for language, said in rows.items():
        people = {speaker for _, speaker, _ in said} - {"-"}
        others = {name for *_, text in said for name in _NAME.findall(text)} - people
        known = [
            KnownEntity(EntityId(name), type_, name, ())
            for type_, names in (("player", people), ("npc", others))
            for name in sorted(names)
        ]
        turns = [
            Turn(CampaignId(language), "", str(n), speaker, _NAME.sub(r"\1", text), n)
            for n, (_, speaker, text) in enumerate(said)
        ]
        for remark in _remarks(known, language, turns):
            yield from [Example(remark.signs, said[remark.line.ordinal][0] == "1")] * _COPIES


def _remark(columns: Sequence[str]) -> tuple[str, str, str, str] | None:
    match columns:
        case [language, "0" | "1" as label, speaker, text]:
            return language, label, speaker, text
    return None


def evenings_of(directory: Path, turns: Path) -> dict[str, list[Example]]:
    """Return the sentences of each recorded evening, as far as a label says whether they are worth storing."""
    verdicts = {
        (line, int(sentence)): label == "1"
        for line, sentence, label in (row.split("\t") for row in (directory / _WORTH).read_text("utf-8").splitlines())
    }
    labels, found = dict[str, list[frozenset[str]]](), dict[str, list[Example]]()
    scenes = read_gold(directory / "gold.jsonl")
    campaign = read_campaign(directory / f"{scenes[0]['campaign']}.yaml").campaign
    every = read_turns(turns)[CampaignId(scenes[0]["campaign"])]
    places = {turn.id: place for place, turn in enumerate(every)}
    for scene in scenes:
        for turn in every[places[scene["from"]] : places[scene["to"]] + 1]:
            labels[turn.id] = [
                Text.of(f"{fact['subject']} {fact['value']}").telling(campaign.language)
                for fact in scene["facts"]
                if turn.id in fact["evidence"] and fact["about"] not in _PASSING
            ]
    for session, turns_of in groupby(every, key=lambda each: each.session):
        plays = players_of(campaign, session)
        said = [replace(each, speaker=plays.get(each.speaker, each.speaker)) for each in turns_of]
        found[session] = []
        remarks = _remarks(known_of(campaign), campaign.language, said)
        for n, of_line in groupby(remarks, key=lambda each: each.line.ordinal):
            sentences = [(remark.signs, Text.of(remark.text).telling(campaign.language)) for remark in of_line]
            told = {
                max(range(len(sentences)), key=lambda m: len(sentences[m][1] & label))
                for label in labels.get(said[n].id, ())
            }
            for m, (signs, _) in enumerate(sentences):
                verdict = verdicts.get((said[n].id, m))
                if verdict is not None:
                    found[session] += [Example(signs, verdict)] * _COPIES
                elif said[n].id in labels:
                    found[session].append(Example(signs, m in told))
    return found


def _remarks(known: Sequence[KnownEntity], language: str, said: Sequence[Turn]) -> Iterator[Remark]:
    names = names_of(known, language)
    entities = {each.id: Entity(each.id, each.type, each.name, each.aliases) for each in known}
    maker = WrapUp(LineSelection(language, lambda: names), entities, lambda _: None)
    return maker.remarks([NumberedUtterance(each, n) for n, each in enumerate(utterances_of(said))])


def _options() -> argparse.ArgumentParser:
    options = fit_command("sayings", __doc__)
    options.add_argument("--scenes", type=Path, metavar="DIR", help="recorded scenes to fit to, too")
    options.add_argument("--turns", type=Path, metavar="FILE", help="the transcript of the scenes")
    options.add_argument("--remarks", type=Path, metavar="FILE", help="write the weights of remarks to this file")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
