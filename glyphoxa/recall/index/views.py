"""The views of those who asked last, kept true while talk grows and changes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import numpy as np
from numpy import bool_

from glyphoxa.domain.knowledge import Dm, Viewer
from glyphoxa.recall.index.utterance_table import UtteranceTable
from glyphoxa.recall.index.view import View
from glyphoxa.transcript.feed import FeedUtterance

_MOST_VIEWS: Final = 16


class Views:
    """
    Args:
        utterances: All that were read. Whoever changes them says so here.
    """

    def __init__(self, utterances: UtteranceTable) -> None:
        self._utterances = utterances
        self._views: OrderedDict[str | None, View] = OrderedDict()
        self._stale: set[str | None] = set()

    @property
    def size_bytes(self) -> int:
        return sum(view.size_bytes for view in self._views.values())

    def of(self, viewer: Viewer) -> View:
        """That of one viewer, which grows with the talk."""
        key = None if isinstance(viewer, Dm) else str(viewer)
        if key is not None and not key:
            raise ValueError("memory is asked in the name of DM or of an NPC, not of ''")
        view = self._views.get(key)
        if view is None or key in self._stale:
            utterances, rows = self._utterances, self._utterances.table
            was_there = np.array([key is None or key in audience for audience in utterances.audiences.values], bool_)
            chosen = np.flatnonzero(rows["is_told"] & was_there[rows["audience"]])
            view = self._views[key] = View(rows, chosen, utterances.sessions.values)
            self._stale.discard(key)
        view.cover(len(self._utterances))
        self._views.move_to_end(key)
        while len(self._views) > _MOST_VIEWS:
            gone, _ = self._views.popitem(last=False)
            self._stale.discard(gone)
        return view

    def added(self, row: int, said: FeedUtterance) -> None:
        """An utterance is new."""
        of = self._utterances.table[row]
        for viewer, view in self._views.items():
            if viewer not in self._stale and _may_know(viewer, said):
                if view.follows(of):
                    view.append(row, of)
                else:
                    self._stale.add(viewer)

    def changed(self, was: FeedUtterance, now: FeedUtterance) -> None:
        """An utterance is the same, but who may know of it."""
        self._stale |= self._knowing(was) ^ self._knowing(now)

    def replaced(self, old: int, new: int, was: FeedUtterance, now: FeedUtterance) -> None:
        """An utterance is in another row, as it was said otherwise."""
        knew, know = self._knowing(was), self._knowing(now)
        if was.speaker_name != now.speaker_name:
            self._stale |= knew | know
            return
        self._stale |= knew ^ know
        for viewer in (knew & know) - self._stale:
            self._views[viewer].replace(old, new, self._utterances.table[new])

    def _knowing(self, said: FeedUtterance) -> set[str | None]:
        return {viewer for viewer in self._views if _may_know(viewer, said)}


def _may_know(viewer: str | None, said: FeedUtterance) -> bool:
    return not said.retracted and (viewer is None or viewer in said.witnesses)
