"""A mouth: memory, a language model and a voice, one after the other."""

from __future__ import annotations

from pipecat.processors.frame_processor import FrameProcessor

from glyphoxa.npc.mouth import Mouth
from glyphoxa_pipelines.mouth import GraphMouth
from glyphoxa_pipelines.parts import MouthParts
from glyphoxa_pipelines.stages import clauses, memory
from glyphoxa_processors.speaker import PATIENCE_MS, Speaker
from glyphoxa_processors.tools import ToolRounds


def graph(parts: MouthParts, speaker: Speaker) -> list[FrameProcessor]:
    return [memory(parts, speaker), parts.llm, ToolRounds(), clauses(parts, speaker), parts.tts, speaker]


async def build(parts: MouthParts, *, line: str = "mouth", patience_ms: int = PATIENCE_MS) -> Mouth:
    """A mouth that is ready to `start`.

    Args:
        line, patience_ms: See `GraphMouth`.
    """
    return GraphMouth(parts, graph, excuses=parts.excuses, line=line, patience_ms=patience_ms)
