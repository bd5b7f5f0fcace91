"""A turn's record as a row of `turns`, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final

import asyncpg

from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.recalled import Recalled, RecalledFact, RecalledSummary, RecalledUtterance, Signal
from glyphoxa.domain.turn import Fault, LookUp, Outcome, PromptPart, Rejected, Stage, TurnRecord, Unsaid

_KINDS: Final[Mapping[str, type[Recalled]]] = {
    kind.source: kind for kind in (RecalledUtterance, RecalledFact, RecalledSummary)
}
_SIGNALS: Final = {signal.value: signal for signal in Signal}
_FAULTS: Final = {fault.value: fault for fault in Fault}
_STAGES: Final = {stage.value: stage for stage in Stage}


def turn_parameters(turn: TurnRecord) -> tuple[object, ...]:
    """What the paragraph `record_turn` takes behind the campaign. Not all of it may be storable: see `storable`."""
    return (
        turn.id,
        turn.session_id,
        turn.speaker_id,
        turn.speaker_name,
        turn.raw_text,
        turn.text,
        turn.npc_id or "",
        turn.address_reason,
        turn.outcome.value,
        turn.reply,
        turn.reply_heard,
        [_stored(one) for one in turn.recalled],
        {stage.value: at_ms for stage, at_ms in turn.stages.items()},
        list(turn.omitted),
        turn.prompt_text,
        turn.error,
        [{**_stored(one.recalled), "why": one.why} for one in turn.rejected],
        [
            {"tool": one.tool, "arguments": dict(one.arguments), "found": dict(one.found), "took_ms": one.took_ms}
            for one in turn.looked_up
        ],
        turn.utterance_id,
        turn.reply_id,
        [asdict(part) for part in turn.parts],
        turn.tier,
        turn.tier_reason,
        [{"text": one.text, "fault": one.fault.value} for one in turn.unsaid],
    )


def turn_of_row(row: asyncpg.Record) -> TurnRecord:
    return TurnRecord(
        id=TurnId(row["id"]),
        session_id=SessionId(row["session_id"]),
        speaker_id=SpeakerId(row["speaker_id"]),
        speaker_name=row["speaker_name"],
        raw_text=row["raw_text"],
        text=row["text"],
        npc_id=NpcId(row["npc_id"]) if row["npc_id"] else None,
        address_reason=row["address_reason"],
        outcome=Outcome(row["outcome"]),
        reply=row["reply"],
        reply_heard=row["reply_heard"],
        recalled=tuple(_recalled(one) for one in row["recalled"]),
        stages={_STAGES[stage]: at_ms for stage, at_ms in row["stages"].items() if stage in _STAGES},
        omitted=tuple(row["omitted"]),
        prompt_text=row["prompt_text"],
        error=row["error"],
        rejected=tuple(Rejected(_recalled(one), one["why"]) for one in row["rejected"]),
        looked_up=tuple(
            LookUp(one["tool"], one["arguments"], one["found"], one["took_ms"]) for one in row["looked_up"]
        ),
        utterance_id=_utterance(row["utterance_id"]),
        reply_id=_utterance(row["reply_id"]),
        parts=tuple(PromptPart(**part) for part in row["parts"]),
        tier=row["tier"],
        tier_reason=row["tier_reason"],
        unsaid=tuple(Unsaid(one["text"], _FAULTS[one["fault"]]) for one in row["unsaid"] if one["fault"] in _FAULTS),
    )


def _stored(one: Recalled) -> dict[str, Any]:
    return {"source": one.source, **asdict(one)}


def _recalled(stored: Mapping[str, Any]) -> Recalled:
    """Also of an older version, which wrote who spoke into the text, and all fields for every kind."""
    kind = _KINDS[stored["source"]]
    known = {field.name: stored[field.name] for field in fields(kind) if field.name in stored}
    if kind is RecalledUtterance:
        known.setdefault("speaker_name", "")
        known["signals"] = {_SIGNALS[name]: share for name, share in known["signals"].items() if name in _SIGNALS}
    return kind(**known)


def _utterance(key: str | None) -> UtteranceId | None:
    return None if key is None else UtteranceId(key)
