"""The actor between ears and mouths that performs the decisions of `TurnTaking`.

No audio passes through it, and it waits only for its mailbox. Other actors write, generate and speak.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from glyphoxa.actors.clock import TableClock
from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.chronicle.consent_requests import ConsentRequest, consent_request
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import NpcSilent, NpcSpeaks, NpcThinks, SceneChanged, TurnFinished, UtteranceRetracted
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
from glyphoxa.domain.ids import NpcId, PlayerId, SpeakerId, TurnId
from glyphoxa.domain.turn_record import LookUp, Outcome, Stage, TurnRecord, Unaddressed
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.commands import MoveTo, TableCommand, TableControl, command_of
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
from glyphoxa.npc.table_state import SessionIds, TableState
from glyphoxa.transcript.journal import FinishedTurn, Journal, SoFar
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.turn import (
    AskAgain,
    Begin,
    Cancel,
    Commit,
    Effect,
    Fill,
    Hold,
    Keep,
    Prime,
    Readdressed,
    Release,
    Resume,
    Turn,
    heard_stages,
)
from glyphoxa.turns.turn_taking import TurnTaking

RoomMessage = EarEvent | MouthEvent | Callable[[], object]
"""A report of an ear or an engine, or something to do after the reports before it."""


class Room:
    """The actor of the room. Ears and engines post to its mailbox. Public methods that change something do so, too."""

    def __init__(
        self,
        state: TableState,
        *,
        turn_taking: TurnTaking,
        npcs: Mapping[NpcId, NpcActor],
        journal: Journal,
        clock: TableClock,
    ) -> None:
        self.mailbox: Mailbox[RoomMessage] = Mailbox("room", capacity=100_000)
        self.state = state
        self.npcs = npcs
        self.clock = clock
        self._turn_taking = turn_taking
        self._journal = journal
        self._tell = state.events.tell
        self._ids = SessionIds(state.session, opened_ms=clock.now_ms())
        self._unfinished: dict[PlayerId, Draft] = {}
        """Unfinished speech, in case it never ends."""
        self._last_speaker: dict[PlayerId, PlayerId] = {}
        """Who spoke last at each seat."""
        self._n_unanswered = 0
        self.control = TableControl(state, turn_taking, npcs, self._perform, self._said)
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
        self._turn_taking.questions.addressing.restore(said)

    async def wait_until_quiet(self) -> None:
        while len(self.mailbox) or not self._turn_taking.is_quiet:
            self._quiet.clear()
            await self._quiet.wait()

    async def move(self, scene: Scene) -> None:
        """Change the scene. Returns when everybody knows."""
        moved = asyncio.Event()

        def move() -> None:
            self._perform(self._turn_taking.move(scene.npcs))
            self._tell(SceneChanged(scene, self.clock.now_ms()))
            self._prime_all(*self._turn_taking.present)
            moved.set()

        self.mailbox.post(move)
        await moved.wait()

    async def obey(self, command: TableCommand) -> str:
        """Perform a command of the DM. Returns a report.

        Raises:
            InvalidInput: The command is impossible.
        """
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def obey() -> None:
            done: str | InvalidInput
            try:
                done = self.control.obey(command, at_ms=self.clock.now_ms())
            except InvalidInput as error:
                done = error
            if answer.cancelled():
                return  # nobody waits any more
            if isinstance(done, InvalidInput):
                answer.set_exception(done)
            else:
                answer.set_result(done)

        self.mailbox.post(obey)
        return await answer

    def leave(self, player: PlayerId) -> None:
        """Let a player leave the table. Unfinished speech is stored as far as it was heard."""
        self.mailbox.post(lambda: self._leave(player))

    def end(self) -> None:
        """End the session: NPCs fall silent, unfinished speech is stored."""

        def end() -> None:
            for player in tuple(self._unfinished):
                self._leave(player)
            self._perform(self._turn_taking.hush_all())

        self.mailbox.post(end)

    def looked_up(self, npc: NpcId, look_up: LookUp) -> None:
        """Note that a tool answered an NPC's model."""

        def note() -> None:
            for turn in [turn for turn in self._turn_taking.turns.to(npc) if turn.begun][-1:]:
                turn.looked_up += (look_up,)

        self.mailbox.post(note)

    def lookup_is_slow(self, npc: NpcId) -> None:
        """Note that an NPC's model has been waiting for a tool."""
        taking = self._turn_taking
        self.mailbox.post(lambda: self._perform(taking.lookup_is_slow(npc, at_ms=self.clock.now_ms())))

    def take(self, message: RoomMessage) -> None:
        """Handle one message."""
        if callable(message):
            message()
        elif isinstance(message, MouthEvent):
            self._on_mouth(message)
        elif self._hears(message):
            self._on_ear(message, self.clock.now_ms())

    def _tick(self) -> None:
        self._perform(self._turn_taking.tick(at_ms=self.clock.now_ms()))

    # -- players

    def _hears(self, event: EarEvent) -> bool:
        """Return whether the table takes this event.

        In a pause it hears whoever speaks to the end, so that nothing said before is lost, and takes typed lines that
        were already sent.
        """
        if not self.control.controls.is_paused:
            return True
        speaks = self._turn_taking.turns.floor.is_speaking
        match event:
            case SpeechStarted():
                return False
            case EagerTurn(draft) | TurnEnded(draft):
                return draft.typed or speaks(draft.player)
            case _:
                return speaks(event.player)

    def _on_ear(self, event: EarEvent, at_ms: int) -> None:
        if isinstance(event, TurnEnded) and event.draft.utterance is None:
            event = replace(event, draft=replace(event.draft, utterance=self._ids.new_utterance()))
        if not isinstance(event, SpeechPaused):
            self._follow(event)
            self._tell(event)
        effects = self._turn_taking.on_ear(event, at_ms=at_ms)
        self._perform(effects)
        if isinstance(event, NothingSaid) and event.noise is not None:
            self._keep_said(event.noise, Addressed(None, "noise", Unaddressed.NOISE, is_apart=True))
        for effect in effects:
            if isinstance(effect, Keep) and (spoken := effect.addressed.command) is not None:
                command = command_of(spoken, self.state.campaign)
                assert not isinstance(command, MoveTo)  # noqa: S101 - nobody gives it aloud
                self.control.obey(command, at_ms=at_ms)

    def _follow(self, event: EarEvent) -> None:
        """Track unfinished speech."""
        match event:
            case PartialHeard(player, heard, at_ms):
                began_ms = self._unfinished[player].began_ms if player in self._unfinished else at_ms
                self._unfinished[player] = Draft(player, heard, began_ms, at_ms)
            case EagerTurn(draft):
                self._unfinished[draft.player] = draft
            case TurnEnded(draft):
                self._unfinished.pop(draft.player, None)
            case NothingSaid(player):
                self._unfinished.pop(player, None)
            case _:
                pass

    # -- effects

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self._perform_one(effect)

    def _perform_one(self, effect: Effect) -> None:
        now_ms = self.clock.now_ms()
        match effect:
            case Prime(npc, player, text):
                self._relax_all_but(npc)
                self.npcs[npc].get_ready(text, self._asker(player, text), self.control.controls.direction(npc))
            case Begin(turn):
                turn.mark(Stage.ADDRESSED, at_ms=now_ms)
                self._relax_all_but(turn.npc)
                self.npcs[turn.npc].ask(
                    turn,
                    self._asker(turn.player, turn.question.text),
                    queued=self._turn_taking.n_waiting,
                    direction=self.control.controls.direction(turn.npc),
                )
            case Commit(turn):
                name = self.npcs[turn.npc].npc.name
                self._tell(NpcThinks(turn.npc, name, turn.id, turn.draft.player, turn.committed_ms))
                if turn.reply:
                    self._expect(turn)
            case Hold(turn, voice_ms):
                self.npcs[turn.npc].perform(effect)
                turn.mark(Stage.BARGE_IN, at_ms=voice_ms)
            case Resume(turn):
                self.npcs[turn.npc].perform(effect)
                turn.resume()
            case Release(turn) | Fill(turn):
                self.npcs[turn.npc].perform(effect)
            case Cancel(turn):
                if turn.begun:
                    self.npcs[turn.npc].perform(effect)
                elif turn.cancelled_as is not None:
                    nothing = Finished(turn.npc, turn.id, "", "", 0, interrupted=False, at_ms=now_ms)
                    self._finish(self._answered(turn, nothing))
            case Keep(draft, addressed):
                self._keep_said(draft, addressed)
                if addressed.npc is None:
                    self._finish_unanswered(draft, addressed)
            case Readdressed(draft, addressed):
                self._readdress(draft, addressed)
            case AskAgain(at_ms):
                self.clock.call_at(at_ms, lambda: self.mailbox.post(self._tick))
            case _:
                assert_never(effect)

    def _asker(self, player: PlayerId, text: str) -> str:
        return self.state.name_of(self.state.speaker_of(player, text))

    def _relax_all_but(self, npc: NpcId) -> None:
        for other in self._others(npc):
            self.npcs[other].relax()

    def _prime_all(self, *npcs: NpcId) -> None:
        """Prime engines without a question, the first ones first."""
        for npc in npcs:
            self.npcs[npc].get_ready("", self.state.likely_speaker())

    def _others(self, npc: NpcId) -> list[NpcId]:
        return [other for other in self._turn_taking.present if other != npc]

    def unwritten(self) -> list[Utterance]:
        """Remove and return players' words that the journal does not have, including unfinished speech.

        For a shutdown that must store them without the room.
        """
        drafts: list[Draft] = []
        for message in self.mailbox.take_all():
            match message:
                case SpeechStarted() | PartialHeard() | EagerTurn() | TurnEnded() | NothingSaid():
                    self._follow(message)
                    drafts += [message.draft] if isinstance(message, TurnEnded) else []
        drafts += self._unfinished.values()
        self._unfinished.clear()
        return [_as_meant(self._utterance(draft), self._meant(draft)) for draft in drafts]

    def _meant(self, draft: Draft) -> Addressed:
        return self._turn_taking.questions.decide(draft.player, draft.text, at_ms=draft.speech_end_ms)

    def _keep_said(self, draft: Draft, addressed: Addressed) -> None:
        utterance = _as_meant(self._utterance(draft), addressed)
        self._last_speaker[draft.player] = PlayerId(utterance.speaker_id)
        self._journal.post(utterance)
        self._hear(utterance, addressed.npc)

    def _hear(self, utterance: Utterance, to: NpcId | None) -> None:
        for npc in self._turn_taking.present:
            if npc in utterance.witnesses:
                self.npcs[npc].hear(utterance, to=self.npcs[to].npc.name if to is not None and to != npc else "")

    def _readdress(self, draft: Draft, addressed: Addressed) -> None:
        """Change to whom a line was said. A line that was kept apart enters the story if it was meant for an NPC."""
        if addressed.npc is None:
            self._finish_unanswered(draft, addressed)
            return
        [said] = [said for said in self._said() if said.id == draft.utterance]
        if said.aside is not None:
            said = replace(said, aside=None, witnesses=frozenset(self._turn_taking.present))
            self._journal.recent.revised(said)
        for npc in said.witnesses.intersection(self._turn_taking.present):
            self.npcs[npc].take(UtteranceRetracted(said))
        self._hear(said, addressed.npc)

    def _said(self) -> Sequence[Utterance]:
        return self._journal.recent.of(self.state.session, limit=sys.maxsize)

    def _utterance(self, draft: Draft) -> Utterance:
        speaker = self.state.speaker_of(draft.player, draft.text)
        if consent_request(draft.text) not in (None, ConsentRequest.LINE):  # about the words before
            speaker = self._last_speaker.get(draft.player, speaker)
        return Utterance(
            id=draft.utterance or self._ids.new_utterance(),
            campaign_id=self.state.campaign.id,
            session_id=self.state.session,
            speaker_id=SpeakerId(speaker),
            speaker_name=self.state.name_of(speaker),
            seat=draft.player,
            text=draft.heard.text,
            raw_text=draft.heard.raw_text,
            at_ms=draft.began_ms,
            duration_ms=max(0, draft.speech_end_ms - draft.began_ms),
            witnesses=frozenset(self._turn_taking.present),
            corrections=draft.heard.corrections,
            words=draft.heard.words,
            typed=draft.typed,
        )

    def _leave(self, player: PlayerId) -> None:
        draft = self._unfinished.pop(player, None)
        if draft is not None:
            self._keep_said(draft, replace(self._meant(draft), npc=None))
        nothing_more = NothingSaid(player, self.clock.now_ms())
        self._tell(nothing_more)
        self._perform(self._turn_taking.on_ear(nothing_more, at_ms=nothing_more.at_ms))

    # -- engines

    def _on_mouth(self, event: MouthEvent) -> None:
        if isinstance(event, Finished):
            self._on_finished(event)
            return
        turn = self._turn_taking.turns.get(event.turn)
        if turn is None:
            return  # a speculation that was dropped
        match event:
            case Marked(stage=stage, at_ms=at_ms):
                self._turn_taking.on_stage(turn, stage, at_ms=at_ms)
                if stage is Stage.FIRST_AUDIO:
                    turn.audience = turn.audience or frozenset({*self._turn_taking.present, turn.npc})
                    # Somebody may already talk over it.
                    self._tick()
            case Injected(prompt=prompt, tier=tier):
                turn.prompt, turn.tier = prompt, tier
            case SentenceRejected(unsaid=unsaid):
                turn.unsaid += (unsaid,)
            case SentenceStarted(npc, _, text, at_ms):
                so_far = " ".join(turn.pieces)
                turn.pieces.append(text)
                if so_far and turn.audience is not None:
                    meant = max(turn.reply, " ".join(turn.pieces), key=len)
                    self._journal.post(SoFar(self._reply(turn, so_far, meant, at_ms - turn.stages[Stage.FIRST_AUDIO])))
                self._tell(NpcSpeaks(npc, self.npcs[npc].npc.name, turn.id, text, at_ms))
            case ReplyKnown(text=text):
                turn.reply = text
                if turn.addressed is not None:
                    self._expect(turn)
            case FailedEarly():
                turn.has_failed = True
            case _:
                assert_never(event)

    def _on_finished(self, event: Finished) -> None:
        self.npcs[event.npc].finished(event.turn)
        turn = self._turn_taking.turns.get(event.turn)
        said: Utterance | None = None
        if turn is not None and turn.audience is not None:
            if not event.heard and len(turn.pieces) > 1:
                # A crashed engine cannot report its progress. Then all but the last piece counts as heard.
                reply = event.reply or " ".join(turn.pieces)
                event = replace(event, heard=" ".join(turn.pieces[:-1]), reply=reply)
            if event.heard:
                said = self._reply(turn, event.heard, event.reply, event.audio_ms)
        effects = self._turn_taking.on_finished(event.turn, at_ms=event.at_ms, heard=event.heard)
        was_heard = turn is not None and turn.audience is not None
        if was_heard:
            self._tell(NpcSilent(event.npc, event.turn, event.at_ms))
        if said is not None:
            self._journal.post(said)
            for witness in said.witnesses:
                self.npcs[witness].hear(said)
        if turn is not None and turn.addressed is not None:
            record = self._answered(turn, event)
            self._finish(record)
            self.control.finished(record, was_heard=was_heard)
        self._perform(effects)
        if self._turn_taking.is_quiet:
            # The NPC that spoke first is the most likely to be addressed again.
            self._prime_all(event.npc, *self._others(event.npc))

    def _reply(self, turn: Turn, heard: str, meant: str, duration_ms: int) -> Utterance:
        """Return what was heard of an answer as an utterance. All versions of it have one id."""
        turn.reply_id = turn.reply_id or self._ids.new_utterance()
        npc = self.npcs[turn.npc].npc
        return Utterance(
            id=turn.reply_id,
            campaign_id=self.state.campaign.id,
            session_id=self.state.session,
            speaker_id=SpeakerId(npc.id),
            speaker_name=npc.name,
            text=heard,
            raw_text=meant,
            at_ms=turn.stages[Stage.FIRST_AUDIO],
            duration_ms=max(0, duration_ms),
            npc_id=npc.id,
            witnesses=turn.audience or frozenset(),
        )

    def _expect(self, turn: Turn) -> None:
        """Prime the engines with an answer while it plays, first the one that gives it."""
        speaker, asker = self.npcs[turn.npc].npc, self.state.likely_speaker()
        for npc in (turn.npc, *self._others(turn.npc)):
            self.npcs[npc].expect(speaker, turn.reply, asker)
        self._perform(self._turn_taking.on_reply_known(turn, at_ms=self.clock.now_ms()))

    # -- records

    def _record(self, turn: TurnId, draft: Draft, addressed: Addressed, outcome: Outcome) -> TurnRecord:
        """Return the record of a turn as far as its question is concerned."""
        return TurnRecord(
            id=turn,
            session_id=self.state.session,
            speaker_id=SpeakerId(draft.player),
            speaker_name=self.state.name_of(draft.player),
            raw_text=draft.heard.raw_text,
            text=draft.text,
            npc_id=None,
            address_reason=addressed.reason,
            outcome=outcome,
            stages=heard_stages(draft),
            utterance_id=draft.utterance,
        )

    def _answered(self, turn: Turn, event: Finished) -> TurnRecord:
        """Return the record of a committed turn that has ended."""
        assert turn.addressed is not None  # noqa: S101 - it is committed
        if Stage.FIRST_AUDIO in turn.stages:
            turn.stages[Stage.AUDIO_END] = turn.stages.get(Stage.SILENCED, event.at_ms)
        tier = turn.tier
        return replace(
            self._record(turn.id, turn.draft, turn.addressed, turn.cancelled_as or _outcome(event)),
            npc_id=turn.npc,
            reply=event.reply,
            reply_heard=event.heard,
            prompt=turn.prompt,
            stages=turn.stages,
            error=event.error,
            looked_up=turn.looked_up,
            unsaid=turn.unsaid,
            discarded_tokens=turn.discarded_tokens,
            reply_id=turn.reply_id if event.heard else None,
            tier=tier.tier if tier is not None else "",
            tier_reason=tier.reason if tier is not None else "",
        )

    def _finish_unanswered(self, draft: Draft, addressed: Addressed) -> None:
        self._n_unanswered += 1
        record = self._record(TurnId(f"u{self._n_unanswered:04d}"), draft, addressed, Outcome.NOT_ADDRESSED)
        self._finish(replace(record, unaddressed=addressed.unaddressed))

    def _finish(self, record: TurnRecord) -> None:
        logged = replace(record, id=self._ids.logged(record.id))
        self._journal.post(FinishedTurn(self.state.campaign.id, logged))
        self._tell(TurnFinished(record))


def _outcome(event: Finished) -> Outcome:
    if event.withheld:
        return Outcome.WITHHELD
    if event.error:
        return Outcome.FAILED if not event.heard else Outcome.ANSWERED
    return Outcome.INTERRUPTED if event.interrupted else Outcome.ANSWERED


def _as_meant(utterance: Utterance, addressed: Addressed) -> Utterance:
    """Mark an aside. It is stored in the log, but no NPC has heard it."""
    if not addressed.is_apart:
        return utterance
    return replace(utterance, witnesses=frozenset(), aside=addressed.unaddressed)
