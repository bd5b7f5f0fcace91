"""The frames that are ours. An interruption drops those that are still on their way, except `TurnOverFrame`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipecat.frames.frames import DataFrame, LLMContextFrame, MetricsFrame, SystemFrame
from pipecat.metrics.metrics import (
    MetricsData,
    ProcessingMetricsData,
    TextAggregationMetricsData,
    TTFAMetricsData,
    TTFATMetricsData,
    TTFBMetricsData,
)

from glyphoxa.context.prompt import Prompt
from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.domain.turn import Asked, Stage, TierChoice, Unsaid
from glyphoxa.npc.mouth import Listener, Marked
from glyphoxa.observability.service_time import Measure, ServiceTime


@dataclass
class BeginFrame(DataFrame):
    """Answer this prompt."""

    turn: TurnId
    prompt: Prompt


@dataclass
class PrimeFrame(DataFrame):
    """A prompt that will probably be asked: a service that keeps a prompt cache may read it in."""

    prompt: Prompt


@dataclass
class FillerFrame(DataFrame):
    """Synthesise this sound and keep it for later."""

    text: str


@dataclass
class ReplyBeginsFrame(DataFrame):
    """The model's tokens that follow belong to this turn, and answer `asked`.

    Attributes:
        is_brief: With one sentence.
        tier: How deep the turn may look; None where nobody chose.
    """

    turn: TurnId
    asked: Asked
    is_brief: bool = False
    tier: TierChoice | None = None


@dataclass
class GivenWordsFrame(DataFrame):
    """Say these words as they are: the DM gave them."""

    turn: TurnId
    text: str


@dataclass
class SecondTryFrame(DataFrame):
    """Upstream, from what checks a reply: nothing of it may be said, so the model is asked once more.

    Attributes:
        rejected: The first sentence that may not be said, and why.
    """

    turn: TurnId
    rejected: Unsaid


@dataclass
class AnotherTryFrame(LLMContextFrame):
    """What was asked before, of whose answer nothing may be said."""


@dataclass
class PieceFrame(DataFrame):
    """The sound that follows says `text`, of this turn's reply; of a filler when `turn` is None."""

    turn: TurnId | None
    text: str


@dataclass
class PieceEndFrame(DataFrame):
    """All the sound of the latest piece has passed."""

    turn: TurnId | None


@dataclass
class ReplyEndFrame(DataFrame):
    """Every piece of the reply has passed. `withheld`: there were words and none of them may be said."""

    turn: TurnId
    withheld: bool = False


@dataclass
class TurnOverFrame(SystemFrame):
    """Upstream, from the ear's end: the player's turn is over, and what was said after `segment` is another.

    Attributes:
        segment: Of the detector's reports that speech began, the last one of that turn, counted from 1.
    """

    segment: int


# What the stages of a mouth report of a turn.


OnFailure = Callable[[TurnId, str], None]


@dataclass(frozen=True, slots=True)
class MouthReports:
    """Where they go.

    Attributes:
        on_failure: Ends the reply.
        on_trouble: Costs at most a piece of the reply.
    """

    npc: NpcId
    listener: Listener
    on_failure: OnFailure
    on_trouble: OnFailure
    clock: Callable[[], int]

    def mark(self, turn: TurnId, stage: Stage) -> None:
        """A turn has come to a stage now."""
        self.listener(Marked(self.npc, turn, stage, self.clock()))


# What pipecat measures of its services, in our words.


def service_times(frame: MetricsFrame, *, graph: str, at_ms: int) -> Iterator[ServiceTime]:
    """Usage and what was not measured (pipecat begins with zeros) is left out."""
    for data in frame.data:
        measured = _measured(data)
        if measured is not None and measured[1] > 0:
            # "OpenAILLMService#3": the third that was made.
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
