"""Decides turn taking at one table: events in, effects out. It has no clock and no tasks.

The life of a turn:

    EagerTurn ──▶ PREPARING ──TurnEnded, same words──▶ COMMITTED ──floor──▶ RELEASED ──first audio──▶ HEARD ──▶ over
                     │                                     │                   │                       │
                     └─ player goes on, other words, or    └── player goes on: MERGED ──┘              └─ INTERRUPTED
                        it failed: dropped without             the next turn answers both
                        a record

A PREPARING turn is a speculation and leaves no record. From COMMITTED on, it ends in exactly one `Outcome`. A player's
words are stored (`Keep`) before anything else happens with them, addressed or not.

Fairness:

- When a speaker continues a question, the newest parts are asked together. All parts are stored.
- Typed text interrupts only the answer to its own author. A voice interrupts any NPC.
- An NPC answers questions in the order in which they were asked. NPCs of equal priority get the floor in the order in
  which their turns ended. A speaker who continues a question moves to the end of the queue. A speaker without an open
  turn waits for at most one answer to each other player, and a few more if priorities differ
  (`glyphoxa.turns.open_turns`).
- Conversation among NPCs never delays a player.
- Time spent waiting for other answers does not count: `hold_ms` and `reply_deadline_ms` pause meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from glyphoxa.domain.heard import (
    Draft,
    EagerTurn,
    EarEvent,
    Heard,
    NothingSaid,
    PartialHeard,
    SpeechPaused,
    SpeechStarted,
    TurnEnded,
)
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn_record import Outcome, Stage, Unaddressed
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.barge_in import BargeIn, BargeInAction, cuts_off, encourages
from glyphoxa.turns.open_turns import OpenTurns, Patience
from glyphoxa.turns.questions import Questions
from glyphoxa.turns.turn import (
    AskAgain,
    Commit,
    Effect,
    Fill,
    Hold,
    Keep,
    Phase,
    Prime,
    QuestionPart,
    Readdressed,
    Release,
    Resume,
    SpokenQuestion,
    Turn,
    same_words,
)

# Conversation among NPCs.
#
# Rules:
#
# 1. If a player calls two NPCs, the first answers. The second reacts once, directly after it, to the part that was
#    heard. The reaction is generated while the answer plays.
# 2. If the DM or the settings allow it (`max_in_a_row`), an NPC that another NPC calls in its answer replies, up to
#    this number of answers without a player. Answers to players go first.
# 3. A player's words or a change of scene cancel follow-ups that have not been heard.
# 4. An interrupted answer triggers no reaction and calls nobody, because unheard words were not said.


@dataclass(slots=True)
class FollowUps:
    """Answers of NPCs to other NPCs, by the rules above.

    Args:
        npc_to_npc: See `max_in_a_row`, as long as the DM sets nothing else.
    """

    questions: Questions
    turns: OpenTurns
    npc_to_npc: int = 0

    @property
    def max_in_a_row(self) -> int:
        """Maximum answers among NPCs without a player between them; 0: they only answer players."""
        by_dm = self.questions.controls.npc_to_npc
        return self.npc_to_npc if by_dm is None else by_dm

    def prepare(self, lead: Turn, reply: str, *, at_ms: int) -> list[Effect]:
        """Begin the reaction to an answer whose text is complete but mostly unheard."""
        second = lead.second
        if second is None or not self.questions.may_speak(second) or lead.cancelled_as or self.turns.to(second):
            return []
        return [self.turns.begin(self._open(lead, second, reply, at_ms))]

    def after(self, turn: Turn, heard: str, *, at_ms: int) -> tuple[list[Effect], tuple[Turn, Addressed] | None]:
        """Return the effects of a finished turn, and the follow-up turn to commit."""
        prepared = next((other for other in self.turns if other.reacts_to == turn.id), None)
        is_whole = turn.cancelled_as is None and turn.phase is Phase.HEARD
        effects: list[Effect] = []
        if prepared is not None and not (is_whole and same_words(prepared.question.text, heard)):
            effects.append(self.turns.cancel(prepared, None))
            prepared = None
        addressed = self._next(turn, heard) if is_whole else None
        if addressed is None or addressed.npc is None:
            return effects, None
        if prepared is None:
            if self.turns.to(addressed.npc):
                return effects, None
            prepared = self._open(turn, addressed.npc, heard, at_ms)
        prepared.draft, prepared.question = _asked(turn, heard, at_ms)
        return effects, (prepared, addressed)

    def call_off(self) -> list[Effect]:
        """Cancel unheard follow-ups because a player spoke."""
        answering = (turn for turn in self.turns if turn.answers is not None)
        return self.turns.hush(turn for turn in answering if turn.phase is not Phase.HEARD)

    def _next(self, turn: Turn, heard: str) -> Addressed | None:
        """Return who answers these words, and why."""
        name = self.questions.names[turn.npc]
        if turn.second is not None and self.questions.may_speak(turn.second):
            return Addressed(turn.second, f"called together with {name}")
        if turn.n_in_a_row >= self.max_in_a_row or self.turns.floor.hears_players:
            return None
        npc = self.questions.called_by(turn.npc, heard)
        return Addressed(npc, f"{name} called {self.questions.names[npc]}") if npc is not None else None

    def _open(self, turn: Turn, npc: NpcId, words: str, at_ms: int) -> Turn:
        opened = self.turns.open(npc, *_asked(turn, words, at_ms))
        opened.answers = turn.npc
        opened.reacts_to = turn.id if turn.second is not None else None
        opened.n_in_a_row = turn.n_in_a_row + 1
        return opened


def _asked(turn: Turn, words: str, at_ms: int) -> tuple[Draft, SpokenQuestion]:
    """Return an answer's words as a draft with the NPC in the player's place, and as a question."""
    draft = Draft(PlayerId(turn.npc), Heard(words, words, (), at_ms, at_ms), at_ms, at_ms, utterance=turn.reply_id)
    return draft, SpokenQuestion((QuestionPart(words, turn.reply_id),))


@dataclass(slots=True)
class TurnTaking:
    """Decides which NPC answers which player, and when it may be heard.

    Args:
        turns: Open turns and the floor that they wait for.
        max_discarded_tokens: After this many tokens of discarded answers to one question, the next one waits for the
            end of the turn.
    """

    questions: Questions
    turns: OpenTurns = field(default_factory=OpenTurns)
    patience: Patience = field(default_factory=Patience)
    barge_in: BargeIn = field(default_factory=BargeIn)
    npc_to_npc: int = 0
    max_discarded_tokens: int = 8_000
    follow_ups: FollowUps = field(init=False)
    _asked_ms: int | None = None

    def __post_init__(self) -> None:
        self.follow_ups = FollowUps(self.questions, self.turns, self.npc_to_npc)

    @property
    def present(self) -> tuple[NpcId, ...]:
        return self.questions.present

    @property
    def is_quiet(self) -> bool:
        return self.turns.floor.is_quiet and not self.turns

    @property
    def n_waiting(self) -> int:
        """Number of turns that no engine has begun."""
        return sum(not turn.begun for turn in self.turns)

    def move(self, present: Sequence[NpcId]) -> list[Effect]:
        """Change the scene to these NPCs. Cancel the answers of all others."""
        self.questions.move(present)
        called_off = self.follow_ups.call_off()
        return [*called_off, *self.turns.hush(turn for turn in self.turns if turn.npc not in self.present)]

    def hush_all(self) -> list[Effect]:
        """Cancel all answers, because the session ends or the DM stops everybody."""
        self.questions.forget_all()
        return self.turns.hush(self.turns)

    def silence(self, npcs: Collection[NpcId], *, at_ms: int) -> list[Effect]:
        """Cancel the answers of these NPCs, heard or not, because the DM muted them."""
        effects = self.turns.hush(turn for turn in self.turns if turn.npc in npcs)
        return self._then([*effects, *self._release(at_ms)], at_ms)

    def say(self, npc: NpcId, draft: Draft, addressed: Addressed, *, at_ms: int) -> list[Effect]:
        """Queue the DM's words for this NPC before all waiting turns. Cancel its current answer.

        Args:
            draft: The NPC's words. Their speaker has no seat at the table.
        """
        effects = self.turns.hush(turn for turn in self.turns.to(npc) if turn.begun and not turn.words)
        turn = self.turns.open(npc, draft, SpokenQuestion((QuestionPart(draft.text),)), words=draft.text)
        return self._then([*effects, *self._commit(turn, draft, addressed, at_ms)], at_ms)

    def readdress(self, draft: Draft, addressed: Addressed, *, at_ms: int) -> list[Effect]:
        """Act on the DM's decision who a stored line was meant for.

        The answers of others to it are cancelled, and the right NPC answers it unless it does so already.

        Args:
            draft: The line, with the id of its utterance.
        """
        about = [turn for turn in self.turns.of(draft.player) if draft.utterance in turn.question.utterances]
        wrong = [turn for turn in about if turn.npc != addressed.npc]
        for turn in wrong:
            if turn.addressed is not None:
                turn.addressed = replace(addressed, reason=f"{turn.addressed.reason}; {addressed.reason}")
        effects = [*self.turns.hush(wrong), *self.follow_ups.call_off()]
        self.questions.readdress(draft.player, draft.utterance, addressed.npc)
        if len(wrong) == len(about):
            effects.append(Readdressed(draft, addressed))
            if addressed.npc is not None:
                whole = SpokenQuestion((QuestionPart(draft.text, draft.utterance),))
                question = wrong[-1].question if wrong else whole
                effects += self._commit(self.turns.open(addressed.npc, draft, question), draft, addressed, at_ms)
        return self._then([*effects, *self._release(at_ms)], at_ms)

    def on_ear(self, event: EarEvent, *, at_ms: int) -> list[Effect]:
        """Take an event of an ear; return the effects, in order."""
        return self._then(self._on_ear(event, at_ms), at_ms)

    def _on_ear(self, event: EarEvent, at_ms: int) -> list[Effect]:
        match event:
            case SpeechStarted(player, began_ms):
                return self._on_started(player, began_ms)
            case SpeechPaused(player):
                self.barge_in.paused(player, at_ms=at_ms)
                return []
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

    def on_stage(self, turn: Turn, stage: Stage, *, at_ms: int) -> None:
        """Note that the engine of an open turn reached a stage."""
        turn.mark(stage, at_ms=at_ms)
        if stage is Stage.FIRST_AUDIO and turn.phase is Phase.RELEASED:
            turn.phase = Phase.HEARD

    def on_reply_known(self, turn: Turn, *, at_ms: int) -> list[Effect]:
        """Take the complete text of a committed turn's answer, which still plays."""
        return self.follow_ups.prepare(turn, turn.reply, at_ms=at_ms)

    def on_finished(self, turn_id: TurnId, *, at_ms: int, heard: str = "") -> list[Effect]:
        """Close a turn whose engine has finished.

        Args:
            heard: The part of the answer that was heard.
        """
        turn = self.turns.close(turn_id)
        if turn is None:
            return []
        if self.turns.floor.holder == turn_id:
            self.turns.moved_ms = at_ms
        self.turns.floor.give_up(turn_id, at_ms=at_ms, was_heard=turn.phase is Phase.HEARD)
        is_right = turn.addressed is not None and turn.addressed.npc == turn.npc  # the DM may have said otherwise
        if turn.phase is Phase.HEARD and is_right:
            is_to_player = turn.answers is None and not turn.words
            self.questions.addressing.answered(turn.npc, turn.player if is_to_player else None, heard, at_ms=at_ms)
        waiting = (t for t in self.turns if t.npc == turn.npc and not t.begun)
        queued = min(waiting, key=lambda t: not t.words, default=None)
        begin: list[Effect] = []
        if queued is not None:
            begin.append(self.turns.begin(queued))
            self.turns.queue_up(queued)
        effects = [*begin, *self._follow(turn, heard, at_ms), *self._release(at_ms)]
        return self._then(effects, at_ms)

    def _follow(self, turn: Turn, heard: str, at_ms: int) -> list[Effect]:
        effects, following = self.follow_ups.after(turn, heard, at_ms=at_ms)
        if following is None:
            return effects
        answer, addressed = following
        return [*effects, *self._commit(answer, answer.draft, addressed, at_ms)]

    def lookup_is_slow(self, npc: NpcId, *, at_ms: int) -> list[Effect]:
        """Note that an answer waits for a tool: a filler plays as soon as the NPC may speak."""
        for turn in self.turns:
            if turn.npc == npc and turn.begun:
                turn.lookup_is_slow = True
        return self._then([], at_ms)

    def tick(self, *, at_ms: int) -> list[Effect]:
        """Act on deadlines that have passed."""
        if self._asked_ms is not None and at_ms >= self._asked_ms:
            self._asked_ms = None
        effects: list[Effect] = []
        for turn in self.turns:
            due_ms = self._due_ms(turn)
            if due_ms is None or at_ms < due_ms:
                continue
            if (outcome := self.patience.overdue(turn, at_ms=at_ms)) is not None:
                effects.append(self.turns.cancel(turn, outcome))
            else:
                turn.filled = True
                effects.append(Fill(turn))
        return self._then([*effects, *self._release(at_ms)], at_ms)

    def _due_ms(self, turn: Turn) -> int | None:
        waits_since_ms = None if self.turns.heard is not None else self.turns.moved_ms
        return self.patience.due_ms(turn, waits_since_ms=waits_since_ms)

    def _then(self, effects: list[Effect], at_ms: int) -> list[Effect]:
        """Add effects of players' voices, and a request for a `tick` unless an earlier one is pending."""
        effects = [*effects, *self._by_voice(at_ms)]
        voice_ms = self.barge_in.due_ms if self.turns.heard is not None else None
        dues = [voice_ms, self.turns.floor.ask_again_ms(at_ms=at_ms), *map(self._due_ms, self.turns)]
        due_ms = min((due for due in dues if due is not None), default=None)
        if due_ms is None or (self._asked_ms is not None and at_ms < self._asked_ms <= due_ms):
            return effects
        self._asked_ms = due_ms
        return [*effects, AskAgain(due_ms)]

    # -- ears

    def _on_started(self, player: PlayerId, began_ms: int) -> list[Effect]:
        self.turns.floor.player_started(player)
        if self.turns.floor.holder is not None:
            self.barge_in.started(player, at_ms=began_ms)
        return [*self._discard(player), *self._merge(player)]

    def _discard(self, player: PlayerId, *, unless: Callable[[Turn], bool] = lambda _: False) -> list[Effect]:
        """Cancel answers to this player that are prepared for other words."""
        prepared = (turn for turn in self.turns.of(player) if turn.phase is Phase.PREPARING)
        return self.turns.hush(turn for turn in prepared if not unless(turn))

    def _merge(self, player: PlayerId) -> list[Effect]:
        """Merge questions that their speaker continues before the answer was heard."""
        effects: list[Effect] = []
        for turn in self.turns.of(player):
            if turn.phase in (Phase.COMMITTED, Phase.RELEASED):
                self.questions.carry(turn)
                effects.append(self.turns.cancel(turn, Outcome.MERGED))
        return effects

    def _on_partial(self, player: PlayerId, text: str, at_ms: int) -> list[Effect]:
        effects = self._by_words(player, text, at_ms, is_whole=False)
        addressed, question = self.questions.meant(player, QuestionPart(text), at_ms=at_ms)
        npc = addressed.npc
        effects += self._discard(player, unless=lambda turn: turn.answers_to(npc, question))
        if npc is not None and not any(turn.npc == npc for turn in self.turns):
            effects.append(Prime(npc, player, question.text))
        return effects

    def _on_eager(self, draft: Draft, at_ms: int) -> list[Effect]:
        is_whole = not self.turns.floor.is_speaking(draft.player)
        effects = self._by_words(draft.player, draft.text, at_ms, is_whole=is_whole)
        addressed, question = self._meant(draft, at_ms)
        effects += self._discard(draft.player, unless=lambda turn: turn.answers_to(addressed.npc, question))
        is_too_dear = self.turns.discarded_tokens[draft.player] >= self.max_discarded_tokens
        if addressed.npc is None or self.turns.to(addressed.npc) or is_too_dear:
            return effects
        turn = self.turns.open(addressed.npc, draft, question)
        return [*effects, self.turns.begin(turn)]

    def _on_ended(self, draft: Draft, at_ms: int) -> list[Effect]:
        player = draft.player
        self.turns.floor.player_stopped(player)
        effects = self._by_words(player, draft.text, at_ms, is_typed=draft.typed)
        self.barge_in.over(player)
        effects += self._merge(player)  # if the detector missed the start of speech
        addressed, question = self._meant(draft, at_ms)
        effects.append(Keep(draft, addressed))
        if addressed.npc is not None or (cuts_off(draft.text) and not draft.typed):
            effects += self.follow_ups.call_off()
        npc = addressed.npc  # an answer that failed is tried once more, now that the words are final
        effects += self._discard(player, unless=lambda turn: turn.answers_to(npc, question) and not turn.has_failed)
        if addressed.npc is None:
            self.questions.addressing.said(player, addressed.player, draft.text, at_ms=at_ms)
            self.turns.discarded_tokens.pop(player, None)
            if addressed.is_aside:
                return [*effects, *self._ask_again(player, at_ms)]
            self.questions.take_carried(player)
            return [*effects, *self._release(at_ms)]
        prepared = next((t for t in self.turns.of(player) if t.phase is Phase.PREPARING), None)
        if prepared is None:
            prepared = self.turns.open(addressed.npc, draft, question)
        prepared.question = question
        return [*effects, *self._commit(prepared, draft, addressed, at_ms)]

    def _meant(self, draft: Draft, at_ms: int) -> tuple[Addressed, SpokenQuestion]:
        """Return who these words are meant for, and the whole question. A listener's words ask nobody."""
        said = QuestionPart(draft.text, draft.utterance)
        addressed, question = self.questions.meant(draft.player, said, at_ms=at_ms)
        heard = self.turns.heard
        if addressed.npc is None or heard is None or (heard.asks and encourages(draft.text)):
            return addressed, question
        if not self.questions.understand(draft.text).calls_somebody and not cuts_off(draft.text):
            addressed = Addressed(None, "a listener's words while an NPC speaks", Unaddressed.FILLER)
        return addressed, question

    def _on_nothing(self, player: PlayerId, at_ms: int) -> list[Effect]:
        self.turns.floor.player_stopped(player)
        self.barge_in.over(player)
        self.turns.discarded_tokens.pop(player, None)
        return [*self._discard(player), *self._ask_again(player, at_ms)]

    def _ask_again(self, player: PlayerId, at_ms: int) -> list[Effect]:
        """Ask the cancelled question again, if there is one, because the new sound was noise or an aside."""
        carried = self.questions.take_carried(player)
        if carried is None:
            return self._release(at_ms)
        addressed = self.questions.decide_again(carried, carried.question, at_ms=at_ms)
        if addressed.npc is None:
            return self._release(at_ms)
        turn = self.turns.open(addressed.npc, carried.draft, carried.question)
        return self._commit(turn, carried.draft, addressed, at_ms)

    def _commit(self, turn: Turn, draft: Draft, addressed: Addressed, at_ms: int) -> list[Effect]:
        others = (other for other in self.turns.to(turn.npc) if other is not turn)
        effects = self.turns.hush(other for other in others if other.phase is Phase.PREPARING)
        self.questions.take_carried(turn.player)
        turn.commit(draft, addressed, at_ms=at_ms)
        turn.discarded_tokens = self.turns.discarded_tokens.pop(turn.player, 0)
        turn.second = addressed.second if addressed.second in self.present else None
        if not turn.begun and not any(other.begun for other in self.turns if other.npc == turn.npc):
            effects.append(self.turns.begin(turn))
        if turn.answers is None and not turn.words:
            self.questions.addressing.said(turn.player, turn.npc, draft.text, at_ms=at_ms)
        effects.append(Commit(turn))
        if turn.begun:  # an answer that was not begun cannot be heard
            self.turns.queue_up(turn)
        return [*effects, *self._release(at_ms)]

    # -- interruptions, by the decisions of `glyphoxa.turns.barge_in`

    def _by_words(
        self, player: PlayerId, text: str, at_ms: int, *, is_typed: bool = False, is_whole: bool = True
    ) -> list[Effect]:
        """Take a player's words so far, as far as they are known."""
        heard = self.turns.heard
        is_called = heard is not None and self.questions.understand(text).calls_somebody
        cuts = self.barge_in.cuts_off(player, text, is_whole=is_whole, is_called=is_called)
        if heard is None or not cuts or (is_typed and heard.player != player):
            return []
        return self._cut(heard, at_ms)

    def _by_voice(self, at_ms: int) -> list[Effect]:
        """Act on voices alone, without their words."""
        heard = self.turns.heard
        if heard is None:
            self.barge_in.npc_is_silent()
            return []
        match self.barge_in.step(at_ms=at_ms):
            case BargeInAction.HOLD:
                return [Hold(heard, self.barge_in.voice_ms)]
            case BargeInAction.RESUME:
                return [Resume(heard)]
            case BargeInAction.CUT:
                return self._cut(heard, at_ms)
            case None:
                return []

    def _cut(self, heard: Turn, at_ms: int) -> list[Effect]:
        self.turns.moved_ms = at_ms
        self.barge_in.npc_is_silent()
        return [self.turns.cancel(heard, Outcome.INTERRUPTED), *self.follow_ups.call_off()]

    # -- pieces

    def _release(self, at_ms: int) -> list[Effect]:
        granted = self.turns.floor.grant(at_ms=at_ms)
        if granted is None:
            return []
        turn = self.turns.get(granted)
        assert turn is not None  # noqa: S101 - closed turns leave the queue
        turn.release(at_ms=at_ms)
        self.turns.moved_ms = at_ms
        return [Release(turn)]
