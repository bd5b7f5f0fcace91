"""An open turn. `glyphoxa.turns.turn_taking` describes its life cycle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from glyphoxa.domain.campaign import DEFAULT_PRIORITY
from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn import Outcome, Unaddressed
from glyphoxa.language.text import Text
from glyphoxa.names.people import Understood
from glyphoxa.turns.address import Addressed, Addressing
from glyphoxa.turns.dm_controls import DmControls, spoken_command
from glyphoxa.turns.effects import Begin, Cancel, Floor

# A question in the parts in which it was spoken.


MAX_PARTS = 6
"""Limit for the parts of a continued question."""
_MAX_CHARACTERS = 1_200
"""Limit for all parts together, if there are several: about five sentences each."""


@dataclass(frozen=True, slots=True)
class SpokenQuestion:
    """A question in the parts in which it was spoken."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.parts)

    def going_on(self, text: str) -> SpokenQuestion:
        """Return the question with another part, dropping the oldest. The NPC has heard those in its prompt."""
        parts, n_characters = [text], len(text)
        for part in reversed(self.parts[1 - MAX_PARTS :]):
            n_characters += 1 + len(part)
            if n_characters > _MAX_CHARACTERS:
                break
            parts.append(part)
        return SpokenQuestion(tuple(reversed(parts)))


def same_words(a: str, b: str) -> bool:
    return Text.of(a).full == Text.of(b).full


class Phase(Enum):
    PREPARING = auto()
    COMMITTED = auto()
    RELEASED = auto()
    HEARD = auto()


@dataclass(slots=True)
class Turn:
    """One turn and its state.

    Attributes:
        player: Who asks. If the turn answers an NPC, that NPC.
        second: The NPC that reacts to the answer.
        answers: The NPC whose words it answers; then no player waits for it.
        reacts_to: The turn to whose answer it reacts.
        n_in_a_row: Answers among NPCs up to this one, since a player spoke.
    """

    id: TurnId
    npc: NpcId
    player: PlayerId
    question: SpokenQuestion
    draft: Draft
    phase: Phase
    begun: bool = False
    filled: bool = False
    lookup_is_slow: bool = False
    first_word_ms: int | None = None
    has_failed: bool = False
    """Failed before its release: only an excuse would be heard."""
    committed_ms: int = 0
    released_ms: int = 0
    cancelled_as: Outcome | None = None
    words: str = ""
    """Words of the DM to say instead of an answer."""
    second: NpcId | None = None
    answers: NpcId | None = None
    reacts_to: TurnId | None = None
    n_in_a_row: int = 0
    asks: bool = False
    """Whether its whole answer is known and ends with a question."""


# The open turns of one table.


_HUSHED_AS = {Phase.PREPARING: None, Phase.HEARD: Outcome.INTERRUPTED}
"""Outcome of a cancelled turn by phase; all other phases: SUPERSEDED."""
_OF_THE_DM, _NEXT, _LAST = 1_001, 1_000, -1
"""Priorities beyond those of NPCs: the DM's words, a reaction, other conversation among NPCs."""


