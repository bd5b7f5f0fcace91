"""The stages of a mouth that are made of several parts at once."""

from __future__ import annotations

from pipecat.processors.frame_processor import FrameProcessor

from glyphoxa_pipelines.parts import MouthParts
from glyphoxa_processors.hot_context import HotContextInjector
from glyphoxa_processors.reports import MouthReports
from glyphoxa_processors.speaker import Speaker
from glyphoxa_processors.spoken_text import SpokenText


def memory(parts: MouthParts, speaker: Speaker) -> FrameProcessor:
    """What the NPC has in mind, put into the prompt. First in every mouth."""
    return HotContextInjector(
        parts.context,
        _reports(parts, speaker),
        tools=parts.tools,
        facts_at=parts.facts_at,
        shrug=parts.shrug,
        deadline_ms=parts.context_deadline_ms,
    )


def clauses(parts: MouthParts, speaker: Speaker) -> FrameProcessor:
    """The model's tokens as clauses that may be said aloud."""
    return SpokenText(
        _reports(parts, speaker),
        new_splitter=parts.new_splitter,
        new_check=parts.new_check,
        stand_in=parts.stand_in,
    )


def _reports(parts: MouthParts, speaker: Speaker) -> MouthReports:
    return MouthReports(parts.npc.id, parts.listener, speaker.fail, speaker.worry, parts.clock)
