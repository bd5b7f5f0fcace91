"""What an ear and a mouth are built from. The services in them are pipecat's, ours, or anybody's."""

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
from glyphoxa.context.prompt import BEHIND_THE_QUESTION, HotContextSource, Placement
from glyphoxa.domain.campaign import Npc, Player
from glyphoxa.npc.mouth import Listener
from glyphoxa.npc.table import AudioSink, EarListener
from glyphoxa.npc.toolbox import CallableTools
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_processors.corrector import CorrectsText
from glyphoxa_processors.hot_context import OnPartial, Shrug
from glyphoxa_processors.spoken_text import NewCheck, Splitter, StandIn, no_stand_in


@dataclass(frozen=True, slots=True)
class Pauses:
    """When a pause is a pause, and when it is the end of a turn. See `glyphoxa.turns.endpointing`.

    Attributes:
        pause_ms: Silence after which the detector is sure and the final transcript is asked for.
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
    """Names that a recogniser takes while it runs.

    Attributes:
        told: What it was built with.
        keyterms: What it should expect now.
        on_changed: See `glyphoxa.app.engines.EarSpec.on_names_changed`.
        frame: Tells it.
        settle_ms: A burst of changes within that time is one message.
    """

    told: Sequence[str]
    keyterms: Callable[[], Sequence[str]]
    on_changed: Callable[[Callable[[], None]], Callable[[], None]]
    frame: Callable[[Sequence[str]], Frame]
    settle_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class EarParts:
    """Attributes:
    stt: A service that nobody else uses: a shared one attributes words to the wrong speaker.
    correct: Puts names right in a transcript; at once.
    on_partial: Starts recall on partial transcripts; at once.
    expects: For an `stt` that is told of new names. None for one that asks by itself, or takes none.
    """

    player: Player
    stt: FrameProcessor
    correct: CorrectsText
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
    """Attributes:
    new_splitter: Called once a reply.
    new_check: Decides on each sentence of one reply.
    tools: What the model may look up, by the budget tier of the NPC and of each turn.
    facts_at: Where in the prompt what the NPC recalls stands.
    context_deadline_ms: Of `context`, should it keep none of its own.
    stand_in: What it says instead of a reply of which nothing may be said.
    shrug: See `HotContextInjector`.
    excuses: What it says when its reply fails or does not come.
    """

    npc: Npc
    llm: LLMService[Any]
    tts: TTSService
    context: HotContextSource
    new_splitter: Callable[[], Splitter]
    new_check: NewCheck
    sink: AudioSink
    listener: Listener
    host: PipelineHost
    tools: CallableTools | None = None
    facts_at: Placement = BEHIND_THE_QUESTION
    context_deadline_ms: int = 500
    stand_in: StandIn = no_stand_in
    shrug: Shrug | None = None
    excuses: Sequence[str] = ()
    clock: Callable[[], int] = now_ms
