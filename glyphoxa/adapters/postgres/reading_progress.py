"""The chronicle's reading progress, stored in one transaction with the facts it learned."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Final

import asyncpg

from glyphoxa.adapters.postgres.chronicle_nodes import PostgresAtoms, evidence_of, graft, rests_on_changed
from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import storable
from glyphoxa.adapters.postgres.transcript.log import judged_of_row, utterance_of_row
from glyphoxa.adapters.postgres.world.commits import PostgresWorld
from glyphoxa.adapters.postgres.world.tables import WorldTables, visibility_of_row
from glyphoxa.chronicle.consent_requests import consent_change, consent_request
from glyphoxa.chronicle.ports import Checked, JudgedUtterance, LeaseLost, ReadingStep, Reread, SessionProgress, Unread
from glyphoxa.chronicle.salience import AFTERWARDS
from glyphoxa.chronicle.talk import BEFORE, BREAK_MS, LONGEST, KnownEntity, NumberedUtterance
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from glyphoxa.domain.knowledge import MEANING
from glyphoxa.judgement.safety import Judged
from glyphoxa.language.language_data import lexicon
from glyphoxa.world.event_log import Cause
from glyphoxa.world.state import WorldEntity

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


_OCCUPATIONS: Final = tuple(lexicon("prompt").words("occupations"))
MAX_ATTEMPTS: Final = 8
"""After this many failures in a row, over two minutes, a stretch will not succeed without intervention."""
_LEASE_MS: Final = 15_000
"""Longer than a step by rules may take: a worker that is silent for so long is dead."""


class PostgresChronicleLog(CampaignQueries):
    """A `ChronicleLog` for one worker. Reading has a deadline of 5 s, a step that of a commit.

    Args:
        worker: The worker's unique name; None generates one.
        lease_ms: After this time without progress, another worker may take over a session.
    """

    file = "reading_progress"
    deadline_ms = 5_000

    def __init__(
        self, database: Database, world: PostgresWorld, *, worker: str | None = None, lease_ms: int = _LEASE_MS
    ) -> None:
        super().__init__(database)
        self._world = world
        self._worker = uuid.uuid4().hex if worker is None else worker
        self._lease_ms = lease_ms
        self._known: dict[CampaignId, tuple[int, Sequence[KnownEntity]]] = {}
        self.consolidate = PostgresAtoms(database).consolidate

    async def progress(self, campaign: CampaignId) -> Sequence[SessionProgress]:
        return [SessionProgress(**row) for row in await self._fetch("progress", campaign, BREAK_MS)]

    async def take(self, campaign: CampaignId, session: SessionId) -> int | None:
        row = await self._row("take", campaign, storable(session), self._worker, self._lease_ms)
        return None if row is None else int(row[0])

    async def release(self, campaign: CampaignId, session: SessionId) -> None:
        await self._fetch("release", campaign, session, self._worker)

    async def unread(self, campaign: CampaignId, session: SessionId, *, after: int, limit: int) -> Unread | None:
        async with self._use(campaign) as connection, connection.transaction():
            # Rereads first: later changes are then visible in the words, or are recorded again.
            changed = await connection.fetch(self._sql["rereads"], campaign, session, after, after + limit)
            rows = await connection.fetch(self._sql["said"], campaign, session, after, limit)
            if not rows:
                return None
            before = await connection.fetch(self._sql["before"], campaign, session, after + 1, BEFORE)
        up_to = int(rows[-1]["ordinal"])
        return Unread(
            tuple(_said_of_row(row) for row in rows if not row["retracted"]),
            tuple(_said_of_row(row) for row in reversed(before)),
            up_to,
            tuple(Reread(**each) for each in changed if each["ordinal"] <= up_to),
        )

    async def reread(self, campaign: CampaignId, session: SessionId, *, up_to: int) -> Unread | None:
        async with self._use(campaign) as connection, connection.transaction():
            waiting = await connection.fetch(self._sql["first_rereads"], campaign, session, up_to, LONGEST)
            if not waiting:
                return None
            changed = _following([Reread(**row) for row in waiting])
            first = changed[0].ordinal
            rows = await connection.fetch(self._sql["said"], campaign, session, first - 1, len(changed))
            before = await connection.fetch(self._sql["before"], campaign, session, first, BEFORE)
        return Unread(
            tuple(_said_of_row(each) for each in rows if not each["retracted"]),
            tuple(_said_of_row(each) for each in reversed(before)),
            changed[-1].ordinal,
            changed,
        )

    async def decide(self, campaign: CampaignId, session: SessionId, said: Sequence[Utterance]) -> bool:
        players = [each for each in said if each.npc_id is None]
        # In a thread, because a table may be playing on the same loop.
        asked = await asyncio.to_thread(lambda: [each.id for each in players if consent_request(each.text) is not None])
        if not asked:
            return False
        own = [_said_of_row(row) for row in await self._fetch("requests", campaign, session, asked)]
        before, changed = list[Utterance](), False
        for spoken, ordinal in ((each.utterance, each.ordinal) for each in own):
            change = consent_change(spoken, before) if spoken.id in asked else None
            before.append(spoken)
            # The cause names the request, which counts once, however often it is read.
            cause = Cause("player", spoken.at_ms, session, ordinal, spoken.id)
            if change is not None and await self._world.consent(campaign, change, cause):
                changed = True
        return changed

    async def unchecked(self, campaign: CampaignId, session: SessionId, *, up_to: int, every: int) -> Checked | None:
        async with self._use(campaign) as connection, connection.transaction():
            progress = await connection.fetchrow(self._sql["checked"], campaign, session, up_to, BREAK_MS)
            after = up_to if progress is None else int(progress["checked_ordinal"])
            if progress is None or up_to <= after or not (progress["is_over"] or up_to - after >= every + AFTERWARDS):
                return None
            if up_to - after >= LONGEST + AFTERWARDS:
                every = max(every, LONGEST)  # a backlog in fewer steps
            end = min(after + every, up_to)
            rows = await connection.fetch(self._sql["said"], campaign, session, after, every + AFTERWARDS)
            judged_at = _by_ordinal(await connection.fetch(self._sql["judgements"], campaign, session, after, end))
            before = await connection.fetch(self._sql["before"], campaign, session, after + 1, BEFORE)
        said = [_said_of_row(row) for row in rows if not row["retracted"]]
        return Checked(
            tuple(JudgedUtterance(each, judged_at[each.ordinal]) for each in said if each.ordinal in judged_at),
            tuple(_said_of_row(row) for row in reversed(before)),
            tuple(each for each in said if each.ordinal > end),
            end,
        )

    async def judged(self, campaign: CampaignId, session: SessionId, *, after: int, up_to: int) -> Mapping[int, Judged]:
        """Return stored judgements by ordinal."""
        return _by_ordinal(await self._fetch("judgements", campaign, session, after, up_to))

    async def read_again(self, campaign: CampaignId, session: SessionId) -> None:
        """Schedule everything read of a session to be read again. Its facts are replaced stretch by stretch."""
        async with self._use(campaign) as connection, connection.transaction():
            await connection.execute(self._sql["read_again"], campaign, session)
            await connection.execute(self._sql["forget_refused"], campaign, session)

    async def known(self, campaign: CampaignId) -> Sequence[KnownEntity]:
        before = self._known.get(campaign)
        async with self._use(campaign) as connection, connection.transaction():
            head = int(await connection.fetchval(self._sql["head"], campaign))
            if before is not None and before[0] == head:
                return before[1]
            rows = await connection.fetch(self._sql["known"], campaign, MEANING, _OCCUPATIONS)
        known = [
            KnownEntity(
                EntityId(row["id"]),
                row["type"],
                row["name"],
                tuple(row["aliases"]),
                visibility_of_row(row),
                row["origin"],
                row["is_defined"],
                tuple(row["occupations"]),
            )
            for row in rows
        ]
        self._known[campaign] = head, known
        return known

    async def guarded(self, campaign: CampaignId) -> tuple[list[WorldEntity], list[str]]:
        """Return the entities that were merged into others, and texts of secrets, as `WorldTables.guarded`."""
        async with self._use(campaign) as connection:
            return await WorldTables(connection, campaign).guarded()

    async def learn(self, campaign: CampaignId, step: ReadingStep) -> None:
        advance = partial(self._advance, campaign, step)
        if not step.effects and not step.unlearned:
            async with self._use(campaign) as connection, connection.transaction():
                await advance(connection)
            return
        amount = sum(len(effect.events) for effect in step.effects)
        async with self._world.writing(campaign, amount=amount, first=advance) as world:
            if step.unlearned:
                await world.unlearn(step.unlearned, Cause("talk", step.at_ms))
            rests_on = [*evidence_of(event for effect in step.effects for event in effect.events)]
            rests_on += (effect.cause.utterance_id for effect in step.effects if effect.cause.utterance_id)
            if await rests_on_changed(world.connection, campaign, rests_on):
                raise LeaseLost(f"session {step.session!r} of campaign {campaign!r} has changed and is read again")
            # What the DM decided on has stayed.
            stated = await world.log.stated_from(rests_on) if step.rereads else set()
            for effect in step.effects:
                line = effect.cause.utterance_id
                new = [each for each in effect.events if (line, getattr(each, "claim", None)) not in stated]
                await world.commit(new, effect.cause)

    async def _advance(self, campaign: CampaignId, step: ReadingStep, connection: Connection) -> None:
        """Move the reading position of a session.

        Raises:
            LeaseLost: The position has moved, or another worker holds the lease.
        """
        on = (campaign, step.session)
        refused = (len(step.refused), storable(step.refused[-1]) if step.refused else None)
        moved = (self._worker, step.read_from, step.read_to, self._lease_ms)
        unchecked = min((each.ordinal - 1 for each in step.rereads), default=step.read_to)
        if not await connection.fetchval(self._sql["advance"], *on, *moved, *refused, step.checked_to, unchecked):
            raise LeaseLost(f"session {step.session!r} of campaign {campaign!r} is being read by another worker")
        if step.rereads:
            ordinals, changes = zip(*((each.ordinal, each.change_seq) for each in step.rereads), strict=True)
            await connection.execute(self._sql["reread_done"], *on, list(ordinals), list(changes))
        await graft(connection, campaign, step.atoms, gone=step.unlearned)
        if step.judged:
            await connection.execute(self._sql["judge"], *on, json.dumps([_judged_row(each) for each in step.judged]))

    async def failed(self, campaign: CampaignId, session: SessionId, error: str) -> SessionProgress:
        await self._fetch("failed", campaign, session, storable(error), MAX_ATTEMPTS, self._worker)
        return next(each for each in await self.progress(campaign) if each.session == session)

    async def revive(self, campaign: CampaignId, session: SessionId | None = None) -> list[SessionId]:
        """Retry failed sessions at once; None: all. Returns which sessions had failed."""
        return [SessionId(row["session_id"]) for row in await self._fetch("revive", campaign, session)]


def _by_ordinal(rows: Sequence[asyncpg.Record]) -> Mapping[int, Judged]:
    return {row["ordinal"]: judged_of_row(row) for row in rows}


def _judged_row(one: JudgedUtterance) -> dict[str, object]:
    judgement = one.judged.judgement
    return {
        "utterance_id": one.said.utterance.id,
        "ordinal": one.said.ordinal,
        **asdict(judgement),
        "note": storable(judgement.note),
        "judged_by": one.judged.by,
        "reason": storable(one.judged.reason),
    }


def _said_of_row(row: asyncpg.Record) -> NumberedUtterance:
    return NumberedUtterance(utterance_of_row(row), row["ordinal"])


def _following(changed: Sequence[Reread]) -> tuple[Reread, ...]:
    """The first one and those that follow it without a gap."""
    return tuple(each for n, each in enumerate(changed) if each.ordinal == changed[0].ordinal + n)
