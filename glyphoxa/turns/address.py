"""Which NPC, if any, a player's words are meant for.

In this order:

1. What is marked as out of character, or whispered to another player, is meant for no NPC.
2. A name called (a vocative: first or last in the sentence, set off by a comma): the first one called of those who
   are here, and a second one called reacts to the answer. Calling another player means: no NPC.
3. Somebody called who is not here is answered by nobody: no other speaks in their place.
4. What is plainly of the players' own world, or nothing but a filler, is meant for nobody (`glyphoxa.turns.aside`).
5. The NPC this player was just talking to, also when another NPC is only talked about.
6. A name mentioned without being called: the first one.
7. The only NPC in the scene.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.turns.aside import is_filler, marked_out_of_character, out_of_character


@dataclass(frozen=True, slots=True)
class AddresseeMention:
    """Somebody's name in what was said.

    Attributes:
        npc: Whose name, None for a player's and for somebody whom nobody plays.
        position: Index of its first word.
        is_vocative: The name is called rather than talked about.
        is_sure: It is called beyond doubt: enough to say that who is not here was meant.
        is_whispered: It says to whom all that was said is directed: "(to Mira) ...".
        is_played: An NPC or a player has this name, and not only somebody in the story.
    """

    npc: NpcId | None
    name: str
    position: int
    is_vocative: bool
    is_sure: bool = False
    is_whispered: bool = False
    is_played: bool = True


@dataclass(frozen=True, slots=True)
class Said:
    """What a player said, and who is named in it."""

    player: PlayerId
    text: str
    mentions: Sequence[AddresseeMention] = ()


@dataclass(frozen=True, slots=True)
class Addressed:
    """Whom a player's words are meant for, and why.

    Attributes:
        reason: In words.
        unaddressed: The same in one word when `npc` is None.
        second: Who reacts to the answer of `npc`.
    """

    npc: NpcId | None
    reason: str
    unaddressed: Unaddressed | None = None
    second: NpcId | None = None

    @property
    def is_aside(self) -> bool:
        """The words are plainly meant for somebody else or nobody: no part of a question to an NPC."""
        return self.unaddressed not in (None, Unaddressed.NO_NAME, Unaddressed.NO_NPC)


@dataclass(slots=True)
class Addressing:
    """Remembers who talks to whom.

    Args:
        going_on_ms: How long after the last exchange with an NPC a player's words without a name still go to it.
    """

    going_on_ms: int = 30_000
    _last: dict[PlayerId, tuple[NpcId, int]] = field(default_factory=dict)

    def decide(self, said: Said, *, present: Sequence[NpcId], names: Mapping[NpcId, str], at_ms: int) -> Addressed:
        """Decide without remembering; the same words at the same time always give the same answer."""
        last = self._going_on_with(said.player, present, at_ms)
        return (
            _marked(said)
            or _called(said.mentions, present)
            or _aside(said.text, is_going_on=last is not None)
            or _unnamed(said.mentions, present, names, last)
        )

    def remember(self, player: PlayerId, npc: NpcId, *, at_ms: int) -> None:
        """An exchange between them took place (the player's turn ended, or the NPC finished its answer)."""
        self._last[player] = (npc, at_ms)

    def forget_all(self) -> None:
        """The scene changed: what was going on is over."""
        self._last.clear()

    def _going_on_with(self, player: PlayerId, present: Sequence[NpcId], at_ms: int) -> NpcId | None:
        last, last_ms = self._last.get(player, (None, 0))
        return last if last in present and at_ms - last_ms <= self.going_on_ms else None


def _marked(said: Said) -> Addressed | None:
    if marked_out_of_character(said.text):
        return Addressed(None, "marked as out of character", Unaddressed.OUT_OF_CHARACTER)
    return None


def _called(mentions: Sequence[AddresseeMention], present: Sequence[NpcId]) -> Addressed | None:
    if not mentions:
        return None
    whispered = next((m for m in mentions if m.is_whispered), None)
    if whispered is not None and whispered.npc is None:
        return Addressed(None, f"whispered to {whispered.name}", Unaddressed.PLAYER)
    here = [m for m in mentions if m.npc in present or (m.npc is None and m.is_played)]
    all_called = sorted((m for m in here if m.is_vocative), key=lambda m: m.position)
    called = all_called[0] if all_called else None
    if called is not None and called.npc is not None:
        second = next((m.npc for m in all_called if m.npc not in (None, called.npc)), None)
        return Addressed(called.npc, f"{called.name} was called", second=second)
    if called is not None:
        return Addressed(None, f"{called.name} was called, a player", Unaddressed.PLAYER)
    elsewhere = [m for m in mentions if m.is_sure and m not in here]
    absent = min(elsewhere, key=lambda m: m.position, default=None)
    if absent is not None:
        return Addressed(None, f"{absent.name} was called, who is not here", Unaddressed.ABSENT)
    return None


def _aside(text: str, *, is_going_on: bool) -> Addressed | None:
    if (why := out_of_character(text)) is not None:
        return Addressed(None, f"out of character: {why}", Unaddressed.OUT_OF_CHARACTER)
    if is_filler(text, is_answer=is_going_on):
        return Addressed(None, "only fillers", Unaddressed.FILLER)
    return None


def _unnamed(
    mentions: Sequence[AddresseeMention], present: Sequence[NpcId], names: Mapping[NpcId, str], last: NpcId | None
) -> Addressed:
    if last is not None:
        return Addressed(last, f"going on with {names[last]}")
    mentioned = min((m for m in mentions if m.npc in present), key=lambda m: m.position, default=None)
    if mentioned is not None:
        return Addressed(mentioned.npc, f"{mentioned.name} was named")
    if len(present) == 1:
        return Addressed(present[0], f"{names[present[0]]} is the only one here")
    if present:
        return Addressed(None, "no name, and more than one could be meant", Unaddressed.NO_NAME)
    return Addressed(None, "no NPC is here", Unaddressed.NO_NPC)
