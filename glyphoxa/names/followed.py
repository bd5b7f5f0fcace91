"""Keeps the names of an open table equal to those in the graph, whoever changes them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from glyphoxa.actors.subscribers import Subscribers
from glyphoxa.domain.ids import CampaignId, EntityId, UtteranceId
from glyphoxa.language.words import fold
from glyphoxa.names.gazetteer import Entry, Gazetteer
from glyphoxa.names.wrong_forms import FormHeard, Happened, LearnedName, Uses


class LearnedNames(Protocol):
    """Wrong forms of names and the evidence for them: see `glyphoxa.names.wrong_forms`."""

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        """The names in the graph (all, or of these entities) with their active wrong forms; people first."""
        ...

    async def statuses(self, campaign: CampaignId) -> list[LearnedName]:
        """Return all pairs of form and name, the most frequent first."""
        ...

    async def record(self, campaign: CampaignId, step: FormHeard, *, at_ms: int) -> None:
        """Add a step to a form's history, unless it would change nothing.

        Raises:
            AlreadyTaken: It confirms a form that was confirmed for another name.
        """
        ...

    async def undo(self, campaign: CampaignId, *, at_ms: int, heard: str | None = None) -> Happened | None:
        """Undo the DM's last decision (on one form, if given); return it, or None if there is none left."""
        ...

    async def history(self, campaign: CampaignId, *, heard: str | None = None, limit: int = 50) -> list[Happened]:
        """The history of all forms or of one, latest first."""
        ...

    async def uses(self, campaign: CampaignId, heard: str, *, meant_in: UtteranceId | None = None) -> Uses:
        """Ordinary uses of a form's words; one more utterance in which they mean a name may be given."""
        ...


class NamesFollowed:
    """The names of an open table: the only place where they change.

    Changes come from one thread, readers from any: `current` is replaced as a whole, and a reader keeps the one it
    took.

    Args:
        of_file: Names in the campaign file when the table opened. They apply only while the graph is empty; afterwards
            the graph decides, including the DM's deletions. Ids are unique.
        cast: Names of NPCs and players at the table, whatever the graph contains; their ids are in `of_file`.

    Attributes:
        changed: Passes the new gazetteer to each subscriber, such as a corrector.
    """

    def __init__(
        self, campaign: CampaignId, of_file: Sequence[Entry], *, cast: Sequence[Entry] = (), language: str = "en"
    ) -> None:
        self._campaign = campaign
        self._file = tuple(of_file)
        self._cast = tuple(cast)
        self._graph: dict[EntityId, Entry] | None = None
        """The last state read; None before the first."""
        self.current = Gazetteer.build(self._file, language=language)
        self.changed = Subscribers[[Gazetteer]]("the names")

    async def take(self, store: LearnedNames, changed: Collection[str] | None) -> None:
        """Read changed names and update the gazetteer in one step.

        The entries are independent of the order of changes. Their order, which decides who gets a shared spelling, is
        only final after a full read: until then new entities come last.

        Args:
            changed: Entities with changed names, aliases or learned forms, and new or removed ones; None: any may have
                changed.

        Raises:
            Unavailable: The database is away; the gazetteer is unchanged.
        """
        asked = None if self._graph is None or changed is None else frozenset(map(EntityId, changed))
        stored = {entry.entity_id: entry for entry in await store.entries(self._campaign, asked)}
        if self._graph is not None and asked is not None:
            kept = {entity: entry for entity, entry in self._graph.items() if entity in stored or entity not in asked}
            stored = kept | stored
        self._graph = stored
        # A large campaign takes a while, and the table is running.
        self.replace(await asyncio.to_thread(self._names_with, stored.values()))

    def replace(self, names: Gazetteer) -> None:
        """Replace the names, and notify subscribers unless they are unchanged."""
        if names is not self.current:
            self.current = names
            self.changed.tell(names)

    def _names_with(self, stored: Iterable[Entry]) -> Gazetteer:
        return self.current.having(with_stored(self._file, stored, self._cast))


def with_stored(entries: Iterable[Entry], stored: Iterable[Entry], cast: Iterable[Entry] = ()) -> list[Entry]:
    """The entries of a file with the graph's current state and wrong forms, followed by those only in the graph.

    A graph that is not empty contains the whole file except the DM's deletions. Both describe one entity if they have
    the same id, or else the same type and name; the graph's name then applies. Of several with one type and name, the
    lowest ids of both are one entity.

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
    """Pairs of ids in the file and the graph that denote the same entity."""
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
