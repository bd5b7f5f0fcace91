"""What is measured: memory as the program asks it, in the names of twelve NPCs, each time about something else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from benchmarks.memory_figures import Call, Operation
from benchmarks.memory_vectors import Embeddings
from benchmarks.memory_world import InventedCampaign
from benchmarks.table_memory import memory_of
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.session_summaries import PostgresSessionSummaries
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.by_name import ByName
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.domain.campaign import Entity, Npc
from glyphoxa.domain.ids import SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.npc.budget import GET_SESSION_SUMMARY, QUERY_ENTITIES, SEARCH_FACTS, SEARCH_SESSIONS
from glyphoxa.npc.look_ups import MemoryOf
from glyphoxa.npc.tools import MemoryTools
from glyphoxa.transcript.journal import Journal
from glyphoxa.world.api import Neighbourhood, Walk

REQUIRED: Final = (
    "identity_snapshot",
    "neighbours_1",
    "neighbours_3",
    "graph_rag",
    "search_sessions",
    "search_facts",
    "query_entities",
    "get_session_summary",
    "hot_context",
    "append",
)
MORE: Final = (
    "round_trip",
    "graph_rag_by_words",
    "known",
    "visible_subgraph",
    "path",
    "recent",
)


class Operations:
    """Everything that can be measured of one campaign, by name.

    Attributes:
        late: Parts of hot context that were left out because they came too late, with how often.
    """

    def __init__(
        self, store: Store, measured: InventedCampaign, embeddings: Embeddings, *, journal: Journal, vectors: int
    ) -> None:
        self._store = store
        self._world = measured
        self._id = measured.id
        self._journal = journal
        self._dice = measured.dice("questions")
        self._vectors = embeddings.invented(vectors)
        self._tools = {npc.id: self._tools_of(npc) for npc in measured.npcs}
        self._rag = store.graph_rag
        self.late: dict[str, int] = {}

    def by_name(self) -> Mapping[str, Operation]:
        prepared: Sequence[tuple[str, Callable[[int], Call]]] = (
            ("identity_snapshot", self._identity_snapshot),
            ("neighbours_1", lambda _: self._neighbours(1)),
            ("neighbours_3", lambda _: self._neighbours(3)),
            ("graph_rag", self._graph_rag),
            ("search_sessions", lambda n: self._tool(n, SEARCH_SESSIONS, {"query": self._question()})),
            ("search_facts", self._search_facts),
            ("query_entities", lambda n: self._tool(n, QUERY_ENTITIES, {"name": self._spoken_of().name})),
            ("get_session_summary", lambda n: self._tool(n, GET_SESSION_SUMMARY, {"session": self._session()})),
            ("append", self._append),
            ("graph_rag_by_words", self._graph_rag_by_words),
            ("known", self._known),
            ("visible_subgraph", self._visible_subgraph),
            ("path", self._path),
            ("recent", self._recent),
            ("round_trip", self._round_trip),
        )
        return {name: Operation(name, prepare) for name, prepare in prepared}

    async def hot_context(self) -> Operation:
        """The table's own assembly. No partial transcripts came before."""
        memory = memory_of(self._store)
        scene = self._world.campaign.scenes[0]
        names = {npc: self._world.campaign.npc(npc).name for npc in scene.npcs}
        prefetch = Prefetch(
            self._id,
            by_name=ByName(self._world.campaign, memory),
            talk=memory,
            language=self._world.campaign.language,
            present=lambda: names,
            known_utterances=lambda _: (),
        )
        context = HotContextAssembly(
            self._world.campaign, graph=memory, talk=memory, prefetch=prefetch, known_utterances=lambda _: ()
        )
        await memory.refresh(self._id)
        await context.enter(scene)

        def prepare(n: int) -> Call:
            npc, question = scene.npcs[n % len(scene.npcs)], self._question()
            context.new_speech()

            async def call() -> int:
                gathered = await context.gather(npc, question)
                for part in gathered.omitted:
                    self.late[part] = self.late.get(part, 0) + 1
                return len(gathered.facts) + len(gathered.remembered)

            return call

        return Operation("hot_context", prepare)

    # -- the graph

    def _identity_snapshot(self, n: int) -> Call:
        npc = self._npc(n)

        async def call() -> int:
            snapshot = await self._store.graph.identity_snapshot(self._id, npc.id, npc.entity_id)
            return 0 if snapshot is None else len(snapshot.known.relations) + len(snapshot.secrets)

        return call

    def _neighbours(self, depth: int) -> Call:
        npc, entity = self._anyone(), self._spoken_of().id
        return _counted(lambda: self._store.graph.traverse(self._id, npc.id, entity, Walk(depth=depth)))

    def _known(self, n: int) -> Call:
        npc, entity = self._npc(n), self._spoken_of().id

        async def call() -> int:
            known = await self._store.graph.known(self._id, npc.id, entity)
            return 0 if known is None else 1 + len(known.relations)

        return call

    def _visible_subgraph(self, n: int) -> Call:
        npc = self._npc(n)

        async def call() -> int:
            return len((await self._store.graph.visible_subgraph(self._id, npc.id, npc.entity_id)).reached)

        return call

    def _path(self, n: int) -> Call:
        npc, source, target = self._npc(n), self._spoken_of().id, self._spoken_of().id

        async def call() -> int:
            return len(await self._store.graph.path(self._id, npc.id, source, target) or ())

        return call

    def _graph_rag(self, n: int) -> Call:
        npc, around = self._npc(n), self._spoken_of().id
        embedding = self._vectors[n % len(self._vectors)]
        rag = self._rag
        return _counted(lambda: rag.query_with_embedding(self._id, npc.id, embedding, around=Neighbourhood(around)))

    def _graph_rag_by_words(self, n: int) -> Call:
        npc, around, question = self._npc(n), self._spoken_of().id, self._question()
        rag = self._rag
        return _counted(lambda: rag.query_with_context(self._id, npc.id, question, around=Neighbourhood(around)))

    # -- what an NPC's model may look up

    def _tools_of(self, npc: Npc) -> MemoryTools:
        summaries = PostgresSessionSummaries(self._store.database)
        memory = MemoryOf(self._id, npc.id, self._store.graph, self._store.past_talk, summaries)
        return MemoryTools(memory, tier="DEEP")

    def _tool(self, n: int, name: str, arguments: Mapping[str, object]) -> Call:
        tools = self._tools[self._npc(n).id]

        async def call() -> int:
            found = (await tools.call(name, arguments))["found"]
            assert isinstance(found, list)
            return len(found)

        return call

    def _search_facts(self, n: int) -> Call:
        """Every third asks only for what was said after a certain day."""
        arguments = {"query": self._question()}
        if n % 3 == 0:
            arguments["after"] = "2024-01-01T00:00:00Z"
        return self._tool(n, SEARCH_FACTS, arguments)

    # -- the log

    def _append(self, n: int) -> Call:
        """Until it is on disk; the database takes it meanwhile, and new talk is embedded, as at a table."""
        session = SessionId("live")
        text = self._world.words.turn(self._dice).text
        at_ms = now_ms()
        said = Utterance(
            id=UtteranceId(f"live-{at_ms}-{n}"),
            campaign_id=self._id,
            session_id=session,
            speaker_id=SpeakerId("merle"),
            speaker_name="Merle",
            text=text,
            raw_text=text,
            at_ms=at_ms,
            witnesses=frozenset(npc.id for npc in self._world.npcs[3:6]),
        )

        async def call() -> int:
            await self._journal.keep(said)
            return 1

        return call

    def _recent(self, _: int) -> Call:
        session = self._session()
        return _counted(lambda: self._store.log.recent(self._id, session, since_ms=0))

    def _round_trip(self, _: int) -> Call:
        """What any question costs here and now, however little it asks."""

        async def call() -> int:
            async with self._store.database.use(self._id) as connection:
                return int(await connection.fetchval("SELECT 1"))

        return call

    # -- about what

    def _npc(self, n: int) -> Npc:
        return self._world.npcs[n % len(self._world.npcs)]

    def _anyone(self) -> Npc:
        return self._dice.choice(self._world.npcs)

    def _spoken_of(self) -> Entity:
        return self._world.spoken_of(self._dice)

    def _question(self) -> str:
        return self._world.words.question(self._dice)

    def _session(self) -> SessionId:
        return self._world.session_id(self._dice.randrange(self._world.size.sessions))


def _counted(ask: Callable[[], Awaitable[Sequence[object]]]) -> Call:
    async def call() -> int:
        return len(await ask())

    return call
