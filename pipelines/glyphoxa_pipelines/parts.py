"""The parts of ears and mouths. Their services may come from pipecat, this project or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipecat.audio.vad.vad_analyzer import VADParams
from pipecat.frames.frames import Frame
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.llm_service import LLMService
from pipecat.services.tts_service import TTSService

from glyphoxa.actors.clock import now_ms
from glyphoxa.app.engines import EarSpec, MouthSpec
from glyphoxa.context.prompt import UNLIMITED, PromptLimits
from glyphoxa.domain.campaign import Player
from glyphoxa.names.corrector import Correct
from glyphoxa.npc.table import EarListener
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_processors.hot_context import OnPartial, Shrug
from glyphoxa_processors.spoken_text import NewCheck, Splitter, SpokenForm, StandIn, no_stand_in


@dataclass(frozen=True, slots=True)
class Pauses:
    """Durations that define pauses and the end of a turn. See `glyphoxa.turns.endpointing`.

    Attributes:
        pause_ms: Silence after which the detector reports a pause and the final transcript is requested.
        confirm_within_ms: For streaming services that do not close every pause with a transcript.
    """

    pause_ms: int = 200
    end_of_turn_ms: int = 480
    unfinished_ms: int = 900
    final_within_ms: int = 3_000
    confirm_within_ms: int | None = None
    punctuated: bool = True


@dataclass(frozen=True, slots=True)
class Expects:
    """Names that a recogniser accepts while it runs.

    Attributes:
        told: Initial names.
        keyterms: Returns the current names.
        on_changed: See `glyphoxa.app.engines.EarSpec.on_names_changed`.
        frame: Creates the frame that sends names to the recogniser.
        settle_ms: Changes within this time are sent together.
    """

    told: Sequence[str]
    keyterms: Callable[[], Sequence[str]]
    on_changed: Callable[[Callable[[], None]], Callable[[], None]]
    frame: Callable[[Sequence[str]], Frame]
    settle_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class EarParts:
    """The parts of an ear.

    Attributes:
        stt: A service for this ear only. A shared one would assign words to the wrong speaker.
        correct: Corrects names in a transcript; must return at once.
        on_partial: Starts recall on partial transcripts; must return at once.
        expects: For an `stt` that accepts new names. None if it reads them itself or takes none.
    """

    player: Player
    stt: FrameProcessor
    correct: Correct
    on_partial: OnPartial
    listener: EarListener
    host: PipelineHost
    language: str = "en"
    pauses: Pauses = Pauses()
    vad: VADParams = field(default_factory=lambda: VADParams(start_secs=0.2, confidence=0.6, min_volume=0.4))
    expects: Expects | None = None
    clock: Callable[[], int] = now_ms


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
