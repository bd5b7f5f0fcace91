"""What happens and what is heard at a table, passed on to whoever watches and listens."""

from __future__ import annotations

from collections.abc import Callable

from loguru import logger

from glyphoxa.domain.events import TableEvent
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.table import AudioSink

Watcher = Callable[[TableEvent], None]


class TableEvents:
    """Tells each event to every watcher, in the order in which they subscribed."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []

    def subscribe(self, watcher: Watcher) -> Callable[[], None]:
        """Returns what ends the subscription."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def tell(self, event: TableEvent) -> None:
        for watcher in tuple(self._watchers):
            try:
                watcher(event)
            except Exception as error:  # whoever watches must not stop the table
                logger.opt(exception=error).error("a listener of the table fell")


class NpcVoices:
    """Plays what NPCs say to every sink."""

    def __init__(self) -> None:
        self._sinks: list[AudioSink] = []

    def add_sink(self, sink: AudioSink) -> Callable[[], None]:
        """Returns what removes the sink."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink) if sink in self._sinks else None

    def play(self, npc: NpcId, pcm: bytes) -> None:
        for sink in tuple(self._sinks):
            sink(npc, pcm)
