"""The actor between ears and mouths that performs the decisions of `TurnTaking`.

No audio passes through it, and it waits only for its mailbox. Other actors write, generate and speak.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.commands import TableCommand
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import NpcSilent, NpcSpeaks, NpcThinks, SceneChanged, TurnFinished
from glyphoxa.domain.heard import (
    Draft,
    EagerTurn,
    EarEvent,
    NothingSaid,
    PartialHeard,
    SpeechPaused,
    SpeechStarted,
    TurnEnded,
    Utterance,
)
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn import LookUp, Stage, TurnRecord, Unaddressed
from glyphoxa.npc.actor import Ask, Expect, GetReady, Hear, NpcActor, NpcMessage, Relax
from glyphoxa.npc.mouth import (
    FailedEarly,
    Finished,
    Injected,
    Marked,
    MouthEvent,
    ReplyKnown,
    SentenceRejected,
    SentenceStarted,
)
from glyphoxa.npc.table import SessionIds, TableState
from glyphoxa.npc.table_control import TableControl
from glyphoxa.npc.turn_book import Answers, PlayerTalk, TurnBook
from glyphoxa.transcript.journal import FinishedTurn, Journal, SoFar
from glyphoxa.turns.address import Addressed, exchanges
from glyphoxa.turns.dm_controls import PausedHearing
from glyphoxa.turns.effects import (
    AskAgain,
    Begin,
    Cancel,
    Commit,
    Effect,
    Fill,
    Hold,
    Keep,
    Prime,
    Release,
    Resume,
)
from glyphoxa.turns.turn_taking import TurnTaking

# The room's messages and mailbox.


@dataclass(frozen=True, slots=True)
class RoomTick:
    """A requested time has come."""


@dataclass(frozen=True, slots=True)
class Move:
    """The scene changes. `done` is called when everybody knows."""

    scene: Scene
    done: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class Leave:
    """A player leaves the table. Unfinished speech is stored as far as it was heard."""

    player: PlayerId


@dataclass(frozen=True, slots=True)
class End:
    """The session ends: NPCs fall silent, unfinished speech is stored."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A tool answered an NPC's model."""

    npc: NpcId
    look_up: LookUp


@dataclass(frozen=True, slots=True)
class LookUpSlow:
    """An NPC's model has been waiting for a tool."""

    npc: NpcId


@dataclass(frozen=True, slots=True)
class Obey:
    """A command of the DM. `answer` receives a report, or the reason for a refusal."""

    command: TableCommand
    answer: Callable[[str | InvalidInput], None]


RoomMessage = EarEvent | MouthEvent | LookedUp | LookUpSlow | RoomTick | Move | Leave | Obey | End


def room_mailbox() -> Mailbox[RoomMessage]:
    """Create the mailbox, before the room, because ears and mouths need it."""
    return Mailbox("room", capacity=100_000)


