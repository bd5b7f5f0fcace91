"""Measure which utterances are kept: the product's judgement on labelled transcripts.

    python -m benchmarks.salience DIR [--labels FILE] [--embeddings minilm|none] [--threshold N]
    python -m benchmarks.salience DIR --judge llm [--labels FILE] [--config FILE] [--first N]

`DIR/turns.jsonl` is a transcript as for `benchmarks.recall`; `DIR/labels.jsonl` states for some turns whether to keep
them. The gate reads each session in order, and the backstop looks at each turn again with the five after it; what
either keeps is kept. The labelled turns are counted. `llm` asks the model of the chronicle, with the rules as its
floor, about the labelled turns; "by_rules" of them it did not answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import Any, TypeAlias

from numpy import float32
from numpy.typing import NDArray

from benchmarks.recall_data import Turn, read_turns, utterances_of
from benchmarks.runner import command, local_embeddings, percentiles, positive, read_rows, run
from glyphoxa.app.background import open_talk_readers
from glyphoxa.chronicle.salience import THRESHOLD, VECTORS_OF, Line, SalienceJudge
from glyphoxa.chronicle.talk import BEFORE, NumberedUtterance, SceneTalk
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.ids import CampaignId, SessionId

Embed: TypeAlias = Callable[[Sequence[str]], NDArray[float32]]
Labels: TypeAlias = Mapping[tuple[str, str], bool]


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    by_campaign = read_turns(options.directory / "turns.jsonl")
    turns = [turn for said in by_campaign.values() for turn in said]
    labels = dict([*read_labels(options.labels or options.directory / "labels.jsonl").items()][: options.first])
    if options.judge == "llm":
        return await measured_with_a_model(by_campaign, labels, read_settings(options.config), options.language)
    embed = local_embed() if options.embeddings == "minilm" else None
    return measured(turns, labels, embed=embed, threshold=options.threshold, language=options.language)


def local_embed() -> Embed | None:
    """Return the local embedding model; None if it is not on this machine."""
    try:
        return local_embeddings().embed
    except NotFound:
        return None


def lines_of(turns: Sequence[Turn], embed: Embed | None) -> list[Line]:
    """Return turns as the judge reads them."""
    if embed is None:
        return [Line(turn.text) for turn in turns]
    vectors = embed([turn.text for turn in turns])
    return [Line(turn.text, vector=vector) for turn, vector in zip(turns, vectors, strict=True)]


def read_labels(path: Path) -> dict[tuple[str, str], bool]:
    """Return the labels by campaign and turn.

    Raises:
        InvalidInput: A line is not a label.
    """
    return dict(read_rows(path, lambda row: ((str(row["campaign"]), str(row["id"])), bool(row["keep"]))))


def measured(
    turns: Sequence[Turn],
    labels: Labels,
    *,
    embed: Embed | None = None,
    threshold: float = THRESHOLD,
    language: str = "en",
) -> dict[str, Any]:
    passed: set[tuple[str, str]] = set()
    kept: set[tuple[str, str]] = set()
    took: list[float] = []
    for _, session in groupby(turns, key=lambda turn: (turn.campaign, turn.session)):
        judge = SalienceJudge(language, threshold=threshold)
        said = list(session)
        lines: list[Line] = []
        for turn in said:
            began = perf_counter_ns()
            lines += lines_of([turn], embed)
            if judge.judge_all(lines[-1:])[0].is_kept:
                passed.add((str(turn.campaign), turn.id))
            took.append((perf_counter_ns() - began) / 1e6)
        kept.update((str(said[index].campaign), said[index].id) for index in judge.backstop(lines))
    here = {(str(turn.campaign), turn.id) for turn in turns}
    known = {turn: label for turn, label in labels.items() if turn in here}
    return {
        "labels": len(known),
        **_figures(kept | passed, known),
        "gate_only": _figures(passed, known),
        "embeddings": "none" if embed is None else VECTORS_OF,
        **percentiles(took, 50, 95),
    }


async def measured_with_a_model(
    turns: Mapping[CampaignId, Sequence[Turn]],
    labels: Labels,
    settings: Settings,
    language: str,
) -> dict[str, Any]:
    """
    Raises:
        GlyphoxaError: The model cannot be asked.
    """
    memory = settings.memory.model_copy(update={"judge": "llm"})
    kept: set[tuple[str, str]] = set()
    counted: dict[tuple[str, str], bool] = {}
    took: list[float] = []
    by_rules = 0
    async with AsyncExitStack() as stack:
        readers = await open_talk_readers(settings.model_copy(update={"memory": memory}), stack)
        for campaign, said in turns.items():
            _, judge = readers.readers(Campaign(campaign, "", language, (), (), (), (), ()))
            lines = [NumberedUtterance(each, number) for number, each in enumerate(utterances_of(said), start=1)]
            for place, turn in enumerate(said):
                key = (str(campaign), turn.id)
                if (label := labels.get(key)) is None:
                    continue
                before = (each for each in lines[max(place - BEFORE, 0) : place] if _is_with(each, lines[place]))
                talk = SceneTalk(campaign, SessionId(turn.session), language, (lines[place],), tuple(before))
                began = perf_counter_ns()
                [one] = await judge.judge(talk, ())
                took.append((perf_counter_ns() - began) / 1e6)
                by_rules += one.judged.by == "rules"
                counted[key] = label
                if one.judged.judgement.may_extract:
                    kept.add(key)
    figures = _figures(kept, counted)
    return {"labels": len(counted), **figures, **percentiles(took, 50, 95), "by_rules": by_rules}


def _is_with(one: NumberedUtterance, other: NumberedUtterance) -> bool:
    return one.utterance.session_id == other.utterance.session_id


def _figures(kept: Collection[tuple[str, str]], labels: Labels) -> dict[str, float]:
    return figures_of([turn in kept for turn in labels], list(labels.values()))


def figures_of(kept: Sequence[bool], keep: Sequence[bool]) -> dict[str, float]:
    n_kept, wanted = sum(kept), sum(keep)
    right = sum(one and other for one, other in zip(kept, keep, strict=True))
    return {
        "precision": round(100 * right / max(n_kept, 1), 1),
        "recall": round(100 * right / max(wanted, 1), 1),
        "f1": round(200 * right / max(n_kept + wanted, 1), 1),
        "written_percent": round(100 * n_kept / max(len(keep), 1), 1),
    }


def _options() -> argparse.ArgumentParser:
    parser = command("salience", __doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="instead of DIR/labels.jsonl")
    parser.add_argument("--embeddings", choices=("minilm", "none"), default="minilm")
    parser.add_argument("--judge", choices=("rules", "llm"), default="rules")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings with the model; default: local")
    parser.add_argument("--first", type=positive, metavar="N", help="only the first N labels")
    parser.add_argument("--threshold", type=float, default=THRESHOLD)
    parser.add_argument("--language", default="en", help="of the transcript: a BCP 47 tag")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
