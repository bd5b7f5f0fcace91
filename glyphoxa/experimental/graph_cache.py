"""Memory graphs of views, kept as long as the talk that they are made of does not change, and bounded."""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np

from glyphoxa.experimental.graph.of_view import Read, graph_of_view
from glyphoxa.experimental.graph.talk_graph import TalkGraph
from glyphoxa.recall.index.talk_index import TalkIndex
from glyphoxa.recall.index.view import ViewColumns

_MOST_GRAPHS: Final = 8
"""That are kept; one of 10,000 turns takes 20 MB, most of it the turns' vectors."""


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """
    Attributes:
        graph: Made, or being made.
    """

    index: weakref.ref[TalkIndex]
    changes: int
    columns: ViewColumns
    graph: asyncio.Task[TalkGraph]

    def is_of(self, index: TalkIndex, columns: ViewColumns, changes: int) -> bool:
        is_same = self.index() is index and self.changes == changes
        return is_same and np.array_equal(self.columns.rows, columns.rows) and not _failed(self.graph)


class GraphCache:
    """
    Args:
        most: Kept; the longest unused is let go first.
    """

    def __init__(self, *, most: int = _MOST_GRAPHS) -> None:
        self._made: OrderedDict[Hashable, _Made] = OrderedDict()
        self._most = most
        self._read: weakref.WeakKeyDictionary[TalkIndex, dict[int, Read]] = weakref.WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._made)

    async def of_view(self, whose: Hashable, index: TalkIndex, columns: ViewColumns, *, changes: int) -> TalkGraph:
        """Made in a thread, once for all who ask: 10,000 turns take half a second, and a fifth when most of them were
        in one before. Whoever cannot wait leaves it to those who come next.

        Args:
            whose: The campaign and who remembers.
            columns: Of the view, not older than `changes`.
            changes: The index's, see `TalkIndex`.
        """
        made = self._made.get(whose)
        if made is None or not made.is_of(index, columns, changes):
            read = self._read.setdefault(index, {})
            task = asyncio.create_task(asyncio.to_thread(graph_of_view, index, columns, read=read))
            task.add_done_callback(_failed)
            made = self._made[whose] = _Made(weakref.ref(index), changes, columns, task)
        self._made.move_to_end(whose)
        while len(self._made) > self._most:
            self._made.popitem(last=False)
        return await asyncio.shield(made.graph)

    async def close(self) -> None:
        """Let all go."""
        tasks = [made.graph for made in self._made.values()]
        self._made.clear()
        await asyncio.gather(*tasks, return_exceptions=True)


def _failed(task: asyncio.Task[TalkGraph]) -> bool:
    """False while it is being made. Asks how it ended: nobody else may."""
    return task.done() and (task.cancelled() or task.exception() is not None)
