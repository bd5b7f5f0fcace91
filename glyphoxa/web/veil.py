"""What players may see of what happens at their table: of a name that not everybody knows, the words that were heard.

The log, memory and the NPCs have names put right. A player who said something like "sharothrix" would learn from their
own caption that there is a Zharothrix, and how it is written. So what is shown keeps the words as they were heard where
the name put there is hidden, or known to some only. Who typed the name sees it: they knew it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from glyphoxa.domain.events import TableEvent, TurnFinished, UtteranceKept, UtteranceRevised
from glyphoxa.domain.heard import Draft, EagerTurn, Heard, PartialHeard, TurnEnded
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.domain.utterance import Correction, Utterance
from glyphoxa.speech.language.spans import applied, leads_to

MayShow = Callable[[str], bool]
"""Whether a text holds no name but those that everybody knows."""


def veiled(event: TableEvent, may_show: MayShow) -> TableEvent:
    """The event as players may be told of it."""
    match event:
        case PartialHeard(heard=heard):
            return replace(event, heard=_heard(heard, may_show))
        case EagerTurn(draft):
            return replace(event, draft=_draft(draft, may_show))
        case TurnEnded(draft):
            return replace(event, draft=_draft(draft, may_show))
        case UtteranceKept(utterance):
            return replace(event, utterance=_utterance(utterance, may_show))
        case UtteranceRevised(utterance, was):
            return replace(event, utterance=_utterance(utterance, may_show), was=_utterance(was, may_show))
        case TurnFinished(turn):
            return replace(event, turn=_turn(turn, may_show))
        case _:
            return event


def _shown(
    text: str, raw_text: str, corrections: Sequence[Correction], may_show: MayShow
) -> tuple[str, tuple[Correction, ...]]:
    if not leads_to(raw_text, corrections, text):
        return (text, tuple(corrections)) if may_show(text) else (raw_text, ())
    kept = tuple(correction for correction in corrections if may_show(correction.after))
    return applied(raw_text, kept), kept


def _draft(draft: Draft, may_show: MayShow) -> Draft:
    return replace(draft, heard=_heard(draft.heard, may_show))


def _heard(heard: Heard, may_show: MayShow) -> Heard:
    text, corrections = _shown(heard.text, heard.raw_text, heard.corrections, may_show)
    return replace(heard, text=text, corrections=corrections)


def _utterance(utterance: Utterance, may_show: MayShow) -> Utterance:
    if utterance.npc_id is None:
        text, corrections = _shown(utterance.text, utterance.raw_text, utterance.corrections, may_show)
        return replace(utterance, text=text, corrections=corrections)
    # What an NPC says is its own; only what a recogniser made of its voice was put right.
    text = utterance.text
    for correction in utterance.corrections:
        if not may_show(correction.after):
            text = text.replace(correction.after, correction.before)
    return replace(utterance, text=text)


def _turn(turn: TurnRecord, may_show: MayShow) -> TurnRecord:
    return turn if may_show(turn.address_reason) else replace(turn, address_reason="")
