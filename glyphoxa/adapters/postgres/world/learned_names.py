"""Learned names: each step in the history of a wrong form is an event of the world (`FormHeard`)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import asyncpg

from glyphoxa.adapters.postgres.server.database import CampaignStatements, Database
from glyphoxa.adapters.postgres.server.listen import NAMES, Listener
from glyphoxa.adapters.postgres.server.sql import lookup_key
from glyphoxa.adapters.postgres.world.event_log import WorldLog, event_of_row
from glyphoxa.adapters.postgres.world.transaction import WorldTransaction, world_transaction
from glyphoxa.adapters.postgres.world.world import commit
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import NEVER
from glyphoxa.language.words import fold, words
from glyphoxa.names.followed import NamesChanged
from glyphoxa.names.gazetteer import Entry
from glyphoxa.names.wrong_forms import (
    DECISIONS,
    MAX_UTTERANCES,
    Happened,
    LearnedName,
    PairStatus,
    Step,
    Uses,
    as_heard,
    changes_something,
    is_only_counted,
    statuses,
)
from glyphoxa.world.encoding import encode
from glyphoxa.world.entity_events import FormHeard
from glyphoxa.world.events import Cause, Undone, WorldEvent, dropped

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


_DEADLINE_MS = 10_000


class _Forms(CampaignStatements):
    """The wrong forms of one campaign, on a connection."""

    file = "world/learned_names"

    def __init__(self, connection: Connection, campaign: CampaignId) -> None:
        super().__init__(connection, campaign)
        self.log = WorldLog(connection, campaign)

    async def entities(self, only: Sequence[EntityId] | None) -> list[asyncpg.Record]:
        return await self._fetch("entries", only)

    async def steps(
        self, heard: str | None = None, entities: Sequence[EntityId] | None = None
    ) -> list[tuple[str, Happened]]:
        """All steps with the key of their form, in order: of all forms, of one, or of those linked to these entities.

        Args:
            heard: The key of a form.
        """
        rows = await self._fetch("steps", heard, entities)
        return [_happened(event_of_row(self._campaign, row)) for row in rows]

    async def histories(
        self, heard: str | None = None, entities: Sequence[EntityId] | None = None
    ) -> dict[str, list[Happened]]:
        """The remaining steps of each form, by its key. Arguments as for `steps`."""
        gone = dropped(await self.log.undoing())
        forms: dict[str, list[Happened]] = {}
        for key, happened in await self.steps(heard, entities):
            if happened.step.id not in gone:
                forms.setdefault(key, []).append(happened)
        return forms

    async def pairs(self, heard: str | None = None, entities: Sequence[EntityId] | None = None) -> list[LearnedName]:
        """See `LearnedNames.statuses`. Arguments as for `steps`."""
        again = {(row["heard"], row["entity_id"]): row for row in await self._fetch("counts", heard)}
        found: list[tuple[str, LearnedName]] = []
        for form, history in (await self.histories(heard, entities)).items():
            spelled = {happened.step.entity_id: happened.heard for happened in history}
            why = dict.fromkeys(f"{one.step.by}: {one.step.why}" for one in reversed(history) if one.step.why)
            for entity, status in statuses([happened.step for happened in history]).items():
                more = again.get((form, entity))
                whole = status if more is None else status.heard_again(more["n"], more["utterances"])
                found.append((form, LearnedName(spelled[entity], entity, None, whole, tuple(why))))
        names = await self.names({pair.entity_id for _, pair in found})
        found.sort(key=lambda each: (-each[1].status.count, each[0], each[1].entity_id))
        return [replace(pair, name=names.get(pair.entity_id)) for _, pair in found]

    async def names(self, entities: Collection[EntityId]) -> dict[EntityId, str]:
        return {EntityId(row["id"]): row["name"] for row in await self._fetch("names", sorted(entities))}

    async def cause(self, step: Step) -> Cause | None:
        """The cause of a new step; None for evidence from an utterance that is retracted or was corrected."""
        if step.kind in DECISIONS or step.utterance is None:
            return Cause("dm" if step.kind in DECISIONS else "talk", step.at_ms)
        place = next(iter(await self._fetch("place", step.utterance)), None)
        if place is None:
            return Cause("talk", step.at_ms, utterance_id=step.utterance)
        if place["is_changed"]:
            return None
        return Cause("talk", step.at_ms, SessionId(place["session_id"]), place["ordinal"], step.utterance)

    async def heard_again(self, heard: str, step: Step) -> None:
        await self._fetch("heard_again", heard, step.entity_id, step.utterance, MAX_UTTERANCES)

    async def uses(self, plain: str, pattern: str, exclude: Collection[UtteranceId]) -> Uses:
        ((written,),) = await self._fetch("uses_written", pattern)
        ((spoken,),) = await self._fetch("uses_spoken", plain, pattern, list(exclude))
        return Uses(written, spoken)


class PostgresLearnedNames:
    """Implements `LearnedNames`, with deadlines of 10 s."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        only = None if entities is None else sorted(entities)
        async with self._reading(campaign) as forms:
            rows, pairs = await forms.entities(only), await forms.pairs(entities=only)
        learned: dict[str, list[str]] = {}
        for pair in pairs:
            if pair.status.state == "active":
                learned.setdefault(pair.entity_id, []).append(pair.heard)
        return [
            Entry(
                row["name"],
                EntityId(row["id"]),
                row["type"],
                tuple(row["aliases"]),
                () if row["is_merged"] else tuple(learned.get(row["id"], ())),
                row["is_public"],
            )
            for row in rows
        ]

    async def statuses(self, campaign: CampaignId, heard: str | None = None) -> list[LearnedName]:
        async with self._reading(campaign) as forms:
            return await forms.pairs(None if heard is None else _key(heard))

    async def record(self, campaign: CampaignId, heard: str, step: Step) -> LearnedName:
        key = _key(heard)
        async with self._writing(campaign) as (world, forms):
            history = [happened.step for happened in (await forms.histories(key)).get(key, ())]
            cause = await forms.cause(step)
            if cause is not None and changes_something(history, step):
                [recorded] = await commit(world, [_event(key, heard, step)], cause, accept_at=NEVER)
                if _active(history) != _active([*history, step]):
                    await world.log.names_changed([recorded.seq])
            elif cause is not None and is_only_counted(history, step):
                await forms.heard_again(key, step)
            listed = await forms.pairs(key)
        found = [each for each in listed if each.entity_id == step.entity_id]
        # Evidence against a pair that nobody proposed leaves no trace.
        return found[0] if found else LearnedName(as_heard(heard), step.entity_id, None, PairStatus("undone", 0, ()))

    async def undo(self, campaign: CampaignId, *, at_ms: int, heard: str | None = None) -> Happened | None:
        async with self._writing(campaign) as (world, forms):
            histories = await forms.histories(None if heard is None else _key(heard))
            decisions = [each for history in histories.values() for each in history if each.step.kind in DECISIONS]
            if not decisions:
                return None
            last = max(decisions, key=lambda each: each.step.id)
            # No entity or fact follows from a step, so that nothing else has to be replayed.
            head = await world.log.head()
            await world.log.append([encode(Undone(last.step.id))], Cause("dm", at_ms), after=head.seq)
            await world.log.names_changed([last.step.id])
            names = await forms.names([last.step.entity_id])
        return replace(last, name=names.get(last.step.entity_id))

    async def history(self, campaign: CampaignId, *, heard: str | None = None, limit: int = 50) -> list[Happened]:
        """Return the history, latest first."""
        async with self._reading(campaign) as forms:
            found = await forms.steps(None if heard is None else _key(heard))
            steps = {happened.step.id: happened for _, happened in found}
            for recorded in await forms.log.undoing():
                if isinstance(recorded.event, Undone) and (undone := steps.get(recorded.event.event)) is not None:
                    step = Step("undone", undone.step.entity_id, "dm", "", recorded.cause.at_ms, recorded.seq)
                    steps[recorded.seq] = replace(undone, step=step)
            latest = [steps[number] for number in sorted(steps, reverse=True)[:limit]]
            names = await forms.names({happened.step.entity_id for happened in latest})
        return [replace(happened, name=names.get(happened.step.entity_id)) for happened in latest]

    async def uses(self, campaign: CampaignId, heard: str, *, exclude: Collection[UtteranceId] = ()) -> Uses:
        plain = as_heard(heard)
        pattern = r"\m" + r"(?:\W|\\n)+".join(_pattern(word.text + word.tail) for word in words(plain)) + r"\M"
        async with self._reading(campaign) as forms:
            return await forms.uses(plain, pattern, exclude)

    @asynccontextmanager
    async def _reading(self, campaign: CampaignId) -> AsyncIterator[_Forms]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            yield _Forms(connection, campaign)

    @asynccontextmanager
    async def _writing(self, campaign: CampaignId) -> AsyncIterator[tuple[WorldTransaction, _Forms]]:
        async with world_transaction(self._database, campaign, deadline_ms=_DEADLINE_MS) as world:
            await world.lock_campaign()
            yield world, _Forms(world.connection, campaign)