class Room:
    """The actor of the room.

    Args:
        now_ms: Milliseconds since the Unix epoch.
        call_at: Schedules a callback in milliseconds since the Unix epoch.
    """

    def __init__(  # noqa: PLR0913 - independent parts, passed once
        self,
        state: TableState,
        mailbox: Mailbox[RoomMessage],
        *,
        turn_taking: TurnTaking,
        npcs: Mapping[NpcId, NpcActor],
        journal: Journal,
        now_ms: Callable[[], int],
        call_at: Callable[[int, Callable[[], None]], object],
    ) -> None:
        self.mailbox = mailbox
        self.state = state
        self._turn_taking = turn_taking
        self.npcs = npcs
        self._journal = journal
        self._tell = state.events.tell
        self.now_ms = now_ms
        self._call_at = call_at
        self._ids = SessionIds(state.session, opened_ms=now_ms())
        self._book = TurnBook(state.session, state.name_of)
        self._players = PlayerTalk(state, present=lambda: turn_taking.present, new_id=self._ids.new_utterance)
        self._replies: dict[TurnId, ReplyKnown] = {}
        self._answers = Answers(state.campaign, state.session, new_id=self._ids.new_utterance)
        self._pause = PausedHearing()
        self.control = TableControl(state, turn_taking, npcs)
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def run(self) -> None:
        """Run the actor."""
        while True:
            self.take(await self.mailbox.receive())
            if self._turn_taking.is_quiet and not len(self.mailbox):
                self._quiet.set()
            else:
                self._quiet.clear()

    def remember(self, said: Sequence[Utterance]) -> None:
        """Restore conversations from what was said before a restart."""
        for player, npc, at_ms in exchanges(said):
            self._turn_taking.questions.addressing.remember(player, npc, at_ms=at_ms)

    async def wait_until_quiet(self) -> None:
        while len(self.mailbox) or not self._turn_taking.is_quiet:
            self._quiet.clear()
            await self._quiet.wait()

    def take(self, message: RoomMessage) -> None:
        """Handle one message."""
        if isinstance(message, MouthEvent):
            self._on_mouth(message)
            return
        now_ms = self.now_ms()
        match message:
            case RoomTick():
                self._perform(self._turn_taking.tick(at_ms=now_ms))
            case Move(scene, done):
                self._move(scene)
                done()
            case Leave(player):
                self._leave(player)
            case End():
                for player in self._players.unfinished():
                    self._leave(player)
                self._perform(self._turn_taking.hush_all())
            case Obey():
                self._obey(message, now_ms)
            case LookedUp(npc, look_up):
                self._book.looked_up(npc, look_up)
            case LookUpSlow(npc):
                self._perform(self._turn_taking.lookup_is_slow(npc, at_ms=now_ms))
            case _:
                if self._pause.hears(message, is_paused=self.control.controls.is_paused):
                    self._on_ear(message, now_ms)

    def _on_ear(self, event: EarEvent, at_ms: int) -> None:
        if not isinstance(event, SpeechPaused):
            self._players.follow(event)
            self._tell(event)
        effects = self._turn_taking.on_ear(event, at_ms=at_ms)
        self._perform(effects)
        if isinstance(event, NothingSaid) and event.noise is not None:
            noise = Addressed(None, "noise", Unaddressed.NOISE, is_apart=True)
            self._keep_said(event.noise, noise, is_part=False)
        for effect in effects:
            if isinstance(effect, Keep) and (command := effect.addressed.command) is not None:
                self._obey(Obey(command, lambda _: None), at_ms)

    def _obey(self, order: Obey, at_ms: int) -> None:
        try:
            done, effects = self.control.obey(order.command, at_ms=at_ms)
        except InvalidInput as error:
            order.answer(error)
            return
        self._perform(effects)
        order.answer(done)

    # -- effects

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self._perform_one(effect)

    def _perform_one(self, effect: Effect) -> None:
        now_ms = self.now_ms()
        match effect:
            case Prime(npc, player, text):
                asker = self.state.name_of(self.state.speaker_of(player, text))
                self._relax_all_but(npc)
                self._tell_npc(npc, GetReady(text, asker, self._direction(npc)))
            case Begin(turn, npc, player, text, n_kept):
                self._book.begun(turn, npc, at_ms=now_ms)
                self._relax_all_but(npc)
                unless = self._players.newest_kept(player, n_kept)
                asker = self.state.name_of(self.state.speaker_of(player, text))
                asked = Ask(effect, asker, unless, self._turn_taking.n_waiting, self._direction(npc))
                self._tell_npc(npc, asked)
            case Commit(turn, npc, draft, at_ms=at_ms):
                self._book.committed(effect, utterance=self._players.last_kept(draft.player))
                self._tell(NpcThinks(npc, self.npcs[npc].npc.name, turn, draft.player, at_ms))
                if turn in self._replies:
                    self._expect(self._replies[turn])
            case Release(turn, npc):
                self._tell_npc(npc, effect)
                self._book.released(turn, at_ms=now_ms)
            case Fill(npc=npc):
                self._tell_npc(npc, effect)
            case Hold(turn, npc, voice_ms):
                self._tell_npc(npc, effect)
                self._book.marked(Marked(npc, turn, Stage.BARGE_IN, voice_ms))
            case Resume(turn, npc):
                self._tell_npc(npc, effect)
                self._book.resumed(turn)
            case Cancel():
                self._cancel(effect, now_ms)
            case Keep(draft, addressed, is_between):
                utterance = self._keep_said(draft, addressed, is_part=not is_between)
                if addressed.npc is None:
                    self._finish(self._book.not_addressed(draft, addressed, utterance=utterance.id))
            case AskAgain(at_ms):
                self._call_at(at_ms, lambda: self.mailbox.post(RoomTick()))
            case _:
                assert_never(effect)

    def _cancel(self, effect: Cancel, at_ms: int) -> None:
        if effect.begun:
            self._tell_npc(effect.npc, effect)
            if effect.outcome is None:
                self._book.dropped(effect.turn)
        elif effect.outcome is not None:
            nothing = Finished(effect.npc, effect.turn, "", "", 0, interrupted=False, at_ms=at_ms)
            if (record := self._book.finished(nothing, effect.outcome)) is not None:
                self._finish(record)

    def _relax_all_but(self, npc: NpcId) -> None:
        for other in self._others(npc):
            self._tell_npc(other, Relax())

    def _prime_all(self, *npcs: NpcId) -> None:
        """Prime engines without a question, the first ones first."""
        for npc in npcs:
            self._tell_npc(npc, GetReady("", self.state.likely_speaker()))

    def _others(self, npc: NpcId) -> list[NpcId]:
        return [other for other in self._turn_taking.present if other != npc]

    def _direction(self, npc: NpcId) -> str:
        return self.control.controls.direction(npc)

    def _tell_npc(self, npc: NpcId, message: NpcMessage) -> None:
        self.npcs[npc].mailbox.post(message)

    def unwritten(self) -> list[Utterance]:
        """Remove and return players' words that the journal does not have, including unfinished speech.

        For a shutdown that must store them without the room.
        """
        drafts: list[Draft] = []
        for message in self.mailbox.take_all():
            match message:
                case SpeechStarted() | PartialHeard() | EagerTurn() | TurnEnded() | NothingSaid():
                    self._players.follow(message)
                    drafts += [message.draft] if isinstance(message, TurnEnded) else []
        broken_off = [self._players.break_off(player) for player in self._players.unfinished()]
        whole = (draft for draft in (*drafts, *broken_off) if draft is not None)
        return [_as_meant(self._players.utterance(draft), self._meant(draft)) for draft in whole]

    def _meant(self, draft: Draft) -> Addressed:
        return self._turn_taking.questions.decide(draft.player, draft.text, at_ms=draft.speech_end_ms)

    def _keep_said(self, draft: Draft, addressed: Addressed, *, is_part: bool) -> Utterance:
        utterance = _as_meant(self._players.keep(draft, is_part=is_part), addressed)
        self._journal.post(utterance)
        for npc in self._turn_taking.present:
            if npc in utterance.witnesses:
                to = addressed.npc
                other = self.npcs[to].npc.name if to is not None and to != npc else ""
                self._tell_npc(npc, Hear(utterance, other))
        return utterance

    def _leave(self, player: PlayerId) -> None:
        self._pause.left(player)
        draft = self._players.break_off(player)
        if draft is not None:
            self._keep_said(draft, replace(self._meant(draft), npc=None), is_part=False)
        nothing_more = NothingSaid(player, self.now_ms())
        self._tell(nothing_more)
        self._perform(self._turn_taking.on_ear(nothing_more, at_ms=nothing_more.at_ms))

    # -- engines

    def _on_mouth(self, event: MouthEvent) -> None:
        match event:
            case Marked():
                self._book.marked(event)
                if event.stage is Stage.FIRST_TOKEN:
                    self._turn_taking.on_first_word(event.turn, at_ms=event.at_ms)
                elif event.stage is Stage.FIRST_AUDIO:
                    self._turn_taking.on_first_audio(event.turn)
                    self._perform(self._turn_taking.tick(at_ms=self.now_ms()))  # somebody may already talk over it
                    if self._book.at_first_audio(event.turn) is not None:
                        audience = frozenset({*self._turn_taking.present, event.npc})
                        self._answers.begins(event.turn, audience=audience, at_ms=event.at_ms)
            case Injected():
                self._book.injected(event)
            case SentenceRejected():
                self._book.sentence_rejected(event)
            case SentenceStarted(npc, turn, text, at_ms):
                meant = self._replies[turn].text if turn in self._replies else ""
                if (so_far := self._answers.continues(event, meant=meant)) is not None:
                    self._journal.post(SoFar(so_far))
                self._tell(NpcSpeaks(npc, self.npcs[npc].npc.name, turn, text, at_ms))
            case ReplyKnown():
                self._replies[event.turn] = event
                if self._book.is_committed(event.turn):
                    self._expect(event)
            case FailedEarly():
                self._turn_taking.on_failed_early(event.turn)
            case Finished():
                self._replies.pop(event.turn, None)
                self._on_finished(event)
            case _:
                assert_never(event)

    def _on_finished(self, event: Finished) -> None:
        was_heard = self._book.at_first_audio(event.turn) is not None
        event, said = self._answers.ends(event)
        cancelled_as, effects = self._turn_taking.on_finished(event.turn, at_ms=event.at_ms, heard=event.heard)
        record = self._book.finished(event, cancelled_as, reply=said.id if said is not None else None)
        if was_heard:
            self._tell(NpcSilent(event.npc, event.turn, event.at_ms))
        if said is not None:
            self._npc_spoke(event.npc, said)
        if record is not None:
            self._finish(record)
            self.control.finished(record, was_heard=was_heard)
        self._perform(effects)
        if self._turn_taking.is_quiet:
            # The NPC that spoke first is the most likely to be addressed again.
            self._prime_all(event.npc, *self._others(event.npc))

    def _npc_spoke(self, npc: NpcId, utterance: Utterance) -> None:
        self._journal.post(utterance)
        self._players.npc_said(utterance)
        for witness in utterance.witnesses:
            self._tell_npc(witness, Hear(utterance))

    # -- scene

    def _move(self, scene: Scene) -> None:
        self._perform(self._turn_taking.move(scene.npcs))
        self._tell(SceneChanged(scene, self.now_ms()))
        self._prime_all(*self._turn_taking.present)

    def _expect(self, reply: ReplyKnown) -> None:
        """Prime the engines with an answer while it plays, first the one that gives it."""
        speaker, asker = self.npcs[reply.npc].npc, self.state.likely_speaker()
        for npc in (reply.npc, *self._others(reply.npc)):
            self._tell_npc(npc, Expect(reply.npc, speaker.name, reply.text, asker))
        self._perform(self._turn_taking.on_reply_known(reply.turn, reply.text, at_ms=self.now_ms()))

    def _finish(self, record: TurnRecord) -> None:
        logged = replace(record, id=self._ids.logged(record.id))
        self._journal.post(FinishedTurn(self.state.campaign.id, logged))
        self._tell(TurnFinished(record))


def _as_meant(utterance: Utterance, addressed: Addressed) -> Utterance:
    """Mark an aside. It is stored in the log, but no NPC has heard it."""
    if not addressed.is_apart:
        return utterance
    return replace(utterance, witnesses=frozenset(), aside=addressed.unaddressed)
