"""What one recall costs the event loop, in the yardsticks of `benchmarks.turn_cost`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.memory_vectors import Embeddings
from benchmarks.memory_world import InventedCampaign, Size
from benchmarks.recall_data import WITNESS
from benchmarks.recall_speed import CAMPAIGN, InventedTalk
from benchmarks.turn_cost import yardstick_ns
from glyphoxa.recall.recall import Recall
from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.transcript.ports import TalkQuery

TURNS: Final = 2_500
"""Fewer than go to a thread: all of it is seen by the clock of this one."""
_QUESTIONS: Final = 20
_ROUNDS: Final = 36
"""What others do to the memory of the machine slows arrays down and not the yardstick: the least needs many."""

SlowDown = Callable[[Recall], None]


def recall_cost(*, slow_down: SlowDown | None = None) -> float:
    """CPU time of recalling something by words on a partial transcript and then by words and meaning at the
    end, in yardsticks. The question's embedding is not part of it: that is the model's.

    Args:
        slow_down: Makes recall slower: for showing that a regression is seen.
    """
    world = InventedCampaign(CAMPAIGN, Size(TURNS, 400, 400), seed=7)
    embeddings = Embeddings.load("invented", seed=7)
    dice = world.dice("questions")
    embeddings.learn([world.words.turn(dice).text for _ in range(100)])
    feed = InventedTalk.of(world, embeddings)
    recall = Recall(feed, embedder=_known(embeddings.embedder.dimensions), now_ms=lambda: feed.ends_ms)
    if slow_down is not None:
        slow_down(recall)
    work_ns: list[int] = []
    yard_ns: list[int] = []
    with asyncio.Runner() as runner:
        runner.run(recall.talk_cache.refresh(CAMPAIGN))
        for n in range(_ROUNDS):
            # Anew each round: the same question over the same talk is not asked again.
            questions = [f"{world.words.question(dice)} {n}" for _ in range(_QUESTIONS)]
            work_ns.append(runner.run(_all(recall, questions)))
            yard_ns.append(yardstick_ns())
        runner.run(recall.close())
    return min(work_ns) / _QUESTIONS / min(yard_ns)


async def _all(recall: Recall, questions: Sequence[str]) -> int:
    began = time.thread_time_ns()
    for question in questions:
        recall.recall_nowait(CAMPAIGN, WITNESS, TalkQuery(question))
        await recall.recall(CAMPAIGN, WITNESS, TalkQuery(question))
    return time.thread_time_ns() - began


def _known(dimensions: int) -> Embedder:
    """A model that costs nothing."""
    vector = np.full((1, dimensions), dimensions**-0.5, float32)

    async def embed(texts: list[str]) -> NDArray[float32]:
        return np.repeat(vector, len(texts), axis=0)

    return Embedder("known", dimensions, embed)
