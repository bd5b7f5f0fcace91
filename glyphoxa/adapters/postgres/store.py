"""Long-term memory on one PostgreSQL database and one connection pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.chronicle_nodes import PostgresAtoms, PostgresEpisodes
from glyphoxa.adapters.postgres.chunks import ChunkIndexer
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.postgres.server.listen import Listener
from glyphoxa.adapters.postgres.transcript.log import PostgresSessionStates, PostgresTranscriptLog
from glyphoxa.adapters.postgres.transcript.reading import PostgresGraphRag, PostgresTalkFeed, PostgresTalkSearch
from glyphoxa.adapters.postgres.world.campaigns import PostgresCampaigns, PostgresCampaignTimes
from glyphoxa.adapters.postgres.world.commits import PostgresWorld
from glyphoxa.adapters.postgres.world.imports import PostgresImports
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.domain.knowledge import AUTO_ACCEPT, RecalledSummary
from glyphoxa.recall.recall import Recall, RecallAround, RecallSettings
from glyphoxa.recall.transcript_memory import Transcripts
from glyphoxa.recall.vectors import Embedder, TextVectors
from glyphoxa.recall.world import WorldMemory, WorldSnapshot


class Store:
    """All parts of long-term memory.

    Args:
        embedder: None: recall works by words only.
        auto_accept: The confidence from which facts need no review.

    Attributes:
        listener: Shared by all followers of changes.
        around: Searches talk around an entity.
        meanings: Vectors of the texts of the worlds in memory, and of those of their authors.
    """

    def __init__(
        self, database: Database, *, embedder: Embedder | None, recall: RecallSettings | None, auto_accept: float
    ) -> None:
        self.database = database
        self.embedder = embedder
        self.listener = Listener(database)
        self.log = PostgresTranscriptLog(database)
        self.talk_search = PostgresTalkSearch(database)
        self.chunks = ChunkIndexer(database, embedder=embedder)
        self.times = PostgresCampaignTimes(database)
        feed = PostgresTalkFeed(database)
        transcripts = Transcripts(feed, embedder=embedder, read_times=self.times.times)
        self.past_talk = Recall(transcripts, summaries=self.summaries, settings=recall)
        self.world = PostgresWorld(database, accept_at=auto_accept)
        self.episodes = PostgresEpisodes(database, self.world)
        self.meanings = TextVectors(embedder, self.past_talk.vectors)
        self._worlds: dict[CampaignId, WorldMemory] = {}
        self.graph_rag = PostgresGraphRag(database, model="" if embedder is None else embedder.name)
        self.around = RecallAround(self.graph_rag, self.past_talk.vectors)
        self.campaigns = PostgresCampaigns(database, self.world)
        self.atoms = PostgresAtoms(database)
        self.links = self.atoms.links

    def imports(self, campaign: CampaignId) -> PostgresImports:
        """Return the imports of a campaign, and the decisions about them."""
        return PostgresImports(self.database, self.campaigns, campaign)

    def states(self, campaign: CampaignId, session: SessionId) -> PostgresSessionStates:
        """Return the stored memory of a session while it runs."""
        return PostgresSessionStates(self.database, campaign, session)

    def world_memory(self, campaign: CampaignId) -> WorldMemory:
        """Return a campaign's world in memory, the same object to every caller. It closes with this object."""
        if campaign not in self._worlds:
            self._worlds[campaign] = WorldMemory(self.world, campaign, now_ms=now_ms, meanings=self.meanings)
        return self._worlds[campaign]

    async def summaries(self, campaign: CampaignId) -> Callable[[NpcId, SessionId], str | None]:
        """See `Recaps`."""
        return (await self.world_memory(campaign).refresh()).summary

    async def snapshot(self, campaign: CampaignId) -> WorldSnapshot:
        """Return the rows of a campaign's world. Raises: Unavailable: The database is away."""
        return (await self.world_memory(campaign).refresh()).snapshot()

    def earlier_sessions(self, campaign: CampaignId, npc: NpcId) -> Iterator[RecalledSummary]:
        """Return what an NPC may know of the summaries of sessions, the latest session first.

        Raises:
            Unavailable: They are not in memory.
        """
        world, index = self.world_memory(campaign).world, self.past_talk.transcript(campaign).index
        if world is None or index is None:
            raise Unavailable("earlier sessions are not in memory")
        began = index.session_starts()
        latest_first = sorted(began, key=began.__getitem__, reverse=True)
        texts = ((session, world.summary(npc, session)) for session in latest_first)
        return (RecalledSummary(session, text, began[session]) for session, text in texts if text is not None)

    async def read(self, campaign: CampaignId) -> None:
        """Bring a campaign's transcript and world in memory up to date.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        await asyncio.gather(self.past_talk.transcript(campaign).refresh(), self.world_memory(campaign).refresh())

    async def close(self) -> None:
        """Stop listening and reading. The database stays open."""
        await self.listener.close()
        await self.past_talk.close()
        for world in self._worlds.values():
            await world.reading.close()
        await self.meanings.close()


@asynccontextmanager
async def open_store(
    database: Database | EmbeddedPostgres | str,
    *,
    embedder: Embedder | None = None,
    recall: RecallSettings | None = None,
    auto_accept: float = AUTO_ACCEPT,
) -> AsyncIterator[Store]:
    """Open memory for the block.

    Connects at the first use, or with `await store.database.open()`.

    Args:
        database: It closes with the store. Of a server or a DSN: the database for the embedder's vectors.
        embedder, auto_accept: See `Store`.
    """
    if not isinstance(database, Database):
        dimensions, model = (384, None) if embedder is None else (embedder.dimensions, embedder.name)
        database = Database(database, embedding_dimensions=dimensions, embedding_model=model)
    store = Store(database, embedder=embedder, recall=recall, auto_accept=auto_accept)
    try:
        yield store
    finally:
        await store.close()
        await database.close()
