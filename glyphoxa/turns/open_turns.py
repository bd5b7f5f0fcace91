"""Hold the open turns, decide which of them may speak, and say how long each may wait.

`glyphoxa.turns.turn_taking` describes their life cycle. Rules of the floor:

1. Players outrank NPCs: an NPC does not begin while a player speaks.
2. One NPC speaks at a time. The highest priority is next; among equals, the one whose turn ended first. An NPC that
   was passed over several times is next in any case.
3. After an NPC falls silent, the next one leaves a gap of varying length. After a player there is no gap, because the
   end-of-turn wait has already passed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from glyphoxa.domain.budgets import GAP_MS
from glyphoxa.domain.campaign import DEFAULT_PRIORITY
from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn_record import Outcome, Stage
from glyphoxa.language.sentences import CHARS_PER_TOKEN
from glyphoxa.turns.turn import Begin, Cancel, Effect, Phase, SpokenQuestion, Turn

MAX_PASSED_OVER = 3
"""Later turns of a higher priority that may go first."""
_JITTER_SHARE = 6
"""The gap varies by up to a sixth."""


@dataclass(slots=True)
class _Waiting:
    turn: TurnId
    priority: int
    passed_over: int = 0


@dataclass(slots=True)
class Floor:
    """Grants the floor to one NPC turn at a time.

    Args:
        gap_ms: Silence between two NPCs. No gap is added after a player, because the end-of-turn wait has passed.
        jitter: Position in the range of the gap, -1 to 1; called once for each gap.
    """

    gap_ms: int = GAP_MS
    jitter: Callable[[], float] = lambda: 0.0
    holder: TurnId | None = None
    """The turn that has the floor."""
    _speaking_players: set[PlayerId] = field(default_factory=set)
    _waiting: list[_Waiting] = field(default_factory=list)
    """Ordered by request."""
    _open_from_ms: int = 0

    @property
    def is_quiet(self) -> bool:
        """Whether nobody speaks and nobody waits."""
        return not self._speaking_players and not self._waiting and self.holder is None

    @property
    def hears_players(self) -> bool:
        """Whether a player speaks."""
        return bool(self._speaking_players)

    def is_speaking(self, player: PlayerId) -> bool:
        return player in self._speaking_players

    def player_started(self, player: PlayerId) -> None:
        self._speaking_players.add(player)

    def player_stopped(self, player: PlayerId) -> None:
        self._speaking_players.discard(player)

    def request(self, turn: TurnId, *, priority: int = DEFAULT_PRIORITY) -> None:
        """Queue a turn. `grant` decides when it may begin."""
        if turn != self.holder and all(waiting.turn != turn for waiting in self._waiting):
            self._waiting.append(_Waiting(turn, priority))

    def withdraw(self, turn: TurnId) -> None:
        """Remove a waiting turn. A turn that holds the floor keeps it until it has fallen silent."""
        self._waiting = [waiting for waiting in self._waiting if waiting.turn != turn]

    def give_up(self, turn: TurnId, *, at_ms: int, was_heard: bool = True) -> None:
        """End a turn that held the floor or waited for it."""
        self.withdraw(turn)
        if self.holder == turn:
            self.holder = None
            if was_heard:
                self._open_from_ms = at_ms + self._gap_ms()

    def grant(self, *, at_ms: int) -> TurnId | None:
        """Give the floor to the next turn if it is free. None if no turn may begin now."""
        if self.holder is not None or self._speaking_players or not self._waiting or at_ms < self._open_from_ms:
            return None
        at = self._next()
        for passed_over in self._waiting[:at]:
            passed_over.passed_over += 1
        self.holder = self._waiting.pop(at).turn
        return self.holder

    def ask_again_ms(self, *, at_ms: int) -> int | None:
        """When the gap allows the next `grant`; None if another event must come first."""
        if self._waiting and self.holder is None and not self._speaking_players and at_ms < self._open_from_ms:
            return self._open_from_ms
        return None

    def _next(self) -> int:
        waited_enough = (at for at, each in enumerate(self._waiting) if each.passed_over >= MAX_PASSED_OVER)
        highest = max(range(len(self._waiting)), key=lambda at: (self._waiting[at].priority, -at))
        return next(waited_enough, highest)

    def _gap_ms(self) -> int:
        return self.gap_ms + round(self.gap_ms / _JITTER_SHARE * self.jitter())


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
    discarded_tokens: Counter[PlayerId] = field(default_factory=Counter)
    """Tokens of prepared answers that were discarded since the player's last answered turn."""
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
        turn = Turn(TurnId(f"t{next(self._numbers):04d}"), npc, draft.player, question, draft, words=words)
        self._turns[turn.id] = turn
        return turn

    def begin(self, turn: Turn) -> Begin:
        turn.begun = True
        return Begin(turn)

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
        if turn.phase is Phase.PREPARING:
            self.discarded_tokens[turn.player] += turn.prompt.tokens + len(turn.reply) // CHARS_PER_TOKEN
        if turn.phase is Phase.PREPARING or not turn.begun:
            del self._turns[turn.id]
        return Cancel(turn)

    def hush(self, turns: Iterable[Turn]) -> list[Effect]:
        """Cancel those of these turns that are not cancelled yet, with the outcome of their phase."""
        return [
            self.cancel(turn, _HUSHED_AS.get(turn.phase, Outcome.SUPERSEDED))
            for turn in turns
            if turn.cancelled_as is None
        ]

    def close(self, turn_id: TurnId) -> Turn | None:
        """Remove a turn whose engine has finished."""
        return self._turns.pop(turn_id, None)


_CLAUSE_MS, _VOICE_MS = 1_000, 500
"""An answer is heard within this time after its first word, or its first sentence, so a filler would delay it."""
_SILENT_MS = 3_000
"""Longest silence after a player's words before a filler, although the first words of an answer are there."""


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

    def overdue(self, turn: Turn, *, at_ms: int) -> Outcome | None:
        """Return the outcome with which to cancel a turn whose `due_ms` has passed; None if only a filler is due."""
        if turn.phase is Phase.COMMITTED:
            return Outcome.SUPERSEDED  # the answer waited too long for players to fall silent
        return Outcome.TIMED_OUT if at_ms >= turn.released_ms + self.reply_deadline_ms else None

    def _filler_ms(self, turn: Turn) -> int:
        """When a filler is due: at the deadline if there was one already, or none is wanted."""
        if not turn.filled and turn.lookup_is_slow:
            return turn.released_ms
        if turn.filled or not self.filler_after_ms:
            return turn.released_ms + self.reply_deadline_ms
        # After waiting for another NPC to finish, do not wait as long again.
        due_ms = max(turn.released_ms, turn.committed_ms + self.filler_after_ms)
        if Stage.FIRST_SENTENCE in turn.stages:
            return max(due_ms, turn.stages[Stage.FIRST_SENTENCE] + _VOICE_MS)
        word_ms = turn.stages.get(Stage.FIRST_TOKEN, due_ms - _CLAUSE_MS)
        return max(due_ms, min(word_ms + _CLAUSE_MS, turn.draft.speech_end_ms + _SILENT_MS))
