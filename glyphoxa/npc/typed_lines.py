from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from glyphoxa.domain.events import TableEvent, UtteranceKept
from glyphoxa.domain.ids import UtteranceId, line_of
from glyphoxa.domain.utterance import Utterance

State = Literal["new", "under way", "kept"]


class TypedLines:
    """Which typed lines of a session were taken, so that one that is sent again is said once."""

    def __init__(self) -> None:
        self._is_kept: dict[UtteranceId, bool] = {}

    def take(self, line: UtteranceId) -> State:
        """What was known of a line until now. It is under way from here on, unless it is kept."""
        if line not in self._is_kept:
            self._is_kept[line] = False
            return "new"
        return "kept" if self._is_kept[line] else "under way"

    def kept(self, utterances: Iterable[Utterance]) -> None:
        """These are on disk, perhaps since before a restart of the session."""
        self._is_kept.update({utterance.id: True for utterance in utterances if line_of(utterance.id) is not None})

    def on(self, event: TableEvent) -> None:
        if isinstance(event, UtteranceKept):
            self.kept((event.utterance,))
