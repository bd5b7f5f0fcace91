"""Frames of this project, and notes on pipecat's. An interruption drops frames in transit, except `TurnOverFrame`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pipecat.frames.frames import DataFrame, Frame, LLMContextFrame, MetricsFrame, SystemFrame
from pipecat.metrics.metrics import (
    MetricsData,
    ProcessingMetricsData,
    TextAggregationMetricsData,
    TTFAMetricsData,
    TTFATMetricsData,
    TTFBMetricsData,
)

from glyphoxa.domain.heard import Heard, HeardWord
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn_record import Asked, TierChoice, Unsaid
from glyphoxa.observability import Measure, ServiceTime
from glyphoxa.prompt.prompt import Prompt


@dataclass
class BeginFrame(DataFrame):
    """Answer this prompt."""

    turn: TurnId
    prompt: Prompt


@dataclass
class PrimeFrame(DataFrame):
    """A probable prompt, which a service with a prompt cache may read in advance."""

    prompt: Prompt


@dataclass
class FillerFrame(DataFrame):
    """Synthesise this filler and keep it."""

    text: str


@dataclass
class ReplyBeginsFrame(DataFrame):
    """The following model tokens belong to this turn and answer `asked`.

    Attributes:
        is_brief: Answer with one sentence.
        tier: Budget tier of the turn; None if not chosen.
    """

    turn: TurnId
    asked: Asked
    is_brief: bool = False
    tier: TierChoice | None = None


@dataclass
class GivenWordsFrame(DataFrame):
    """Say these words of the DM verbatim."""

    turn: TurnId
    text: str


@dataclass
class SecondTryFrame(DataFrame):
    """Upstream, from the reply check: nothing may be said, so ask the model once more.

    Attributes:
        rejected: The first rejected sentence and its fault.
        fact: A fact of the prompt that the model refused to tell; empty if it refused none.
    """

    turn: TurnId
    rejected: Unsaid
    fact: str = ""


@dataclass
class AnotherTryFrame(LLMContextFrame):
    """The same question again, after a fully rejected answer."""


@dataclass
class RetractFrame(DataFrame):
    """The model's words so far were reasoning. The reply begins after them."""


@dataclass
class PieceFrame(DataFrame):
    """The following sound says `text`, of this turn's reply, or of a filler if `turn` is None.

    Attributes:
        spoken: The text in the form that the voice received, if it differs.
    """

    turn: TurnId | None
    text: str
    spoken: str = ""


@dataclass
class PieceEndFrame(DataFrame):
    """The sound of the latest piece is complete."""

    turn: TurnId | None


@dataclass
class ReplyEndFrame(DataFrame):
    """All pieces of the reply have passed. `withheld`: there were words, but none may be said."""

    turn: TurnId
    withheld: bool = False


@dataclass
class TurnOverFrame(SystemFrame):
    """Upstream, from the end of the ear: the player's turn is over. Speech after `segment` belongs to the next one.

    Attributes:
        segment: Number of the turn's last speech segment, counted from 1 by the detector's start reports.
    """

    segment: int


@dataclass
class KeytermsFrame(SystemFrame):
    """New names for a recogniser that accepts them while it listens."""

    names: Sequence[str]


# Additional data of a transcript for the processors of an ear; travels with pipecat's frame.


_KEY: Final = "glyphoxa.transcript"


@dataclass(frozen=True, slots=True)
class TranscriptNotes:
    """Notes on a transcript.

    Attributes:
        words: The recogniser's data for each word, with offsets in the raw text.
        sound_ms: Start of the words in the ear's sound.
        segment: Number of speech segments begun before the transcribed sound ends.
        revises: It replaces the last transcript.
        heard: Written by the corrector.
    """

    words: tuple[HeardWord, ...] = ()
    sound_ms: int | None = None
    segment: int | None = None
    revises: bool = False
    heard: Heard | None = None


def notes_of(frame: Frame) -> TranscriptNotes:
    notes = frame.metadata.get(_KEY)
    return notes if isinstance(notes, TranscriptNotes) else TranscriptNotes()


def put_notes(frame: Frame, notes: TranscriptNotes) -> None:
    """Replace the notes of a frame; see `dataclasses.replace`."""
    frame.metadata[_KEY] = notes


# pipecat's service metrics as `ServiceTime`.


def service_times(frame: MetricsFrame, *, graph: str, at_ms: int) -> Iterator[ServiceTime]:
    """Yield measured times. Usage data and pipecat's initial zeros are left out."""
    for data in frame.data:
        measured = _measured(data)
        if measured is not None and measured[1] > 0:
            # "OpenAILLMService#3" is the third instance.
            yield ServiceTime(graph, data.processor.partition("#")[0], *measured, at_ms)


def _measured(data: MetricsData) -> tuple[Measure, float] | None:
    match data:
        case TTFBMetricsData():
            return "ttfb", data.value
        case TTFAMetricsData():
            return "ttfa", data.ttfa
        case TTFATMetricsData():
            return "ttfat", data.ttfat
        case ProcessingMetricsData():
            return "processing", data.value
        case TextAggregationMetricsData():
            return "aggregation", data.value
        case _:
            return None
