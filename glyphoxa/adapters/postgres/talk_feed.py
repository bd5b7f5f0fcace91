from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.database import Database
from glyphoxa.adapters.postgres.paragraphs import load_paragraphs
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.memory.ports.talk_feed import Meaning, Said

_DEADLINE_MS = 5_000
_HEADER_BYTES = 4
"""Of a vector as it is sent: its dimensions and two bytes that are not used; big-endian single floats follow."""


class PostgresTalkFeed:
    """A `TalkFeed`, with a deadline of 5 s for a page.

    Args:
        model: Whose vectors are read; None for none.
    """

    def __init__(self, database: Database, *, model: str | None = None) -> None:
        self._database = database
        self._model = model
        self._sql = load_paragraphs("talk_feed")

    async def language(self, campaign: CampaignId) -> str:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            return str(await connection.fetchval(self._sql["language"], campaign))

    async def changed(self, campaign: CampaignId, *, after: int, limit: int) -> list[Said]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            rows = await connection.fetch(self._sql["changed"], campaign, after, limit)
        return [
            Said(
                mark=row["mark"],
                utterance_id=UtteranceId(row["utterance_id"]),
                session_id=SessionId(row["session_id"]),
                floor=row["floor"],
                speaker_id=SpeakerId(row["speaker_id"]),
                speaker_name=row["speaker_name"],
                text=row["text"],
                at_ms=row["at_ms"],
                witnesses=frozenset(map(NpcId, row["witnesses"])),
                struck=row["struck"],
            )
            for row in rows
        ]

    async def meanings(self, campaign: CampaignId, utterances: Sequence[UtteranceId]) -> list[Meaning]:
        if self._model is None or not utterances:
            return []
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            rows = await connection.fetch(self._sql["meanings"], campaign, list(utterances), self._model)
        vectors = _vectors([row["sent"] for row in rows])
        found: list[Meaning] = []
        at = 0
        for utterance, pieces in groupby(rows, key=itemgetter("utterance_id")):
            n = sum(1 for _ in pieces)
            found.append(Meaning(UtteranceId(utterance), vectors[at : at + n]))
            at += n
        return found


def _vectors(sent: Sequence[bytes]) -> NDArray[float32]:
    """Of one model, and so of one length: all at once."""
    if not sent:
        return np.zeros((0, 0), float32)
    rows = np.frombuffer(b"".join(sent), np.uint8).reshape(len(sent), -1)[:, _HEADER_BYTES:]
    return np.ascontiguousarray(rows).view(">f4").astype(float32)
