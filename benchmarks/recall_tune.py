"""Whether the weights of the ranking are learnt from what they are measured on: one campaign left out at a time.

    python -m benchmarks.recall_tune DIR [--also DIR] [--also-weight 0.3] [--limit N]

For each campaign in DIR the weights are learnt anew from all others (and from those of `--also`, which are not
measured), and its questions are ranked by those, through the shipped recall. The last line printed is a JSON object:
figures of the left-out campaigns (`held_out`, `held_out_by_category`) beside those of the shipped weights (`shipped`),
with and without meaning, and how much the learnt weights differ.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy import float32, float64
from numpy.typing import NDArray

from benchmarks.recall import ask_all, data_options, tell
from benchmarks.recall_asking import embedded, shipped_recall, shipped_recall_nowait
from benchmarks.recall_data import WITNESS, Question, RecallData, read_data, turn_id
from benchmarks.recall_figures import Answer, compared, figures, quality
from benchmarks.recall_learning import Example, left_out_weights
from benchmarks.recall_world import LoadedTalk, loaded_talk, place_for
from benchmarks.turn import STOPPED, stoppable
from benchmarks.turn_world import a_directory
from glyphoxa.adapters.local import native_env
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.recalled import Signal
from glyphoxa.observability import log
from glyphoxa.recall.question import read_question
from glyphoxa.recall.ranking.ranking import DEFAULT, RankingWeights, rank
from glyphoxa.recall.ranking.time_fit import fit_of
from glyphoxa.recall.recall import RecallSettings


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    native_env.prepare()
    log.set_up(level="WARNING")
    try:
        data = read_data(options.directory)
        if len(data.turns) < 2:
            raise InvalidInput(f"{options.directory} has one campaign; to leave one out there must be two or more")
        with a_directory() as directory:
            where = place_for(options.data_dir, directory / "talk")
            also = place_for(options.also_data_dir, directory / "also")
            measured = asyncio.run(stoppable(measure(data, where, also, options)))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    print(json.dumps(measured))
    return 0


async def measure(data: RecallData, directory: Path, also: Path, options: argparse.Namespace) -> dict[str, Any]:
    asked = data.first(options.limit)
    others = await _of_others(also, options)
    async with loaded_talk(data, directory, embeddings=options.embeddings, tell=tell) as talk:
        gc.collect()
        gc.freeze()
        found: dict[str, Any] = {"questions": len(asked.questions), **talk.figures}
        for kind, names in _signals(talk).items():
            tell(f"{kind}: signals of {len(asked.questions)} questions")
            examples = await examples_of(talk, asked.questions, names, with_meaning=kind == "hybrid")
            weights = left_out_weights(examples, others.get(kind, ()))
            found[kind] = await _measured(talk, asked.questions, weights, names, kind)
            tell(f"{kind}: held out {found[kind]['held_out']}, shipped {found[kind]['shipped']}")
        return found


async def _of_others(directory: Path, options: argparse.Namespace) -> dict[str, list[Example]]:
    """Examples that are always learnt from."""
    if options.also is None:
        return {}
    found: dict[str, list[Example]] = {}
    data = read_data(options.also)
    async with loaded_talk(data, directory, embeddings=options.embeddings, tell=tell) as talk:
        for kind, names in _signals(talk).items():
            some = await examples_of(talk, data.questions, names, with_meaning=kind == "hybrid")
            found[kind] = [replace(one, weight=options.also_weight) for every in some.values() for one in every]
    return found


def _signals(talk: LoadedTalk) -> dict[str, tuple[Signal, ...]]:
    """By which the shipped ranking ranks."""
    if talk.questions.embedder is None:
        return {"lexical": tuple(DEFAULT.by_words)}
    return {"lexical": tuple(DEFAULT.by_words), "hybrid": tuple(DEFAULT.by_words_and_meaning)}


async def examples_of(
    talk: LoadedTalk, questions: Sequence[Question], names: Sequence[Signal], *, with_meaning: bool
) -> dict[CampaignId, list[Example]]:
    """What the shipped ranking sees of each question."""
    every = dict.fromkeys(names, 1.0)
    found: dict[CampaignId, list[Example]] = {}
    for question in questions:
        talk.ask_of(question.campaign)
        index = talk.index(question.campaign)
        heard, now_ms = index.speakers(WITNESS), talk.clock.now_ms
        asked = read_question(question.text, terms=index.terms, speakers=heard, now_ms=now_ms)
        vector = await embedded(talk, asked.meaning) if with_meaning else None
        seen = index.look(WITNESS, asked.terms, vector)
        fit = fit_of(asked, index, WITNESS, seen)
        shares = rank(
            asked,
            seen,
            speakers=frozenset(heard[name] for name in asked.speakers),
            also={} if fit is None else {Signal.TIME: fit.prior},
            weights=RankingWeights(every, every),
        ).shares
        nothing = np.zeros(len(seen.columns), float32)
        signals = np.stack([shares.get(name, nothing) for name in names], axis=1)
        evidence = set(question.evidence)
        places = [
            at
            for at, row in enumerate(seen.columns.rows)
            if turn_id(question.campaign, index.said(int(row)).utterance_id) in evidence
        ]
        found.setdefault(question.campaign, []).append(Example(signals, np.array(places, np.intp)))
    return found


async def _measured(
    talk: LoadedTalk,
    questions: Sequence[Question],
    weights: Mapping[CampaignId, NDArray[float64]],
    names: Sequence[Signal],
    kind: str,
) -> dict[str, Any]:
    held_out: list[Answer] = []
    in_order: list[Question] = []
    for campaign, values in weights.items():
        table = dict(zip(names, map(float, values), strict=True))
        own = [question for question in questions if question.campaign == campaign]
        in_order += own
        held_out += await _asked(talk, own, replace(DEFAULT, by_words=table, by_words_and_meaning=table), kind)
    shipped = await _asked(talk, in_order, DEFAULT, kind)
    spread = np.std(list(weights.values()), axis=0)
    mean = np.mean(list(weights.values()), axis=0)
    return {
        "held_out": quality(held_out),
        "held_out_by_category": figures(held_out)["by_category"],
        "shipped": quality(shipped),
        "held_out_vs_shipped": compared(held_out, shipped),
        "campaigns": {
            campaign: {
                "held_out": quality([answer for answer in held_out if answer.question.campaign == campaign]),
                "shipped": quality([answer for answer in shipped if answer.question.campaign == campaign]),
            }
            for campaign in weights
        },
        "weights": {
            name: {"mean": round(float(m), 2), "sd": round(float(s), 2)}
            for name, m, s in zip(names, mean, spread, strict=True)
        },
    }


async def _asked(talk: LoadedTalk, questions: Sequence[Question], weights: RankingWeights, kind: str) -> list[Answer]:
    recall = talk.recall_with(RecallSettings(weights=weights))
    ask = shipped_recall(recall) if kind == "hybrid" else shipped_recall_nowait(recall)
    return await ask_all(talk, ask, questions)


def _options() -> argparse.ArgumentParser:
    parser = data_options("recall_tune", "Weights learnt without what they are measured on.")
    parser.add_argument("--also", type=Path, metavar="DIR", help="other talk, that is only learnt from")
    parser.add_argument("--also-weight", type=float, default=0.3, help="of each of its questions")
    parser.add_argument("--also-data-dir", type=Path, help="as --data-dir, for that")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
