"""The parts that every twin of a table has: where it is, who follows it, and what its memory is like."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.events import MemoryHealth, SceneChanged, TableEvent
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import SceneId, SessionId
from glyphoxa.npc.table_interface import AudioSink


@dataclass
class TableInMemory:
    """It begins in the first scene of its campaign."""

    campaign: Campaign
    session: SessionId
    scene: Scene = field(init=False)
    health: MemoryHealth = field(default_factory=lambda: MemoryHealth("ok"), kw_only=True)
    earlier: Sequence[Utterance] = field(default=(), kw_only=True)
    listeners: list[Callable[[TableEvent], None]] = field(default_factory=list, init=False)
    sinks: list[AudioSink] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.scene = self.campaign.scenes[0]

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def subscribe(self, listener: Callable[[TableEvent], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def add_sink(self, sink: AudioSink) -> Callable[[], None]:
        self.sinks.append(sink)
        return lambda: self.sinks.remove(sink)

    async def move(self, scene: SceneId) -> None:
        self.scene = self.campaign.scene(scene)
        self.tell(SceneChanged(self.scene, self.now_ms()))

    def tell(self, event: TableEvent) -> None:
        for listener in list(self.listeners):
            listener(event)
