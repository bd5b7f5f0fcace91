"""The room between ears and mouths: an actor that performs what `Talk` decides.

No audio passes through it and it waits for nothing but its mailbox. Writing, thinking and speaking are other
actors' work.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.events import NpcSilent, NpcSpeaks, NpcThinks, SceneChanged, TableEvent, TurnFinished
from glyphoxa.domain.heard import Draft, EagerTurn, EarEvent, NothingSaid, PartialHeard, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import NpcId, PlayerId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.turn import LookUp, Outcome, Stage, TurnRecord
from glyphoxa.domain.utterance import Utterance
from glyphoxa.npc.actor import Ask, Expect, GetReady, Hear, Hush, MakeASound, NpcActor, Relax, Speak, Spoke
from glyphoxa.npc.answers import Answers
from glyphoxa.npc.mouth import Finished, Injected, Marked, MouthEvent, ReplyKnown, SentenceStarted
from glyphoxa.npc.scribe import Scribe, SoFar
from glyphoxa.npc.turn_book import TurnBook
from glyphoxa.turns import talk

_KEPT_IN_MIND = talk.MOST_PARTS + 1


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has come for something that was put off."""


@dataclass(frozen=True, slots=True)
class Move:
    scene: Scene


@dataclass(frozen=True, slots=True)
class Leave:
    """A human stands up. What they were in the middle of saying is kept as far as it was heard."""

    player: PlayerId


@dataclass(frozen=True, slots=True)
class End:
    """The session ends: NPCs fall silent, unfinished speech is kept."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """An NPC's model was answered by one of its tools."""

    npc: NpcId
    look_up: LookUp


RoomMessage = EarEvent | MouthEvent | LookedUp | Tick | Move | Leave | End


