"""The parts of ears and mouths. Their services may come from pipecat, this project or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipecat.audio.vad.vad_analyzer import VADParams
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.llm_service import LLMService
from pipecat.services.tts_service import TTSService

from glyphoxa.app.engines import EarSpec, MouthSpec
from glyphoxa.prompt.prompt import UNLIMITED, PromptLimits
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_processors.hot_context import Shrug
from glyphoxa_processors.spoken_text import NewCheck, Splitter, SpokenForm, StandIn, no_stand_in


@dataclass(frozen=True, slots=True)
class EarParts:
    """The parts of an ear.

    Attributes:
        stt: A service for this ear only. A shared one would assign words to the wrong speaker.
        keyterms: The names that `stt` was given, if it is a streaming service. Such a service accepts new names in a
            `KeytermsFrame`, and does not close every pause with a transcript. None: any other service.
        final_within_ms: See `glyphoxa.turns.endpointing.Endpointing`.
        settle_ms: Changes of the names within this time are sent together.
    """

    spec: EarSpec
    stt: FrameProcessor
    keyterms: Sequence[str] | None = None
    vad: VADParams = field(default_factory=lambda: VADParams(start_secs=0.2, confidence=0.6, min_volume=0.4))
    final_within_ms: int = 3_000
    settle_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class MouthParts:
    """The parts of a mouth.

    Attributes:
        new_splitter: Called once for each reply.
        new_check: Creates the check for the sentences of one reply.
        stand_in: Chooses what to say if nothing of a reply may be said.
        spoken_form: Writes a sentence as the voice says it.
        shrug: See `HotContextInjector`.
        excuses: Lines for a failed or missing reply.
    """

    spec: MouthSpec
    llm: LLMService[Any]
    tts: TTSService
    new_splitter: Callable[[], Splitter]
    new_check: NewCheck
    limits: PromptLimits = UNLIMITED
    stand_in: StandIn = no_stand_in
    spoken_form: SpokenForm = str
    shrug: Shrug | None = None
    excuses: Sequence[str] = ()


def host_of(spec: EarSpec | MouthSpec) -> PipelineHost:
    if not isinstance(spec.host, PipelineHost):
        raise TypeError(f"these pipelines need a {PipelineHost.__qualname__}, not a {type(spec.host).__qualname__}")
    return spec.host
