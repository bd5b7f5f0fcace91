"""A `TalkFeed` in memory: a log whose changes are numbered, that can be slow, break off, or be away."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import Embedding, FeedUtterance, TalkHead, TalkPage
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH
from tests.support.embedders import an_embedder

T = TypeVar("T")
BOTH = frozenset({SMITH, INNKEEPER})
DIMENSIONS = 8


def embed(text: str) -> NDArray[float32]:
    """Texts that share words are near to each other; each points somewhere. Shape (8,), of unit length."""
    vector = np.full(DIMENSIONS, 0.1, float32)
    for word in text.casefold().split():
        vector[sum(word.strip(".,?!").encode()) % DIMENSIONS] += 1
    return vector / np.float32(np.linalg.norm(vector))


def an_embedder_of_words() -> Embedder:
    return an_edition("words", embed, dimensions=DIMENSIONS)


def an_edition(name: str, embed: Callable[[str], NDArray[float32]], *, dimensions: int) -> Embedder:
    async def embed_all(texts: list[str]) -> NDArray[float32]:
        return np.stack([embed(text) for text in texts])

    return an_embedder(embed_all, name=name, dimensions=dimensions)


def said(
    id: str,
    text: str,
    *,
    session: str = "s1",
    ordinal: int = 1,
    speaker: str = "Tamsin",
    at_ms: int = 1_000,
    witnesses: frozenset[NpcId] = BOTH,
    retracted: bool = False,
) -> FeedUtterance:
    return FeedUtterance(
        change_seq=0,
        utterance_id=UtteranceId(id),
        session_id=SessionId(session),
        ordinal=ordinal,
        speaker_id=SpeakerId(speaker.casefold()),
        speaker_name=speaker,
        text=text,
        at_ms=at_ms,
        witnesses=witnesses,
        retracted=retracted,
    )


async def _at_once(_what: str) -> None:
    return None


@dataclass
class FeedTwin:
    """
    Attributes:
        before: Awaited before each answer, with what is asked: "changes" or "embeddings". May raise.
        after: Awaited when the answer is known and not yet given: what is told then comes too late for it.
        asked: How often each was.
        has_meanings: Whether talk is embedded, as soon as it is said.
        n_batches: In which talk was embedded until now.
        model: Name and dimensions of what embeds it.
        times: Another text when the campaign tells the time otherwise.
        embed: Makes them.
    """

    languages: dict[CampaignId, str] = field(default_factory=dict)
    before: Callable[[str], Awaitable[None]] = _at_once
    after: Callable[[str], Awaitable[None]] = _at_once
    asked: Counter[str] = field(default_factory=Counter)
    has_meanings: bool = True
    n_batches: int = 0
    times: str = ""
    model: tuple[str, int] = ("words", DIMENSIONS)
    embed: Callable[[str], NDArray[float32]] = embed
    _talk: dict[CampaignId, dict[UtteranceId, FeedUtterance]] = field(default_factory=dict)
    _change_seq: int = 0

    def tell(self, *talk: FeedUtterance, campaign: CampaignId = CAMPAIGN) -> None:
        for one in talk:
            self._change_seq += 1
            self._talk.setdefault(campaign, {})[one.utterance_id] = replace(one, change_seq=self._change_seq)

    def change(self, id: str, campaign: CampaignId = CAMPAIGN, **changes: object) -> None:
        one = self._talk[campaign][UtteranceId(id)]
        self.tell(replace(one, **changes), campaign=campaign)  # type: ignore[arg-type] # fields of Said

    def forget(self, campaign: CampaignId = CAMPAIGN) -> Iterable[FeedUtterance]:
        """Forget everything, like a database restored from before the first utterance. Return what was there."""
        self._change_seq = 0
        return list(self._talk.pop(campaign, {}).values())

    def put_back(self, change_seq: int) -> None:
        """Drop later changes, like a database restored from a backup."""
        self._change_seq = change_seq
        for talk in self._talk.values():
            for one in [one for one in talk.values() if one.change_seq > change_seq]:
                del talk[one.utterance_id]

    async def changes(self, campaign: CampaignId, *, since: int, limit: int) -> TalkPage:
        def page() -> TalkPage:
            found = [one for one in self._talk.get(campaign, {}).values() if one.change_seq >= since]
            head = TalkHead(
                self.languages.get(campaign, "en"), self.model, f"{self.has_meanings} {self.n_batches}", self.times
            )
            return TalkPage(sorted(found, key=lambda one: one.change_seq)[:limit], head)

        return await self._answer("changes", page)

    async def embeddings(self, campaign: CampaignId, utterances: Sequence[UtteranceId], model: str) -> list[Embedding]:
        def found() -> list[Embedding]:
            talk = self._talk.get(campaign, {})
            is_there = self.has_meanings and model == self.model[0]
            there = [talk[one] for one in utterances if one in talk] if is_there else []
            return [Embedding(one.utterance_id, self.embed(one.text)[None]) for one in there]

        return await self._answer("embeddings", found)

    async def _answer(self, what: str, find: Callable[[], T]) -> T:
        self.asked[what] += 1
        await self.before(what)
        found = find()
        await asyncio.sleep(0)
        await self.after(what)
        return found
