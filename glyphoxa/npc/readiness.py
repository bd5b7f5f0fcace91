"""What engines read while they are not asked: the next answer starts from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.actor import Expect, GetReady, NpcActor, Relax
from glyphoxa.npc.mouth import ReplyKnown
from glyphoxa.npc.table_state import TableState


@dataclass(frozen=True, slots=True)
class Readiness:
    """
    Args:
        present: The NPCs of the scene.
    """

    state: TableState
    npcs: Mapping[NpcId, NpcActor]
    present: Callable[[], Sequence[NpcId]]

    def probably_asked(self, npc: NpcId, text: str, speaker_name: str) -> None:
        """Somebody is saying this, probably to this NPC."""
        self.relax_all_but(npc)
        self.npcs[npc].mailbox.post(GetReady(text, speaker_name))

    def expect(self, reply: ReplyKnown) -> None:
        """An answer is being heard: let the engines read it meanwhile, first the one that gives it."""
        speaker = self.npcs[reply.npc].npc
        for npc in (reply.npc, *self._others(reply.npc)):
            self.npcs[npc].mailbox.post(Expect(reply.npc, speaker.name, reply.text, self.state.somebody()))

    def relax_all_but(self, npc: NpcId) -> None:
        for other in self._others(npc):
            self.npcs[other].mailbox.post(Relax())

    def everybody(self, *, first: NpcId | None = None) -> None:
        """Let those that are here and not asked anything read what has been said."""
        for npc in ((first,) if first is not None else ()) + tuple(self._others(first)):
            self.npcs[npc].mailbox.post(GetReady("", self.state.somebody()))

    def _others(self, npc: NpcId | None) -> list[NpcId]:
        return [other for other in self.present() if other != npc]
