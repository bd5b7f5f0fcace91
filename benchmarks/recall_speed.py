"""How long one recall takes when there is much talk, and how much room the talk takes in memory.

    python -m benchmarks.recall_speed [--turns 10000 100000] [--questions 300] [--embeddings real|invented]

Invented talk (`benchmarks.memory_world`) of one campaign is read into memory from a feed that is no database, and asked
for in the name of an NPC that heard all of it: `lexical` is what runs on every partial transcript, `hybrid` what a turn
waits for, the question's embedding by the local model included. Vectors of turns are invented (`memory_vectors`). The
last line printed is a JSON object: under `turns`, figures for each size.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import resource
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.memory_figures import percentiles
from benchmarks.memory_vectors import Embeddings
from benchmarks.memory_world import InventedCampaign, Size
from benchmarks.recall import tell
from benchmarks.recall_data import WITNESS
from benchmarks.recall_world import PatientEmbedder, patient
from benchmarks.turn import STOPPED, positive, stoppable
from glyphoxa.adapters.local import native_env
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.observability import log
from glyphoxa.recall.recall import Recall, RecallSettings
from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.transcript.feed import Embedding, FeedUtterance, IndexGeneration, TalkHead, TalkPage
from glyphoxa.transcript.ports import TalkQuery

_WARM_UP: Final = 20
_LIMIT: Final = 20
_CENTRES: Final = 500
CAMPAIGN: Final = CampaignId("invented")


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    native_env.prepare()
    log.set_up(level="WARNING")
    try:
        measured = asyncio.run(stoppable(measure(options)))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    print(json.dumps(measured))
    return 0


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    embeddings = Embeddings.load(options.embeddings, seed=options.seed)
    by_size: dict[str, Any] = {}
    for turns in options.turns:
        world = InventedCampaign(CAMPAIGN, Size(turns, 400, 400), seed=options.seed)
        dice = world.dice("centres")
        embeddings.learn([world.words.turn(dice).text for _ in range(_CENTRES)])
        feed = InventedTalk.of(world, embeddings)
        by_size[str(turns)] = await _measured(feed, world.dice("questions"), world, embeddings, options.questions)
        tell(f"{turns} turns: {by_size[str(turns)]}")
    return {
        "turns": by_size,
        "embeddings": embeddings.kind,
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


async def _measured(
    feed: InventedTalk, dice: random.Random, world: InventedCampaign, embeddings: Embeddings, n_questions: int
) -> dict[str, Any]:
    shipped = RecallSettings()
    questions = PatientEmbedder.around(embeddings.embedder, deadline_ms=shipped.embed_deadline_ms)
    recall = Recall(feed, embedder=questions.embedder, settings=patient(shipped), now_ms=lambda: feed.ends_ms)
    asked = list(dict.fromkeys(world.words.question(dice) for _ in range(4 * (n_questions + _WARM_UP))))
    try:
        began = perf_counter()
        index = await recall.talk_cache.refresh(CAMPAIGN)
        load_s = perf_counter() - began
        gc.collect()
        gc.freeze()

        async def lexical(question: str) -> None:
            recall.recall_nowait(CAMPAIGN, WITNESS, TalkQuery(question, limit=_LIMIT))

        async def hybrid(question: str) -> None:
            await recall.recall(CAMPAIGN, WITNESS, TalkQuery(question, limit=_LIMIT))

        async def embedding(question: str) -> None:
            await _embed(questions.embedder, question)

        asked = asked[: n_questions + _WARM_UP]
        figures = {name: await _timed(call, asked) for name, call in (("lexical", lexical), ("hybrid", hybrid))}
        late = questions.n_late
        return {
            **figures,
            "embedding": await _timed(embedding, asked),
            "late_embeddings": late,
            "load_s": round(load_s, 2),
            "talk_mb": round(index.size_bytes / 2**20, 1),
            "questions": len(asked) - _WARM_UP,
        }
    finally:
        gc.unfreeze()
        await recall.close()


async def _timed(call: Callable[[str], Awaitable[None]], questions: Sequence[str]) -> dict[str, float]:
    """Each question once; the first are not counted."""
    ms = []
    for question in questions:
        began = perf_counter()
        await call(question)
        ms.append(1_000 * (perf_counter() - began))
    return percentiles(ms[_WARM_UP:])


async def _embed(embedder: Embedder | None, question: str) -> None:
    if embedder is not None:
        await embedder.embed_questions([question])


@dataclass(frozen=True, slots=True)
class InventedTalk:
    """A `TalkFeed` over what is in memory already.

    Attributes:
        said: By their change numbers, which count from 0.
        vectors: Shape (turns, dimensions).
        ends_ms: A day after the last of it.
        places: Of each utterance.
    """

    said: Sequence[FeedUtterance]
    vectors: NDArray[float32]
    ends_ms: int
    places: Mapping[UtteranceId, int]

    @classmethod
    def of(cls, world: InventedCampaign, embeddings: Embeddings) -> InventedTalk:
        said: list[FeedUtterance] = []
        for session in world.talk():
            for ordinal, turn in enumerate(session, start=1):
                one = turn.utterance
                said.append(
                    FeedUtterance(
                        change_seq=len(said),
                        utterance_id=one.id,
                        session_id=one.session_id,
                        ordinal=ordinal,
                        speaker_id=one.speaker_id,
                        speaker_name=one.speaker_name,
                        text=one.text,
                        at_ms=one.at_ms,
                        witnesses=one.witnesses | {WITNESS},
                    )
                )
        vectors = np.concatenate([embeddings.invented(min(2_000, len(said) - at)) for at in range(0, len(said), 2_000)])
        places = {one.utterance_id: one.change_seq for one in said}
        return cls(said, vectors, said[-1].at_ms + 24 * 3_600_000, places)

    async def changes(self, campaign: CampaignId, *, since: int, limit: int) -> TalkPage:
        return TalkPage(self.said[since : since + limit], TalkHead("en", IndexGeneration("", 0, 1)))

    async def embeddings(
        self, campaign: CampaignId, utterances: Sequence[UtteranceId], generation: IndexGeneration
    ) -> list[Embedding]:
        return [Embedding(one, self.vectors[None, self.places[one]]) for one in utterances]


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall_speed", description="Recall of much talk.")
    parser.add_argument("--turns", type=positive, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--questions", type=positive, default=300, help="timed, each once")
    parser.add_argument("--embeddings", choices=("real", "invented"), help="by default real if the model is here")
    parser.add_argument("--seed", type=int, default=7)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
