"""Define the measured operations: queries of memory as the program makes them, for twelve NPCs and changing topics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from benchmarks.invented import Embeddings, InventedCampaign
from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.budgets import GET_SESSION_SUMMARY, QUERY_ENTITIES, SEARCH_FACTS, SEARCH_SESSIONS
from glyphoxa.domain.campaign import Entity, Npc
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import SessionId, SpeakerId, UtteranceId
from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.recall.world import World
from glyphoxa.transcript.journal import Journal
from glyphoxa.world.graph import Neighbourhood

Call: TypeAlias = Callable[[], Awaitable[int]]
"""Performs the operation once; returns how much it found."""
Prepare: TypeAlias = Callable[[int], Call]
"""Selects the arguments of the n-th call, different each time; this is not timed."""

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
MORE: Final = ("graph_rag_by_words",)
_TOOLS: Final = {
    "search_sessions": SEARCH_SESSIONS,
    "search_facts": SEARCH_FACTS,
    "query_entities": QUERY_ENTITIES,
    "get_session_summary": GET_SESSION_SUMMARY,
}


class Operations:
    """The operations that can be measured for one campaign, by name.

    Attributes:
        late: Parts of hot context that were left out as late, with their number.
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
        self.late: dict[str, int] = {}

    def by_name(self) -> Mapping[str, Prepare]:
        """Return all but `hot_context`."""
        return {name: partial(self._prepared, name) for name in (*REQUIRED, *MORE) if name != "hot_context"}

    def _of_world(self, ask: Callable[[World], Any], size: Callable[[Any], int] = len) -> Call:
        """Ask the world in memory, with all events so far, as tools and the desk do."""

        async def answer() -> Any:
            return ask(await self._store.world_memory(self._id).refresh())

        return _counted(answer, size)

    def _prepared(self, name: str, n: int) -> Call:
        rag, id_ = self._store.graph_rag, self._id
        npc = self._world.npcs[n % len(self._world.npcs)]
        match name:
            case "identity_snapshot":
                return self._of_world(
                    lambda world: world.identity(npc.id, npc.entity_id),
                    lambda found: 0 if found is None else len(found.known.relations) + len(found.secrets),
                )
            case "neighbours_1" | "neighbours_3":
                anyone, entity = self._dice.choice(self._world.npcs), self._spoken_of().id
                return self._of_world(lambda world: world.reach(anyone.id, entity, depth=int(name[-1]), limit=200))
            case "graph_rag":
                around, vector = Neighbourhood(self._spoken_of().id), self._vectors[n % len(self._vectors)]
                return _counted(lambda: rag.query_with_embedding(id_, npc.id, vector, around=around))
            case "graph_rag_by_words":
                around, question = Neighbourhood(self._spoken_of().id), self._question()
                return _counted(lambda: rag.query_with_context(id_, npc.id, question, around=around))
            case "append":
                said = self._said(n)
                return _counted(lambda: self._journal.keep(said), lambda _: 1)
            case _:
                tools, arguments = self._tools[npc.id], self._arguments(name, n)
                return _counted(lambda: tools.call(_TOOLS[name], arguments), lambda answer: len(answer["found"]))

    def _arguments(self, tool: str, n: int) -> dict[str, object]:
        """Return arguments for a tool of an NPC's model."""
        match tool:
            case "query_entities":
                return {"name": self._spoken_of().name}
            case "get_session_summary":
                return {"session": self._session()}
            case "search_facts" if n % 3 == 0:  # every third asks only for what was said after a certain day
                return {"query": self._question(), "after": "2024-01-01T00:00:00Z"}
            case _:
                return {"query": self._question()}

    def _said(self, n: int) -> Utterance:
        """Return an utterance to store; the database receives it meanwhile and embeds it, as at a table."""
        text = self._world.words.turn(self._dice).text
        at_ms = now_ms()
        return Utterance(
            id=UtteranceId(f"live-{at_ms}-{n}"),
            campaign_id=self._id,
            session_id=SessionId("live"),
            speaker_id=SpeakerId("merle"),
            speaker_name="Merle",
            text=text,
            raw_text=text,
            at_ms=at_ms,
            witnesses=frozenset(npc.id for npc in self._world.npcs[3:6]),
        )

    async def hot_context(self) -> Prepare:
        """Use the table's own assembly, without earlier partial transcripts."""
        memory = self._store.world_memory(self._id)
        scene = self._world.campaign.scenes[0]
        names = {npc: self._world.campaign.npc(npc).name for npc in scene.npcs}
        prefetch = Prefetch(
            KnownWorld(self._world.campaign, memory),
            talk=self._store.past_talk,
            present=lambda: names,
        )
        context = HotContexts(prefetch)
        await memory.refresh()
        await context.enter(scene)

        def prepare(n: int) -> Call:
            npc, question = scene.npcs[n % len(scene.npcs)], self._question()

            async def call() -> int:
                gathered = await context.gather(npc, question)
                for part in gathered.omitted:
                    self.late[part] = self.late.get(part, 0) + 1
                return len(gathered.facts) + len(gathered.remembered)

            return call

        return prepare

    def _tools_of(self, npc: Npc) -> Toolbox:
        memory = NpcMemory(self._id, npc.id, self._store.world_memory(self._id), self._store.past_talk)
        return Toolbox(memory, tier="DEEP")

    # -- topics

    def _spoken_of(self) -> Entity:
        return self._world.spoken_of(self._dice)

    def _question(self) -> str:
        return self._world.words.question(self._dice)

    def _session(self) -> SessionId:
        return self._world.session_id(self._dice.randrange(self._world.size.sessions))


def _counted(ask: Callable[[], Awaitable[Any]], size: Callable[[Any], int] = len) -> Call:
    async def call() -> int:
        return size(await ask())

    return call
