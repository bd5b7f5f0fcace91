"""The queue of utterances to embed: new and revised ones are embedded, unchanged ones are skipped.

The table `talk_to_embed` is the queue, filled by triggers. A vector is stored in one transaction with the removal from
the queue, and only if the utterance still has the text that was embedded: a killed process repeats at most one batch,
and no vector belongs to outdated text.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import asyncpg
import numpy as np
from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable, counted, did_you_mean
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry
from glyphoxa.recall.vectors import Embedder, Piece, WrongDimensions, chunk_id, hash_of, is_usable, pieces_of

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection, OwnConnection


# Embedding texts, some of which the model may reject.


HARMLESS = [piece.content for piece in pieces_of("Good morning.", speaker="Somebody")]
"""Texts on which no model fails."""


@dataclass(frozen=True, slots=True)
class QueuedUtterance:
    """An utterance to embed.

    Attributes:
        place: Position in the queue; changes with a revision.
        says: The speaker's name and text, as read.
        vectors: Vectors of its pieces, once computed.
    """

    utterance_id: str
    place: int
    says: tuple[str, str]
    pieces: Sequence[Piece]
    vectors: Sequence[NDArray[float32]] = ()


async def embed_batch(
    embedder: Embedder, campaign: CampaignId, wanted: Sequence[QueuedUtterance]
) -> tuple[list[QueuedUtterance], list[QueuedUtterance]]:
    """Embed utterances. Returns those with vectors and those the model failed on. Equal texts are embedded once.

    Raises:
        Unavailable: The model is away, or fails on every text, which is no text's fault.
        WrongDimensions: The vectors do not have the model's declared dimensions.
    """
    good, failed = await _embed_batch(embedder, wanted)
    if failed and not any(due.pieces for due in good):
        await try_something_harmless(embedder)
    for due in failed:
        logger.warning("{} of {} is not embedded: the model fails on its text", due.utterance_id, campaign)
    return good, failed


async def _embed_batch(
    embedder: Embedder, wanted: Sequence[QueuedUtterance]
) -> tuple[list[QueuedUtterance], list[QueuedUtterance]]:
    good: list[QueuedUtterance] = []
    failed: list[QueuedUtterance] = []
    places: dict[str, int] = {}
    for due in wanted:
        for piece in due.pieces:
            places.setdefault(piece.content, len(places))
    vectors = np.zeros((0, embedder.dimensions), float32)
    if places:
        try:
            vectors = await embedder.embed(list(places))
        except (Unavailable, WrongDimensions):
            raise
        except Exception as error:  # whatever the model raises: one text must not stop the others
            logger.debug("the model fails on at least one of {} texts: {}", len(places), type(error).__name__)
            if len(wanted) == 1:
                return [], list(wanted)
            for due in wanted:
                alone, bad = await _embed_batch(embedder, [due])
                good += alone
                failed += bad
            return good, failed
    _check_shape(vectors, embedder, len(places))
    for due in wanted:
        of_this = [vectors[places[piece.content]] for piece in due.pieces]
        if all(is_usable(vector[None]) for vector in of_this):
            good.append(replace(due, vectors=of_this))
        else:
            failed.append(due)
    return good, failed


async def try_something_harmless(embedder: Embedder) -> None:
    """Raise if the model fails on a harmless text.

    Otherwise a wrong setting would count as a failure of every utterance.

    Raises:
        Unavailable, WrongDimensions: See `embed_batch`.
    """
    try:
        vectors = await embedder.embed(HARMLESS)
    except (Unavailable, WrongDimensions):
        raise
    except Exception as error:  # contains no speech
        raise Unavailable(f"the model {embedder.name} fails on every text: {error}") from error
    _check_shape(vectors, embedder, len(HARMLESS))
    if not is_usable(vectors):
        raise Unavailable(f"the model {embedder.name} fails on every text: its vectors are zero or not finite")


def _check_shape(vectors: NDArray[float32], embedder: Embedder, n: int) -> None:
    if vectors.ndim == 2 and len(vectors) == n and vectors.shape[1] != embedder.dimensions:
        raise WrongDimensions(model=embedder.name, wanted=embedder.dimensions, given=vectors.shape[1])
    if vectors.shape != (n, embedder.dimensions):
        expected = (n, embedder.dimensions)
        raise InvalidInput(f"the model {embedder.name} returned vectors of shape {vectors.shape}, not {expected}")


_PAGE = 256
_SURVEYED_PAGE = 1_000
_MOST_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Filled:
    """Result of a run over the queue, in utterances.

    Attributes:
        failed: The model failed on them; later runs retry a limited number of times.
        skipped: They were embedded already, or have no text.
    """

    embedded: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def n_seen(self) -> int:
        """Return how many utterances were taken from the queue."""
        return self.embedded + self.failed + self.skipped

    def __add__(self, other: Filled) -> Filled:
        return Filled(self.embedded + other.embedded, self.failed + other.failed, self.skipped + other.skipped)


class OtherModel(Unavailable):
    """The database holds vectors of another model than this process uses."""

    def __init__(self, *, stored: str | None, ours: str) -> None:
        super().__init__(
            f"the vectors in the database are from the model {stored!r}, this process uses {ours!r}: nothing is "
            "embedded or found by meaning until a restart with that model, or `glyphoxa worker reindex` with this one "
            "and a restart"
        )


class EmbeddingQueue(CampaignQueries):
    """See the module. Each step has a deadline of 30 s."""

    file = "chunks"
    deadline_ms = 30_000

    def __init__(self, database: Database, embedder: Embedder) -> None:
        super().__init__(database)
        self._embedder = embedder
        self._names: dict[CampaignId, tuple[str, Gazetteer]] = {}
        self._heads: dict[CampaignId, int] = {}

    async def drain(
        self,
        campaign: CampaignId,
        *,
        limit: int | None = None,
        tell: Callable[[Filled], None] = lambda _: None,
    ) -> Filled:
        """Embed queued utterances, oldest first, each one once. Skips those that failed three times.

        Args:
            tell: Receives the progress after each batch.

        Raises:
            Unavailable: The database or the model is away. Completed batches are stored.
            OtherModel: The table is for another model.
        """
        done = Filled()
        last_place, left = -1, limit
        while left is None or left > 0:
            size = _PAGE if left is None else min(left, _PAGE)
            async with self._use(campaign) as connection:
                rows = await connection.fetch(
                    self._sql["due"], campaign, last_place, _MOST_FAILURES, size, self._embedder.name
                )
                names = await self._names_of(connection, campaign) if rows else None
            if names is None:
                break
            async for filled in self._fill(campaign, rows, names):
                done += filled
                tell(done)
            last_place = rows[-1]["place"]
            left = None if left is None else left - len(rows)
        await self._fill_entities(campaign)
        return done

    async def _fill_entities(self, campaign: CampaignId) -> None:
        """Embed the names and descriptions of new and changed entities, if the world has changed."""
        last_id = ""
        while True:
            async with self._use(campaign) as connection:
                head = await connection.fetchval(self._sql["world_head"], campaign)
                if self._heads.get(campaign) == head:
                    return
                rows = await connection.fetch(
                    self._sql["entities_due"], campaign, self._embedder.name, last_id, self._embedder.batch
                )
            if not rows:
                self._heads[campaign] = head
                return
            last_id = rows[-1]["id"]
            wanted = [
                QueuedUtterance(row["id"], 0, ("", row["content"]), [Piece(row["content"], hash_of(row["content"]))])
                for row in rows
            ]
            done, _ = await embed_batch(self._embedder, campaign, wanted)
            stored = [
                (campaign, each.utterance_id, each.says[1], self._embedder.name, each.vectors[0]) for each in done
            ]
            async with self._use(campaign) as connection, connection.transaction():
                await self._check(connection)
                await connection.executemany(self._sql["put_entity"], stored)

    async def survey(self, campaign: CampaignId) -> int:
        """Queue all missing and outdated utterances, and retag the rest with the current names.

        Those that failed before are retried. Returns the length of the queue.
        """
        last_id = 0
        while True:
            async with self._use(campaign) as connection:
                rows = await connection.fetch(self._sql["talk"], campaign, last_id, _SURVEYED_PAGE, self._embedder.name)
                if not rows:
                    return int(await connection.fetchval(self._sql["count_due"], campaign))
                names = await self._names_of(connection, campaign)
                stale = [row["utterance_id"] for row in rows if not _is_unchanged(row, _pieces(row))]
                known = set(stale)
                tags = [
                    (campaign, row["utterance_id"], entities)
                    for row in rows
                    if row["hashes"] and row["utterance_id"] not in known
                    if (entities := list(names.entities_in(row["text"]))) != row["entity_ids"]
                ]
                if stale:
                    await connection.execute(self._sql["want"], campaign, stale)
                await connection.execute(self._sql["refresh"], campaign, [row["utterance_id"] for row in rows])
                if tags:
                    await connection.executemany(self._sql["tag"], tags)
            last_id = rows[-1]["id"]

    async def want_all(self, campaign: CampaignId) -> None:
        """Queue all utterances, even unchanged ones."""
        await self._fetch("want_all", campaign)

    async def _fill(
        self, campaign: CampaignId, rows: Sequence[asyncpg.Record], names: Gazetteer
    ) -> AsyncIterator[Filled]:
        """Yield the result of each batch."""
        as_before: list[QueuedUtterance] = []
        to_embed: list[QueuedUtterance] = []
        for row in rows:
            due = QueuedUtterance(row["utterance_id"], row["place"], (row["speaker_name"], row["text"]), _pieces(row))
            (as_before if _is_unchanged(row, due.pieces) and not row["is_required"] else to_embed).append(due)
        if as_before:
            await self._store(campaign, [], [], as_before, names)
            yield Filled(skipped=len(as_before))
        size = self._embedder.batch
        for at in range(0, len(to_embed), size):
            done, failed = await embed_batch(self._embedder, campaign, to_embed[at : at + size])
            await self._store(campaign, done, failed, [], names)
            silent = sum(not due.pieces for due in done)
            yield Filled(len(done) - silent, len(failed), silent)

    async def _store(
        self,
        campaign: CampaignId,
        with_vectors: Sequence[QueuedUtterance],
        failed: Sequence[QueuedUtterance],
        as_before: Sequence[QueuedUtterance],
        names: Gazetteer,
    ) -> None:
        async with self._use(campaign) as connection, connection.transaction():
            await self._check(connection)
            ids = [due.utterance_id for due in with_vectors]
            rows = await connection.fetch(self._sql["lock_talk"], campaign, ids)
            now = {row["utterance_id"]: (row["speaker_name"], row["text"]) for row in rows}
            same = [due for due in with_vectors if now.get(due.utterance_id, due.says) == due.says]
            if same:
                await connection.execute(self._sql["drop"], campaign, [due.utterance_id for due in same])
                await connection.executemany(self._sql["add"], self._chunks(campaign, same, names))
            settled = [*same, *as_before]
            if as_before:
                await connection.execute(self._sql["refresh"], campaign, [due.utterance_id for due in as_before])
            await connection.execute(
                self._sql["settle"], campaign, [due.utterance_id for due in settled], [due.place for due in settled]
            )
            if failed:
                await connection.execute(self._sql["failed"], campaign, [due.utterance_id for due in failed])

    async def _check(self, connection: Connection) -> None:
        """Check the model inside the writing transaction.

        Raises:
            OtherModel: The table is for another model, or for other dimensions of one name.
        """
        ours, stored = self._embedder, await connection.fetchrow(self._sql["may_write"])
        if stored is None or stored["model"] != ours.name:
            raise OtherModel(stored=None if stored is None else stored["model"], ours=ours.name)
        if stored["dimensions"] != ours.dimensions:
            raise OtherModel(
                stored=f"{ours.name} with {stored['dimensions']} dimensions", ours=f"{ours.name} with {ours.dimensions}"
            )

    def _chunks(
        self, campaign: CampaignId, dues: Sequence[QueuedUtterance], names: Gazetteer
    ) -> list[tuple[object, ...]]:
        return [
            (
                campaign,
                chunk_id(due.utterance_id, nth),
                due.utterance_id,
                piece.content,
                piece.content_hash,
                vector,
                self._embedder.name,
                entities,
            )
            for due in dues
            for entities in (list(names.entities_in(due.says[1])),)
            for nth, (piece, vector) in enumerate(zip(due.pieces, due.vectors, strict=True))
        ]

    async def _names_of(self, connection: Connection, campaign: CampaignId) -> Gazetteer:
        digest = await connection.fetchval(self._sql["names_digest"], campaign)
        cached = self._names.get(campaign)
        if cached is None or cached[0] != digest:
            rows = await connection.fetch(self._sql["names"], campaign)
            entries = [Entry(row["name"], EntityId(row["id"]), row["type"], tuple(row["aliases"])) for row in rows]
            language = await connection.fetchval(self._sql["language"], campaign) or "en"
            names = await asyncio.to_thread(Gazetteer.build, entries, language=language)
            cached = self._names[campaign] = (digest, names)
        return cached[1]


def _pieces(row: asyncpg.Record) -> list[Piece]:
    """The pieces of an utterance; none if it no longer exists."""
    if row["text"] is None:
        return []
    return pieces_of(row["text"], speaker=row["speaker_name"])


def _is_unchanged(row: asyncpg.Record, pieces: Sequence[Piece]) -> bool:
    return sorted(row["hashes"]) == sorted(piece.content_hash for piece in pieces)


class ChunkIndexer:
    """Memory level 2 as a table: new and changed utterances are embedded. All vectors are of one model.

    Args:
        embedder: Computes the vectors. None: nothing is embedded.
    """

    def __init__(self, database: Database, *, embedder: Embedder | None = None) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._queue = None if embedder is None else EmbeddingQueue(database, embedder)

    async def fill_missing(self, campaign: CampaignId, *, limit: int | None = None) -> Filled:
        """Embed new and changed utterances, oldest first. Failures are logged and skipped.

        Args:
            limit: Maximum number of utterances.

        Raises:
            Unavailable: The database or the model is away; completed batches are stored.
        """
        # Concurrent calls wait and then find little left: nothing is embedded twice.
        async with self._one_at_a_time:
            if self._queue is None:
                return Filled()
            try:
                return await self._queue.drain(campaign, limit=limit)
            except OtherModel as error:
                self._queue = None
                logger.warning("{}", error)
                return Filled()


# -- reindex
#
# Embed all utterances again: for another model, other dimensions, or a fresh start.
#
# One short transaction deletes the old vectors and names the new model; then the queue of new utterances embeds all of
# them. The next run continues an interrupted one. Meanwhile, open tables recall with the vectors in their memory.

_REINDEX_LOCK: Final = 0x676C7972
_A_WEEK_MS: Final = 7 * 24 * 3_600_000
_CLEAR_TRIES: Final = 20
_BETWEEN_TRIES_S: Final = 0.5

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Reindexed:
    """
    Attributes:
        is_full: The old vectors were deleted, and everything was embedded again.
    """

    filled: Filled
    is_full: bool


async def reindex(
    database: Database,
    embedder: Embedder,
    *,
    campaign: CampaignId | None = None,
    full: bool = False,
    tell: Tell = lambda _: None,
) -> Reindexed:
    """Embed what is missing or outdated; everything if the model has changed.

    Args:
        database: Opened with `any_model`.
        campaign: Only this campaign.
        full: Re-embed everything in any case.
        tell: Receives progress lines for the user.

    Raises:
        InvalidInput: A reindexing of this database is under way; or a single campaign is to be embedded by a model
            other than the database's.
        NotFound: The campaign has no utterances.
        Unavailable: The database or the model is away; the next run continues.
    """
    queue = EmbeddingQueue(database, embedder)
    async with database.administer(deadline_ms=_A_WEEK_MS) as connection:
        sql = load_queries("chunks")
        if not await connection.fetchval(sql["try_lock"], _REINDEX_LOCK):
            raise InvalidInput("this database is being reindexed by another process: let that one finish, or stop it")
        campaigns = await _campaigns(connection)
        if campaign is not None and campaign not in campaigns:
            raise NotFound(f"no utterances of a campaign {campaign!r} here: {did_you_mean(campaign, campaigns)}")
        stored = await connection.fetchrow(sql["model"])
        is_ours = stored is not None and tuple(stored) == (embedder.name, embedder.dimensions)
        if campaign is not None and not is_ours:
            raise InvalidInput(
                f"the vectors of this database are from the model {stored and stored['model']!r}, and one campaign "
                f"alone cannot use {embedder.name!r}: omit --campaign"
            )
        is_full = campaign is None and (full or not is_ours)
        if is_full:
            await try_something_harmless(embedder)
            await _clear(connection, embedder)
        elif full and campaign is not None:
            await queue.want_all(campaign)
        filled = Filled()
        for each in campaigns if campaign is None else [campaign]:
            due = await queue.survey(each)
            filled += await queue.drain(each, tell=_counted(tell, each, due))
    return Reindexed(filled, is_full)


async def _clear(connection: OwnConnection, embedder: Embedder) -> None:
    sql = load_queries("chunks")
    for attempt in range(1, _CLEAR_TRIES + 1):
        try:
            async with connection.transaction():
                await connection.execute(sql["note"], "embedding_model", embedder.name)
                await connection.execute(sql["note"], "embedding_dimensions", str(embedder.dimensions))
                await connection.execute(sql["clear"].replace("{{embedding_dimensions}}", str(embedder.dimensions)))
            return
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            logger.debug("the table of chunks is in use, try {}", attempt)
            await asyncio.sleep(_BETWEEN_TRIES_S)
    raise Unavailable("the table of chunks is permanently in use; run `glyphoxa worker reindex` again to finish")


async def _campaigns(connection: OwnConnection) -> list[CampaignId]:
    """All campaigns with utterances, whether or not they were ever loaded."""
    sql = load_queries("chunks")
    transaction = connection.transaction()
    await transaction.start()
    try:
        if not await connection.fetchval(sql["is_above_rules"]):
            # The owner may suspend the rule that hides campaigns from itself; other sessions are not affected.
            await connection.execute("ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY")
        return [CampaignId(row["campaign_id"]) for row in await connection.fetch(sql["campaigns"])]
    finally:
        await transaction.rollback()


def _counted(tell: Tell, campaign: CampaignId, due: int) -> Callable[[Filled], None]:
    """Reports a campaign's progress after each twentieth."""
    told = [0]

    def so_far(done: Filled) -> None:
        n = done.n_seen
        if n >= due or n - told[0] >= max(due / 20, 1):
            told[0] = n
            tell(f"{campaign}: {n} of {counted(due, 'utterance')}")

    return so_far
