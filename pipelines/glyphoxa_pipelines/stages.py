"""The stages of a mouth that are made of several parts at once."""

from __future__ import annotations

from pipecat.processors.frame_processor import FrameProcessor

from glyphoxa_pipelines.parts import MouthParts
from glyphoxa_processors.hot_context import HotContextInjector
from glyphoxa_processors.speaker import Speaker
from glyphoxa_processors.spoken_text import SpokenText


def memory(parts: MouthParts, speaker: Speaker) -> FrameProcessor:
    """What the NPC has in mind, put into the prompt. First in every mouth."""
    return HotContextInjector(
        parts.context,
        parts.listener,
        speaker.fail,
        on_trouble=speaker.worry,
        clock=parts.clock,
        tools=parts.tools,
        facts_at=parts.facts_at,
    )


def clauses(parts: MouthParts, speaker: Speaker) -> FrameProcessor:
    """The model's tokens as clauses that may be said aloud."""
    return SpokenText(
        parts.npc.id,
        new_splitter=parts.new_splitter,
        new_clean=parts.new_clean,
        at_a_loss=parts.at_a_loss,
        listener=parts.listener,
        on_failure=speaker.fail,
        clock=parts.clock,
    )
