"""The event log of one campaign: append, read, replay from snapshots, and the feed for followers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import asyncpg

from glyphoxa.actors.limits import gc_paused, offload
from glyphoxa.adapters.postgres.server.database import CampaignStatements
from glyphoxa.adapters.postgres.server.sql import timestamp
from glyphoxa.adapters.postgres.world.tables import WorldTables, cause_of_row
from glyphoxa.domain.heard import SpokenBy
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.domain.knowledge import Claim
from glyphoxa.world.encoding import PROJECTION_VERSION, Encoded, batches, decode, encode, state_of_parts, state_parts
from glyphoxa.world.event_kinds import FactStated
from glyphoxa.world.event_log import (
    Cause,
    Event,
    RolledBack,
    Undoing,
    UtteranceCorrected,
    UtteranceRetracted,
    UtteranceWithheld,
    WorldEvent,
    dropped,
    remaining,
    replay,
)
from glyphoxa.world.graph import WorldRead
from glyphoxa.world.state import WorldState

SNAPSHOT_EVERY: Final = 2_000
"""Store a snapshot after a replay of this many events."""
_BLOCK: Final = 500
_LONGEST_SNAPSHOT: Final = 100_000_000
"""Maximum size in bytes: PostgreSQL limits JSON to 256 MB."""


class WorldLog(CampaignStatements):
    """The events of one campaign, on a connection in a transaction."""

    file = "world/event_log"

    async def head(self) -> int:
        """Number of the last event; 0 if there is none."""
        ((seq,),) = await self._fetch("head")
        return int(seq)

    async def append(self, events: Sequence[Encoded], cause: Cause, *, after: int) -> None:
        """
        Args:
            after: Number of the last event so far.
        """
        for block in batches(enumerate(events, start=after + 1), _BLOCK):
            rows = (f'{{"seq":{seq},"event_type":"{e.event_type}","payload":{e.payload}}}' for seq, e in block)
            await self._fetch(
                "add_events",
                f"[{','.join(rows)}]",
                timestamp(cause.at_ms),
                cause.by,
                cause.session_id,
                cause.ordinal,
                cause.utterance_id,
            )

    async def add(self, events: Sequence[Event], cause: Cause) -> list[WorldEvent]:
        """Append events without changing the tables; return them as recorded. The campaign must be locked."""
        head = await self.head()
        await self.append([encode(event) for event in events], cause, after=head)
        return [WorldEvent(seq, cause, event) for seq, event in enumerate(events, start=head + 1)]

    async def page(self, *, after: int, limit: int, latest_first: bool) -> list[WorldEvent]:
        return await self._decoded(await self._fetch("events_last" if latest_first else "events_first", after, limit))

    async def undoing(self) -> list[WorldEvent]:
        """The undoing events, in order."""
        return await self._decoded(await self._fetch("undoing_events"))

    async def stated_from(self, utterances: Sequence[UtteranceId]) -> set[tuple[UtteranceId | None, Claim]]:
        """The claims that these utterances state, each with its utterance, without undone ones."""
        stated = await self._decoded(await self._fetch("stated_from", utterances))
        left = remaining([*stated, *await self.undoing()])
        return {(each.cause.utterance_id, each.event.claim) for each in left if isinstance(each.event, FactStated)}

    async def names_changed(self, events: Collection[int]) -> None:
        """Notify open tables, at commit, of the names whose wrong forms these events concern."""
        await self._fetch("names_changed", sorted(events))

    async def first_after(self, at_ms: int) -> int | None:
        """The first event later than that time."""
        ((first,),) = await self._fetch("first_after", timestamp(at_ms))
        return None if first is None else int(first)

    async def state_at(self, seq: int, *, at_ms: int | None = None) -> WorldState:
        """The state after an event, without events later than `at_ms`.

        Replays from a usable snapshot if there is one, and stores one after a long replay.
        """
        undoing = [e for e in await self.undoing() if e.seq <= seq and (at_ms is None or e.cause.at_ms <= at_ms)]
        left_out = None if at_ms is None else await self.first_after(at_ms)
        whole = seq if left_out is None else min(seq, left_out - 1)
        rows = await self._fetch("snapshots", whole, PROJECTION_VERSION)
        begin = next((row["seq"] for row in rows if can_go_on_from(row["seq"], undoing)), 0)
        state = WorldState() if begin == 0 else await self._snapshot(begin)
        keep = whole - whole % SNAPSHOT_EVERY
        if keep > begin and can_go_on_from(keep, undoing):
            state = await self._replayed(state, after=begin, to=keep)
            await self._keep_snapshot(keep, state)
            begin = keep
        return await self._replayed(state, after=begin, to=seq, at_ms=at_ms)

    async def _replayed(self, state: WorldState, *, after: int, to: int, at_ms: int | None = None) -> WorldState:
        until = None if at_ms is None else timestamp(at_ms)
        rows = await self._fetch_many("events", after, to, until, block=_BLOCK)
        return await offload(
            lambda: replay((_event(self._campaign, row) for row in rows), onto=state), amount=len(rows)
        )

    async def _snapshot(self, seq: int) -> WorldState:
        parts = [row["part"] for row in await self._fetch_many("snapshot", seq, block=1)]
        return await offload(lambda: state_of_parts(parts), amount=_BLOCK * len(parts))

    async def _keep_snapshot(self, seq: int, state: WorldState) -> None:
        parts = await offload(lambda: list(state_parts(state)), amount=len(state.facts) + len(state.ended))
        text = f"[{','.join(parts)}]"
        if len(text) < _LONGEST_SNAPSHOT:
            await self._fetch("put_snapshot", seq, text, PROJECTION_VERSION)

    async def _decoded(self, rows: Sequence[asyncpg.Record]) -> list[WorldEvent]:
        return await offload(lambda: [_event(self._campaign, row) for row in rows], amount=len(rows))


def can_go_on_from(seq: int, undoing: Collection[WorldEvent]) -> bool:
    """Whether none of these later events undoes something in the state at `seq`."""
    later = [recorded.event for recorded in undoing if recorded.seq > seq]
    return not any(each <= seq for event in later if isinstance(event, Undoing) for each in event.dropped())


def retractions_in_effect(undoing: Sequence[WorldEvent]) -> set[int]:
    """Numbers of retractions (including rollbacks) among these events that are not undone."""
    without = dropped(undoing)
    return {e.seq for e in undoing if isinstance(e.event, RolledBack | UtteranceRetracted) and e.seq not in without}


def withholdings_in_effect(undoing: Sequence[WorldEvent]) -> dict[UtteranceId, WorldEvent]:
    """The utterances that players do not want to be remembered, each with its event."""
    without = dropped(undoing)
    withheld = [e for e in undoing if isinstance(e.event, UtteranceWithheld) and e.seq not in without]
    return {e.event.utterance: e for e in withheld if isinstance(e.event, UtteranceWithheld)}


def corrections_in_effect(undoing: Sequence[WorldEvent]) -> dict[UtteranceId, tuple[str | None, SpokenBy | None]]:
    """The text and speaker of each utterance that the DM ever corrected.

    Without a correction in effect, the text is None and the speaker is the original one; None if they never changed.
    """
    without, found = dropped(undoing), dict[UtteranceId, tuple[str | None, SpokenBy | None]]()
    for recorded in undoing:
        if isinstance(event := recorded.event, UtteranceCorrected):
            text, by = found.get(event.utterance, (None, event.was_by))
            is_undone = recorded.seq in without
            found[event.utterance] = (text, by or event.was_by) if is_undone else (event.text, event.by or by)
    return found


def _event(campaign: CampaignId, row: asyncpg.Record) -> WorldEvent:
    return decode(campaign, row["seq"], cause_of_row(row), row["event_type"], row["payload"])


_MUCH: Final = 10_000


async def read_world(log: WorldLog, tables: WorldTables) -> WorldRead:
    """The current world. Call it in a transaction with one snapshot, or that has locked the campaign."""
    last = await log.page(after=0, limit=1, latest_first=True)
    with gc_paused(amount=_MUCH):
        return WorldRead(await tables.read(), last[0] if last else None)
