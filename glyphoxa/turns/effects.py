"""What turn taking decides; the room performs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from glyphoxa.domain.campaign import DEFAULT_PRIORITY
from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn import Outcome
from glyphoxa.turns.address import Addressed


@dataclass(frozen=True, slots=True)
class Prime:
    """Somebody is speaking, probably to this NPC: get ready."""

    npc: NpcId
    player: PlayerId
    text: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Let the NPC think of an answer; nothing may be heard yet.

    Attributes:
        player: Who asks; an NPC where one is answered by another.
        n_kept: So many of the last utterances that were kept of this player are in `text`.
        is_brief: A sentence is enough.
    """

    turn: TurnId
    npc: NpcId
    player: PlayerId
    text: str
    n_kept: int
    is_brief: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """Let the NPC get the DM's words ready; nothing may be heard yet."""

    turn: TurnId
    npc: NpcId
    text: str


@dataclass(frozen=True, slots=True)
class Commit:
    """The turn is real: its words were kept and it will end in one outcome."""

    turn: TurnId
    npc: NpcId
    draft: Draft
    addressed: Addressed
    at_ms: int


@dataclass(frozen=True, slots=True)
class Release:
    """The NPC has the floor."""

    turn: TurnId
    npc: NpcId


@dataclass(frozen=True, slots=True)
class Fill:
    """The answer takes long: a short sound in character."""

    turn: TurnId
    npc: NpcId


@dataclass(frozen=True, slots=True)
class Hold:
    """A player's voice: the NPC that is heard falls silent for now.

    Attributes:
        voice_ms: When the voice had lasted so long that it holds.
    """

    turn: TurnId
    npc: NpcId
    voice_ms: int


@dataclass(frozen=True, slots=True)
class Resume:
    """It was nothing that cuts it off: the NPC goes on where it was held."""

    turn: TurnId
    npc: NpcId


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop this turn.

    Attributes:
        outcome: None for a speculation, which leaves no record.
        begun: False when the NPC was never asked: nothing will report its end.
    """

    turn: TurnId
    npc: NpcId
    outcome: Outcome | None
    begun: bool


@dataclass(frozen=True, slots=True)
class Keep:
    """Something a player said: write it down, tell the NPCs that are here.

    Attributes:
        addressed: Whom it was meant for.
    """

    draft: Draft
    addressed: Addressed


@dataclass(frozen=True, slots=True)
class NotAddressed:
    """A turn that no NPC answers: recorded, so that figures are not survivor-biased.

    Attributes:
        is_between: It came in the middle of a question, which is still asked.
    """

    draft: Draft
    addressed: Addressed
    is_between: bool = False


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Call `tick` at this time. It is sooner than any time that was asked for before and is still to come."""

    at_ms: int


Effect = Prime | Begin | Say | Commit | Release | Fill | Hold | Resume | Cancel | Keep | NotAddressed | AskAgain


# Who may speak.
#
# Rules:
#
# 1. Players outrank NPCs: an NPC does not begin while a player speaks.
# 2. One NPC at a time. Of those that wait, the one with the highest priority is next; of the same priority, the one
# whose    turn ended first. Who was passed over a few times is next all the same: a priority takes nobody's answer
# away. 3. After an NPC falls silent, the next one leaves a gap before it begins: not always the same, as people do.
# After a    player none does: the wait for the end of their turn was one.


GAP_MS = 300
MOST_PASSED_OVER = 3
"""So many later turns of a higher priority may go first."""
_JITTER_SHARE = 6
"""The gap is up to a sixth longer or shorter."""


@dataclass(slots=True)
class _Waiting:
    turn: TurnId
    priority: int
    passed_over: int = 0


@dataclass(slots=True)
class Floor:
    """Grants the floor to one NPC turn at a time.

    Args:
        gap_ms: Silence after an NPC that was heard before the next one begins. After a player none is added: the
            end-of-turn wait has already passed.
        jitter: Where in its range a gap is, -1 to 1; asked once a gap.
    """

    gap_ms: int = GAP_MS
    jitter: Callable[[], float] = lambda: 0.0
    _speaking_players: set[PlayerId] = field(default_factory=set)
    _waiting: list[_Waiting] = field(default_factory=list)
    """In the order in which they asked."""
    _holder: TurnId | None = None
    _open_from_ms: int = 0

    @property
    def holder(self) -> TurnId | None:
        return self._holder

    @property
    def is_quiet(self) -> bool:
        """Nobody speaks and nobody waits."""
        return not self._speaking_players and not self._waiting and self._holder is None

    @property
    def hears_players(self) -> bool:
        """One of them speaks."""
        return bool(self._speaking_players)

    def player_started(self, player: PlayerId) -> None:
        self._speaking_players.add(player)

    def player_stopped(self, player: PlayerId) -> None:
        self._speaking_players.discard(player)

    def request(self, turn: TurnId, *, priority: int = DEFAULT_PRIORITY) -> None:
        """Queue up. `grant` says when it is this turn's time."""
        if turn != self._holder and all(waiting.turn != turn for waiting in self._waiting):
            self._waiting.append(_Waiting(turn, priority))

    def withdraw(self, turn: TurnId) -> None:
        """The turn no longer waits. One that holds the floor keeps it until it has fallen silent."""
        self._waiting = [waiting for waiting in self._waiting if waiting.turn != turn]

    def give_up(self, turn: TurnId, *, at_ms: int, was_heard: bool = True) -> None:
        """The turn is over, whether it held the floor or waited for it."""
        self.withdraw(turn)
        if self._holder == turn:
            self._holder = None
            if was_heard:
                self._open_from_ms = at_ms + self._gap_ms()

    def grant(self, *, at_ms: int) -> TurnId | None:
        """Give the floor to the next turn if it is free now; None if nobody may begin."""
        if self._holder is not None or self._speaking_players or not self._waiting or at_ms < self._open_from_ms:
            return None
        at = self._next()
        for passed_over in self._waiting[:at]:
            passed_over.passed_over += 1
        self._holder = self._waiting.pop(at).turn
        return self._holder

    def ask_again_ms(self, *, at_ms: int) -> int | None:
        """When `grant` is worth asking again because of the gap alone; None if another event must come first."""
        if self._waiting and self._holder is None and not self._speaking_players and at_ms < self._open_from_ms:
            return self._open_from_ms
        return None

    def _next(self) -> int:
        waited_enough = (at for at, each in enumerate(self._waiting) if each.passed_over >= MOST_PASSED_OVER)
        highest = max(range(len(self._waiting)), key=lambda at: (self._waiting[at].priority, -at))
        return next(waited_enough, highest)

    def _gap_ms(self) -> int:
        return self.gap_ms + round(self.gap_ms / _JITTER_SHARE * self.jitter())
