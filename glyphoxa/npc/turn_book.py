"""Records turns, and the utterances of players and NPCs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from glyphoxa.chronicle.consent import ConsentRequest, consent_request
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.heard import (
    Draft,
    EagerTurn,
    EarEvent,
    NothingSaid,
    PartialHeard,
    SpeechStarted,
    TurnEnded,
    Utterance,
)
from glyphoxa.domain.ids import NpcId, PlayerId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.turn import LookUp, Outcome, Stage, TurnRecord, Unsaid
from glyphoxa.npc.mouth import Finished, Injected, Marked, SentenceRejected, SentenceStarted
from glyphoxa.npc.table import TableState
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.effects import Commit
from glyphoxa.turns.turn import MAX_PARTS


@dataclass(slots=True)
class _Open:
    """The record of an open turn. If never committed, it is a speculation and is dropped."""

    stages: dict[Stage, int] = field(default_factory=dict)
    sent: Injected | None = None
    looked_up: tuple[LookUp, ...] = ()
    unsaid: tuple[Unsaid, ...] = ()
    commit: Commit | None = None
    utterance: UtteranceId | None = None


@dataclass(slots=True)
class TurnBook:
    """Collects the events of ears, room and engines for each turn.

    Args:
        name_of: Returns a player's name.
    """

    session: SessionId
    name_of: Callable[[PlayerId], str]
    _open: dict[TurnId, _Open] = field(default_factory=dict)
    _asked: dict[NpcId, TurnId] = field(default_factory=dict)
    _unanswered: int = 0

    def begun(self, turn: TurnId, npc: NpcId, *, at_ms: int) -> None:
        self._asked[npc] = turn
        self._open.setdefault(turn, _Open()).stages.setdefault(Stage.ADDRESSED, at_ms)

    def committed(self, effect: Commit, *, utterance: UtteranceId | None) -> None:
        """Commit a turn.

        Args:
            utterance: Id of the stored question.
        """
        entry = self._open.setdefault(effect.turn, _Open())
        entry.commit, entry.utterance = effect, utterance
        entry.stages.setdefault(Stage.ADDRESSED, effect.at_ms)
        entry.stages |= _heard_stages(effect.draft) | {Stage.TURN_END: effect.at_ms}

    def is_committed(self, turn: TurnId) -> bool:
        """Return whether the turn's words are stored."""
        return turn in self._open and self._open[turn].commit is not None

    def marked(self, event: Marked) -> None:
        entry = self._open.get(event.turn)
        if entry is not None and (event.stage is not Stage.SILENCED or Stage.BARGE_IN in entry.stages):
            entry.stages.setdefault(event.stage, event.at_ms)

    def released(self, turn: TurnId, *, at_ms: int) -> None:
        """Note that the answer may be heard."""
        entry = self._open.get(turn)
        if entry is not None and at_ms > entry.stages.get(Stage.TURN_END, at_ms):
            entry.stages.setdefault(Stage.FLOOR, at_ms)

    def resumed(self, turn: TurnId) -> None:
        """Note that the NPC was only held, not interrupted."""
        if (entry := self._open.get(turn)) is not None:
            entry.stages.pop(Stage.BARGE_IN, None)
            entry.stages.pop(Stage.SILENCED, None)

    def injected(self, event: Injected) -> None:
        if (entry := self._open.get(event.turn)) is not None:
            entry.sent = event

    def sentence_rejected(self, event: SentenceRejected) -> None:
        if (entry := self._open.get(event.turn)) is not None:
            entry.unsaid += (event.unsaid,)

    def looked_up(self, npc: NpcId, look_up: LookUp) -> None:
        """Note an answered tool call. It belongs to the NPC's current turn."""
        turn = self._asked.get(npc)
        if turn is not None and (entry := self._open.get(turn)) is not None:
            entry.looked_up += (look_up,)

    def dropped(self, turn: TurnId) -> None:
        """Drop a speculation."""
        self._open.pop(turn, None)

    def finished(
        self, event: Finished, cancelled_as: Outcome | None, *, reply: UtteranceId | None = None
    ) -> TurnRecord | None:
        """Return the record of a committed turn; None for a speculation.

        Args:
            cancelled_as: Outcome decided at cancellation.
            reply: Id of the stored reply.
        """
        entry = self._open.pop(event.turn, None)
        if entry is None or entry.commit is None:
            return None
        if Stage.FIRST_AUDIO in entry.stages:
            entry.stages[Stage.AUDIO_END] = entry.stages.get(Stage.SILENCED, event.at_ms)
        commit, sent = entry.commit, entry.sent or Injected(event.npc, event.turn)
        return replace(
            self._record(event.turn, commit.draft, commit.addressed, cancelled_as or _outcome(event)),
            npc_id=commit.npc,
            reply=event.reply,
            reply_heard=event.heard,
            prompt=sent.prompt,
            stages=entry.stages,
            error=event.error,
            looked_up=entry.looked_up,
            unsaid=entry.unsaid,
            utterance_id=entry.utterance,
            reply_id=reply,
            tier=sent.tier.tier if sent.tier is not None else "",
            tier_reason=sent.tier.reason if sent.tier is not None else "",
        )

    def at_first_audio(self, turn: TurnId) -> int | None:
        entry = self._open.get(turn)
        return entry.stages.get(Stage.FIRST_AUDIO) if entry is not None else None

    def not_addressed(self, draft: Draft, addressed: Addressed, *, utterance: UtteranceId | None = None) -> TurnRecord:
        self._unanswered += 1
        record = self._record(TurnId(f"u{self._unanswered:04d}"), draft, addressed, Outcome.NOT_ADDRESSED)
        return replace(record, utterance_id=utterance, unaddressed=addressed.unaddressed)

    def _record(self, turn: TurnId, draft: Draft, addressed: Addressed, outcome: Outcome) -> TurnRecord:
        """Return the record of a turn as far as its question is concerned."""
        return TurnRecord(
            id=turn,
            session_id=self.session,
            speaker_id=SpeakerId(draft.player),
            speaker_name=self.name_of(draft.player),
            raw_text=draft.heard.raw_text,
            text=draft.text,
            npc_id=None,
            address_reason=addressed.reason,
            outcome=outcome,
            stages=_heard_stages(draft),
        )


