"""Long-term memory on one PostgreSQL database and one connection pool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.atoms import PostgresAtoms
from glyphoxa.adapters.postgres.chunks.embedding_queue import ChunkIndexer
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres, in_thread
from glyphoxa.adapters.postgres.server.listen import Listener
from glyphoxa.adapters.postgres.transcript.feed import PostgresTalkFeed, PostgresTalkSearch
from glyphoxa.adapters.postgres.transcript.log import PostgresSessionSummaries, PostgresTranscriptLog
from glyphoxa.adapters.postgres.transcript.session_states import PostgresSessionStates
from glyphoxa.adapters.postgres.world.campaigns import PostgresCampaigns, PostgresCampaignTimes
from glyphoxa.adapters.postgres.world.event_log import PostgresWorldFeed
from glyphoxa.adapters.postgres.world.graph import PostgresGraph, PostgresGraphRag
from glyphoxa.adapters.postgres.world.world import PostgresWorld
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.recall.recall import Recall, RecallSettings
from glyphoxa.recall.vectors import Embedder, TextVectors
from glyphoxa.recall.world_memory import WorldMemory


@dataclass(frozen=True, slots=True)
class Store:
    """All parts of long-term memory.

    Attributes:
        embedder: The model it was opened with.
        listener: Shared by all followers of changes.
    """

    database: Database
    listener: Listener
    log: PostgresTranscriptLog
    talk_search: PostgresTalkSearch
    chunks: ChunkIndexer
    past_talk: Recall
    by_name: WorldMemory
    graph: PostgresGraph
    graph_rag: PostgresGraphRag
    world: PostgresWorld
    campaigns: PostgresCampaigns
    summaries: PostgresSessionSummaries
    times: PostgresCampaignTimes
    states: PostgresSessionStates
    atoms: PostgresAtoms
    embedder: Embedder | None = None


@asynccontextmanager
async def open_store(  # noqa: PLR0913 - what a database, an embedder and recall are opened with
    dsn: str | None,
    *,
    data_dir: Path,
    embedding_dimensions: int = 384,
    embedder: Embedder | None = None,
    any_model: bool = False,
    recall: RecallSettings | None = None,
    auto_accept: float = AUTO_ACCEPT,
    server_settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Store]:
    """Open memory for the block.

    Connects at the first use, or with `await store.database.open()`.

    Args:
        dsn: A server, or None for the embedded one in `data_dir / "postgres"`.
        embedding_dimensions: Length of the embedder's vectors.
        embedder: None: recall works by words only.
        auto_accept: The confidence from which facts need no review.
        any_model: Accept a database for another model: it is opened to change that.

    Raises:
        InvalidInput: The embedder has other dimensions.
    """
    server = EmbeddedPostgres(data_dir / "postgres", settings=server_settings) if dsn is None else None

    async def start() -> str:
        if server is None or dsn is not None:
            return str(dsn)
        await in_thread(server.start)
        return server.dsn()

    if embedder is not None and embedder.dimensions != embedding_dimensions:
        raise InvalidInput(
            f"memory.embedding_dimensions is {embedding_dimensions}, but the model {embedder.name} has "
            f"{embedder.dimensions}"
        )
    database = Database(
        start,
        embedding_dimensions=embedding_dimensions,
        embedding_model=None if embedder is None else embedder.name,
        any_model=any_model,
    )
    listener = Listener(database)
    chunks = ChunkIndexer(database, embedder=embedder)
    world = PostgresWorld(database, accept_at=auto_accept)
    feed = PostgresTalkFeed(database, has_vectors=embedder is not None)
    summaries = PostgresSessionSummaries(database)
    times = PostgresCampaignTimes(database)

    past_talk = Recall(feed, embedder=embedder, summaries=summaries, times=times, settings=recall)
    meanings = TextVectors(embedder, past_talk.vectors)
    by_name = WorldMemory(PostgresWorldFeed(database), now_ms=now_ms, meanings=meanings)
    try:
        yield Store(
            database,
            listener,
            PostgresTranscriptLog(database),
            PostgresTalkSearch(database),
            chunks,
            past_talk,
            by_name,
            PostgresGraph(database),
            PostgresGraphRag(database, model="" if embedder is None else embedder.name),
            world,
            PostgresCampaigns(database, world),
            summaries,
            times,
            PostgresSessionStates(database),
            PostgresAtoms(database),
            embedder,
        )
    finally:
        await listener.close()
        await past_talk.close()
        await by_name.close()
        try:
            await database.close()
        finally:
            if server is not None:
                server.release()
