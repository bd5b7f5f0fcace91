"""Puts the invented campaigns into memory the way the program does, and tells how fast that went.

Talk goes through the transcript log and the world's events through `World.commit`. Vectors alone take a way of
their own: they are copied in, and the index is made behind them, as one restores a backup; one by one, a hundred
thousand of them would take the embedding model ten minutes and the index two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from time import perf_counter
from typing import Final

from benchmarks.invented import Embeddings, InventedCampaign, Turn
from benchmarks.runner import tell
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.transcript.chunking import chunk_id, pieces_of
from glyphoxa.world.api import Cause, Event

_EVENTS_AT_ONCE: Final = 500
_CENTRES: Final = 2_000
_KIB_A_VECTOR: Final = 1.5
"""While an index is made; with less memory than all of them need, it takes many times as long."""


@dataclass(slots=True)
class Loaded:
    """What went in, and the seconds that the product took for it: without those that inventing it took."""

    turns: int = 0
    talk_s: float = 0.0
    events: int = 0
    world_s: float = 0.0
    relations: int = 0
    relations_s: float = 0.0
    chunks: int = 0
    chunks_s: float = 0.0

    def figures(self) -> dict[str, float]:
        return {
            "turns_per_s": round(self.turns / max(self.talk_s, 1e-9)),
            "events_per_s": round(self.events / max(self.world_s, 1e-9)),
            "relations_per_s": round(self.relations / max(self.relations_s, 1e-9)),
            "chunks_per_s": round(self.chunks / max(self.chunks_s, 1e-9)),
            "loaded_turns": self.turns,
            "loaded_events": self.events,
            "loaded_chunks": self.chunks,
            "talk_s": round(self.talk_s, 1),
            "world_s": round(self.world_s, 1),
            "chunks_s": round(self.chunks_s, 1),
        }


async def load(store: Store, campaigns: Sequence[InventedCampaign], embeddings: Embeddings) -> Loaded:
    loaded = Loaded()
    learn(embeddings, campaigns[0])
    for campaign in campaigns:
        await _open(store, campaign)
        await _load_talk(store, campaign, loaded)
        tell(f"{loaded.turns} turns, {loaded.turns / max(loaded.talk_s, 1e-9):.0f} a second")
    for campaign in campaigns:
        await _load_world(store, campaign, loaded)
        tell(f"{loaded.events} events, {loaded.events / max(loaded.world_s, 1e-9):.0f} a second")
    await _load_chunks(store, campaigns, embeddings, loaded)
    began = perf_counter()
    async with store.database.administer() as connection:
        # The server does this by itself within minutes; nobody wants to wait for it here.
        await connection.execute("VACUUM (ANALYZE)")
    tell(f"statistics and clean pages in {perf_counter() - began:.0f} s")
    return loaded


def learn(embeddings: Embeddings, campaign: InventedCampaign) -> None:
    """What the vectors of all turns are near to: some turns' real ones."""
    dice = campaign.dice("centres")
    embeddings.learn([campaign.words.turn(dice).text for _ in range(_CENTRES)])


async def _open(store: Store, campaign: InventedCampaign) -> None:
    async with store.database.use(campaign.id) as connection:
        await connection.execute(
            "INSERT INTO campaigns (id, name, language) VALUES ($1, $2, 'en') ON CONFLICT DO NOTHING",
            campaign.id,
            campaign.id,
        )


async def _load_talk(store: Store, campaign: InventedCampaign, loaded: Loaded) -> None:
    for session in campaign.talk():
        utterances = [turn.utterance for turn in session]
        began = perf_counter()
        await store.log.append(utterances)
        loaded.talk_s += perf_counter() - began
        loaded.turns += len(utterances)


async def _load_world(store: Store, campaign: InventedCampaign, loaded: Loaded) -> None:
    cause = Cause("import", at_ms=1_700_000_000_000)

    async def commit(events: Iterable[Event]) -> tuple[int, float]:
        n, took_s = 0, 0.0
        for some in _in_batches(events, _EVENTS_AT_ONCE):
            began = perf_counter()
            await store.world.commit(campaign.id, some, cause)
            took_s += perf_counter() - began
            n += len(some)
        return n, took_s

    entities, entities_s = await commit(campaign.entities_told())
    relations, relations_s = await commit(campaign.relations_told())
    summaries, summaries_s = await commit(campaign.summaries_told())
    loaded.events += entities + relations + summaries
    loaded.world_s += entities_s + relations_s + summaries_s
    loaded.relations += relations
    loaded.relations_s += relations_s


async def _load_chunks(
    store: Store,
    campaigns: Sequence[InventedCampaign],
    embeddings: Embeddings,
    loaded: Loaded,
) -> None:
    async with store.database.administer(deadline_ms=3_600_000) as connection:
        largest = max(campaign.size.turns for campaign in campaigns)
        memory_mb = max(256, round(largest * _KIB_A_VECTOR / 1024))
        await connection.execute(f"SET maintenance_work_mem = '{memory_mb}MB'; SET statement_timeout = 0")
        index = await connection.fetchval("SELECT pg_get_indexdef('idx_chunks_embedding'::regclass)")
        began = perf_counter()
        await connection.execute("DROP INDEX idx_chunks_embedding")
        loaded.chunks_s += perf_counter() - began
        for campaign in campaigns:
            for session in campaign.talk():
                rows = list(_chunk_rows(session, embeddings, model=embeddings.embedder.name))
                began = perf_counter()
                await connection.copy_records_to_table("chunks", records=rows, columns=_COLUMNS)
                loaded.chunks_s += perf_counter() - began
                loaded.chunks += len(rows)
            await connection.execute("DELETE FROM talk_to_embed WHERE campaign_id = $1", campaign.id)
        tell(f"{loaded.chunks} vectors in {loaded.chunks_s:.0f} s, now their index")
        began = perf_counter()
        await connection.execute(index.replace(" ON ONLY ", " ON "))  # with all partitions
        loaded.chunks_s += perf_counter() - began
        tell(f"vectors and their index in {loaded.chunks_s:.0f} s")


_COLUMNS: Final = (
    "campaign_id",
    "id",
    "utterance_id",
    "session_id",
    "content",
    "content_hash",
    "embedding",
    "model",
    "speaker_id",
    "entity_ids",
    "timestamp",
    "knowers",
)


def _chunk_rows(session: Sequence[Turn], embeddings: Embeddings, *, model: str) -> Iterator[tuple[object, ...]]:
    """As the program cuts talk; all pieces of an utterance speak of the same."""
    cut = [
        (turn, nth, piece)
        for turn in session
        for said in (turn.utterance,)
        for nth, piece in enumerate(pieces_of(said.text, speaker=said.speaker_name))
    ]
    for (turn, nth, piece), vector in zip(cut, embeddings.invented(len(cut)), strict=True):
        said, about = turn.utterance, turn.entity_ids
        yield (
            said.campaign_id,
            chunk_id(said.id, nth),
            said.id,
            said.session_id,
            piece.content,
            piece.content_hash,
            vector,
            model,
            said.speaker_id,
            list(about),
            datetime.fromtimestamp(said.at_ms / 1_000, UTC),
            sorted(said.witnesses),
        )


def _in_batches(items: Iterable[Event], size: int) -> Iterator[list[Event]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch
