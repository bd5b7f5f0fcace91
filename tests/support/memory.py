"""In-memory answers to the memory ports, with switches for being late and being away. Real code, no mocks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.errors import NotFound, Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import (
    AUTO_ACCEPT,
    Fact,
    RecalledTalk,
    RecalledUtterance,
    Visibility,
    visibility_of,
)
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.recall.vectors import QuestionVectors, TextVectors
from glyphoxa.recall.world import World, WorldMemory
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.transcript.spool import Pending
from glyphoxa.transcript.spool_files import SpoolPosition
from glyphoxa.world.file_claims import state_of_file
from glyphoxa.world.state import WorldEntity, WorldState


class Weather:
    """Whether the store answers: `late` never does, `away` refuses."""

    def __init__(self) -> None:
        self.late = False
        self.away = False

    async def pass_through(self) -> None:
        if self.away:
            raise Unavailable("the database is away")
        if self.late:
            await asyncio.Event().wait()


class GraphTwin:
    """The stored entities and facts of a world, and whether their store answers."""

    def __init__(self, entities: Iterable[tuple[Entity, Visibility]], facts: Iterable[Fact] = ()) -> None:
        self.scoped = list(entities)
        self.of_world = list(facts)
        self.weather = Weather()

    @classmethod
    def of(cls, campaign: Campaign) -> GraphTwin:
        entities = [(entity, visibility_of(entity)) for entity in campaign.entities]
        return cls(entities, state_of_file(campaign, accept_at=AUTO_ACCEPT).facts.values())


class WorldTwin(WorldMemory):
    """The world of a graph as it was when it was read last.

    Attributes:
        n_reads: How often it was asked to read it.
    """

    def __init__(self, graph: GraphTwin) -> None:
        self._graph = graph
        self.world = None
        self.n_reads = 0
        self.meanings = TextVectors(None, QuestionVectors(None))

    async def refresh(self) -> World:
        self.n_reads += 1
        await self._graph.weather.pass_through()
        state = WorldState()
        scoped = self._graph.scoped
        entities = (WorldEntity(e.id, e.type, e.name, e.aliases, visibility) for e, visibility in scoped)
        state.load(entities=entities, facts=self._graph.of_world)
        self.world = World(state, now_ms=lambda: 0)
        self.meanings.learn(self.world.texts)
        return self.world


class SpoolTwin:
    """A spool that is no file.

    Attributes:
        is_full: Nothing more is taken.
        so_far: Notes of utterances that were still being said, in order.
    """

    def __init__(self) -> None:
        self.utterances: dict[UtteranceId, Utterance] = {}
        self.so_far: list[Utterance] = []
        self.is_full = False

    def append(self, utterance: Utterance) -> SpoolPosition:
        self._take()
        self.utterances.setdefault(utterance.id, utterance)
        return SpoolPosition(1, len(self.utterances))

    def note(self, utterance: Utterance) -> None:
        self._take()
        self.so_far.append(utterance)

    def shrink(self) -> None: ...

    def pending(self, after: SpoolPosition | None = None, *, limit: int | None = None) -> list[Pending]:
        first = after.offset if after is not None else 0
        places = enumerate(list(self.utterances.values())[first:], start=first + 1)
        return [Pending(said, SpoolPosition(1, place)) for place, said in places][:limit]

    def acknowledge(self, cursor: SpoolPosition) -> None: ...

    def latest(self, campaign: CampaignId, session: SessionId, *, limit: int) -> list[Utterance]:
        said = self.utterances.values()
        return [each for each in said if (each.campaign_id, each.session_id) == (campaign, session)][-limit:]

    def _take(self) -> None:
        if self.is_full:
            raise Unavailable("the disk is full")


class AtOnce(Executor):
    """A thread that is none: what is submitted is done at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class LogTwin:
    """The transcript log and recall by shared words."""

    def __init__(self) -> None:
        self._logged: dict[tuple[CampaignId, UtteranceId], Utterance] = {}
        self.turns: list[TurnRecord] = []
        self.weather = Weather()

    @property
    def utterances(self) -> dict[UtteranceId, Utterance]:
        """Return the utterances of all campaigns."""
        return {utterance.id: utterance for utterance in self._logged.values()}

    async def append(self, utterances: Sequence[Utterance]) -> None:
        await self.weather.pass_through()
        for utterance in utterances:
            self._logged.setdefault((utterance.campaign_id, utterance.id), utterance)

    def forget(self, utterance: Utterance) -> None:
        """Retract an utterance: nobody recalls it."""
        del self._logged[utterance.campaign_id, utterance.id]

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        await self.weather.pass_through()
        known = self._logged.get((utterance.campaign_id, utterance.id))
        if known is None:
            raise NotFound(f"no utterance {utterance.id!r}")
        if known.text != was.text or known.text == utterance.text:
            return False
        better = replace(known, text=utterance.text, corrections=utterance.corrections)
        self._logged[known.campaign_id, known.id] = better
        return True

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        await self.weather.pass_through()
        self.turns.append(turn)

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        await self.weather.pass_through()
        said = [u for u in self._of(campaign) if u.session_id == session and u.at_ms >= since_ms]
        return sorted(said, key=lambda u: u.at_ms)[-limit:]

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        return sum(session in (None, u.session_id) for u in self._of(campaign))

    def _of(self, campaign: CampaignId) -> list[Utterance]:
        return [utterance for utterance in self._logged.values() if utterance.campaign_id == campaign]

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> list[RecalledTalk]:
        await self.weather.pass_through()
        found = self._found(npc, query.text, query.exclude, sys.maxsize)
        return [one for one in found if query.admits(one.session_id, one.at_ms)][: query.limit]

    def recall_nowait(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        """Nothing is in memory."""
        return None

    def _found(self, npc: NpcId, question: str, exclude: Sequence[UtteranceId], limit: int) -> list[RecalledTalk]:
        asked = set(question.lower().strip("?.").split())
        found = [
            RecalledUtterance(
                *(u.id, u.session_id, u.speaker_id, u.speaker_name, u.text, u.at_ms),
                is_own=str(u.speaker_id) == npc,
                reason=f"witnessed in session {u.session_id}",
            )
            for u in self.utterances.values()
            if npc in u.witnesses and u.id not in exclude and asked & set(u.text.lower().strip(".").split())
        ]
        return found[:limit]
