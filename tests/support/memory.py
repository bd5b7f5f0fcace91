"""In-memory answers to the memory ports, with switches for being late and being away. Real code, no mocks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from glyphoxa.domain.campaign import Campaign, Entity, Relationship
from glyphoxa.domain.errors import NotFound, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.turn import Recalled, TurnRecord
from glyphoxa.domain.utterance import Utterance


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
    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.weather = Weather()

    async def load(self, campaign: Campaign) -> None:
        self.campaign = campaign

    async def entities(self, campaign: CampaignId, *, of_type: str | None = None) -> list[Entity]:
        await self.weather.pass_through()
        return [entity for entity in self.campaign.entities if of_type in (None, entity.type)]

    async def neighbourhood(
        self, campaign: CampaignId, entity: EntityId
    ) -> tuple[Entity | None, list[tuple[Relationship, Entity]]]:
        await self.weather.pass_through()
        edges = [
            (edge, self.campaign.entity(edge.target if edge.source == entity else edge.source))
            for edge in self.campaign.relationships
            if entity in (edge.source, edge.target)
        ]
        found = next((e for e in self.campaign.entities if e.id == entity), None)
        return found, edges if found else []


class LogTwin:
    """The transcript log and recall by shared words."""

    def __init__(self) -> None:
        self.utterances: dict[UtteranceId, Utterance] = {}
        self.turns: list[TurnRecord] = []
        self.weather = Weather()

    async def append(self, utterances: Sequence[Utterance]) -> None:
        await self.weather.pass_through()
        for utterance in utterances:
            self.utterances.setdefault(utterance.id, utterance)

    async def keep(self, utterance: Utterance) -> None:
        await self.append([utterance])

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        await self.weather.pass_through()
        if utterance.id not in self.utterances:
            raise NotFound(f"no utterance {utterance.id!r}")
        known = self.utterances[utterance.id]
        if known.text != was.text or known.text == utterance.text:
            return False
        self.utterances[utterance.id] = replace(known, text=utterance.text, corrections=utterance.corrections)
        return True

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        await self.weather.pass_through()
        self.turns.append(turn)

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        await self.weather.pass_through()
        said = [u for u in self.utterances.values() if u.session_id == session and u.at_ms >= since_ms]
        return sorted(said, key=lambda u: u.at_ms)[-limit:]

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        return sum(session in (None, u.session_id) for u in self.utterances.values())

    async def recall(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
    ) -> list[Recalled]:
        await self.weather.pass_through()
        asked = set(question.lower().strip("?.").split())
        found = [
            Recalled(
                text=f"{u.speaker_name} said: {u.text}",
                source="said",
                session_id=u.session_id,
                utterance_id=u.id,
                reason="witnessed",
                speaker_id=u.speaker_id,
            )
            for u in self.utterances.values()
            if npc in u.witnesses and u.id not in exclude and asked & set(u.text.lower().strip(".").split())
        ]
        return found[:limit]
