"""The actors of one table: who falls is started again and told of, and an NPC that is out tells whoever asks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loguru import logger

from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.domain.events import Degraded, TableEvent, Trouble
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.actor import NpcActor


class TableSupervision:
    """
    Args:
        tell: Takes events of the table.
        now_ms: Unix epoch.
    """

    def __init__(
        self, npcs: Mapping[NpcId, NpcActor], *, tell: Callable[[TableEvent], None], now_ms: Callable[[], int]
    ) -> None:
        self.supervisor = Supervisor(on_fall=self._on_fall, on_given_up=self._on_given_up)
        self._npcs = {_group_of(npc): actor for npc, actor in npcs.items()}
        self._tell = tell
        self._now_ms = now_ms

    def start_npcs(self) -> None:
        for group, npc in self._npcs.items():
            self.supervisor.start(group, npc.run)

    def _on_fall(self, group: str, error: BaseException) -> None:
        self._alarm(f"{group} fell and was started again ({type(error).__name__})", Trouble.RESTARTED, group)

    def _on_given_up(self, group: str) -> None:
        self._alarm(f"{group} fell too often and is out until the session is opened anew", Trouble.OUT, group)
        if (npc := self._npcs.get(group)) is not None:
            self.supervisor.start(f"{group}, who declines", npc.decline)

    def _alarm(self, what: str, trouble: Trouble, group: str) -> None:
        logger.warning("{}", what)
        npc = self._npcs.get(group)
        self._tell(Degraded(what, self._now_ms(), trouble, npc.npc.id if npc is not None else None))


def _group_of(npc: NpcId) -> str:
    """An NPC may be called Room or Scribe, and falls alone all the same."""
    return f"NPC {npc}"
