"""Turn taking at one table: what happens is told to it, what must now be done comes back. No clock, no task.

The life of a turn:

    EagerTurn ──▶ PREPARING ──TurnEnded, same words──▶ COMMITTED ──floor──▶ RELEASED ──first audio──▶ HEARD ──▶ over
                     │                                     │                   │                       │
                     └─ player goes on, or other words:    └── player goes on: MERGED ──┘              └─ INTERRUPTED
                        dropped, as if it never was            the next turn answers both

A turn that is PREPARING is a speculation: it leaves no record. From COMMITTED on it ends in exactly one
`Outcome`. What a player said is kept (`Keep`) before anything else happens with it, addressed or not.

Nobody takes another's turn away:

- Of a question that its speaker goes on with, only the newest parts are asked together; all of them were kept.
- What is typed cuts off no answer but the typist's own. A voice is what cuts an NPC off.
- Questions to one NPC are answered in the order in which they were asked, and so is the floor given. Who goes on
  with theirs is last in line again; who has none under way waits for one answer to each of the others at most.
- Waiting for others to be answered makes no answer late: `hold_ms` and `reply_deadline_ms` count only while nobody is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from glyphoxa.domain.heard import Draft, EagerTurn, EarEvent, NothingSaid, PartialHeard, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn import Outcome
from glyphoxa.turns.address import Addressed, AddresseeMention, Addressing, Said
from glyphoxa.turns.barge_in import cuts_off
from glyphoxa.turns.effects import AskAgain, Begin, Cancel, Commit, Effect, Fill, Keep, NotAddressed, Prime, Release
from glyphoxa.turns.floor import Floor
from glyphoxa.turns.question import SpokenQuestion, same_words
from glyphoxa.turns.turn import Carried, Phase, Turn

FIND_MENTIONS = Callable[[str], Sequence[AddresseeMention]]


@dataclass(slots=True)
class TurnTaking:
    """Who is answered by whom, and when they may be heard.

    Args:
        mentions: Finds the names of NPCs and players in words.
        names: What each NPC of the campaign is called.
        reply_deadline_ms: From when the answer may be heard (usually the end of the player's turn) to the first audio;
            later, the turn is TIMED_OUT.
        filler_after_ms: Likewise to a filler; 0 for none.
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
    _turns: dict[TurnId, Turn] = field(default_factory=dict)
    _carried: dict[PlayerId, Carried] = field(default_factory=dict)
    _wants_to_cut: set[PlayerId] = field(default_factory=set)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _moved_ms: int = 0
    """When the floor was last given or given back."""
    _asked_ms: int | None = None

    @property
    def present(self) -> tuple[NpcId, ...]:
        return self._present

    @property
    def is_quiet(self) -> bool:
        return self.floor.is_quiet and not self._turns

    @property
    def n_waiting(self) -> int:
        """Turns that no engine was asked yet."""
        return sum(not turn.begun for turn in self._turns.values())

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
        return self._then(self._on_ear(event, at_ms), at_ms)

    def _on_ear(self, event: EarEvent, at_ms: int) -> list[Effect]:
        match event:
            case SpeechStarted(player):
                return self._on_started(player, at_ms)
            case PartialHeard(player, heard):
                return self._on_partial(player, heard.text, at_ms)
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
        if turn is not None and turn.phase is Phase.RELEASED:
            turn.phase = Phase.HEARD

    def on_finished(self, turn_id: TurnId, *, at_ms: int) -> tuple[Outcome | None, list[Effect]]:
        """The NPC's engine is done with a turn.

        Returns:
            The outcome that was decided when it was cancelled, None if it was not; and what must now be done.
        """
        turn = self._turns.pop(turn_id, None)
        if turn is None:
            return None, []
        if self.floor.holder == turn_id:
            self._moved_ms = at_ms
        self.floor.give_up(turn_id, at_ms=at_ms, was_heard=turn.phase is Phase.HEARD)
        if turn.phase is Phase.HEARD:
            self.addressing.remember(turn.player, turn.npc, at_ms=at_ms)
        queued = next((t for t in self._turns.values() if t.npc == turn.npc and not t.begun), None)
        begin: list[Effect] = []
        if queued is not None:
            begin.append(self._begin(queued))
            self.floor.request(queued.id)
        return turn.cancelled_as, self._then([*begin, *self._release(at_ms)], at_ms)

    def looks_up_long(self, npc: NpcId, *, at_ms: int) -> list[Effect]:
        """Its answer waits for a tool: a filler is heard as soon as the NPC may be."""
        for turn in self._turns.values():
            if turn.npc == npc and turn.begun:
                turn.looks_up_long = True
        return self._then([], at_ms)

    def tick(self, *, at_ms: int) -> list[Effect]:
        """Time has come for something that was put off."""
        if self._asked_ms is not None and at_ms >= self._asked_ms:
            self._asked_ms = None
        effects: list[Effect] = []
        for turn in list(self._turns.values()):
            due_ms = self._due_ms(turn)
            if due_ms is None or at_ms < due_ms:
                continue
            if turn.phase is Phase.COMMITTED:
                effects.append(self._cancel(turn, Outcome.SUPERSEDED))
            elif at_ms >= turn.released_ms + self.reply_deadline_ms:
                effects.append(self._cancel(turn, Outcome.TIMED_OUT))
            else:
                turn.filled = True
                effects.append(Fill(turn.id, turn.npc))
        return self._then([*effects, *self._release(at_ms)], at_ms)

    def _due_ms(self, turn: Turn) -> int | None:
        """When something is to be done about a turn because time has passed; None for not before something happens."""
        if turn.cancelled_as is not None:
            return None
        if turn.phase is Phase.RELEASED:
            filler_ms = self._filler_ms(turn)
            return turn.released_ms + min(filler_ms, self.reply_deadline_ms)
        if turn.phase is Phase.COMMITTED and not self._is_somebody_heard():
            return max(turn.committed_ms, self._moved_ms) + self.hold_ms
        return None

    def _filler_ms(self, turn: Turn) -> int:
        """From when its answer may be heard; not before the deadline if it has had one, or is to have none."""
        if turn.filled:
            return self.reply_deadline_ms
        return 0 if turn.looks_up_long else self.filler_after_ms or self.reply_deadline_ms

    def _is_somebody_heard(self) -> bool:
        holder = self._turns.get(self.floor.holder) if self.floor.holder is not None else None
        return holder is not None and holder.phase is Phase.HEARD and holder.cancelled_as is None

    def _then(self, effects: list[Effect], at_ms: int) -> list[Effect]:
        """With a wish to be asked again, unless one that was made before comes in time."""
        dues = [self.floor.ask_again_ms(at_ms=at_ms), *map(self._due_ms, self._turns.values())]
        due_ms = min((due for due in dues if due is not None), default=None)
        if due_ms is None or (self._asked_ms is not None and at_ms < self._asked_ms <= due_ms):
            return effects
        self._asked_ms = due_ms
        return [*effects, AskAgain(due_ms)]

    # -- ears

    def _on_started(self, player: PlayerId, at_ms: int) -> list[Effect]:
        self.floor.player_started(player)
        if self.floor.holder is not None:
            self._wants_to_cut.add(player)
        effects: list[Effect] = [
            self._cancel(turn, None) for turn in self._turns_of(player) if turn.phase is Phase.PREPARING
        ]
        return [*effects, *self._merge(player)]

    def _merge(self, player: PlayerId) -> list[Effect]:
        """They go on before the answer was heard: both parts are one question."""
        effects: list[Effect] = []
        for turn in self._turns_of(player):
            if turn.phase in (Phase.COMMITTED, Phase.RELEASED):
                self._carried[player] = Carried(turn.question, turn.draft)
                effects.append(self._cancel(turn, Outcome.MERGED))
        return effects

    def _on_partial(self, player: PlayerId, text: str, at_ms: int) -> list[Effect]:
        effects = self._cut_off(player, text, at_ms)
        addressed, question = self._meant(player, text, at_ms)
        npc = addressed.npc
        if npc is not None and not any(turn.npc == npc for turn in self._turns.values()):
            effects.append(Prime(npc, player, question.text))
        return effects

    def _on_eager(self, draft: Draft, at_ms: int) -> list[Effect]:
        effects = self._cut_off(draft.player, draft.text, at_ms)
        addressed, question = self._meant(draft.player, draft.text, at_ms)
        if addressed.npc is None or self._turns_to(addressed.npc):
            return effects
        turn = self._new_turn(addressed.npc, draft, question)
        return [*effects, self._begin(turn)]

    def _on_ended(self, draft: Draft, at_ms: int) -> list[Effect]:
        player = draft.player
        self.floor.player_stopped(player)
        effects = self._cut_off(player, draft.text, at_ms, is_typed=draft.typed)
        self._wants_to_cut.discard(player)
        effects += self._merge(player)  # of speech that no detector heard the beginning of
        addressed, question = self._meant(player, draft.text, at_ms)
        effects.append(Keep(draft, addressed))
        prepared = next((t for t in self._turns_of(player) if t.phase is Phase.PREPARING), None)
        if addressed.npc is None:
            if prepared is not None:
                effects.append(self._cancel(prepared, None))
            is_between = addressed.is_aside and player in self._carried
            effects.append(NotAddressed(draft, addressed, is_between))
            return [*effects, *(self._ask_again(player, at_ms) if is_between else self._let_go(player, at_ms))]
        if prepared is not None and (
            prepared.npc != addressed.npc or not same_words(prepared.question.text, question.text)
        ):
            effects.append(self._cancel(prepared, None))
            prepared = None
        if prepared is None:
            prepared = self._new_turn(addressed.npc, draft, question)
        return [*effects, *self._commit(prepared, draft, addressed, at_ms)]

    def _on_nothing(self, player: PlayerId, at_ms: int) -> list[Effect]:
        self.floor.player_stopped(player)
        self._wants_to_cut.discard(player)
        return self._ask_again(player, at_ms)

    def _ask_again(self, player: PlayerId, at_ms: int) -> list[Effect]:
        """It was only a noise, or nothing of theirs: the question that was called off for it still wants its answer."""
        carried = self._carried.pop(player, None)
        addressed = self._decide(player, carried.question.text, at_ms) if carried is not None else None
        if carried is None or addressed is None or addressed.npc is None:
            return self._release(at_ms)
        turn = self._new_turn(addressed.npc, carried.draft, carried.question)
        return self._commit(turn, carried.draft, addressed, at_ms)

    def _let_go(self, player: PlayerId, at_ms: int) -> list[Effect]:
        self._carried.pop(player, None)
        return self._release(at_ms)

    def _commit(self, turn: Turn, draft: Draft, addressed: Addressed, at_ms: int) -> list[Effect]:
        speculations = [t for t in self._turns_to(turn.npc) if t.phase is Phase.PREPARING and t is not turn]
        effects: list[Effect] = [self._cancel(other, None) for other in speculations]
        self._carried.pop(turn.player, None)
        turn.phase, turn.draft, turn.committed_ms = Phase.COMMITTED, draft, at_ms
        if not turn.begun and not any(other.begun for other in self._turns.values() if other.npc == turn.npc):
            effects.append(self._begin(turn))
        self.addressing.remember(turn.player, turn.npc, at_ms=at_ms)
        effects.append(Commit(turn.id, turn.npc, draft, addressed, at_ms))
        if turn.begun:  # what the NPC was not asked yet cannot be heard
            self.floor.request(turn.id)
        return [*effects, *self._release(at_ms)]

    # -- pieces

    def _decide(self, player: PlayerId, text: str, at_ms: int) -> Addressed:
        said = Said(player, text, self.mentions(text))
        return self.addressing.decide(said, present=self._present, names=self.names, at_ms=at_ms)

    def _meant(self, player: PlayerId, text: str, at_ms: int) -> tuple[Addressed, SpokenQuestion]:
        """Whom these words are meant for, and what is asked with them."""
        carried = self._carried.get(player)
        alone = self._decide(player, text, at_ms)
        if carried is None or alone.is_aside:
            return alone, SpokenQuestion((text,))
        question = carried.question.going_on(text)
        return self._decide(player, question.text, at_ms), question

    def _turns_of(self, player: PlayerId) -> list[Turn]:
        return [t for t in self._turns.values() if t.player == player and t.cancelled_as is None]

    def _turns_to(self, npc: NpcId) -> list[Turn]:
        """What this NPC is being asked. An engine answers one thing at a time: a speculation must not cut
        another off, and a committed turn waits for the one before it.
        """
        return [turn for turn in self._turns.values() if turn.npc == npc]

    def _new_turn(self, npc: NpcId, draft: Draft, question: SpokenQuestion) -> Turn:
        turn = Turn(TurnId(f"t{next(self._numbers):04d}"), npc, draft.player, question, draft, Phase.PREPARING)
        self._turns[turn.id] = turn
        return turn

    def _begin(self, turn: Turn) -> Begin:
        turn.begun = True
        # What is only prepared for was not kept yet.
        n_kept = len(turn.question.parts) - (turn.phase is Phase.PREPARING)
        return Begin(turn.id, turn.npc, turn.player, turn.question.text, n_kept)

    def _cancel(self, turn: Turn, outcome: Outcome | None) -> Cancel:
        turn.cancelled_as = outcome
        self.floor.withdraw(turn.id)
        if turn.phase is Phase.PREPARING or not turn.begun:
            del self._turns[turn.id]
        return Cancel(turn.id, turn.npc, outcome, turn.begun)

    def _hush(self, turns: Sequence[Turn]) -> list[Effect]:
        outcomes = {Phase.PREPARING: None, Phase.HEARD: Outcome.INTERRUPTED}
        return [
            self._cancel(turn, outcomes.get(turn.phase, Outcome.SUPERSEDED))
            for turn in turns
            if turn.cancelled_as is None
        ]

    def _cut_off(self, player: PlayerId, text: str, at_ms: int, *, is_typed: bool = False) -> list[Effect]:
        if player not in self._wants_to_cut or not cuts_off(text):
            return []
        holder = self._turns.get(self.floor.holder) if self.floor.holder is not None else None
        if holder is None or holder.cancelled_as is not None or holder.phase is not Phase.HEARD:
            return []
        if is_typed and holder.player != player:
            return []
        self._wants_to_cut.discard(player)
        self._moved_ms = at_ms
        return [self._cancel(holder, Outcome.INTERRUPTED)]

    def _release(self, at_ms: int) -> list[Effect]:
        granted = self.floor.grant(at_ms=at_ms)
        if granted is None:
            return []
        turn = self._turns[granted]
        turn.phase, turn.released_ms = Phase.RELEASED, at_ms
        self._moved_ms = at_ms
        return [Release(turn.id, turn.npc)]
