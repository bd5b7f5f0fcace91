"""What players say, finished or not, and the utterance that it becomes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from glyphoxa.domain.heard import Draft, EagerTurn, EarEvent, NothingSaid, PartialHeard, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import NpcId, PlayerId, SpeakerId, UtteranceId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.npc.table_state import TableState
from glyphoxa.turns.question import MOST_PARTS

_KEPT_IN_MIND = MOST_PARTS + 1


class PlayerTalk:
    """
    Args:
        present: Who hears it.
        new_id: Gives an id for an utterance.
    """

    def __init__(
        self, state: TableState, *, present: Callable[[], Sequence[NpcId]], new_id: Callable[[], UtteranceId]
    ) -> None:
        self._state = state
        self._present = present
        self._new_id = new_id
        self._kept: dict[PlayerId, deque[UtteranceId]] = {}
        """The last utterances of each player, without those that came between the parts of a question."""
        self._half_said: dict[PlayerId, Draft] = {}

    def follow(self, event: EarEvent) -> None:
        """Remember what is being said, in case it is never finished."""
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
        """Who is in the middle of saying something."""
        return list(self._half_said)

    def break_off(self, player: PlayerId) -> Draft | None:
        """What they said of what they will not finish; None when that is nothing."""
        return self._half_said.pop(player, None)

    def keep(self, draft: Draft, *, is_part: bool = True) -> Utterance:
        """The utterance that a draft becomes now.

        Args:
            is_part: Of a question, which it may turn out to begin or to go on with.
        """
        utterance = self.utterance(draft)
        if is_part:
            self._kept.setdefault(draft.player, deque(maxlen=_KEPT_IN_MIND)).append(utterance.id)
        return utterance

    def npc_said(self, utterance: Utterance) -> None:
        """An NPC stands where a player does if another one answers it."""
        self._kept[PlayerId(utterance.speaker_id)] = deque([utterance.id], maxlen=1)

    def came_between(self, player: PlayerId) -> None:
        """What they said last is no part of their question."""
        self._kept[player].pop()

    def last_kept(self, player: PlayerId) -> UtteranceId | None:
        kept = self._kept.get(player)
        return kept[-1] if kept else None

    def newest_kept(self, player: PlayerId, n: int) -> tuple[UtteranceId, ...]:
        kept = tuple(self._kept.get(player, ()))
        return kept[len(kept) - n :]

    def utterance(self, draft: Draft) -> Utterance:
        return Utterance(
            id=draft.utterance or self._new_id(),
            campaign_id=self._state.campaign.id,
            session_id=self._state.session,
            speaker_id=SpeakerId(draft.player),
            speaker_name=self._state.name_of(draft.player),
            text=draft.heard.text,
            raw_text=draft.heard.raw_text,
            at_ms=draft.began_ms,
            duration_ms=max(0, draft.speech_end_ms - draft.began_ms),
            witnesses=frozenset(self._present()),
            corrections=draft.heard.corrections,
            words=draft.heard.words,
            typed=draft.typed,
        )
