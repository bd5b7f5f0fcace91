"""PrecisionMemBench over the path of a turn: a campaign in the database, and what stands in a prompt in the end.

As a DM would have it: what is believed is an entity, known by its names to the NPCs whose scopes it counts in, with
what is believed as its description; what is pinned is a relation of the NPC's own, and so in every prompt of it; what
was superseded or resolved is a fact that has ended; a relation is an event, in which others took part. Who asks in
certain scopes asks an NPC that knows what counts there. The question goes the way of what is typed at a table: names
put right, looked up while it is spoken, then assembled.

Given is what stands in the prompt: pinned where the identity tells it, called for where a fact of it is told beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter_ns
from typing import Final

from benchmarks.precision_cases import EVERYWHERE, Belief, Case
from benchmarks.precision_gate import Given
from benchmarks.table_memory import memory_of
from glyphoxa.adapters.postgres.names.changes import NameChanges
from glyphoxa.adapters.postgres.names.learned import PostgresLearnedNames
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.budgets import Budgets
from glyphoxa.context.by_name import ByName
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.domain.campaign import Campaign, Entity, Npc, Scene
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, PlayerId, SceneId, SpeakerId
from glyphoxa.domain.knowledge import HIDDEN, Claim, Knower, Visibility
from glyphoxa.domain.recalled import RecalledFact
from glyphoxa.names.table_names import NamesOfGraph, TableNames
from glyphoxa.recall.entities.gate import CalledFor, Named
from glyphoxa.world.api import AliasAdded, Cause, EntityAdded, Event, FactClosed, FactStated

_CAMPAIGN: Final = CampaignId("precision")
_ROOM: Final = EntityId("the-room")
_PLAYER: Final = PlayerId("who-asks")
_PATIENCE_MS: Final = 10_000
_EVERYTHING: Final = 100_000
"""Tokens: what counts here is what is found, not how much of it fits."""
_PINNED: Final = "KEEPS_TO"
_QUESTION: Final = "WONDERS_ABOUT"
_NAMES: Final = ("Oswynd", "Brannoch", "Ysaveth", "Quillorn", "Vexmere", "Thadrug", "Zephrune", "Ulgrith", "Wrenhallow")
"""Of the NPCs: like nothing that is asked about."""


class Live:
    """The table. `open` before, `close` after."""

    def __init__(self, beliefs: Sequence[Belief], cases: Sequence[Case], beside: Iterable[Named] = ()) -> None:
        asked = {(case.user, case.scopes - {EVERYWHERE}) for case in cases}
        whose = sorted(asked, key=lambda each: (each[0], sorted(each[1])))
        self._npcs = {each: NpcId(f"npc-{n}") for n, each in enumerate(whose)}
        self._beliefs = {belief.item.id: belief for belief in beliefs}
        self._of_fact: dict[FactId, str] = {}
        self._beside = list(beside)
        self._stack = AsyncExitStack()
        self._campaign = _campaign(list(self._npcs.values()))
        self.times_ms: list[float] = []

    async def open(self, directory: Path) -> None:
        """
        Args:
            directory: Empty; the database lies in it.
        """
        store = self._store = await self._stack.enter_async_context(open_store(None, data_dir=directory))
        await store.database.open()
        await store.campaigns.load(self._campaign)
        named = [EntityAdded(EntityId(each.id), each.kind, each.names[0], each.names[1:]) for each in self._beside]
        await self._commit(named)
        await self._commit([event for belief in self._beliefs.values() for event in self._entity(belief)])
        await self._commit([event for belief in self._beliefs.values() for event in self._facts(belief)])
        await self._commit([event for belief in self._beliefs.values() for event in self._ends(belief)])
        self._memory = memory_of(store)
        self._names = TableNames(
            self._campaign,
            now_ms=lambda: 0,
            graph=NamesOfGraph(PostgresLearnedNames(store.database), NameChanges(store.listener)),
        )
        await self._names.open()
        self._prefetch = Prefetch(
            _CAMPAIGN,
            by_name=ByName(self._campaign, self._memory),
            talk=None,
            language=self._campaign.language,
            present=dict,
            known_utterances=lambda _: (),
        )
        self._stack.push_async_callback(self._prefetch.close)

    async def close(self) -> None:
        await self._stack.aclose()

    async def learn(self, beliefs: Sequence[Belief], renamed: Mapping[str, tuple[str, ...]]) -> None:
        """The DM adds to the campaign while the table is open."""
        for belief in beliefs:
            self._beliefs[belief.item.id] = belief
        await self._commit([event for belief in beliefs for event in self._entity(belief)])
        await self._commit([event for belief in beliefs for event in self._facts(belief)])
        await self._commit([AliasAdded(EntityId(each), alias) for each, names in renamed.items() for alias in names])
        await self._names.open()

    async def ask(self, case: Case) -> Given:
        npc = self._npcs[case.user, case.scopes - {EVERYWHERE}]
        identity = (await self._context(_EVERYTHING).gather(npc, "")).identity
        told = [
            (each.item, each.pinned)
            for each in self._beliefs.values()
            if each.pinned is not None and any(each.text in s for s in identity)
        ]
        pinned = tuple(item for item, pin in told if not pin.is_question)[: case.limit]
        context = self._context(case.limit - len(pinned))
        began = perf_counter_ns()
        question = self._names.correct(case.question).text
        self._prefetch.forget(_PLAYER)
        context.new_speech()
        hot = await context.gather(npc, question)
        self.times_ms.append((perf_counter_ns() - began) / 1e6)
        called = dict.fromkeys(self._of_fact[fact.fact_id] for fact in hot.recalled if isinstance(fact, RecalledFact))
        return Given(
            pinned,
            tuple(item for item, pin in told if pin.is_question),
            tuple(CalledFor(self._beliefs[each].item, "told") for each in called),
        )

    def _context(self, room: int) -> HotContextAssembly:
        return HotContextAssembly(
            self._campaign,
            graph=self._memory,
            talk=None,
            prefetch=self._prefetch,
            known_utterances=lambda _: (),
            budgets=Budgets(
                identity_tokens=_EVERYTHING,
                facts_tokens=_EVERYTHING,
                max_facts=room,
                part_deadline_ms=_PATIENCE_MS,
                recall_deadline_ms=_PATIENCE_MS,
            ),
        )

    async def _commit(self, events: Sequence[Event]) -> None:
        if events:
            await self._store.world.commit(_CAMPAIGN, events, Cause("dm", 0))

    def _entity(self, belief: Belief) -> list[Event]:
        item = belief.item
        kind = {"entity": "concept", "relation": "event"}.get(item.kind, item.kind)
        return [EntityAdded(EntityId(item.id), kind, item.names[0], item.names[1:], self._visibility(belief))]

    def _facts(self, belief: Belief) -> list[Event]:
        item, entity = belief.item, EntityId(belief.item.id)
        if belief.pinned is None:
            claim = Claim.attribute(entity, "description", belief.text)
            took_part = [Claim.relation(EntityId(each), "PARTICIPATED_IN", entity) for each in item.participants]
            self._of_fact |= {each.fact_id: item.id for each in (claim, *took_part)}
            return [FactStated(each) for each in (claim, *took_part)]
        predicate = _QUESTION if belief.pinned.is_question else _PINNED
        stated: list[Event] = []
        for npc in self._knowers(belief):
            claim = Claim.relation(EntityId(npc), predicate, entity)
            self._of_fact[claim.fact_id] = item.id
            stated.append(FactStated(claim, visibility=_told([npc]), attributes={"description": belief.text}))
        return stated

    def _ends(self, belief: Belief) -> list[Event]:
        if not belief.item.has_ended:
            return []
        return [FactClosed(fact) for fact, of in self._of_fact.items() if of == belief.item.id]

    def _knowers(self, belief: Belief) -> list[NpcId]:
        return [
            npc
            for (user, scopes), npc in self._npcs.items()
            if user == belief.user and not belief.scopes.isdisjoint(scopes)
        ]

    def _visibility(self, belief: Belief) -> Visibility:
        knowers = self._knowers(belief)
        return _told(knowers) if knowers else HIDDEN


def _told(npcs: Iterable[NpcId]) -> Visibility:
    return Visibility.of("told", (Knower(npc, "told", SpeakerId("dm")) for npc in npcs))


def _campaign(npcs: Sequence[NpcId]) -> Campaign:
    named = dict(zip(npcs, _NAMES, strict=False))
    return Campaign(
        id=_CAMPAIGN,
        name="Precision",
        language="en",
        entities=(
            Entity(_ROOM, "location", "Quobrithane"),
            *(Entity(EntityId(npc), "npc", name) for npc, name in named.items()),
        ),
        relationships=(),
        npcs=tuple(Npc(npc, EntityId(npc), name, persona="You are asked.") for npc, name in named.items()),
        players=(),
        scenes=(Scene(SceneId("room"), _ROOM, tuple(npcs)),),
    )