@dataclass(slots=True)
class OpenTurns:
    """The open turns. Iterates in the order in which they were opened.

    Args:
        priorities: Priorities of NPCs for the floor; `DEFAULT_PRIORITY` for others.
    """

    floor: Floor = field(default_factory=Floor)
    priorities: Mapping[NpcId, int] = field(default_factory=dict)
    moved_ms: int = 0
    """When the floor was last given or released, or an NPC was interrupted."""
    _turns: dict[TurnId, Turn] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[Turn]:
        return iter(tuple(self._turns.values()))

    def get(self, turn: TurnId) -> Turn | None:
        return self._turns.get(turn)

    def of(self, player: PlayerId) -> list[Turn]:
        """Return the open turns of this player."""
        return [t for t in self if t.player == player and t.cancelled_as is None]

    def to(self, npc: NpcId) -> list[Turn]:
        """Return the open turns of this NPC.

        An engine answers one turn at a time: a speculation must not cancel another one, and a committed turn waits for
        the one before it.
        """
        return [turn for turn in self if turn.npc == npc]

    @property
    def heard(self) -> Turn | None:
        """The turn whose answer is being heard, unless it was cancelled."""
        holder = self._turns.get(self.floor.holder) if self.floor.holder is not None else None
        return holder if holder is not None and holder.phase is Phase.HEARD and holder.cancelled_as is None else None

    def open(self, npc: NpcId, draft: Draft, question: SpokenQuestion, *, words: str = "") -> Turn:
        """Open a turn.

        Args:
            words: Words that the NPC says instead of an answer.
        """
        turn = Turn(TurnId(f"t{next(self._numbers):04d}"), npc, draft.player, question, draft, Phase.PREPARING)
        turn.words = words
        self._turns[turn.id] = turn
        return turn

    def begin(self, turn: Turn) -> Begin:
        turn.begun = True
        # A turn in preparation has not been stored yet.
        n_kept = len(turn.question.parts) - (turn.phase is Phase.PREPARING)
        return Begin(
            turn.id,
            turn.npc,
            turn.player,
            turn.question.text,
            n_kept,
            is_brief=turn.reacts_to is not None,
            words=turn.words,
        )

    def queue_up(self, turn: Turn) -> None:
        """Queue a turn for the floor: the DM's words first, then a reaction, then players' turns by priority, and other
        conversation among NPCs last.
        """
        priority = self.priorities.get(turn.npc, DEFAULT_PRIORITY)
        if turn.words:
            priority = _OF_THE_DM
        elif turn.answers is not None:
            priority = _NEXT if turn.reacts_to is not None else _LAST
        self.floor.request(turn.id, priority=priority)

    def cancel(self, turn: Turn, outcome: Outcome | None) -> Cancel:
        turn.cancelled_as = outcome
        self.floor.withdraw(turn.id)
        if turn.phase is Phase.PREPARING or not turn.begun:
            del self._turns[turn.id]
        return Cancel(turn.id, turn.npc, outcome, turn.begun)

    def hush(self, turns: Iterable[Turn]) -> list[Cancel]:
        """Cancel these turns."""
        return [
            self.cancel(turn, _HUSHED_AS.get(turn.phase, Outcome.SUPERSEDED))
            for turn in turns
            if turn.cancelled_as is None
        ]

    def close(self, turn_id: TurnId) -> Turn | None:
        """Remove a turn whose engine has finished."""
        return self._turns.pop(turn_id, None)


# Players' questions and their addressees, across the parts in which they are spoken.


_PAST_ALL = (Unaddressed.OUT_OF_CHARACTER, Unaddressed.FILLER)
"""Words for which a player is not bound to an NPC."""


@dataclass(slots=True)
class Questions:
    """Assigns players' words to NPCs.

    Args:
        understand: Returns who is named and called in a text; asked again for the same text, at once.
        names: Names of all NPCs of the campaign.
        controls: The DM's controls in force.

    Attributes:
        present: The NPCs of the scene.
    """

    understand: Callable[[str], Understood]
    names: Mapping[NpcId, str]
    addressing: Addressing = field(default_factory=Addressing)
    controls: DmControls = field(default_factory=DmControls)
    present: tuple[NpcId, ...] = ()
    _carried: dict[PlayerId, Turn] = field(default_factory=dict)

    def move(self, present: Sequence[NpcId]) -> None:
        """Change the scene and end all conversations."""
        self.present = tuple(present)
        self.addressing.forget_all()
        self._carried.clear()

    def forget_all(self) -> None:
        """Forget all carried questions and conversations."""
        self._carried.clear()

    def carry(self, turn: Turn) -> None:
        """Keep the question of a turn that is cancelled because its speaker seems to continue."""
        self._carried[turn.player] = turn

    def has_carried(self, player: PlayerId) -> bool:
        return player in self._carried

    def take_carried(self, player: PlayerId) -> Turn | None:
        """Remove and return the cancelled turn whose question the player seemed to continue."""
        return self._carried.pop(player, None)

    def passed(self, player: PlayerId, addressed: Addressed, *, at_ms: int) -> None:
        """Note words of a player that were meant for no NPC."""
        if addressed.unaddressed in (Unaddressed.PLAYER, Unaddressed.WHISPER):
            others = (addressed.player,) if addressed.player is not None else ()
            self.addressing.remember_players(player, *others, at_ms=at_ms)

    def decide(self, player: PlayerId, text: str, *, at_ms: int) -> Addressed:
        """Decide who these words alone are meant for, by the rules of `glyphoxa.turns.dm_controls`."""
        said, controls = self.understand(text), self.controls
        command = spoken_command(said.text, said.mentions) if player in controls.dms else None
        if command is not None:
            return Addressed(None, "a command of the DM", Unaddressed.COMMAND, is_apart=True, command=command)
        if controls.is_paused:
            return Addressed(None, "the table is paused", Unaddressed.PAUSED)
        addressed = self._bound(player, said, self._by_address(player, said, at_ms))
        if addressed.npc is None or addressed.npc not in controls.muted:
            return addressed
        others = tuple(mention for mention in said.mentions if mention.npc not in controls.muted)
        if any(mention.is_called and mention.npc is not None for mention in others):
            instead = self._by_address(player, replace(said, mentions=others), at_ms)
            if instead.npc is not None and instead.npc not in controls.muted:
                return instead
        return Addressed(None, f"{addressed.reason}; muted by the DM", Unaddressed.MUTED)

    def _by_address(self, player: PlayerId, said: Understood, at_ms: int) -> Addressed:
        return self.addressing.decide(player, said, present=self.present, names=self.names, at_ms=at_ms)

    def _bound(self, player: PlayerId, said: Understood, addressed: Addressed) -> Addressed:
        npc = self.controls.puppets.get(player)
        is_free = said.calls_somebody or addressed.unaddressed in _PAST_ALL
        if npc is None or npc not in self.present or is_free:
            return addressed
        return Addressed(npc, f"the DM directs their words to {self.names[npc]}")

    def called_by(self, npc: NpcId, text: str) -> NpcId | None:
        """Return which NPC of the scene another NPC calls with these words."""
        mentions = self.understand(text).mentions
        called = (m for m in mentions if m.is_called and m.npc != npc and self.may_speak(m.npc))
        first = min(called, key=lambda m: m.position, default=None)
        return first.npc if first is not None else None

    def may_speak(self, npc: NpcId | None) -> bool:
        """Return whether an NPC is present and not muted."""
        return npc in self.present and npc not in self.controls.muted

    def meant(self, player: PlayerId, text: str, *, at_ms: int) -> tuple[Addressed, SpokenQuestion]:
        """Return who these words are meant for, and the whole question."""
        carried = self._carried.get(player)
        alone = self.decide(player, text, at_ms=at_ms)
        if carried is None or alone.is_aside:
            return alone, SpokenQuestion((text,))
        question = carried.question.going_on(text)
        return self.decide(player, question.text, at_ms=at_ms), question