class Room:
    """See the module.

    Args:
        tell: Takes everything that happens at the table.
        now_ms: Milliseconds since the Unix epoch.
        call_at: Runs a callback at a time in milliseconds since the Unix epoch.
    """

    def __init__(
        self,
        campaign: Campaign,
        session: SessionId,
        *,
        decisions: talk.Talk,
        npcs: Mapping[NpcId, NpcActor],
        scribe: Scribe,
        tell: Callable[[TableEvent], None],
        now_ms: Callable[[], int],
        call_at: Callable[[int, Callable[[], None]], object],
    ) -> None:
        self.mailbox: Mailbox[RoomMessage] = Mailbox("room", capacity=100_000)
        self._campaign = campaign
        self._session = session
        self._talk = decisions
        self._npcs = npcs
        self._scribe = scribe
        self._tell = tell
        self._now_ms = now_ms
        self._call_at = call_at
        self._names = {str(player.id): player.name for player in campaign.players}
        self._book = TurnBook(session, self._names)
        self._kept: dict[PlayerId, deque[UtteranceId]] = {}
        """The last utterances of each player, without those that came between the parts of a question."""
        self._half_said: dict[PlayerId, Draft] = {}
        self._replies: dict[TurnId, ReplyKnown] = {}
        self._answers = Answers(campaign, session, new_id=self._next_id)
        # A session may be opened again: what is said then has other ids than what was said before.
        self._opened = f"{session}-{now_ms():x}"
        self._numbers = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    def introduce(self, player: PlayerId, name: str) -> None:
        """Somebody sits down who is not in the campaign file."""
        self._names[str(player)] = name

    async def run(self) -> None:
        """The actor's body."""
        while True:
            self.take(await self.mailbox.receive())
            if self._talk.is_quiet and not len(self.mailbox):
                self._quiet.set()
            else:
                self._quiet.clear()

    async def wait_until_quiet(self) -> None:
        while len(self.mailbox) or not self._talk.is_quiet:
            self._quiet.clear()
            await self._quiet.wait()

    def take(self, message: RoomMessage) -> None:
        """Handle one message."""
        now_ms = self._now_ms()
        match message:
            case Tick():
                self._perform(self._talk.tick(at_ms=now_ms))
            case Move(scene):
                self._move(scene)
            case Leave(player):
                self._leave(player)
            case End():
                for player in tuple(self._half_said):
                    self._leave(player)
                self._perform(self._talk.hush_all())
            case LookedUp(npc, look_up):
                self._book.looked_up(npc, look_up)
            case Marked() | Injected() | SentenceStarted() | ReplyKnown() | Finished():
                self._on_mouth(message)
            case _:
                self._follow(message)
                self._tell(message)
                self._perform(self._talk.on_ear(message, at_ms=now_ms))

    # -- effects

    def _perform(self, effects: Sequence[talk.Effect]) -> None:
        for effect in effects:
            self._perform_one(effect)

    def _perform_one(self, effect: talk.Effect) -> None:
        now_ms = self._now_ms()
        match effect:
            case talk.Prime(npc, player, text):
                self._relax_all_but(npc)
                self._npcs[npc].mailbox.post(GetReady(text, self._name(player)))
            case talk.Begin(turn, npc, player, text, n_kept):
                self._book.begun(turn, npc, question=text, at_ms=now_ms)
                self._relax_all_but(npc)
                kept_last = self._kept.get(player, ())
                unless = tuple(kept_last)[len(kept_last) - n_kept :]
                self._npcs[npc].mailbox.post(Ask(turn, text, self._name(player), unless))
            case talk.Commit(turn, npc, draft, addressed, at_ms):
                utterance = self._last_kept(draft.player)
                self._book.committed(turn, npc, draft, addressed.reason, at_ms=at_ms, utterance=utterance)
                self._tell(NpcThinks(npc, self._npcs[npc].npc.name, turn, draft.player, at_ms))
                if turn in self._replies:
                    self._expect(self._replies[turn])
            case talk.Release(turn, npc):
                self._npcs[npc].mailbox.post(Speak(turn))
            case talk.Fill(turn, npc):
                self._npcs[npc].mailbox.post(MakeASound(turn))
            case talk.Cancel(turn, npc, outcome, begun):
                self._cancel(turn, npc, outcome, begun=begun)
            case talk.Keep(draft, addressed):
                self._keep(draft, addressed.npc)
            case talk.NotAddressed(draft, addressed, is_between):
                utterance = self._last_kept(draft.player)
                if is_between:
                    self._kept[draft.player].pop()
                self._finish(self._book.not_addressed(draft, addressed, utterance=utterance))
            case talk.AskAgain(at_ms):
                self._call_at(at_ms, lambda: self.mailbox.post(Tick()))
            case _:
                assert_never(effect)

    def _cancel(self, turn: TurnId, npc: NpcId, outcome: Outcome | None, *, begun: bool) -> None:
        if begun:
            self._npcs[npc].mailbox.post(Hush(turn))
            if outcome is None:
                self._book.dropped(turn)
        elif outcome is not None and (record := self._book.never_begun(turn, outcome)) is not None:
            self._finish(record)

    def unwritten(self) -> list[Utterance]:
        """What players said and the scribe has not been given, taken out of the mailbox; what was never finished, as
        far as it was heard. For who must write it without the room.
        """
        drafts: list[Draft] = []
        for message in self.mailbox.take_all():
            match message:
                case SpeechStarted() | PartialHeard() | EagerTurn() | TurnEnded() | NothingSaid():
                    self._follow(message)
                    drafts += [message.draft] if isinstance(message, TurnEnded) else []
        drafts += self._half_said.values()
        self._half_said = {}
        return [self._utterance(draft) for draft in drafts]

    def _utterance(self, draft: Draft) -> Utterance:
        return Utterance(
            id=draft.utterance or self._next_id(),
            campaign_id=self._campaign.id,
            session_id=self._session,
            speaker_id=SpeakerId(draft.player),
            speaker_name=self._name(draft.player),
            text=draft.text,
            raw_text=draft.raw_text,
            at_ms=draft.began_ms,
            duration_ms=max(0, draft.speech_end_ms - draft.began_ms),
            witnesses=frozenset(self._talk.present),
            corrections=draft.corrections,
            words=draft.words,
            typed=draft.typed,
        )

    def _keep(self, draft: Draft, to: NpcId | None) -> None:
        utterance = self._utterance(draft)
        self._kept.setdefault(draft.player, deque(maxlen=_KEPT_IN_MIND)).append(utterance.id)
        self._scribe.mailbox.post(utterance)
        for npc in self._talk.present:
            other = self._npcs[to].npc.name if to is not None and to != npc else ""
            self._npcs[npc].mailbox.post(Hear(utterance, other))

    def _follow(self, event: EarEvent) -> None:
        """Remember what is being said, in case it is never finished."""
        match event:
            case PartialHeard(player, text, raw_text, at_ms, corrections, words):
                began_ms = self._half_said[player].began_ms if player in self._half_said else at_ms
                self._half_said[player] = Draft(
                    player, text, raw_text, corrections, began_ms, at_ms, at_ms, at_ms, words=words
                )
            case EagerTurn(draft):
                self._half_said[draft.player] = draft
            case TurnEnded(draft):
                self._half_said.pop(draft.player, None)
            case NothingSaid(player):
                self._half_said.pop(player, None)
            case SpeechStarted():
                pass

    def _leave(self, player: PlayerId) -> None:
        draft = self._half_said.pop(player, None)
        if draft is not None:
            self._keep(draft, None)
            self._kept[player].pop()
        nothing_more = NothingSaid(player, self._now_ms())
        self._tell(nothing_more)
        self._perform(self._talk.on_ear(nothing_more, at_ms=nothing_more.at_ms))

    # -- engines

    def _on_mouth(self, event: MouthEvent) -> None:
        match event:
            case Marked():
                self._book.marked(event)
                if event.stage is Stage.FIRST_AUDIO:
                    self._talk.on_first_audio(event.turn)
                    if self._book.at_first_audio(event.turn) is not None:
                        audience = frozenset({*self._talk.present, event.npc})
                        self._answers.begins(event.turn, audience=audience, at_ms=event.at_ms)
            case Injected():
                self._book.injected(event)
            case SentenceStarted(npc, turn, text, at_ms):
                meant = self._replies[turn].text if turn in self._replies else ""
                if (so_far := self._answers.goes_on(event, meant=meant)) is not None:
                    self._scribe.mailbox.post(SoFar(so_far))
                self._tell(NpcSpeaks(npc, self._npcs[npc].npc.name, turn, text, at_ms))
            case ReplyKnown():
                self._replies[event.turn] = event
                if self._book.is_committed(event.turn):
                    self._expect(event)
            case Finished():
                self._replies.pop(event.turn, None)
                self._on_finished(event)
            case _:
                assert_never(event)

    def _on_finished(self, event: Finished) -> None:
        was_heard = self._book.at_first_audio(event.turn) is not None
        cancelled_as, effects = self._talk.on_finished(event.turn, at_ms=event.at_ms)
        event, said = self._answers.ends(event)
        record = self._book.finished(event, cancelled_as, reply=said.id if said is not None else None)
        if was_heard:
            self._tell(NpcSilent(event.npc, event.turn, event.at_ms))
        if said is not None:
            self._npc_spoke(event.npc, said)
        if record is not None:
            self._finish(record)
        self._perform(effects)
        if self._talk.is_quiet:
            # Who spoke first: it is the one most likely to be spoken to again.
            self._get_ready(event.npc, *(npc for npc in self._talk.present if npc != event.npc))

    def _npc_spoke(self, npc: NpcId, utterance: Utterance) -> None:
        self._scribe.mailbox.post(utterance)
        self._npcs[npc].mailbox.post(Spoke(utterance))
        for other in utterance.witnesses:
            if other != npc:
                self._npcs[other].mailbox.post(Hear(utterance))

    # -- scene

    def _move(self, scene: Scene) -> None:
        self._perform(self._talk.move(scene.npcs))
        self._tell(SceneChanged(scene, self._now_ms()))
        self._get_ready(*self._talk.present)

    def _expect(self, reply: ReplyKnown) -> None:
        """An answer is being heard: let the engines read it meanwhile, first the one that gives it."""
        speaker = self._npcs[reply.npc].npc
        for npc in (reply.npc, *(npc for npc in self._talk.present if npc != reply.npc)):
            self._npcs[npc].mailbox.post(Expect(reply.npc, speaker.name, reply.text, self._somebody()))

    def _relax_all_but(self, npc: NpcId) -> None:
        for other in self._talk.present:
            if other != npc:
                self._npcs[other].mailbox.post(Relax())

    def _somebody(self) -> str:
        """Who will probably speak next; a guess only costs the cache a few words."""
        return next(iter(self._names.values()), "")

    def _get_ready(self, *npcs: NpcId) -> None:
        """Let engines that are not asked anything read what has been said: the next answer starts from there."""
        for npc in npcs:
            self._npcs[npc].mailbox.post(GetReady("", self._somebody()))

    # -- pieces

    def _finish(self, record: TurnRecord) -> None:
        # At this table a turn's number is enough, and in the log it is one of many tables.
        self._scribe.mailbox.post(replace(record, id=TurnId(f"{self._opened}-{record.id}")))
        self._tell(TurnFinished(record))

    def _name(self, player: PlayerId) -> str:
        return self._names.get(str(player), str(player))

    def _last_kept(self, player: PlayerId) -> UtteranceId | None:
        kept = self._kept.get(player)
        return kept[-1] if kept else None

    def _next_id(self) -> UtteranceId:
        self._numbers += 1
        return UtteranceId(f"{self._opened}-{self._numbers:06d}")
