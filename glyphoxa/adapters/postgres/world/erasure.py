"""Erase utterances for good: in one transaction, in the campaign and in its forks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from glyphoxa.actors.limits import offload
from glyphoxa.adapters.postgres.server.database import CampaignQueries
from glyphoxa.adapters.postgres.server.sql import timestamp
from glyphoxa.adapters.postgres.world.transaction import WorldTransaction, world_transaction
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, PlayerId, SessionId, UtteranceId
from glyphoxa.names.naming import players_by_name
from glyphoxa.transcript.spool import erase_from_spool, spool_of
from glyphoxa.world.encoding import encode
from glyphoxa.world.event_log import Cause, TalkErased, WorldEvent, without_words

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

_DEADLINE_MS: Final = 600_000
_ALL_EVENTS: Final = 1_000_000_000
_FILES_AS_ROWS: Final = 1_000
"""Rows that are read in the time in which a few files are read or rewritten."""


@dataclass(frozen=True, slots=True)
class Meant:
    """A selection of utterances; None matches any.

    Attributes:
        before_ms: Milliseconds since the Unix epoch; exclusive.
    """

    player: PlayerId | None = None
    session: SessionId | None = None
    before_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ErasedTalk:
    """Utterances that are, or would be, erased from one campaign.

    Attributes:
        n_events: Number of events learned from it.
    """

    campaign: CampaignId
    utterances: tuple[UtteranceId, ...]
    n_replies: int
    n_events: int


@dataclass(frozen=True, slots=True)
class _Entry:
    utterance: UtteranceId
    session: SessionId
    ordinal: int
    at: datetime
    heard: str
    is_npc: bool


class PostgresErasure(CampaignQueries):
    """Erases utterances, with a deadline of ten minutes; late is `Unavailable`, and nothing was erased."""

    file = "world/erasure"
    deadline_ms = 20_000

    async def player(self, campaign: CampaignId, wanted: str) -> PlayerId:
        """Find a player by id or name.

        Raises:
            NotFound: There is none.
            InvalidInput: It may be several.
        """
        said = [Player(PlayerId(row["id"]), row["name"] or "") for row in await self._fetch("said_by", campaign)]
        return players_by_name(said, campaign).one(wanted).id

    async def erased(self, campaign: CampaignId) -> frozenset[UtteranceId]:
        """All utterances ever erased from a campaign."""
        return frozenset(UtteranceId(row["utterance_id"]) for row in await self._fetch("erased", campaign))

    async def preview(self, campaign: CampaignId, meant: Meant) -> list[ErasedTalk]:
        """Return what `erase` would erase: in the campaign, then in each affected fork."""
        async with world_transaction(self._database, campaign, deadline_ms=_DEADLINE_MS) as world:
            found = await self._found(world.connection, campaign, meant)
            return [await self._counted(world.connection, each, entries) for each, entries in found]

    async def export(self, campaign: CampaignId, meant: Meant) -> dict[str, list[dict[str, object]]]:
        """Export the selection as JSON: `utterances`, `turns`, `judged`, `learned` and `names`. Without secrets."""
        async with world_transaction(self._database, campaign, deadline_ms=_DEADLINE_MS) as world:
            entries = (await self._found(world.connection, campaign, meant))[0][1]
            events = [each.seq for each in await self._events(world, entries)]
            ids = [each.utterance for each in entries]
            text = await world.connection.fetchval(self._sql["export"], campaign, ids, events)
        return json.loads(text)  # type: ignore[no-any-return] # as the query makes it

    async def erase(self, campaign: CampaignId, meant: Meant, *, at_ms: int) -> list[ErasedTalk]:
        """Erase the selection, all of it or nothing; returns as `preview`. Idempotent.

        Args:
            at_ms: Now, for the log. Milliseconds since the Unix epoch.

        Raises:
            Unavailable: Its table is open on another machine, whose disk holds some of it.
        """
        for row in await self._fetch("open_at", campaign):
            raise Unavailable(f"the table of {campaign!r} is open on {row['node']}; end the session, then erase again")
        async with world_transaction(self._database, campaign, deadline_ms=_DEADLINE_MS) as world:
            connection = world.connection
            done = []
            for each, entries in await self._found(connection, campaign, meant):
                of_it = await self._entered(connection, each)
                await self._run(of_it, "interrupt", sorted({entry.session for entry in entries}))
                await of_it.lock_campaign()
                done.append(await self._counted(connection, each, entries))
                await self._erase(of_it, entries, meant, at_ms)
            await connection.execute(self._sql["enter"], campaign)
        with suppress(Unavailable):  # the erasure itself is committed
            async with self._database.administer(deadline_ms=_DEADLINE_MS) as administering:
                await administering.execute(self._sql["analyze"])
        return done

    async def _found(
        self, connection: Connection, campaign: CampaignId, meant: Meant
    ) -> list[tuple[CampaignId, list[_Entry]]]:
        before = None if meant.before_ms is None else timestamp(meant.before_ms)
        rows = await connection.fetch(self._sql["chosen"], campaign, meant.player, meant.session, before)
        own = [_Entry(**row) for row in rows]
        found = [(campaign, own)]
        if own:
            keys = (
                [each.utterance for each in own],
                [each.session for each in own],
                [each.at for each in own],
                [each.heard for each in own],
            )
            for row in await connection.fetch(self._sql["campaigns"], campaign):
                other = CampaignId(row["id"])
                await connection.execute(self._sql["enter"], other)
                if rows := await connection.fetch(self._sql["copies"], other, *keys):
                    found.append((other, [_Entry(**copied) for copied in rows]))
            await connection.execute(self._sql["enter"], campaign)
        return found

    async def _counted(self, connection: Connection, campaign: CampaignId, entries: Sequence[_Entry]) -> ErasedTalk:
        world = await self._entered(connection, campaign)
        n_events = len(await self._events(world, entries)) if entries else 0
        utterances = tuple(each.utterance for each in entries)
        return ErasedTalk(campaign, utterances, sum(each.is_npc for each in entries), n_events)

    async def _entered(self, connection: Connection, campaign: CampaignId) -> WorldTransaction:
        await connection.execute(self._sql["enter"], campaign)
        return WorldTransaction.of(connection, campaign)

    async def _events(self, world: WorldTransaction, entries: Sequence[_Entry]) -> list[WorldEvent]:
        events = await world.log.page(after=0, limit=_ALL_EVENTS, latest_first=False)
        places = {(each.session, each.ordinal) for each in entries}
        return without_words(events, {each.utterance for each in entries}, places)

    async def _erase(self, world: WorldTransaction, entries: Sequence[_Entry], meant: Meant, at_ms: int) -> None:
        ids = [each.utterance for each in entries]
        sessions = [each.session for each in entries]
        await self._run(world, "allow")
        if ids:
            await self._unlearn(world, entries, at_ms)
            await self._run(world, "form_counts", ids)
            await self._run(world, "tombstones", ids)
            await self._run(world, "corrections", ids)
            await self._run(world, "chunks", ids)
            await self._run(world, "to_embed", ids)
            await self._run(world, "rereads", sessions, [each.ordinal for each in entries])
            await self._run(world, "judgements", ids, sorted(set(sessions)))
            await self._run(world, "prompts", sorted(set(sessions)))
        await self._run(world, "turns", ids, meant.player, meant.session, meant == Meant())
        await self._run(world, "commands", meant.player, meant.session, meant == Meant())
        if meant.player is not None:
            await self._run(world, "table_files", meant.player)

    async def _unlearn(self, world: WorldTransaction, entries: Sequence[_Entry], at_ms: int) -> None:
        changed = await self._events(world, entries)
        await world.log.names_changed([each.seq for each in changed])
        rows = [
            {"seq": each.seq, "event_type": kept.event_type, "payload": json.loads(kept.payload)}
            for each in changed
            if (kept := encode(each.event))
        ]
        await self._run(world, "events", json.dumps(rows))
        await self._run(world, "snapshots")
        # Followers of the log learn from a new event that an old one no longer applies.
        dropped = tuple(each.seq for each in changed if isinstance(each.event, TalkErased))
        [erased] = await world.log.add([TalkErased(dropped)], Cause("dm", at_ms))
        await world.replay(erased)

    async def _run(self, world: WorldTransaction, query: str, *values: object) -> None:
        await world.connection.execute(self._sql[query], world.campaign, *values)


async def erase(
    erasure: PostgresErasure, data_dir: Path, campaign: CampaignId, meant: Meant, *, at_ms: int
) -> tuple[Sequence[ErasedTalk], int]:
    """Erase in the database, in one transaction, then in the files. After a crash between them, call it again.

    Returns:
        The erased utterances by campaign, and the number of erased spool records.

    Raises:
        Unavailable: The database is away, and nothing was erased; or a running table locks the spool, and only the
            database was erased.
    """
    done = await erasure.erase(campaign, meant, at_ms=at_ms)
    gone = await erasure.erased(campaign)
    n_records = await offload(lambda: _erase_files(data_dir, campaign, meant, gone), amount=_FILES_AS_ROWS)
    return done, n_records


def _erase_files(data_dir: Path, campaign: CampaignId, meant: Meant, gone: frozenset[UtteranceId]) -> int:
    def is_meant(said: Utterance) -> bool:
        if said.campaign_id != campaign:
            return False
        return said.id in gone or (
            (meant.player is None or (str(said.speaker_id) == str(meant.player) and said.npc_id is None))
            and (meant.session is None or said.session_id == meant.session)
            and (meant.before_ms is None or said.at_ms < meant.before_ms)
        )

    mentions = [str(each) for each in (meant.player, meant.session) if each is not None]
    if meant == Meant():
        mentions = [str(campaign)]
    n_records = erase_from_spool(spool_of(data_dir), is_meant, mentions=mentions)
    try:
        # Cached prompts of local models may contain facts from the transcript. They are made again when needed.
        for path in sorted((data_dir / "prompts").glob("*")):
            if path.is_file():
                path.unlink()
    except OSError as error:
        raise Unavailable(f"{data_dir / 'prompts'} cannot be emptied: {error.strerror}; erase again") from None
    return n_records
