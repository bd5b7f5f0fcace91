"""Answers that are being heard, and the utterance that each becomes: as far as it was heard so far, and in the end.

A piece of an answer was heard when the next one begins: of what is being said right now nothing is taken for heard
before its engine tells how far it came. Both, and all in between, are one utterance: they have the same id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.npc.mouth import Finished, SentenceStarted


@dataclass(slots=True)
class _Answer:
    audience: frozenset[NpcId]
    began_ms: int
    pieces: list[str] = field(default_factory=list)
    id: UtteranceId | None = None


class Answers:
    """See the module.

    Args:
        new_id: Gives an id for an utterance.
    """

    def __init__(self, campaign: Campaign, session: SessionId, *, new_id: Callable[[], UtteranceId]) -> None:
        self._campaign = campaign
        self._session = session
        self._new_id = new_id
        self._heard: dict[TurnId, _Answer] = {}

    def begins(self, turn: TurnId, *, audience: frozenset[NpcId], at_ms: int) -> None:
        """Its first sound is heard by these NPCs."""
        self._heard[turn] = _Answer(audience, at_ms)

    def goes_on(self, event: SentenceStarted, *, meant: str = "") -> Utterance | None:
        """The next piece is heard. What was heard before it; None when that is nothing.

        Args:
            meant: The whole answer, if it is known.
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
        """How it ended, and what was heard of it; None when that is nothing. An engine that fell does not know how far
        it came: then all but its last piece was heard.
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
