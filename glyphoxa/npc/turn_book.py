"""Turns that are under way, and the record each becomes when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import Recalled
from glyphoxa.domain.turn import LookUp, Outcome, PromptPart, Rejected, Stage, TierChoice, TurnRecord, Unsaid
from glyphoxa.npc.mouth import Finished, Injected, Marked, SentenceRejected
from glyphoxa.turns.address import Addressed


@dataclass(slots=True)
class _Open:
    """What is known of a turn so far. Not committed: a speculation, of which no record will be left."""

    stages: dict[Stage, int] = field(default_factory=dict)
    recalled: tuple[Recalled, ...] = ()
    omitted: tuple[str, ...] = ()
    prompt_text: str = ""
    parts: tuple[PromptPart, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    looked_up: tuple[LookUp, ...] = ()
    unsaid: tuple[Unsaid, ...] = ()
    tier: TierChoice | None = None
    npc: NpcId | None = None
    draft: Draft | None = None
    question: str = ""
    reason: str = ""
    utterance: UtteranceId | None = None


@dataclass(slots=True)
class TurnBook:
    """Collects what the ear, the room and the engine say of a turn.

    Args:
        name_of: What a player is called.
    """

    session: SessionId
    name_of: Callable[[PlayerId], str]
    _open: dict[TurnId, _Open] = field(default_factory=dict)
    _asked: dict[NpcId, TurnId] = field(default_factory=dict)
    _unanswered: int = 0

    def begun(self, turn: TurnId, npc: NpcId, *, question: str, at_ms: int) -> None:
        entry = self._open.setdefault(turn, _Open())
        entry.question = question
        self._asked[npc] = turn
        entry.stages.setdefault(Stage.ADDRESSED, at_ms)

    def committed(  # noqa: PLR0913 - all of it becomes known at one moment
        self,
        turn: TurnId,
        npc: NpcId,
        draft: Draft,
        reason: str,
        *,
        at_ms: int,
        utterance: UtteranceId | None = None,
    ) -> None:
        """
        Args:
            utterance: As which its words were kept.
        """
        entry = self._open.setdefault(turn, _Open())
        entry.npc, entry.draft, entry.reason, entry.utterance = npc, draft, reason, utterance
        entry.stages.setdefault(Stage.ADDRESSED, at_ms)
        entry.stages |= _heard_stages(draft) | {Stage.TURN_END: at_ms}

    def is_committed(self, turn: TurnId) -> bool:
        """Its words are kept and stand in the talk."""
        return turn in self._open and self._open[turn].draft is not None

    def marked(self, event: Marked) -> None:
        entry = self._open.get(event.turn)
        if entry is not None and (event.stage is not Stage.SILENCED or Stage.BARGE_IN in entry.stages):
            entry.stages.setdefault(event.stage, event.at_ms)

    def released(self, turn: TurnId, *, at_ms: int) -> None:
        """Its answer may be heard."""
        entry = self._open.get(turn)
        if entry is not None and at_ms > entry.stages.get(Stage.TURN_END, at_ms):
            entry.stages.setdefault(Stage.FLOOR, at_ms)

    def went_on(self, turn: TurnId) -> None:
        """What silenced the NPC did not cut it off."""
        if (entry := self._open.get(turn)) is not None:
            entry.stages.pop(Stage.BARGE_IN, None)
            entry.stages.pop(Stage.SILENCED, None)

    def injected(self, event: Injected) -> None:
        if (entry := self._open.get(event.turn)) is not None:
            entry.recalled, entry.omitted, entry.prompt_text = event.recalled, event.omitted, event.prompt_text
            entry.rejected, entry.parts = event.rejected, event.parts
            entry.tier = event.tier

    def sentence_rejected(self, event: SentenceRejected) -> None:
        if (entry := self._open.get(event.turn)) is not None:
            entry.unsaid += (event.unsaid,)

    def looked_up(self, npc: NpcId, look_up: LookUp) -> None:
        """An NPC's model was answered. It answers one turn at a time, the one that it was asked last."""
        turn = self._asked.get(npc)
        if turn is not None and (entry := self._open.get(turn)) is not None:
            entry.looked_up += (look_up,)

    def dropped(self, turn: TurnId) -> None:
        """A speculation that came to nothing."""
        self._open.pop(turn, None)

    def never_begun(self, turn: TurnId, outcome: Outcome) -> TurnRecord | None:
        """A committed turn that was called off before any engine was asked."""
        return self._close(turn, outcome)

    def finished(
        self, event: Finished, cancelled_as: Outcome | None, *, reply: UtteranceId | None = None
    ) -> TurnRecord | None:
        """The record of a committed turn; None for a speculation.

        Args:
            cancelled_as: The outcome that was decided when the turn was called off.
            reply: As which what was heard of it was kept.
        """
        entry = self._open.get(event.turn)
        if entry is not None and Stage.FIRST_AUDIO in entry.stages:
            entry.stages[Stage.AUDIO_END] = entry.stages.get(Stage.SILENCED, event.at_ms)
        return self._close(event.turn, cancelled_as or _outcome(event), event, reply)

    def at_first_audio(self, turn: TurnId) -> int | None:
        entry = self._open.get(turn)
        return entry.stages.get(Stage.FIRST_AUDIO) if entry is not None else None

    def not_addressed(self, draft: Draft, addressed: Addressed, *, utterance: UtteranceId | None = None) -> TurnRecord:
        self._unanswered += 1
        return TurnRecord(
            id=TurnId(f"u{self._unanswered:04d}"),
            session_id=self.session,
            speaker_id=SpeakerId(draft.player),
            speaker_name=self.name_of(draft.player),
            raw_text=draft.heard.raw_text,
            text=draft.text,
            npc_id=None,
            address_reason=addressed.reason,
            outcome=Outcome.NOT_ADDRESSED,
            stages=_heard_stages(draft),
            utterance_id=utterance,
            unaddressed=addressed.unaddressed,
        )

    def _close(
        self, turn: TurnId, outcome: Outcome, event: Finished | None = None, reply: UtteranceId | None = None
    ) -> TurnRecord | None:
        entry = self._open.pop(turn, None)
        if entry is None or entry.draft is None:
            return None
        return TurnRecord(
            id=turn,
            session_id=self.session,
            speaker_id=SpeakerId(entry.draft.player),
            speaker_name=self.name_of(entry.draft.player),
            raw_text=entry.draft.heard.raw_text,
            text=entry.draft.text,
            npc_id=entry.npc,
            address_reason=entry.reason,
            outcome=outcome,
            reply=event.reply if event is not None else "",
            reply_heard=event.heard if event is not None else "",
            recalled=entry.recalled,
            stages=entry.stages,
            omitted=entry.omitted,
            prompt_text=entry.prompt_text,
            parts=entry.parts,
            error=event.error if event is not None else "",
            rejected=entry.rejected,
            looked_up=entry.looked_up,
            unsaid=entry.unsaid,
            utterance_id=entry.utterance,
            reply_id=reply,
            tier=entry.tier.tier if entry.tier is not None else "",
            tier_reason=entry.tier.reason if entry.tier is not None else "",
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
