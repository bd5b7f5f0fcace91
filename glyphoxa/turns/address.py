"""Which NPC, if any, a player's words are meant for.

In this order:

1. A name called (a vocative: first or last in the sentence, set off by a comma): the first one called.
   Calling another player means: no NPC.
2. The NPC this player was just talking to, also when another NPC is only talked about.
3. A name mentioned without being called: the first one.
4. The only NPC in the scene.

NPCs that are not in the scene are never addressed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import Unaddressed


@dataclass(frozen=True, slots=True)
class Mention:
    """Somebody's name in what was said.

    Attributes:
        npc: Whose name, None for a player's.
        position: Index of its first word.
        is_vocative: The name is called rather than talked about.
    """

    npc: NpcId | None
    name: str
    position: int
    is_vocative: bool


@dataclass(frozen=True, slots=True)
class Addressed:
    """Whom a player's words are meant for, and why.

    Attributes:
        reason: In words.
        unaddressed: The same in one word when `npc` is None.
    """

    npc: NpcId | None
    reason: str
    unaddressed: Unaddressed | None = None


@dataclass(slots=True)
class Addressing:
    """Remembers who talks to whom.

    Args:
        going_on_ms: How long after the last exchange with an NPC a player's words without a name still go to it.
    """

    going_on_ms: int = 30_000
    _last: dict[PlayerId, tuple[NpcId, int]] = field(default_factory=dict)

    def decide(
        self,
        player: PlayerId,
        mentions: Sequence[Mention],
        *,
        present: Sequence[NpcId],
        names: Mapping[NpcId, str],
        at_ms: int,
    ) -> Addressed:
        """Decide without remembering; the same words at the same time always give the same answer."""
        here = [m for m in mentions if m.npc is None or m.npc in present]
        called = min((m for m in here if m.is_vocative), key=lambda m: m.position, default=None)
        if called is not None:
            if called.npc is None:
                return Addressed(None, f"{called.name} was called, a player", Unaddressed.PLAYER)
            return Addressed(called.npc, f"{called.name} was called")
        last, last_ms = self._last.get(player, (None, 0))
        if last is not None and last in present and at_ms - last_ms <= self.going_on_ms:
            return Addressed(last, f"going on with {names[last]}")
        mentioned = min((m for m in here if m.npc is not None), key=lambda m: m.position, default=None)
        if mentioned is not None:
            return Addressed(mentioned.npc, f"{mentioned.name} was named")
        if len(present) == 1:
            return Addressed(present[0], f"{names[present[0]]} is the only one here")
        if present:
            return Addressed(None, "no name, and more than one could be meant", Unaddressed.NO_NAME)
        return Addressed(None, "no NPC is here", Unaddressed.NO_NPC)

    def remember(self, player: PlayerId, npc: NpcId, *, at_ms: int) -> None:
        """An exchange between them took place (the player's turn ended, or the NPC finished its answer)."""
        self._last[player] = (npc, at_ms)

    def forget_all(self) -> None:
        """The scene changed: what was going on is over."""
        self._last.clear()
