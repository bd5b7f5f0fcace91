"""Turn taking without a table: driven step by step, or by engines and people whose clock jumps."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from glyphoxa.domain.heard import Draft, EagerTurn, EarEvent, NothingSaid, PartialHeard, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId, UtteranceId
from glyphoxa.domain.turn_record import Outcome, Stage
from glyphoxa.turns.open_turns import Patience
from glyphoxa.turns.questions import Questions
from glyphoxa.turns.turn import AskAgain, Begin, Cancel, Commit, Effect, Release, Turn
from glyphoxa.turns.turn_taking import TurnTaking
from tests.support.builders import INNKEEPER, SMITH, a_draft
from tests.support.room_table import NAMES, named


class Evening:
    """The smith and the innkeeper. Keeps what is to be done."""

    def __init__(self, *, npc_to_npc: int = 0, **patience: int) -> None:
        self.talk = TurnTaking(Questions(named, NAMES), patience=Patience(**patience), npc_to_npc=npc_to_npc)
        self.talk.move((SMITH, INNKEEPER))
        self.done: list[Effect] = []
        self.now_ms = 0

    def hear(self, event: EarEvent, *, at_ms: int | None = None) -> list[Effect]:
        self.now_ms = at_ms if at_ms is not None else self.now_ms
        return self._kept(self.talk.on_ear(event, at_ms=self.now_ms))

    def says(self, player: PlayerId, text: str, *, at_ms: int) -> list[Effect]:
        """Speech, a pause, the end of the turn."""
        return self.says_line(a_draft(player, text, end_ms=at_ms + 500), at_ms=at_ms)

    def says_line(self, draft: Draft, *, at_ms: int) -> list[Effect]:
        self.hear(SpeechStarted(draft.player, at_ms), at_ms=at_ms)
        self.hear(EagerTurn(draft), at_ms=at_ms + 800)
        return self.hear(TurnEnded(draft, at_ms + 1_000), at_ms=at_ms + 1_000)

    def tick(self, *, at_ms: int) -> list[Effect]:
        self.now_ms = at_ms
        return self._kept(self.talk.tick(at_ms=at_ms))

    def is_heard(self, turn: Turn, reply: str = "", *, at_ms: int | None = None) -> list[Effect]:
        """Its first sound is there; so is its whole reply, if it is given."""
        self.now_ms = at_ms if at_ms is not None else self.now_ms
        self.talk.on_stage(turn, Stage.FIRST_AUDIO, at_ms=self.now_ms)
        turn.reply = reply
        return self._kept(self.talk.on_reply_known(turn, at_ms=self.now_ms)) if reply else []

    def finish(self, turn: Turn, *, at_ms: int, heard: str | None = None) -> list[Effect]:
        """Its reply was heard to its end, or so far."""
        self.now_ms = at_ms
        turn.reply_id = UtteranceId(f"reply of {turn.id}")
        return self._kept(self.talk.on_finished(turn.id, at_ms=at_ms, heard=turn.reply if heard is None else heard))

    def of(self, kind: type[Effect]) -> list[Effect]:
        return [effect for effect in self.done if isinstance(effect, kind)]

    def the_turn(self) -> Turn:
        begun = self.of(Begin)[-1]
        assert isinstance(begun, Begin)
        return begun.turn

    def cancelled(self) -> list[Turn]:
        return [effect.turn for effect in self.done if isinstance(effect, Cancel)]

    def _kept(self, effects: list[Effect]) -> list[Effect]:
        self.done += effects
        return effects


@dataclass(frozen=True)
class Engine:
    thinks_ms: int
    speaks_ms: int


class JumpingTable:
    """Engines and people whose acts are due at a time.

    Attributes:
        last_voice: Who spoke last and what; None if something else was heard since.
        cut_by: The last voice when a turn was interrupted.
    """

    def __init__(self, engines: Sequence[Engine], *, replies: Sequence[str] = ("",), npc_to_npc: int = 0) -> None:
        self.talk = Evening(npc_to_npc=npc_to_npc).talk
        self.now_ms = 0
        self.due: list[tuple[int, int, object]] = []
        self.owners: dict[TurnId, PlayerId] = {}
        self.committed: dict[TurnId, PlayerId] = {}
        self.heard: dict[TurnId, str] = {}
        self.ended: dict[TurnId, Outcome | None] = {}
        self.last_voice: tuple[PlayerId, str] | None = None
        self.cut_by: dict[TurnId, tuple[PlayerId, str] | None] = {}
        self.most_open = 0
        self._engines, self._replies = itertools.cycle(engines), itertools.cycle(replies)
        self._numbers = itertools.count()
        self._released: dict[TurnId, Turn] = {}
        self._thought: set[TurnId] = set()
        self._begun: dict[TurnId, tuple[NpcId, Engine]] = {}

    def at(self, at_ms: int, what: object) -> None:
        heapq.heappush(self.due, (at_ms, next(self._numbers), what))

    def step(self) -> object:
        """Take what is due next. Returns it."""
        self.now_ms, _, what = heapq.heappop(self.due)
        match what:
            case ("thought", str(turn)):
                self._thought.add(TurnId(turn))
                self._sound(TurnId(turn))
            case ("over", str(turn)):
                self._end(TurnId(turn))
            case "tick":
                self._perform(self.talk.tick(at_ms=self.now_ms))
            case SpeechStarted() | PartialHeard() | EagerTurn() | TurnEnded() | NothingSaid():
                self.hear(what)
        self.most_open = max(self.most_open, len(self.talk.turns))
        return what

    def hear(self, event: EarEvent) -> None:
        match event:
            case PartialHeard(player, heard):
                self.last_voice = player, heard.text
            case EagerTurn(draft) | TurnEnded(draft) if not draft.typed:
                self.last_voice = draft.player, draft.text
            case _:
                self.last_voice = None
        self._perform(self.talk.on_ear(event, at_ms=self.now_ms))

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Begin(turn):
                    busy = [npc for other, (npc, _) in self._begun.items() if other not in self.ended]
                    assert turn.npc not in busy, "an engine has one turn"
                    self.owners[turn.id] = turn.player
                    self._begun[turn.id] = turn.npc, (engine := next(self._engines))
                    self.at(self.now_ms + engine.thinks_ms, ("thought", turn.id))
                case Commit(turn):
                    self.owners[turn.id] = self.committed[turn.id] = turn.draft.player
                case Release(turn):
                    self._released[turn.id] = turn
                    self._sound(turn.id)
                case Cancel(turn):
                    if turn.cancelled_as is Outcome.INTERRUPTED:
                        self.cut_by[turn.id] = self.last_voice
                    # What was only prepared is cut short by whatever its engine is asked next.
                    if turn.begun and turn.cancelled_as is not None:
                        self.at(self.now_ms + 20, ("over", turn.id))
                    else:
                        self.ended[turn.id] = turn.cancelled_as
                case AskAgain(at_ms):
                    self.at(max(at_ms, self.now_ms), "tick")
                case _:
                    pass

    def _sound(self, turn: TurnId) -> None:
        if turn in self._released and turn in self._thought and turn not in self.ended:
            released = self._released[turn]
            self.heard[turn] = released.reply = next(self._replies)
            self.talk.on_stage(released, Stage.FIRST_AUDIO, at_ms=self.now_ms)
            self._perform(self.talk.on_reply_known(released, at_ms=self.now_ms))
            self.at(self.now_ms + self._begun[turn][1].speaks_ms, ("over", turn))

    def _end(self, turn: TurnId) -> None:
        if turn in self.ended:
            return
        ended = self.talk.turns.get(turn)
        self.ended[turn] = ended.cancelled_as if ended is not None else None
        self._perform(self.talk.on_finished(turn, at_ms=self.now_ms, heard=self.heard.get(turn, "")))