def _key(heard: str) -> str:
    """The comparison key of a form, as in the gazetteer."""
    return fold(as_heard(heard))


def _pattern(word: str) -> str:
    return re.sub("['’]", "['’]", re.escape(word))


def _active(history: Sequence[Step]) -> set[EntityId]:
    return {entity for entity, status in statuses(history).items() if status.state == "active"}


def _event(key: str, heard: str, step: Step) -> FormHeard:
    why = lookup_key(step.why)
    return FormHeard(key, as_heard(heard), step.entity_id, step.kind, step.by, why, step.utterance, step.is_ordinary)


def _happened(recorded: WorldEvent) -> tuple[str, Happened]:
    event = recorded.event
    if not isinstance(event, FormHeard):
        raise TypeError(f"event {recorded.seq} is no step of a wrong form")
    by, at_ms = event.by, recorded.cause.at_ms
    step = Step(event.kind, event.entity, by, event.why, at_ms, recorded.seq, event.utterance, event.is_ordinary)
    return event.heard, Happened(event.as_heard, None, step)


async def name_changes(listener: Listener, campaign: CampaignId) -> AsyncGenerator[NamesChanged, None]:
    """Yield the changes to a campaign's names from now on, whoever makes them. See `Listener.follow`."""
    async with aclosing(listener.follow(NAMES, campaign)) as notified:
        async for changed in notified:
            yield NamesChanged(None if changed is None else frozenset(EntityId(each) for each in changed))
