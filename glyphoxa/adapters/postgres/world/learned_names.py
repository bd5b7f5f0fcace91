"""Learned names: each step in the history of a wrong form is an event of the world (`FormHeard`)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import asyncpg
from pydantic import TypeAdapter

from glyphoxa.actors.limits import offload
from glyphoxa.adapters.postgres.server.database import CampaignStatements, Database
from glyphoxa.adapters.postgres.server.sql import at_ms, lookup_key
from glyphoxa.adapters.postgres.world.event_log import WorldLog
from glyphoxa.adapters.postgres.world.transaction import WorldTransaction, world_transaction
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, UtteranceId
from glyphoxa.language.words import words
from glyphoxa.names.naming import Entry
from glyphoxa.names.wrong_forms import (
    DECISIONS,
    MAX_UTTERANCES,
    FormHeard,
    Happened,
    LearnedName,
    Uses,
    active,
    as_heard,
    effect_of,
    form_of,
    statuses,
)
from glyphoxa.world.event_log import Cause, Undone, dropped

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


_DEADLINE_MS = 10_000
_form: Final = TypeAdapter(FormHeard)


class _Forms(CampaignStatements):
    """Wrong forms of one campaign, on a connection.

    Args:
        heard: Only this form.
        entities: Only forms linked to these.
    """

    file = "world/learned_names"

    def __init__(
        self,
        connection: Connection,
        campaign: CampaignId,
        heard: str | None = None,
        entities: Collection[EntityId] | None = None,
    ) -> None:
        super().__init__(connection, campaign)
        self.log = WorldLog(connection, campaign)
        # Forms are compared as in the gazetteer.
        self.key = None if heard is None else form_of(heard)[0]
        self._entities = None if entities is None else sorted(entities)

    async def steps(self) -> list[Happened]:
        """All steps, in order."""
        rows = await self._fetch("steps", self.key, self._entities)
        return await offload(lambda: list(map(_happened, rows)), amount=len(rows))

    async def histories(self) -> dict[str, list[Happened]]:
        """The remaining steps of each form, by its key."""
        gone = dropped(await self.log.undoing())
        forms: dict[str, list[Happened]] = {}
        for happened in await self.steps():
            if happened.seq not in gone:
                forms.setdefault(happened.step.heard, []).append(happened)
        return forms

    async def pairs(self) -> list[LearnedName]:
        """See `LearnedNames.statuses`."""
        counts = {(row["heard"], row["entity_id"]): row for row in await self._fetch("counts", self.key)}
        histories = await self.histories()
        n_steps = sum(map(len, histories.values()))
        return await offload(lambda: _pairs(histories, counts), amount=n_steps)

    async def entries(self) -> list[Entry]:
        """See `LearnedNames.entries`."""
        learned: dict[str, list[str]] = {}
        for pair in await self.pairs():
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
            for row in await self._fetch("entries", self._entities)
        ]

    async def cause(self, step: FormHeard, at_ms: int) -> Cause | None:
        """The cause of a new step; None for evidence from an utterance that is retracted or was corrected."""
        if step.kind in DECISIONS:
            return Cause("dm", at_ms)
        for place in await self._fetch("place", step.utterance):
            where = SessionId(place["session_id"]), place["ordinal"], step.utterance
            return None if place["is_changed"] else Cause("talk", at_ms, *where)
        return Cause("talk", at_ms, utterance_id=step.utterance)

    async def count(self, step: FormHeard) -> None:
        """Count another utterance with the form."""
        await self._fetch("heard_again", step.heard, step.entity, step.utterance, MAX_UTTERANCES)

    async def uses(self, plain: str, meant_in: UtteranceId | None) -> Uses:
        """See `LearnedNames.uses`."""
        meant = {utterance for pair in await self.pairs() for utterance in pair.status.utterances}
        meant |= set() if meant_in is None else {meant_in}
        pattern = r"\m" + r"(?:\W|\\n)+".join(_pattern(word.text + word.tail) for word in words(plain)) + r"\M"
        ((written,),) = await self._fetch("uses_written", pattern)
        ((spoken,),) = await self._fetch("uses_spoken", plain, pattern, list(meant))
        return Uses(written, spoken, len(meant))


class PostgresLearnedNames:
    """Implements `LearnedNames`. Each call has a deadline of 10 s."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        async with self._reading(campaign, entities=entities) as forms:
            return await forms.entries()

    async def statuses(self, campaign: CampaignId) -> list[LearnedName]:
        async with self._reading(campaign) as forms:
            return await forms.pairs()

    async def record(self, campaign: CampaignId, step: FormHeard, *, at_ms: int) -> None:
        step = replace(step, why=lookup_key(step.why))
        async with self._writing(campaign, step.as_heard) as (world, forms):
            cause = await forms.cause(step, at_ms)
            if cause is None:
                return
            history = [each.step for each in (await forms.histories()).get(step.heard, ())]
            effect = effect_of(history, step)
            if effect == "added":
                # No entity or fact follows from a step, so no table changes.
                [added] = await world.log.add([step], cause)
                if active(history) != active([*history, step]):
                    await world.log.names_changed([added.seq])
            elif effect == "counted":
                await forms.count(step)

    async def undo(self, campaign: CampaignId, *, at_ms: int, heard: str | None = None) -> Happened | None:
        async with self._writing(campaign, heard) as (world, forms):
            left = [each for form in (await forms.histories()).values() for each in form]
            decisions = [each for each in left if each.step.kind in DECISIONS]
            last = max(decisions, key=lambda each: each.seq, default=None)
            if last is not None:
                await world.log.add([Undone(last.seq)], Cause("dm", at_ms))
                await world.log.names_changed([last.seq])
        return last

    async def history(self, campaign: CampaignId, *, heard: str | None = None, limit: int = 50) -> list[Happened]:
        async with self._reading(campaign, heard) as forms:
            steps = {happened.seq: happened for happened in await forms.steps()}
            undoing = await forms.log.undoing()
        for recorded in undoing:
            if isinstance(recorded.event, Undone) and (undone := steps.get(recorded.event.event)) is not None:
                step = replace(undone.step, kind="undone", by="dm", why="", utterance=None)
                steps[recorded.seq] = Happened(recorded.seq, recorded.cause.at_ms, undone.name, step)
        return [steps[number] for number in sorted(steps, reverse=True)[:limit]]

    async def uses(self, campaign: CampaignId, heard: str, *, meant_in: UtteranceId | None = None) -> Uses:
        async with self._reading(campaign, heard) as forms:
            return await forms.uses(as_heard(heard), meant_in)

    @asynccontextmanager
    async def _reading(
        self, campaign: CampaignId, heard: str | None = None, entities: Collection[EntityId] | None = None
    ) -> AsyncIterator[_Forms]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            yield _Forms(connection, campaign, heard, entities)

    @asynccontextmanager
    async def _writing(self, campaign: CampaignId, heard: str | None) -> AsyncIterator[tuple[WorldTransaction, _Forms]]:
        async with world_transaction(self._database, campaign, deadline_ms=_DEADLINE_MS) as world:
            await world.lock_campaign()
            yield world, _Forms(world.connection, campaign, heard)


def _pairs(
    histories: Mapping[str, Sequence[Happened]], counts: Mapping[tuple[str, str], asyncpg.Record]
) -> list[LearnedName]:
    found: list[tuple[str, LearnedName]] = []
    for key, history in histories.items():
        last = {happened.step.entity: happened for happened in history}
        why = dict.fromkeys(f"{one.step.by}: {one.step.why}" for one in reversed(history) if one.step.why)
        for entity, status in statuses([happened.step for happened in history]).items():
            more = counts.get((key, entity))
            whole = status if more is None else status.heard_again(more["n"], more["utterances"])
            found.append((key, LearnedName(last[entity].step.as_heard, entity, last[entity].name, whole, tuple(why))))
    found.sort(key=lambda each: (-each[1].status.count, each[0], each[1].entity_id))
    return [pair for _, pair in found]


def _pattern(word: str) -> str:
    return re.sub("['’]", "['’]", re.escape(word))


def _happened(row: asyncpg.Record) -> Happened:
    return Happened(row["seq"], at_ms(row["at"]), row["name"], _form.validate_python(row["payload"]))
