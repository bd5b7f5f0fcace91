"""What a turn looks like as a trace: one span for the turn, one in it for each step. No word that was said is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from glyphoxa.domain.turn import Outcome, Stage, TurnRecord
from glyphoxa.observability.service_time import ServiceTime

STEPS: Final = (
    ("end of turn", Stage.SPEECH_END, Stage.TURN_END),
    ("transcription", Stage.SPEECH_END, Stage.TRANSCRIPT_FINAL),
    ("name correction", Stage.TRANSCRIPT_FINAL, Stage.CORRECTED),
    ("hot context", Stage.ADDRESSED, Stage.CONTEXT_READY),
    ("first token", Stage.CONTEXT_READY, Stage.FIRST_TOKEN),
    ("first sentence", Stage.FIRST_TOKEN, Stage.FIRST_SENTENCE),
    ("voice", Stage.FIRST_SENTENCE, Stage.FIRST_AUDIO),
    ("speaking", Stage.FIRST_AUDIO, Stage.AUDIO_END),
)
"""Each step of a turn, and the marks between which it lies. Steps overlap: an answer is thought of while the wait for
the end of the turn still runs.
"""
_FAILED: Final = frozenset({Outcome.FAILED, Outcome.TIMED_OUT})

AttributeValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class SpanData:
    """Times are milliseconds since the Unix epoch."""

    name: str
    start_ms: int
    end_ms: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanEvent:
    name: str
    at_ms: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """
    Attributes:
        steps: In the order of `STEPS`, those that took place.
        events: What happened at one moment, in order of time.
    """

    turn: SpanData
    steps: tuple[SpanData, ...]
    events: tuple[SpanEvent, ...]
    has_failed: bool


def steps_of(record: TurnRecord) -> list[SpanData]:
    """A step whose end was marked before its beginning took no time of its own, and is left out."""
    marks = record.stages
    return [
        SpanData(name, marks[begin], marks[end])
        for name, begin, end in STEPS
        if begin in marks and end in marks and marks[begin] <= marks[end]
    ]


def trace_of(record: TurnRecord, times: Sequence[ServiceTime] = ()) -> TurnTrace | None:
    """
    Args:
        times: Of the services that worked for it.

    Returns: None for a turn of which no time is known.
    """
    if not record.stages:
        return None
    begin_ms, end_ms = min(record.stages.values()), max(record.stages.values())
    attributes: dict[str, AttributeValue] = {
        "glyphoxa.session": record.session_id,
        "glyphoxa.turn": record.id,
        "glyphoxa.speaker": record.speaker_id,
        "glyphoxa.outcome": record.outcome.value,
        "glyphoxa.recalled": len(record.recalled),
        "glyphoxa.unsaid": len(record.unsaid),
        "glyphoxa.prompt_tokens": sum(part.tokens for part in record.parts),
    }
    if record.npc_id is not None:
        attributes["glyphoxa.npc"] = record.npc_id
    if record.tier:
        attributes["glyphoxa.tier"] = record.tier
    if record.unaddressed is not None:
        attributes["glyphoxa.unaddressed"] = record.unaddressed.value
    if record.first_audio_ms is not None:
        attributes["glyphoxa.first_audio_ms"] = record.first_audio_ms
    events = [SpanEvent(f"{t.service} {t.measure}", t.at_ms, {"seconds": t.took_s, "graph": t.graph}) for t in times]
    if Stage.FILLER in record.stages:
        events.append(SpanEvent("filler", record.stages[Stage.FILLER]))
    events += [SpanEvent("look-up", end_ms, {"tool": look.tool, "ms": look.took_ms}) for look in record.looked_up]
    return TurnTrace(
        SpanData("turn", begin_ms, end_ms, attributes),
        tuple(steps_of(record)),
        tuple(sorted(events, key=lambda event: event.at_ms)),
        record.outcome in _FAILED,
    )
