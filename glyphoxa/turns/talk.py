"""The talk at one table: what happens is told to it, what must now be done comes back. No clock, no task.

The life of a turn:

    EagerTurn ──▶ PREPARING ──TurnEnded, same words──▶ COMMITTED ──floor──▶ RELEASED ──first audio──▶ HEARD ──▶ over
                     │                                     │                   │                       │
                     └─ player goes on, or other words:    └── player goes on: MERGED ──┘              └─ INTERRUPTED
                        dropped, as if it never was            the next turn answers both

A turn that is PREPARING is a speculation: it leaves no record. From COMMITTED on it ends in exactly one
`Outcome`. What a player said is kept (`Keep`) before anything else happens with it, addressed or not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import assert_never

from glyphoxa.domain.heard import Draft, EagerTurn, EarEvent, NothingSaid, PartialHeard, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn import Outcome
from glyphoxa.turns.address import Addressed, Addressing, Mention
from glyphoxa.turns.barge_in import cuts_off
from glyphoxa.turns.floor import Floor

FIND_MENTIONS = Callable[[str], Sequence[Mention]]


class _Phase(Enum):
    PREPARING = auto()
    COMMITTED = auto()
    RELEASED = auto()
    HEARD = auto()


@dataclass(slots=True)
class _Turn:
    id: TurnId
    npc: NpcId
    player: PlayerId
    question: str
    draft: Draft
    phase: _Phase
    begun: bool = False
    committed_ms: int = 0
    cancelled_as: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Prime:
    """Somebody is speaking, probably to this NPC: get ready."""

    npc: NpcId
    player: PlayerId
    text: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Let the NPC think of an answer; nothing may be heard yet."""

    turn: TurnId
    npc: NpcId
    player: PlayerId
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
    """A turn that no NPC answers: recorded, so that figures are not survivor-biased."""

    draft: Draft
    addressed: Addressed


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Call `tick` at this time."""

    at_ms: int


Effect = Prime | Begin | Commit | Release | Fill | Cancel | Keep | NotAddressed | AskAgain


def _same_words(a: str, b: str) -> bool:
    return re.findall(r"\w+", a.lower()) == re.findall(r"\w+", b.lower())


@dataclass(frozen=True, slots=True)
class _Carried:
    """A question whose answer was called off because its speaker seemed to go on."""

    question: str
    draft: Draft


@dataclass(slots=True)
class Talk:
    """Who is answered by whom, and when they may be heard.

    Args:
        mentions: Finds the names of NPCs and players in words.
        names: What each NPC of the campaign is called.
        reply_deadline_ms: From the end of the player's turn to the first audio; later, the turn is TIMED_OUT.
        filler_after_ms: From the end of the player's turn to a filler; 0 for none.
        hold_ms: How long an answer waits for players to fall silent before it is dropped as SUPERSEDED.
    """

    mentions: FIND_MENTIONS
    names: Mapping[NpcId, str]
    floor: Floor = field(default_factory=Floor)
    addressing: Addressing = field(default_factory=Addressing)
    reply_deadline_ms: int = 15_000
    filler_after_ms: int = 0
    hold_ms: int = 20_000
    _present: tuple[NpcId, ...] = ()
    _turns: dict[TurnId, _Turn] = field(default_factory=dict)
    _carried: dict[PlayerId, _Carried] = field(default_factory=dict)
    _wants_to_cut: set[PlayerId] = field(default_factory=set)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def present(self) -> tuple[NpcId, ...]:
        return self._present

    @property
    def is_quiet(self) -> bool:
        return self.floor.is_quiet and not self._turns

    def move(self, present: Sequence[NpcId]) -> list[Effect]:
        """The scene changed: only these NPCs are here now. Answers of the others are called off."""
        self._present = tuple(present)
        self.addressing.forget_all()
        self._carried.clear()
        return self._hush([turn for turn in self._turns.values() if turn.npc not in self._present])

    def hush_all(self) -> list[Effect]:
        """The session ends: no answer goes on."""
        self._carried.clear()
        return self._hush(list(self._turns.values()))

    def on_ear(self, event: EarEvent, *, at_ms: int) -> list[Effect]:
        """Take what an ear heard; return what must now be done, in order."""
        match event:
            case SpeechStarted(player):
                return self._on_started(player, at_ms)
            case PartialHeard(player, text):
                return self._on_partial(player, text, at_ms)
            case EagerTurn(draft):
                return self._on_eager(draft, at_ms)
            case TurnEnded(draft):
                return self._on_ended(draft, at_ms)
            case NothingSaid(player):
                return self._on_nothing(player, at_ms)
            case _:
                assert_never(event)

    def on_first_audio(self, turn_id: TurnId) -> None:
        turn = self._turns.get(turn_id)
        if turn is not None and turn.phase is _Phase.RELEASED:
            turn.phase = _Phase.HEARD

    def on_finished(self, turn_id: TurnId, *, at_ms: int) -> tuple[Outcome | None, list[Effect]]:
        """The NPC's engine is done with a turn.

        Returns:
            The outcome that was decided when it was cancelled, None if it was not; and what must now be done.
        """
        turn = self._turns.pop(turn_id, None)
        if turn is None:
            return None, []
        self.floor.give_up(turn_id, at_ms=at_ms)
        if turn.phase is _Phase.HEARD:
            self.addressing.remember(turn.player, turn.npc, at_ms=at_ms)
        queued = next((t for t in self._turns.values() if t.npc == turn.npc and not t.begun), None)
        begin: list[Effect] = []
        if queued is not None:
            begin.append(self._begin(queued))
            self.floor.request(queued.id)
        return turn.cancelled_as, [*begin, *self._release(at_ms)]

    def tick(self, *, at_ms: int) -> list[Effect]:
        """Time has come for something that was put off."""
        effects: list[Effect] = []
        for turn in list(self._turns.values()):
            waited_ms = at_ms - turn.committed_ms
            if turn.cancelled_as is not None or turn.phase in (_Phase.PREPARING, _Phase.HEARD):
                continue
            if turn.phase is _Phase.RELEASED and waited_ms >= self.reply_deadline_ms:
                effects.append(self._cancel(turn, Outcome.TIMED_OUT))
            elif turn.phase is _Phase.COMMITTED and waited_ms >= self.hold_ms:
                effects.append(self._cancel(turn, Outcome.SUPERSEDED))
            elif turn.phase is _Phase.RELEASED and 0 < self.filler_after_ms <= waited_ms < self.reply_deadline_ms:
                effects.append(Fill(turn.id, turn.npc))
        return [*effects, *self._release(at_ms)]

    # -- ears

    def _on_started(self, player: PlayerId, at_ms: int) -> list[Effect]:
        self.floor.player_started(player)
        if self.floor.holder is not None:
            self._wants_to_cut.add(player)
        effects: list[Effect] = []
        for turn in self._turns_of(player):
            if turn.phase is _Phase.PREPARING:
                effects.append(self._cancel(turn, None))
            elif turn.phase is not _Phase.HEARD:
                # They go on before the answer was heard: both parts are one question.
                self._carried[player] = _Carried(turn.question, turn.draft)
                effects.append(self._cancel(turn, Outcome.MERGED))
        return effects

    def _on_partial(self, player: PlayerId, text: str, at_ms: int) -> list[Effect]:
        effects = self._cut_off(player, text)
        whole = self._with_carried(player, text)
        npc = self._decide(player, whole, at_ms).npc
        if npc is not None and not any(turn.npc == npc for turn in self._turns.values()):
            effects.append(Prime(npc, player, whole))
        return effects

    def _on_eager(self, draft: Draft, at_ms: int) -> list[Effect]:
        effects = self._cut_off(draft.player, draft.text)
        question = self._with_carried(draft.player, draft.text)
        addressed = self._decide(draft.player, question, at_ms)
        if addressed.npc is None or self._turns_to(addressed.npc):
            return effects
        turn = self._new_turn(addressed.npc, draft, question)
        return [*effects, self._begin(turn)]

    def _on_ended(self, draft: Draft, at_ms: int) -> list[Effect]:
        self.floor.player_stopped(draft.player)
        effects = self._cut_off(draft.player, draft.text)
        self._wants_to_cut.discard(draft.player)
        question = self._with_carried(draft.player, draft.text)
        addressed = self._decide(draft.player, question, at_ms)
        effects.append(Keep(draft, addressed))
        prepared = next((t for t in self._turns_of(draft.player) if t.phase is _Phase.PREPARING), None)
        if addressed.npc is None:
            if prepared is not None:
                effects.append(self._cancel(prepared, None))
            self._carried.pop(draft.player, None)
            return [*effects, NotAddressed(draft, addressed), *self._release(at_ms)]
        if prepared is not None and (prepared.npc != addressed.npc or not _same_words(prepared.question, question)):
            effects.append(self._cancel(prepared, None))
            prepared = None
        if prepared is None:
            prepared = self._new_turn(addressed.npc, draft, question)
        return [*effects, *self._commit(prepared, draft, addressed, at_ms)]

    def _on_nothing(self, player: PlayerId, at_ms: int) -> list[Effect]:
        self.floor.player_stopped(player)
        self._wants_to_cut.discard(player)
        carried = self._carried.pop(player, None)
        if carried is None:
            return self._release(at_ms)
        # It was only a noise: the question that was called off for it still wants its answer.
        addressed = self._decide(player, carried.question, at_ms)
        if addressed.npc is None:
            return self._release(at_ms)
        turn = self._new_turn(addressed.npc, carried.draft, carried.question)
        return self._commit(turn, carried.draft, addressed, at_ms)

    def _commit(self, turn: _Turn, draft: Draft, addressed: Addressed, at_ms: int) -> list[Effect]:
        speculations = [t for t in self._turns_to(turn.npc) if t.phase is _Phase.PREPARING and t is not turn]
        effects: list[Effect] = [self._cancel(other, None) for other in speculations]
        self._carried.pop(turn.player, None)
        turn.phase, turn.draft, turn.committed_ms = _Phase.COMMITTED, draft, at_ms
        if not turn.begun and not any(other.begun for other in self._turns.values() if other.npc == turn.npc):
            effects.append(self._begin(turn))
        self.addressing.remember(turn.player, turn.npc, at_ms=at_ms)
        effects.append(Commit(turn.id, turn.npc, draft, addressed, at_ms))
        if turn.begun:  # what the NPC was not asked yet cannot be heard
            self.floor.request(turn.id)
        effects.append(AskAgain(at_ms + self.hold_ms))
        return [*effects, *self._release(at_ms)]

    # -- pieces

    def _decide(self, player: PlayerId, text: str, at_ms: int) -> Addressed:
        return self.addressing.decide(player, self.mentions(text), present=self._present, names=self.names, at_ms=at_ms)

    def _with_carried(self, player: PlayerId, text: str) -> str:
        carried = self._carried.get(player)
        return f"{carried.question} {text}" if carried else text

    def _turns_of(self, player: PlayerId) -> list[_Turn]:
        return [t for t in self._turns.values() if t.player == player and t.cancelled_as is None]

    def _turns_to(self, npc: NpcId) -> list[_Turn]:
        """What this NPC is being asked. An engine answers one thing at a time: a speculation must not cut
        another off, and a committed turn waits for the one before it.
        """
        return [turn for turn in self._turns.values() if turn.npc == npc]

    def _new_turn(self, npc: NpcId, draft: Draft, question: str) -> _Turn:
        turn = _Turn(TurnId(f"t{next(self._numbers):04d}"), npc, draft.player, question, draft, _Phase.PREPARING)
        self._turns[turn.id] = turn
        return turn

    def _begin(self, turn: _Turn) -> Begin:
        turn.begun = True
        return Begin(turn.id, turn.npc, turn.player, turn.question)

    def _cancel(self, turn: _Turn, outcome: Outcome | None) -> Cancel:
        turn.cancelled_as = outcome
        self.floor.withdraw(turn.id)
        if turn.phase is _Phase.PREPARING or not turn.begun:
            del self._turns[turn.id]
        return Cancel(turn.id, turn.npc, outcome, turn.begun)

    def _hush(self, turns: Sequence[_Turn]) -> list[Effect]:
        outcomes = {_Phase.PREPARING: None, _Phase.HEARD: Outcome.INTERRUPTED}
        return [
            self._cancel(turn, outcomes.get(turn.phase, Outcome.SUPERSEDED))
            for turn in turns
            if turn.cancelled_as is None
        ]

    def _cut_off(self, player: PlayerId, text: str) -> list[Effect]:
        if player not in self._wants_to_cut or not cuts_off(text):
            return []
        holder = self._turns.get(self.floor.holder) if self.floor.holder is not None else None
        if holder is None or holder.cancelled_as is not None or holder.phase is not _Phase.HEARD:
            return []
        self._wants_to_cut.discard(player)
        return [self._cancel(holder, Outcome.INTERRUPTED)]

    def _release(self, at_ms: int) -> list[Effect]:
        granted = self.floor.grant(at_ms=at_ms)
        if granted is None:
            again_ms = self.floor.ask_again_ms(at_ms=at_ms)
            return [AskAgain(again_ms)] if again_ms is not None else []
        turn = self._turns[granted]
        turn.phase = _Phase.RELEASED
        effects: list[Effect] = [Release(turn.id, turn.npc), AskAgain(turn.committed_ms + self.reply_deadline_ms)]
        if self.filler_after_ms:
            effects.append(AskAgain(turn.committed_ms + self.filler_after_ms))
        return effects
