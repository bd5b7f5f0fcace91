"""Utterances and their corrections as rows of the log, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg

from glyphoxa.adapters.postgres.server.values import at_ms, storable, timestamp
from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.utterance import Correction, Utterance

_NS_PER_MS: Final = 1_000_000


def row_of_utterance(place: int, said: Utterance) -> dict[str, object]:
    return {
        "place": place,
        "session_id": storable(said.session_id),
        "utterance_id": storable(said.id),
        "speaker_id": storable(said.speaker_id),
        "speaker_name": storable(said.speaker_name),
        "text": storable(said.text),
        "raw_text": storable(said.raw_text),
        "npc_id": storable(said.npc_id or ""),
        "at": timestamp(said.at_ms).isoformat(),
        "duration_ns": said.duration_ms * _NS_PER_MS,
        "witnesses": sorted(storable(npc) for npc in said.witnesses),
    }


def correction_rows(utterance: UtteranceId, corrections: Sequence[Correction]) -> list[dict[str, object]]:
    return [
        {
            "utterance_id": storable(utterance),
            "ordinal": ordinal,
            "start_char": c.start,
            "end_char": c.end,
            "before": storable(c.before),
            "after": storable(c.after),
            "score": c.score,
            "stage": c.stage,
            "reason": storable(c.reason),
        }
        for ordinal, c in enumerate(corrections)
    ]


def utterance_of_row(row: asyncpg.Record) -> Utterance:
    """Of a row of the view `utterances`."""
    return Utterance(
        id=UtteranceId(row["utterance_id"]),
        campaign_id=CampaignId(row["campaign_id"]),
        session_id=SessionId(row["session_id"]),
        speaker_id=SpeakerId(row["speaker_id"]),
        speaker_name=row["speaker_name"],
        text=row["text"],
        raw_text=row["raw_text"],
        at_ms=at_ms(row["timestamp"]),
        duration_ms=row["duration_ns"] // _NS_PER_MS,
        npc_id=NpcId(row["npc_id"]) if row["npc_id"] else None,
        witnesses=frozenset(NpcId(npc) for npc in row["witnesses"]),
        corrections=tuple(Correction(**values) for values in row["corrections"] or ()),
    )


def said_of_row(row: asyncpg.Record) -> CitedUtterance:
    """Of the same rows, for the DM."""
    return CitedUtterance(
        UtteranceId(row["utterance_id"]),
        SessionId(row["session_id"]),
        row["ordinal"],
        row["speaker_name"],
        row["text"],
        at_ms(row["timestamp"]),
        row["retracted"],
    )
