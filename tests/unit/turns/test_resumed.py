"""Who was talking with whom is told by what was said, as far as that is certain."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, SpeakerId
from glyphoxa.turns.address import Addressing
from tests.support.builders import BRAN, INNKEEPER, SMITH, TAMSIN, an_utterance


def answered(talk: list[Utterance]) -> list[tuple[str, str, int]]:
    """Return each answered player, the NPC, and when its answer ended."""
    addressing = Addressing()
    addressing.restore(talk)
    return [(line.to, line.speaker, line.at_ms) for line in addressing.lines if line.to is not None]


def said(speaker: str, *, npc: NpcId | None = None, at_ms: int = 0) -> Utterance:
    return replace(an_utterance("Aye."), speaker_id=SpeakerId(speaker), npc_id=npc, at_ms=at_ms, duration_ms=500)


def test_an_answer_belongs_to_the_only_player_who_spoke_before_it() -> None:
    talk = [said(TAMSIN), said(TAMSIN), said(SMITH, npc=SMITH, at_ms=1_000), said(BRAN), said("m", npc=INNKEEPER)]
    assert [(player, at_ms) for player, _, at_ms in answered(talk)] == [(TAMSIN, 1_500), (BRAN, 500)]


def test_answer_after_several_speakers_belongs_to_none() -> None:
    assert answered([said(TAMSIN), said(BRAN), said(SMITH, npc=SMITH)]) == []


def test_npc_reply_to_an_npc_answers_no_player() -> None:
    assert answered([said(SMITH, npc=SMITH), said("m", npc=INNKEEPER)]) == []
