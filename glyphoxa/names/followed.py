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

# What is kept of wrong forms of names.


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


_ONE_BY_ONE = 20
"""More changes at once are a new index, which is made beside the table's own thread."""

_Key = tuple[str, str]


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
        self._file = _Entries(of_file)
        self._cast = {entry.entity_id: entry for entry in cast}
        self._graph: _Entries | None = None
        """As it was read last; None as long as it was not, or when that came to no end."""
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
        stored = await self._store.entries(self._campaign, asked)
        known, self._graph = self._graph, None  # who is cancelled in between reads everything anew
        if known is None or asked is None:
            graph, others, is_in_order = await asyncio.to_thread(self._anew, stored)
        else:
            graph, others, is_in_order = known, self._changed(known, asked, stored), True
        names = self._book.current
        if len(others) > _ONE_BY_ONE or not is_in_order:
            names = await asyncio.to_thread(self._built, graph, names.language)
        else:
            for entity, entry in others.items():
                names = names.without(entity) if entry is None else names.with_entry(entry)
                await asyncio.sleep(0)  # each takes its time, and a table is being played
        self._graph = graph
        self._tell(names)

    def _anew(self, stored: Iterable[Entry]) -> tuple[_Entries, dict[EntityId, Entry | None], bool]:
        """What the graph holds, what is to be different in the book, and whether its order can stay."""
        graph = _Entries(stored)
        merged = {entry.entity_id: entry for entry in _merged(self._file, graph, self._cast)}
        known = dict.fromkeys(entry.entity_id for entry in self._book.current.entries)
        would_be = [*(entity for entity in known if entity in merged), *(each for each in merged if each not in known)]
        return graph, self._others(known, merged), would_be == list(merged)

    def _changed(
        self, graph: _Entries, asked: Collection[EntityId], stored: Iterable[Entry]
    ) -> dict[EntityId, Entry | None]:
        """Takes the changed entries into `graph`; what they and those of their names are to be in the book."""
        of_file = self._file
        before, was_stored = graph.only(asked), bool(graph.by_id)
        graph.put(asked, stored)
        if was_stored != bool(graph.by_id):
            merged = {entry.entity_id: entry for entry in _merged(of_file, graph, self._cast)}
            return self._others([entry.entity_id for entry in self._book.current.entries], merged)
        concerned = (*before.by_id.values(), *graph.only(asked).by_id.values(), *of_file.only(asked).by_id.values())
        keys = {_key(entry) for entry in concerned}
        # All that may be taken for one another, and whatever has their ids: nobody else has part in this.
        same = (entity for key in keys for entity in (*of_file.having(key), *graph.having(key)))
        ids = sorted({*asked, *same})
        is_stored = bool(graph.by_id)
        some = _merged(of_file.only(ids), graph.only(ids), self._cast, is_stored=is_stored)
        return self._others(ids, {entry.entity_id: entry for entry in some})

    def _others(self, known: Iterable[EntityId], merged: Mapping[EntityId, Entry]) -> dict[EntityId, Entry | None]:
        """What is to be different: None for those that go, and these first."""
        book = self._book.current
        gone = sorted(entity for entity in known if entity not in merged and book.entry(entity) is not None)
        come = {entity: entry for entity, entry in merged.items() if book.entry(entity) != entry}
        return {**dict.fromkeys(gone), **come}

    def _built(self, graph: _Entries, language: str) -> Gazetteer:
        return Gazetteer.build(_merged(self._file, graph, self._cast), language=language)

    def _tell(self, names: Gazetteer) -> None:
        try:
            self._book.replace(names)
        except ExceptionGroup as group:
            for error in group.exceptions:
                logger.opt(exception=error).error("something at the table goes on with the names it had")


class _Entries:
    """Entries in order, found by id and by type and name."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.by_id = {entry.entity_id: entry for entry in entries}
        self._by_key: dict[_Key, list[EntityId]] = {}
        for entry in self.by_id.values():
            self._by_key.setdefault(_key(entry), []).append(entry.entity_id)

    def having(self, key: _Key) -> Sequence[EntityId]:
        """The entities of this type and name."""
        return self._by_key.get(key, ())

    def only(self, ids: Collection[EntityId]) -> _Entries:
        """Those of them that are among `ids`, in the order of these."""
        return _Entries(self.by_id[entity] for entity in ids if entity in self.by_id)

    def put(self, asked: Iterable[EntityId], entries: Iterable[Entry]) -> None:
        """Have these in place of those that were asked for; a new one is behind all others."""
        come = {entry.entity_id: entry for entry in entries}
        for entity in asked:
            if (known := self.by_id.get(entity)) is None:
                continue
            listed = self._by_key[_key(known)]
            listed.remove(entity)
            if not listed:
                del self._by_key[_key(known)]
            if entity not in come:
                del self.by_id[entity]
        self.by_id |= come
        for entity, entry in come.items():
            self._by_key.setdefault(_key(entry), []).append(entity)


def with_stored(entries: Iterable[Entry], stored: Iterable[Entry], cast: Iterable[Entry] = ()) -> list[Entry]:
    """The entries of a file as the graph knows them now, with the wrong forms learned for them, and behind them those
    that only the graph knows. A graph that holds anything holds all of the file but what the DM took away.

    Both describe one entity if they have its id, or else its type and name; it is called then what the graph says. Of
    several that have one type and name, the lowest id of the file and the lowest of the graph are one entity.

    Args:
        cast: See `NamesFollowed`.
    """
    return _merged(_Entries(entries), _Entries(stored), {entry.entity_id: entry for entry in cast})


def _merged(
    of_file: _Entries, graph: _Entries, cast: Mapping[EntityId, Entry], *, is_stored: bool | None = None
) -> list[Entry]:
    """
    Args:
        is_stored: The whole graph holds something, where these are only some entries of it.
    """
    if not (bool(graph.by_id) if is_stored is None else is_stored):
        return list(of_file.by_id.values())
    same = {entity: entity for entity in of_file.by_id if entity in graph.by_id}
    for key in dict.fromkeys(_key(entry) for entity, entry in of_file.by_id.items() if entity not in same):
        same |= _same_by_name(key, of_file, graph)
    merged: list[Entry] = []
    for entity, entry in of_file.by_id.items():
        known, seated = graph.by_id.get(same.get(entity, entity)), cast.get(entity)
        if known is None:
            merged += [seated] if seated is not None else []
            continue
        others = dict.fromkeys((*((seated.name, *seated.aliases) if seated is not None else ()), *known.aliases))
        aliases = tuple(alias for alias in others if alias != known.name)
        merged.append(replace(known, entity_type=entry.entity_type, aliases=aliases))
    taken = set(same.values())
    return [*merged, *(entry for entity, entry in graph.by_id.items() if entity not in taken)]


def _same_by_name(key: _Key, of_file: _Entries, graph: _Entries) -> dict[EntityId, EntityId]:
    """Which entities of the file are which of the graph, of those that only one of them knows by this id."""
    only_file = sorted(entity for entity in of_file.having(key) if entity not in graph.by_id)
    only_graph = sorted(entity for entity in graph.having(key) if entity not in of_file.by_id)
    return dict(zip(only_file, only_graph, strict=False))


def _key(entry: Entry) -> _Key:
    return entry.entity_type, fold(entry.name)