# How long to wait for an answer, and what to do after that.


_CLAUSE_MS = 1_000
"""An answer is heard within this time after its first word, so a filler would delay it."""


class Overdue(Enum):
    """The action for an overdue turn."""

    DROP = auto()
    """The answer waited too long for players to fall silent."""
    GIVE_UP = auto()
    """No answer came."""
    FILL = auto()
    """The answer takes long: play a filler."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Deadlines of a turn.

    Args:
        reply_deadline_ms: From the moment the answer may be heard (usually the end of the player's turn) to its first
            audio.
        filler_after_ms: From the end of the player's turn to a filler; 0 for none. A filler plays only once the answer
            may be heard, and not shortly before its first clause.
        hold_ms: How long an answer waits for players to fall silent.
    """

    reply_deadline_ms: int = 15_000
    filler_after_ms: int = 0
    hold_ms: int = 20_000

    def due_ms(self, turn: Turn, *, waits_since_ms: int | None) -> int | None:
        """When `overdue` must be called; None if only an event can change anything.

        Args:
            waits_since_ms: Since when only players delay answers; None while an NPC is heard.
        """
        if turn.cancelled_as is not None:
            return None
        if turn.phase is Phase.RELEASED:
            return min(self._filler_ms(turn), turn.released_ms + self.reply_deadline_ms)
        if turn.phase is Phase.COMMITTED and waits_since_ms is not None:
            return max(turn.committed_ms, waits_since_ms) + self.hold_ms
        return None

    def overdue(self, turn: Turn, *, at_ms: int) -> Overdue:
        """Decide what to do about a turn whose `due_ms` has passed."""
        if turn.phase is Phase.COMMITTED:
            return Overdue.DROP
        return Overdue.GIVE_UP if at_ms >= turn.released_ms + self.reply_deadline_ms else Overdue.FILL

    def _filler_ms(self, turn: Turn) -> int:
        """When a filler is due: at the deadline if there was one already, or none is wanted."""
        if not turn.filled and turn.lookup_is_slow:
            return turn.released_ms
        if turn.filled or not self.filler_after_ms:
            return turn.released_ms + self.reply_deadline_ms
        # After waiting for another NPC to finish, do not wait as long again.
        due_ms = max(turn.released_ms, turn.committed_ms + self.filler_after_ms)
        return due_ms if turn.first_word_ms is None else max(due_ms, turn.first_word_ms + _CLAUSE_MS)
