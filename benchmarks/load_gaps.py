"""Dropouts in what NPCs say, as a listener without a buffer hears them."""

from __future__ import annotations

from dataclasses import dataclass, field

from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.table import OUTPUT_RATE_HZ

LONGEST_MS = 20.0
"""A longer one is a dropout."""
_BYTES_PER_S = OUTPUT_RATE_HZ * 2


@dataclass(slots=True)
class Dropouts:
    """Sound that comes after the listener has played all that came before, within one answer.

    Attributes:
        lasted_ms: How long each dropout was.
    """

    lasted_ms: list[float] = field(default_factory=list)
    _played_until_s: dict[NpcId, float] = field(default_factory=dict)

    def ends(self, npc: NpcId) -> None:
        """Its answer is over: the silence behind it is none of its sound."""
        self._played_until_s.pop(npc, None)

    def sound(self, npc: NpcId, n_bytes: int, *, at_s: float) -> None:
        """A piece of its sound, mono s16le, arrives."""
        lasts_s = n_bytes / _BYTES_PER_S
        due_s = self._played_until_s.get(npc)
        late_ms = 0.0 if due_s is None else (at_s - due_s) * 1_000
        if due_s is None or late_ms > 0:
            due_s = at_s
        if late_ms > LONGEST_MS:
            self.lasted_ms.append(late_ms)
        self._played_until_s[npc] = due_s + lasts_s
