"""Compare the cost of a turn's decisions and of a recall in a large campaign and in a small one.

An index does not scan: a hundred times the names, or ten times the transcript, must cost little more. Both campaigns
get the same texts in alternation, from the same code on the same processor. Processor time is measured, and the median
of several rounds counts.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.invented import Embeddings, InventedCampaign, Size
from benchmarks.recall_data import WITNESS
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.events import SceneChanged
from glyphoxa.domain.heard import NothingSaid, SpeechStarted
from glyphoxa.domain.ids import CampaignId, PlayerId, UtteranceId
from glyphoxa.names.table_names import TableNames
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.identity import beginning_of
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import with_hot_context
from glyphoxa.recall.recall import Recall
from glyphoxa.recall.transcript_memory import Transcripts
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import Embedding, FeedUtterance, TalkHead, TalkPage, TalkQuery
from glyphoxa.turns.address import Addressing

CAMPAIGN: Final = CampaignId("invented")
NAMES: Final = (50, 5_000)
TURNS: Final = (500, 5_000)
"""Fewer than the number from which Recall ranks in a thread."""
_ROUNDS: Final = 11
_WARM_UP: Final = 10
_TEXTS_A_ROUND: Final = 20
_WORDS_A_PARTIAL: Final = 2
_PLAYER: Final = PlayerId("hanna")
_SENTENCES: Final = Path(__file__).parent / "data" / "names" / "C.txt"

Work = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Growth:
    """
    Attributes:
        ratio: CPU time of the same texts, large campaign to small.
        large_ms: CPU time of one text in the large campaign.
    """

    ratio: float
    large_ms: float


def names_growth(campaign: Campaign, *, rounds: int = _ROUNDS) -> Growth:
    """Compare the decisions of a turn with many names and with few."""
    sentences = _SENTENCES.read_text("utf-8").splitlines()
    with asyncio.Runner() as runner:
        small, large = (_Mind(campaign, n_names) for n_names in NAMES)
        return runner.run(_growth(small.turn, large.turn, sentences, rounds=rounds))


def talk_growth(*, rounds: int = _ROUNDS) -> Growth:
    """Compare recalls in a long transcript and in a short one.

    A recall is one by words, as on a partial transcript, and one by words and meaning. The embedding of the question is
    excluded, because it is the cost of the model.
    """
    world = _world(max(TURNS))
    dice = world.dice("questions")
    # The number makes each question new, because Recall caches its answers.
    questions = [f"{world.words.question(dice)} {n}" for n in range(_WARM_UP + rounds * _TEXTS_A_ROUND)]
    with asyncio.Runner() as runner:
        small, large = (runner.run(_recall(n_turns)) for n_turns in TURNS)
        try:
            return runner.run(_growth(partial(_ask, small), partial(_ask, large), questions, rounds=rounds))
        finally:
            runner.run(small.close())
            runner.run(large.close())


async def _growth(small: Work, large: Work, texts: Sequence[str], *, rounds: int) -> Growth:
    for text in texts[:_WARM_UP]:
        await small(text)
        await large(text)
    gc.collect()
    gc.freeze()
    ratios: list[float] = []
    large_ns: list[int] = []
    for at in range(_WARM_UP, _WARM_UP + rounds * _TEXTS_A_ROUND, _TEXTS_A_ROUND):
        took_ns = {small: 0, large: 0}
        for n, text in enumerate(texts[at : at + _TEXTS_A_ROUND]):
            for work in (small, large) if n % 2 else (large, small):
                began = time.process_time_ns()
                await work(text)
                took_ns[work] += time.process_time_ns() - began
        ratios.append(took_ns[large] / took_ns[small])
        large_ns.append(took_ns[large])
    gc.unfreeze()
    return Growth(statistics.median(ratios), min(large_ns) / _TEXTS_A_ROUND / 1e6)


class _Mind:
    """The decisions between a transcript and a prompt, wired as at a table, without its database."""

    def __init__(self, campaign: Campaign, n_names: int) -> None:
        invented = InventedCampaign(CAMPAIGN, Size(0, n_names, 0), seed=7).entities
        campaign = replace(campaign, entities=(*campaign.entities, *invented))
        self._npc = campaign.npcs[0]
        self._present = {npc.id: npc.name for npc in campaign.npcs}
        self._names = TableNames(campaign, now_ms=lambda: 0)
        self._names.on(SceneChanged(campaign.scenes[0], 0))
        self._conversation = Conversation(self._npc, beginning=beginning_of(campaign, self._npc, None))
        self._prefetch = Prefetch(
            KnownWorld(campaign, None),
            talk=None,
            present=lambda: self._present,
            conversations={self._npc.id: self._conversation},
        )
        self._assembly = HotContexts(
            self._prefetch,
        )
        self._addressing = Addressing()

    async def turn(self, text: str) -> None:
        """Take growing partials and the final words, decide whom they address, and make the prompt for the answer."""
        self._names.on(SpeechStarted(_PLAYER, 0))
        words = text.split()
        for n in range(_WORDS_A_PARTIAL, len(words), _WORDS_A_PARTIAL):
            self._prefetch.on_partial(_PLAYER, self._heard(" ".join(words[:n])))
        final = self._heard(text)
        self._names.on(NothingSaid(_PLAYER, 0))
        hot = await self._assembly.gather(self._npc.id, final)
        with_hot_context(self._conversation.prompt(final, "Hanna"), hot)

    def _heard(self, text: str) -> str:
        """Correct a transcript and decide whom it addresses."""
        corrected = self._names.correct(text, player=_PLAYER).text
        said = self._names.understand(corrected)
        self._addressing.decide(_PLAYER, said, present=[*self._present], names=self._present, at_ms=0)
        return corrected


@dataclass(frozen=True, slots=True)
class InventedTalk:
    """A `TalkFeed` over utterances in memory.

    Attributes:
        said: Utterances by their change numbers, which count from 0.
        vectors: Shape (turns, dimensions).
        ends_ms: A day after the last utterance.
        places: The index of each utterance.
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
        return TalkPage(self.said[since : since + limit], TalkHead("en"))

    async def embeddings(self, campaign: CampaignId, utterances: Sequence[UtteranceId], model: str) -> list[Embedding]:
        return [Embedding(one, self.vectors[None, self.places[one]]) for one in utterances]


async def _recall(n_turns: int) -> Recall:
    embeddings = Embeddings.load("invented", seed=7)
    feed = InventedTalk.of(_world(n_turns), embeddings)
    recall = Recall(
        Transcripts(feed, embedder=_free_of_cost(embeddings.embedder.dimensions)), now_ms=lambda: feed.ends_ms
    )
    await recall.transcript(CAMPAIGN).refresh()
    return recall


async def _ask(recall: Recall, question: str) -> None:
    recall.recall_nowait(CAMPAIGN, WITNESS, TalkQuery(question))
    await recall.recall(CAMPAIGN, WITNESS, TalkQuery(question))


def _world(n_turns: int) -> InventedCampaign:
    """Invent a transcript. The smaller one is the start of the larger one."""
    return InventedCampaign(CAMPAIGN, Size(n_turns, 400, 400), seed=7)


def _free_of_cost(dimensions: int) -> Embedder:
    vector = np.full((1, dimensions), dimensions**-0.5, float32)

    async def embed(texts: list[str]) -> NDArray[float32]:
        return np.repeat(vector, len(texts), axis=0)

    return Embedder("known", dimensions, embed)
