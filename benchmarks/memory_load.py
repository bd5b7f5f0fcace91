"""Load the invented campaigns into memory as the program does, and measure how fast that is.

Utterances go through the transcript log and the world's events through `WorldHistory.commit`. Only vectors take a
shortcut: they are copied in and indexed afterwards, like a restored backup. One by one, a hundred thousand of them
would take the embedding model ten minutes and the index two.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from time import perf_counter
from typing import Final

from benchmarks.invented import Embeddings, InventedCampaign, Turn
from benchmarks.runner import tell
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.recall.vectors import chunk_id, pieces_of
from glyphoxa.world.event_log import Cause, Event

_EVENTS_AT_ONCE: Final = 500
_CENTRES: Final = 2_000
_KIB_A_VECTOR: Final = 1.5
"""While an index is built; with less memory than all of them need, it takes many times as long."""


class Loaded:
    """How much was loaded, and the seconds that the product took for it, without those of inventing it."""

    def __init__(self) -> None:
        self.n: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, what: str, n: int) -> Iterator[None]:
        """Time the block, in which `n` of `what` are loaded."""
        began = perf_counter()
        yield
        self._seconds[what] += perf_counter() - began
        self.n[what] += n

    def per_s(self, what: str) -> int:
        return round(self.n[what] / max(self._seconds[what], 1e-9))

    def figures(self) -> dict[str, float]:
        return {
            **{f"{what}_per_s": self.per_s(what) for what in self.n},
            **{f"loaded_{what}": n for what, n in self.n.items()},
            **{f"{what}_s": round(seconds, 1) for what, seconds in self._seconds.items()},
        }


async def load(store: Store, campaigns: Sequence[InventedCampaign], embeddings: Embeddings) -> Loaded:
    loaded = Loaded()
    learn(embeddings, campaigns[0])
    for campaign in campaigns:
        await _open(store, campaign)
        await _load_talk(store, campaign, loaded)
        tell(f"{loaded.n['turns']} turns, {loaded.per_s('turns')} a second")
    for campaign in campaigns:
        await _load_world(store, campaign, loaded)
        tell(f"{loaded.n['events']} events, {loaded.per_s('events')} a second")
    await _load_chunks(store, campaigns, embeddings, loaded)
    began = perf_counter()
    async with store.database.administer() as connection:
        # The server does this by itself within minutes; the benchmark does not wait for it.
        await connection.execute("VACUUM (ANALYZE)")
    tell(f"statistics and clean pages in {perf_counter() - began:.0f} s")
    return loaded


def learn(embeddings: Embeddings, campaign: InventedCampaign) -> None:
    """Embed some turns, which the vectors of all others are near to."""
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
        with loaded.timed("turns", len(utterances)):
            await store.log.append(utterances)


async def _load_world(store: Store, campaign: InventedCampaign, loaded: Loaded) -> None:
    cause = Cause("import", at_ms=1_700_000_000_000)
    for what, events in (
        ("entities", campaign.entities_told()),
        ("relations", campaign.relations_told()),
        ("summaries", campaign.summaries_told()),
    ):
        for some in _in_batches(events, _EVENTS_AT_ONCE):
            with loaded.timed(what, len(some)), loaded.timed("events", len(some)):
                await store.world.commit(campaign.id, some, cause)


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
        with loaded.timed("chunks", 0):
            await connection.execute("DROP INDEX idx_chunks_embedding")
        for campaign in campaigns:
            for session in campaign.talk():
                rows = list(_chunk_rows(session, embeddings, model=embeddings.embedder.name))
                with loaded.timed("chunks", len(rows)):
                    await connection.copy_records_to_table("chunks", records=rows, columns=_COLUMNS)
            await connection.execute("DELETE FROM talk_to_embed WHERE campaign_id = $1", campaign.id)
        tell(f"{loaded.n['chunks']} vectors are in, now their index")
        with loaded.timed("chunks", 0):
            await connection.execute(index.replace(" ON ONLY ", " ON "))  # with all partitions


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
    """Split as the program does; all pieces of an utterance have the same topic."""
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
