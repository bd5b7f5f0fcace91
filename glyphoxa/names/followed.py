"""Keeps the names of a table that is being played equal to those in the graph, whoever changes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, UtteranceId
from glyphoxa.language.words import fold
from glyphoxa.names.gazetteer import Entry, Gazetteer, ObservableGazetteer
from glyphoxa.names.wrong_forms import Happened, LearnedName, Step, Uses


class LearnedNames(Protocol):
    """Wrong forms of names and the evidence for them. Append-only: see `glyphoxa.names.wrong_forms`."""

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        """The names in the graph (all, or of these entities) with the wrong forms that are active; people first."""
        ...

    async def statuses(self, campaign: CampaignId, heard: str | None = None) -> list[LearnedName]:
        """Every pair of form and name (or of one form, however it is spaced), those most often heard first."""
        ...

    async def record(self, campaign: CampaignId, heard: str, step: Step) -> LearnedName:
        """Add a step to a form's history, unless it would change nothing; return where the pair stands now.

        Raises:
            AlreadyTaken: It confirms what was confirmed for another name.
        """
        ...

    async def undo(self, campaign: CampaignId, *, at_ms: int, heard: str | None = None) -> Happened | None:
        """Take back the DM's last decision (on one form, if given); return it, or None if there is none left."""
        ...

    async def history(self, campaign: CampaignId, *, heard: str | None = None, limit: int = 50) -> list[Happened]:
        """What happened, latest first."""
        ...

    async def uses(self, campaign: CampaignId, heard: str, *, exclude: Collection[UtteranceId] = ()) -> Uses:
        """Where the words of a form stand as themselves; utterances of `exclude` are not counted."""
        ...


@dataclass(frozen=True, slots=True)
class NamesChanged:
    """Entities whose names, aliases or learned forms are others than before, or that are new or gone.

    Attributes:
        entities: None when nobody knows: anything may have changed.
    """

    entities: frozenset[EntityId] | None


class NameFeed(Protocol):
    def follow(self, campaign: CampaignId) -> AsyncGenerator[NamesChanged, None]:
        """The changes to a campaign's names from now on. Never ends: close it.

        Raises:
            GlyphoxaError: They cannot be known, for a reason that does not pass by itself.
        """
        ...


class NamesFollowed:
    """Reads what changed and has the book take it. Nobody else may change that book.

    Args:
        of_file: The names of the campaign as the table opened it. They count as long as the graph holds nothing; then
            the graph does, and what the DM took away there is gone. No two have one id.
        cast: What those who sit at the table are called whatever the graph says; their ids are in `of_file`.
        retry_ms: How long to wait when the database does not answer, before everything is read anew.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        campaign: CampaignId,
        store: LearnedNames,
        book: ObservableGazetteer,
        of_file: Sequence[Entry],
        *,
        cast: Sequence[Entry] = (),
        retry_ms: int = 1_000,
    ) -> None:
        self._campaign = campaign
        self._store = store
        self._book = book
        self._file = tuple(of_file)
        self._cast = tuple(cast)
        self._graph: dict[EntityId, Entry] | None = None
        """As it was read last; None as long as it was not."""
        self._retry_ms = retry_ms

    async def run(self, changes: AsyncIterable[NamesChanged]) -> None:
        """Take changes as long as there are any."""
        async for changed in changes:
            while True:
                try:
                    await self.take(changed)
                    break
                except Unavailable as error:
                    logger.debug("changed names are not read yet: {}", error)
                    await asyncio.sleep(self._retry_ms / 1000)
                    changed = NamesChanged(None)  # noqa: PLW2901 - what else changed by then came to nobody

    async def take(self, changed: NamesChanged) -> None:
        """Read these names now; the book takes them in one step. However changes come in, they give the entries that
        reading everything gives. Their order, which says whose a spelling is that several have, is that of a whole
        reading only after one: until then who is new is behind all others.

        Raises:
            Unavailable: The database is away; the book is as it was.
        """
        asked = None if self._graph is None else changed.entities
        stored = {entry.entity_id: entry for entry in await self._store.entries(self._campaign, asked)}
        if self._graph is not None and asked is not None:
            kept = {entity: entry for entity, entry in self._graph.items() if entity in stored or entity not in asked}
            stored = kept | stored
        self._graph = stored
        # A large campaign takes its time, and a table is being played.
        names = await asyncio.to_thread(self._names_with, stored.values())
        try:
            self._book.replace(names)
        except ExceptionGroup as group:
            for error in group.exceptions:
                logger.opt(exception=error).error("something at the table goes on with the names it had")

    def _names_with(self, stored: Iterable[Entry]) -> Gazetteer:
        return self._book.current.having(with_stored(self._file, stored, self._cast))


def with_stored(entries: Iterable[Entry], stored: Iterable[Entry], cast: Iterable[Entry] = ()) -> list[Entry]:
    """The entries of a file as the graph knows them now, with the wrong forms learned for them, and behind them those
    that only the graph knows. A graph that holds anything holds all of the file but what the DM took away.

    Both describe one entity if they have its id, or else its type and name; it is called then what the graph says. Of
    several that have one type and name, the lowest id of the file and the lowest of the graph are one entity.

    Args:
        cast: See `NamesFollowed`.
    """
    of_file = {entry.entity_id: entry for entry in entries}
    graph = {entry.entity_id: entry for entry in stored}
    seated = {entry.entity_id: entry for entry in cast}
    if not graph:
        return list(of_file.values())
    same = _same_by_name(of_file, graph)
    merged: list[Entry] = []
    for entity, entry in of_file.items():
        known, sits = graph.get(same.get(entity, entity)), seated.get(entity)
        if known is None:
            merged += [sits] if sits is not None else []
            continue
        others = dict.fromkeys((*((sits.name, *sits.aliases) if sits is not None else ()), *known.aliases))
        aliases = tuple(alias for alias in others if alias != known.name)
        merged.append(replace(known, entity_type=entry.entity_type, aliases=aliases))
    taken = {*of_file, *same.values()}
    return [*merged, *(entry for entity, entry in graph.items() if entity not in taken)]


def _same_by_name(of_file: Mapping[EntityId, Entry], graph: Mapping[EntityId, Entry]) -> dict[EntityId, EntityId]:
    """Which entities of the file are which of the graph, of those that only one of them knows by this id."""
    only_graph: dict[tuple[str, str], list[EntityId]] = {}
    for entity in sorted(graph.keys() - of_file.keys(), reverse=True):
        only_graph.setdefault(_key(graph[entity]), []).append(entity)
    same: dict[EntityId, EntityId] = {}
    for entity in sorted(of_file.keys() - graph.keys()):
        if others := only_graph.get(_key(of_file[entity])):
            same[entity] = others.pop()
    return same


def _key(entry: Entry) -> tuple[str, str]:
    return entry.entity_type, fold(entry.name)