def _heard_stages(draft: Draft) -> dict[Stage, int]:
    return {
        Stage.SPEECH_END: draft.speech_end_ms,
        Stage.TRANSCRIPT_FINAL: draft.heard.transcript_ms,
        Stage.CORRECTED: draft.heard.corrected_ms,
    }


def _outcome(event: Finished) -> Outcome:
    if event.withheld:
        return Outcome.WITHHELD
    if event.error:
        return Outcome.FAILED if not event.heard else Outcome.ANSWERED
    return Outcome.INTERRUPTED if event.interrupted else Outcome.ANSWERED


# Players' words, finished or not, and the resulting utterances.


_KEPT_IN_MIND = MAX_PARTS + 1


class PlayerTalk:
    """Tracks players' words.

    Args:
        present: Returns who hears them.
        new_id: Creates an utterance id.
    """

    def __init__(
        self, state: TableState, *, present: Callable[[], Sequence[NpcId]], new_id: Callable[[], UtteranceId]
    ) -> None:
        self._state = state
        self._present = present
        self._new_id = new_id
        self._kept: dict[PlayerId, deque[UtteranceId]] = {}
        """The latest utterances of each player, without those between the parts of a question."""
        self._half_said: dict[PlayerId, Draft] = {}
        self._last_speaker: dict[PlayerId, SpeakerId] = {}

    def follow(self, event: EarEvent) -> None:
        """Track unfinished speech, in case it never ends."""
        match event:
            case PartialHeard(player, heard, at_ms):
                began_ms = self._half_said[player].began_ms if player in self._half_said else at_ms
                self._half_said[player] = Draft(player, heard, began_ms, at_ms)
            case EagerTurn(draft):
                self._half_said[draft.player] = draft
            case TurnEnded(draft):
                self._half_said.pop(draft.player, None)
            case NothingSaid(player):
                self._half_said.pop(player, None)
            case SpeechStarted():
                pass

    def unfinished(self) -> list[PlayerId]:
        """Return the players with unfinished speech."""
        return list(self._half_said)

    def break_off(self, player: PlayerId) -> Draft | None:
        """Return a player's unfinished speech as a draft; None if it is empty."""
        return self._half_said.pop(player, None)

    def keep(self, draft: Draft, *, is_part: bool) -> Utterance:
        """Turn a draft into an utterance.

        Args:
            is_part: Whether it may be part of a question.
        """
        utterance = self.utterance(draft)
        self._last_speaker[draft.player] = utterance.speaker_id
        if is_part:
            self._kept.setdefault(draft.player, deque(maxlen=_KEPT_IN_MIND)).append(utterance.id)
        return utterance

    def npc_said(self, utterance: Utterance) -> None:
        """Note an NPC's utterance, because another NPC may answer it."""
        self._kept[PlayerId(utterance.speaker_id)] = deque([utterance.id], maxlen=1)

    def last_kept(self, player: PlayerId) -> UtteranceId | None:
        return next(iter(self.newest_kept(player, 1)), None)

    def newest_kept(self, player: PlayerId, n: int) -> tuple[UtteranceId, ...]:
        kept = tuple(self._kept.get(player, ()))
        return kept[len(kept) - n :]

    def utterance(self, draft: Draft) -> Utterance:
        speaker = self._state.speaker_of(draft.player, draft.text)
        if consent_request(draft.text) not in (None, ConsentRequest.LINE):  # about the words before
            speaker = PlayerId(self._last_speaker.get(draft.player, speaker))
        return Utterance(
            id=draft.utterance or self._new_id(),
            campaign_id=self._state.campaign.id,
            session_id=self._state.session,
            speaker_id=SpeakerId(speaker),
            speaker_name=self._state.name_of(speaker),
            seat=draft.player,
            text=draft.heard.text,
            raw_text=draft.heard.raw_text,
            at_ms=draft.began_ms,
            duration_ms=max(0, draft.speech_end_ms - draft.began_ms),
            witnesses=frozenset(self._present()),
            corrections=draft.heard.corrections,
            words=draft.heard.words,
            typed=draft.typed,
        )


