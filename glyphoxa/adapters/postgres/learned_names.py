from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import asyncpg

from glyphoxa.adapters.postgres.server.database import CampaignQueries
from glyphoxa.adapters.postgres.server.listen import NAMES, Listener
from glyphoxa.adapters.postgres.server.sql import at_ms, lookup_key, timestamp
from glyphoxa.domain.ids import CampaignId, EntityId, UtteranceId
from glyphoxa.language.words import fold, words
from glyphoxa.names.followed import NamesChanged
from glyphoxa.names.gazetteer import Entry
from glyphoxa.names.wrong_forms import (
    MAX_UTTERANCES,
    Happened,
    LearnedName,
    PairStatus,
    Step,
    Uses,
    as_heard,
    changes_something,
    is_only_counted,
    latest_decision,
    statuses,
)

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


_ALL_DEADLINE_MS = 10_000


class PostgresLearnedNames(CampaignQueries):
    """Implements `LearnedNames`. A step has a deadline of 1 s, reading the whole campaign one of 10 s."""

    file = "learned_names"

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        only = None if entities is None else sorted(entities)
        async with self._database.use(campaign, deadline_ms=_ALL_DEADLINE_MS) as connection:
            rows = await connection.fetch(self._sql["entries"], campaign, only)
        return [
            Entry(
                row["name"],
                EntityId(row["id"]),
                row["type"],
                tuple(row["aliases"]),
                tuple(row["learned"]),
                row["is_public"],
            )
            for row in rows
        ]

    async def statuses(self, campaign: CampaignId, heard: str | None = None) -> list[LearnedName]:
        async with self._database.use(campaign, deadline_ms=_ALL_DEADLINE_MS) as connection:
            return await self._statuses(connection, campaign, None if heard is None else _key(heard))

    async def record(self, campaign: CampaignId, heard: str, step: Step) -> LearnedName:
        key = _key(heard)
        async with self._use(campaign) as connection, connection.transaction():
            history = await self._lock(connection, campaign, key)
            steps = [happened.step for happened in history]
            if changes_something(steps, step):
                history.append(await self._add(connection, campaign, heard, step))
                await self._project(connection, campaign, key, history)
            elif is_only_counted(steps, step):
                await connection.execute(
                    self._sql["heard_again"], campaign, key, step.entity_id, step.utterance, MAX_UTTERANCES
                )
            listed = await self._statuses(connection, campaign, key)
        found = [each for each in listed if each.entity_id == step.entity_id]
        # Evidence against a pair that nobody proposed leaves no trace.
        return found[0] if found else LearnedName(as_heard(heard), step.entity_id, None, PairStatus("undone", 0, ()))

    async def undo(self, campaign: CampaignId, *, at_ms: int, heard: str | None = None) -> Happened | None:
        async with self._database.use(campaign, deadline_ms=_ALL_DEADLINE_MS) as connection:
            while True:
                only = None if heard is None else _key(heard)
                row = await connection.fetchrow(self._sql["latest_decision"], campaign, only)
                if row is None:
                    return None
                async with connection.transaction():
                    history = await self._lock(connection, campaign, row["heard"])
                    last = latest_decision(happened.step for happened in history)
                    if last is None or last.id != row["id"]:
                        continue  # another process was faster
                    taken_back = next(happened for happened in history if happened.step.id == last.id)
                    step = Step("undone", last.entity_id, "dm", "", at_ms, undoes=last.id)
                    history.append(await self._add(connection, campaign, taken_back.heard, step))
                    await self._project(connection, campaign, row["heard"], history)
                    listed = await self._statuses(connection, campaign, row["heard"])
                name = next((each.name for each in listed if each.entity_id == last.entity_id), None)
                return Happened(taken_back.heard, name, last)

    async def history(self, campaign: CampaignId, *, heard: str | None = None, limit: int = 50) -> list[Happened]:
        """Return the history, latest first."""
        rows = await self._fetch("history", campaign, None if heard is None else _key(heard), limit)
        return [_happened(row, row["name"]) for row in rows]

    async def follow_talk(
        self, connection: Connection, campaign: CampaignId, utterances: Collection[UtteranceId]
    ) -> None:
        """Update learned names after changes of utterances (retracted, corrected, restored), in this transaction."""
        if not utterances:
            return
        rows = await connection.fetch(self._sql["forms_of"], campaign, list(utterances))
        await self.follow_forms(connection, campaign, [row["heard"] for row in rows])

    async def follow_forms(self, connection: Connection, campaign: CampaignId, forms: Collection[str]) -> None:
        """Update these forms, given as keys, after changes of their history."""
        for heard in forms:
            history = await self._lock(connection, campaign, heard)
            linked = [happened.step.entity_id for happened in history]
            await connection.execute(self._sql["remove_unlinked"], campaign, heard, linked)
            await self._project(connection, campaign, heard, history)

    async def reasons(self, campaign: CampaignId, forms: Sequence[str]) -> list[list[str]]:
        """For each form, the reasons for and against its link to a name, with their source; latest first."""
        keys = [_key(form) for form in forms]
        found: dict[str, list[str]] = {}
        for row in await self._fetch("reasons", campaign, keys):
            found.setdefault(row["heard"], []).append(f"{row['witness']}: {row['why']}")
        return [found.get(key, []) for key in keys]

    async def uses(self, campaign: CampaignId, heard: str, *, exclude: Collection[UtteranceId] = ()) -> Uses:
        plain = as_heard(heard)
        pattern = r"\m" + r"(?:\W|\\n)+".join(_pattern(word.text + word.tail) for word in words(plain)) + r"\M"
        async with self._use(campaign) as connection:
            written = await connection.fetchval(self._sql["uses_written"], campaign, pattern)
            spoken = await connection.fetchval(self._sql["uses_spoken"], campaign, plain, pattern, list(exclude))
        return Uses(written, spoken)

    async def _lock(self, connection: Connection, campaign: CampaignId, key: str) -> list[Happened]:
        await connection.execute(self._sql["lock_form"], campaign, key)
        return [_happened(row) for row in await connection.fetch(self._sql["history_of_form"], campaign, key)]

    async def _add(self, connection: Connection, campaign: CampaignId, heard: str, step: Step) -> Happened:
        number = await connection.fetchval(
            self._sql["add_event"],
            campaign,
            _key(heard),
            as_heard(heard),
            step.entity_id,
            step.kind,
            step.by,
            lookup_key(step.why),
            step.utterance,
            step.is_ordinary,
            step.undoes,
            timestamp(step.at_ms),
        )
        return Happened(as_heard(heard), None, replace(step, id=number))

    async def _project(
        self, connection: Connection, campaign: CampaignId, key: str, history: Sequence[Happened]
    ) -> None:
        spelled = {happened.step.entity_id: happened.heard for happened in history}
        now = statuses([happened.step for happened in history])
        # Deactivated forms first: two may not be active at the same time.
        for entity, status in sorted(now.items(), key=lambda each: each[1].state == "active"):
            await connection.execute(
                self._sql["put_status"],
                campaign,
                key,
                entity,
                spelled[entity],
                status.state,
                status.count,
                {"utterances": list(status.utterances)},
            )

    async def _statuses(self, connection: Connection, campaign: CampaignId, key: str | None) -> list[LearnedName]:
        return [
            LearnedName(
                row["as_heard"],
                EntityId(row["entity_id"]),
                row["name"],
                PairStatus(
                    row["state"], row["count"], tuple(UtteranceId(each) for each in row["provenance"]["utterances"])
                ),
            )
            for row in await connection.fetch(self._sql["statuses"], campaign, key)
        ]


def _key(heard: str) -> str:
    """The comparison key of a form, as in the gazetteer."""
    return fold(as_heard(heard))


def _pattern(word: str) -> str:
    return re.sub("['’]", "['’]", re.escape(word))


def _happened(row: asyncpg.Record, name: str | None = None) -> Happened:
    return Happened(
        row["as_heard"],
        name,
        Step(
            row["kind"],
            EntityId(row["entity_id"]),
            row["witness"],
            row["why"],
            at_ms(row["at"]),
            row["id"],
            UtteranceId(row["utterance_id"]) if row["utterance_id"] is not None else None,
            row["is_ordinary"],
            row["undoes"],
        ),
    )


async def name_changes(listener: Listener, campaign: CampaignId) -> AsyncGenerator[NamesChanged, None]:
    """Yield the changes to a campaign's names from now on, whoever makes them. See `Listener.follow`."""
    async with aclosing(listener.follow(NAMES, campaign)) as notified:
        async for changed in notified:
            yield NamesChanged(None if changed is None else frozenset(EntityId(each) for each in changed))
