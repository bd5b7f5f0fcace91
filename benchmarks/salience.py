"""Measure which utterances are kept: the product's judgement on labelled transcripts.

    python -m benchmarks.salience DIR [--judge rules|llm] [--threshold N] [--config FILE] [--labels N]

`DIR/turns.jsonl` is a transcript as for `benchmarks.recall`; `DIR/labels.jsonl` states for some turns whether to keep
them. The judge reads each session in order; the labelled turns are counted. `llm` asks the model of the chronicle,
with the rules as its floor, about the labelled turns; "by_rules" of them it did not answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from benchmarks.recall_data import Turn, read_turns, utterances_of
from benchmarks.runner import command, percentiles, positive, read_rows, run
from glyphoxa.app.background import open_talk_readers
from glyphoxa.chronicle.salience import THRESHOLD, SalienceJudge
from glyphoxa.chronicle.talk import BEFORE, NumberedUtterance, SceneTalk
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.judgement.policy import may_extract


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    by_campaign = read_turns(options.directory / "turns.jsonl")
    turns = [turn for said in by_campaign.values() for turn in said]
    labels = dict([*read_labels(options.directory / "labels.jsonl").items()][: options.labels])
    if options.judge == "llm":
        return await measured_with_a_model(by_campaign, labels, read_settings(options.config), options.language)
    return measured(turns, labels, threshold=options.threshold, language=options.language)


def read_labels(path: Path) -> dict[tuple[str, str], bool]:
    """Return the labels by campaign and turn.

    Raises:
        InvalidInput: A line is not a label.
    """
    return dict(read_rows(path, lambda row: ((str(row["campaign"]), str(row["id"])), bool(row["keep"]))))


def measured(
    turns: Sequence[Turn],
    labels: Mapping[tuple[str, str], bool],
    *,
    threshold: float = THRESHOLD,
    language: str = "en",
) -> dict[str, Any]:
    decisions: list[tuple[bool, bool]] = []
    took: list[float] = []
    for _, session in groupby(turns, key=lambda turn: (turn.campaign, turn.session)):
        judge = SalienceJudge(language, threshold=threshold)
        for turn in session:
            began = perf_counter_ns()
            judged = judge.judge(turn.text)
            took.append((perf_counter_ns() - began) / 1e6)
            label = labels.get((str(turn.campaign), turn.id))
            if label is not None:
                decisions.append((label, judged.is_kept))
    return _report(decisions, took)


async def measured_with_a_model(
    turns: Mapping[CampaignId, Sequence[Turn]],
    labels: Mapping[tuple[str, str], bool],
    settings: Settings,
    language: str,
) -> dict[str, Any]:
    """
    Raises:
        GlyphoxaError: The model cannot be asked.
    """
    memory = settings.memory.model_copy(update={"judge": "llm"})
    decisions: list[tuple[bool, bool]] = []
    took: list[float] = []
    by_rules = 0
    async with AsyncExitStack() as stack:
        readers = await open_talk_readers(settings.model_copy(update={"memory": memory}), stack)
        for campaign, said in turns.items():
            _, judge = readers.readers(Campaign(campaign, "", language, (), (), (), (), ()))
            lines = [NumberedUtterance(each, number) for number, each in enumerate(utterances_of(said), start=1)]
            for place, turn in enumerate(said):
                if (label := labels.get((str(campaign), turn.id))) is None:
                    continue
                before = (each for each in lines[max(place - BEFORE, 0) : place] if _is_with(each, lines[place]))
                talk = SceneTalk(campaign, SessionId(turn.session), language, (lines[place],), tuple(before))
                began = perf_counter_ns()
                [one] = await judge.judge(talk, ())
                took.append((perf_counter_ns() - began) / 1e6)
                by_rules += one.judged.by == "rules"
                decisions.append((label, may_extract(one.judged.judgement)))
    return {**_report(decisions, took), "by_rules": by_rules}


def _is_with(one: NumberedUtterance, other: NumberedUtterance) -> bool:
    return one.utterance.session_id == other.utterance.session_id


def _report(decisions: Sequence[tuple[bool, bool]], took: Sequence[float]) -> dict[str, Any]:
    counted, wanted = len(decisions), sum(label for label, _ in decisions)
    kept, right = sum(is_kept for _, is_kept in decisions), sum(label and is_kept for label, is_kept in decisions)
    precision, recall = right / max(kept, 1), right / max(wanted, 1)
    return {
        "labels": counted,
        "precision": round(100 * precision, 1),
        "recall": round(100 * recall, 1),
        "f1": round(200 * right / max(kept + wanted, 1), 1),
        "written_percent": round(100 * kept / max(counted, 1), 1),
        **percentiles(took, 50, 95),
    }


def _options() -> argparse.ArgumentParser:
    parser = command("salience", __doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--judge", choices=("rules", "llm"), default="rules")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings with the model; default: local")
    parser.add_argument("--labels", type=positive, metavar="N", help="only the first N")
    parser.add_argument("--threshold", type=float, default=THRESHOLD)
    parser.add_argument("--language", default="en", help="of the transcript: a BCP 47 tag")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