# Answers in playback, and the resulting utterances.
#
# A piece counts as heard when the next one begins. Nothing of the current piece counts until the engine reports how
# much was played. All versions of an answer are one utterance with one id.


@dataclass(slots=True)
class _Answer:
    audience: frozenset[NpcId]
    began_ms: int
    pieces: list[str] = field(default_factory=list)
    id: UtteranceId | None = None


class Answers:
    """Tracks the answers in playback, by the rules above.

    Args:
        new_id: Creates an utterance id.
    """

    def __init__(self, campaign: Campaign, session: SessionId, *, new_id: Callable[[], UtteranceId]) -> None:
        self._campaign = campaign
        self._session = session
        self._new_id = new_id
        self._heard: dict[TurnId, _Answer] = {}

    def begins(self, turn: TurnId, *, audience: frozenset[NpcId], at_ms: int) -> None:
        """Note the first sound of an answer and who hears it."""
        self._heard[turn] = _Answer(audience, at_ms)

    def continues(self, event: SentenceStarted, *, meant: str = "") -> Utterance | None:
        """Take the next piece. Returns what was heard before it, or None.

        Args:
            meant: The whole answer, if known.
        """
        answer = self._heard.get(event.turn)
        if answer is None:
            return None
        heard = " ".join(answer.pieces)
        answer.pieces.append(event.text)
        if not heard:
            return None
        meant = max(meant, " ".join(answer.pieces), key=len)
        return self._utterance(event.npc, answer, heard, meant, event.at_ms - answer.began_ms)

    def ends(self, event: Finished) -> tuple[Finished, Utterance | None]:
        """Return the end of the turn, and what was heard of the answer, or None.

        A crashed engine cannot report its progress. Then all but the last piece counts as heard.
        """
        answer = self._heard.pop(event.turn, None)
        if answer is None:
            return event, None
        if not event.heard and len(answer.pieces) > 1:
            event = replace(event, heard=" ".join(answer.pieces[:-1]), reply=event.reply or " ".join(answer.pieces))
        if not event.heard:
            return event, None
        return event, self._utterance(event.npc, answer, event.heard, event.reply, event.audio_ms)

    def _utterance(self, npc_id: NpcId, answer: _Answer, heard: str, meant: str, duration_ms: int) -> Utterance:
        npc = self._campaign.npc(npc_id)
        if answer.id is None:
            answer.id = self._new_id()
        return Utterance(
            id=answer.id,
            campaign_id=self._campaign.id,
            session_id=self._session,
            speaker_id=SpeakerId(npc.id),
            speaker_name=npc.name,
            text=heard,
            raw_text=meant,
            at_ms=answer.began_ms,
            duration_ms=max(0, duration_ms),
            npc_id=npc.id,
            witnesses=answer.audience,
        )
