"""A mouth as a cascade: memory, then a language model, then a voice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from loguru import logger
from pipecat.frames.frames import InterruptionFrame
from pipecat.processors.frame_processor import FrameProcessor

from glyphoxa.app.engines import MouthSpec
from glyphoxa.domain.ids import TurnId
from glyphoxa.npc.mouth import Finished, Mouth, MouthEvent
from glyphoxa.prompt.prompt import Prompt
from glyphoxa_pipelines.host import RunningGraph
from glyphoxa_pipelines.parts import MouthParts, host_of
from glyphoxa_processors.frames import BeginFrame, FillerFrame, PrimeFrame
from glyphoxa_processors.hot_context import HotContextInjector
from glyphoxa_processors.llm import SpokenLLM
from glyphoxa_processors.speaker import PATIENCE_MS, Speaker
from glyphoxa_processors.spoken_text import SpokenText
from glyphoxa_processors.tools import ToolRounds

# The shared stages of mouths.


def memory(parts: MouthParts, speaker: Speaker) -> FrameProcessor:
    """Return the stage that adds the NPC's memory to the prompt. First in every mouth."""
    spec = parts.spec
    return HotContextInjector(
        spec.context,
        speaker,
        tools=spec.tools,
        facts_at=spec.settings.facts_at,
        shrug=parts.shrug,
        limits=parts.limits,
    )


def clauses(parts: MouthParts, speaker: Speaker) -> FrameProcessor:
    """Return the stage that turns the model's tokens into speakable clauses."""
    return SpokenText(
        speaker,
        new_splitter=parts.new_splitter,
        new_check=parts.new_check,
        stand_in=parts.stand_in,
        spoken_form=parts.spoken_form,
        npc_name=parts.spec.npc.name,
    )


# Runs a graph of processors as an NPC's mouth.


P = TypeVar("P", bound=Any)
"""Has a `spec`, such as `parts.MouthParts`."""

Graph = Callable[[P, Speaker], Sequence[FrameProcessor]]


class GraphMouth(Generic[P]):
    """A `glyphoxa.npc.mouth.Mouth` made of a graph. The speaker tracks the turns; the rest produces words and sound.

    Args:
        graph: Returns the processors in frame order, from a `BeginFrame` (see `memory`) to the speaker.
        excuses: Lines for a failed or missing answer; rendered in advance, like fillers.
        line: Prefix of the graph's name, before the NPC's id, because an NPC may have two graphs.
        patience_ms: See `Speaker`.
    """

    renders_fillers = True
    says_given_words = True

    def __init__(
        self,
        parts: P,
        graph: Graph[P],
        *,
        excuses: Sequence[str] = (),
        line: str = "mouth",
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        spec: MouthSpec = parts.spec
        self._host = host_of(spec)
        self._listener = spec.listener
        self._name = f"{line}-{spec.npc.id}"
        self._npc = spec.npc
        self._line: RunningGraph | None = None
        self._excuses = excuses
        self._speaker = Speaker(
            self._npc.id, spec.sink, self._report, clock=spec.now_ms, excuses=excuses, patience_ms=patience_ms
        )
        self.release = self._speaker.release
        self.hold = self._speaker.hold
        self.resume = self._speaker.resume
        self.fill = self._speaker.fill
        self.processors = graph(parts, self._speaker)

    async def start(self) -> None:
        def report(error: str) -> None:
            logger.warning("a service of a mouth failed: npc={} error={}", self._npc.id, error)

        self._line = await self._host.add(self._name, self.processors, on_error=report)
        for filler in (*self._npc.fillers, *self._excuses) if self.renders_fillers else ():
            self._line.send(FillerFrame(filler))

    def prime(self, prompt: Prompt) -> None:
        if self._line is not None:
            self._line.send(PrimeFrame(prompt))

    async def wait_until_primed(self) -> None:
        await self.wait_until_drained()
        for processor in self.processors:
            if isinstance(processor, SpokenLLM):
                await processor.wait_until_primed()

    def relax(self) -> None:
        for processor in self.processors:
            if isinstance(processor, SpokenLLM):
                processor.stop_priming()

    def begin(self, turn: TurnId, prompt: Prompt) -> None:
        if self._speaker.turn is not None:
            self.cancel(self._speaker.turn)
        self._speaker.begin(turn)
        if self._line is None:
            self._speaker.fail(turn, "the pipeline is not running")
        else:
            self._line.send(BeginFrame(turn, prompt))

    def cancel(self, turn: TurnId) -> None:
        if turn == self._speaker.turn:
            self._speaker.cancel(turn)
            self._interrupt()

    def give_up(self, turn: TurnId) -> None:
        self._speaker.fail(turn, "timed out: no answer in time")
        if turn == self._speaker.turn:
            self._interrupt()

    async def wait_until_drained(self) -> None:
        """Wait until the graph is idle. Replies that are held or playing do not count."""
        if self._line is not None:
            await self._line.wait_until_drained()

    async def close(self) -> None:
        if self._speaker.turn is not None:
            self._speaker.cancel(self._speaker.turn)
        self._line = None
        await self._host.remove(self._name)

    def _report(self, event: MouthEvent) -> None:
        """Forward an event, unless its turn is over."""
        if isinstance(event, Finished):
            self._note_heard(event)
            if event.error:
                self._interrupt()  # stop hanging work before the next turn
            self._listener(event)
        elif event.turn == self._speaker.turn:
            self._listener(event)

    def _note_heard(self, event: Finished) -> None:
        """Take what was heard of a reply. Overridden for graphs with their own conversation."""

    def _interrupt(self) -> None:
        if self._line is not None:
            self._line.send(InterruptionFrame())


def graph(parts: MouthParts, speaker: Speaker) -> list[FrameProcessor]:
    return [memory(parts, speaker), parts.llm, ToolRounds(), clauses(parts, speaker), parts.tts, speaker]


async def build(parts: MouthParts, *, line: str = "mouth", patience_ms: int = PATIENCE_MS) -> Mouth:
    """Build a mouth that is ready to `start`.

    Args:
        line, patience_ms: See `GraphMouth`.
    """
    return GraphMouth(parts, graph, excuses=parts.excuses, line=line, patience_ms=patience_ms)
