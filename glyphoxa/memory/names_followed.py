"""Keeps the names of a table that is being played equal to those in the graph, whoever changes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.memory.ports import LearnedNames
from glyphoxa.speech.learning.wrong_forms import with_stored
from glyphoxa.speech.names.book import NameBook
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer

_ONE_BY_ONE = 20
"""More changes at once are a new index, which is made beside the table's own thread."""


@dataclass(frozen=True, slots=True)
class NamesChanged:
    """Entities whose names, aliases or learned forms are others than before, or that are new or gone.

    Attributes:
        entities: None when nobody knows: anything may have changed.
    """

    entities: frozenset[EntityId] | None


@dataclass(frozen=True, slots=True)
class NamesFollowed:
    """Reads what changed and has the book take it.

    Args:
        of_file: The names of the campaign as the table opened it: they stay, with what the graph knows of them.
        retry_ms: How long to wait when the database does not answer, before everything is read anew.
    """

    campaign: CampaignId
    store: LearnedNames
    book: NameBook
    of_file: Sequence[Entry]
    retry_ms: int = 1_000

    async def run(self, changes: AsyncIterable[NamesChanged]) -> None:
        """Take changes as long as there are any."""
        async for changed in changes:
            while True:
                try:
                    await self.take(changed)
                    break
                except Unavailable as error:
                    logger.debug("changed names are not read yet: {}", error)
                    await asyncio.sleep(self.retry_ms / 1000)
                    changed = NamesChanged(None)  # noqa: PLW2901 - what else changed by then came to nobody

    async def take(self, changed: NamesChanged) -> None:
        """Read these names now.

        Raises:
            Unavailable: The database is away; the book is as it was.
        """
        stored = await self.store.entries(self.campaign, changed.entities)
        merged = with_stored(self.of_file, stored)
        by_id = {entry.entity_id: entry for entry in merged}
        known = {entry.entity_id: entry for entry in self.book.current.entries}
        asked = changed.entities if changed.entities is not None else known.keys() | by_id.keys()
        differing = sorted(entity for entity in asked if known.get(entity) != by_id.get(entity))
        if len(differing) > _ONE_BY_ONE:
            if changed.entities is not None:
                await self.take(NamesChanged(None))
                return
            language = self.book.current.language
            self.book.become(await asyncio.to_thread(Gazetteer.build, merged, language=language))
            return
        with self.book.together():
            for entity in differing:
                if entity in by_id:
                    self._put(by_id[entity])
                else:
                    self.book.remove(entity)
                await asyncio.sleep(0)  # each takes its time, and a table is being played

    def _put(self, entry: Entry) -> None:
        known = self.book.current.entry(entry.entity_id)
        for wrong in known.learned if known is not None else ():
            if wrong not in entry.learned:
                self.book.unlearn(entry.entity_id, wrong)
        self.book.put(entry)
