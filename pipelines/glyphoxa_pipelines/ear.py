"""An ear: turns one player's speech into turns."""

from __future__ import annotations

import asyncio
from asyncio import sleep as wait
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.audio.vad.vad_analyzer import VADParams, VADState
from pipecat.frames.frames import (
    Frame,
    InputAudioRawFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.processors.audio.vad_processor import VADProcessor
from pipecat.processors.frame_processor import FrameProcessor

from glyphoxa.app.engines import EarSpec
from glyphoxa.npc.table_interface import INPUT_RATE_HZ, Ear
from glyphoxa.providers.registry import STT, build
from glyphoxa.turns.endpointing import Endpointing, SpeechEnd
from glyphoxa_pipelines.host import RunningGraph, host_of
from glyphoxa_processors.frames import KeytermsFrame
from glyphoxa_processors.hot_context import KeywordPrefetcher
from glyphoxa_processors.transcripts import EndOfTurn, PhoneticCorrector
from glyphoxa_processors.whisper_stt import Recogniser, WhisperSTT

_MIN_STOP_MS = 96
"""Three detector windows. With fewer, a single uncertain window would end the speech."""
_WINDOW = 512
_BYTES_PER_MS = INPUT_RATE_HZ // 1_000 * 2
_TWENTY_MS = 20 * _BYTES_PER_MS


class Detector(SileroVADAnalyzer):
    """Detects speech, its exact end, and possible speech that is not confirmed yet.

    pipecat counts a pause in whole windows after the last speech window, which ends later than the speech. Here a
    pause is counted from the end of the voice, and ends on time instead of with the next window or chunk.

    Args:
        pause_ms: Silence that counts as a pause.
    """

    hears_onset = False

    def __init__(self, *, params: VADParams, pause_ms: int) -> None:
        # Disables pipecat's own pause detection in practice.
        super().__init__(params=params.model_copy(update={"stop_secs": (2 * _MIN_STOP_MS + pause_ms) / 1_000}))
        self._pause_ms = pause_ms
        self._end = SpeechEnd(INPUT_RATE_HZ)
        self._begun = b""
        self.quiet_ms = pause_ms
        """At the last pause: time from the end of the voice to the report."""

    async def analyze_audio(self, buffer: bytes) -> VADState:
        state = await super().analyze_audio(buffer)
        self.hears_onset = state is VADState.STARTING
        self._follow(buffer, state)
        if state is VADState.STOPPING and self._end.detected_quiet_ms >= _MIN_STOP_MS:
            quiet_ms = self._end.quiet_ms + len(self._begun) // _BYTES_PER_MS
            left_ms = max(0, self._pause_ms - quiet_ms)
            if left_ms * _BYTES_PER_MS < len(buffer):
                # The next chunk would arrive too late.
                await wait(left_ms / 1_000)
                self.quiet_ms = quiet_ms + left_ms
                self.set_params(self.params)  # back to silence
                state = VADState.QUIET
        return state

    def _follow(self, buffer: bytes, state: VADState) -> None:
        is_speech = state in (VADState.STARTING, VADState.SPEAKING)
        sound = self._begun + buffer
        whole = len(sound) - len(sound) % (2 * _WINDOW)
        self._begun = sound[whole:]
        for at in range(0, whole, 2 * _WINDOW):
            self._end.hear(np.frombuffer(sound, np.int16, count=_WINDOW, offset=at), is_speech=is_speech)


class PauseFinder(VADProcessor):
    """Reports starts and pauses of speech by the ear's clock, not the machine's.

    In the report of a pause, `stop_secs` is the time since the voice ended.
    """

    def __init__(self, detector: Detector, *, clock: Callable[[], int], **kwargs: Any) -> None:
        super().__init__(vad_analyzer=detector, **kwargs)
        self._detector = detector
        self._clock = clock

    async def broadcast_frame(self, frame_cls: type[Frame], **kwargs: Any) -> None:
        if issubclass(frame_cls, VADUserStartedSpeakingFrame | VADUserStoppedSpeakingFrame):
            kwargs["timestamp"] = self._clock() / 1_000
        if issubclass(frame_cls, VADUserStoppedSpeakingFrame):
            kwargs["stop_secs"] = self._detector.quiet_ms / 1_000
        await super().broadcast_frame(frame_cls, **kwargs)


_VAD: Final = VADParams(start_secs=0.2, confidence=0.6, min_volume=0.4)


class PipelineEar:
    """An ear on a graph of its own. The detector and the recogniser serve this player only.

    Args:
        stt: A service for this ear only. A shared one would assign words to the wrong speaker.
        keyterms: The names that `stt` was given, if it is a streaming service. Such a service accepts new names in a
            `KeytermsFrame`, and does not close every pause with a transcript. None: any other service.
        final_within_ms: See `glyphoxa.turns.endpointing.Endpointing`.
        settle_ms: Changes of the names within this time are sent together.
    """

    def __init__(
        self,
        spec: EarSpec,
        stt: FrameProcessor,
        *,
        keyterms: Sequence[str] | None = None,
        final_within_ms: int = 3_000,
        settle_ms: int = 1_000,
    ) -> None:
        self._player = spec.player.id
        self._hints = spec.hints
        self._name = f"ear-{spec.player.id}"
        self._host = host_of(spec.host)
        self._line: RunningGraph | None = None
        self._rest = b""
        self._told = keyterms
        self._settle_s = settle_ms / 1_000
        self._telling: asyncio.TimerHandle | None = None
        self._forget_names: Callable[[], None] = lambda: None
        turns = spec.settings.turns
        endpointing = Endpointing(
            self._player,
            language=spec.language,
            complete_ms=min(turns.complete_ms, turns.end_of_turn_ms),
            end_of_turn_ms=turns.end_of_turn_ms,
            unfinished_ms=turns.unfinished_ms,
            final_within_ms=final_within_ms,
            confirm_within_ms=None if keyterms is None else turns.end_of_turn_ms,
        )
        detector = Detector(params=_VAD, pause_ms=turns.pause_ms)
        self._processors = [
            PauseFinder(detector, clock=spec.now_ms),
            stt,
            PhoneticCorrector(spec.correct, clock=spec.now_ms),
            KeywordPrefetcher(self._player, spec.on_partial),
            EndOfTurn(endpointing, spec.listener, clock=spec.now_ms, hears_onset=lambda: detector.hears_onset),
        ]

    async def start(self) -> None:
        def report(error: str) -> None:
            logger.warning("a service of an ear failed: player={} error={}", self._player, error)

        self._line = await self._host.add(self._name, self._processors, on_error=report)
        if self._told is not None:
            self._forget_names = self._hints.subscribe(self._names_changed)
            self._names_changed()  # a change may have been missed while the graph started

    def hear(self, pcm: bytes) -> None:
        """Take sound. Drops sound before `start` and after `close`; between them, sound waits for the graph."""
        if self._line is None:
            return
        sound = self._rest + pcm
        whole = len(sound) - len(sound) % _TWENTY_MS
        self._rest = sound[whole:]
        for at in range(0, whole, _TWENTY_MS):
            self._line.send(InputAudioRawFrame(sound[at : at + _TWENTY_MS], INPUT_RATE_HZ, 1))

    async def close(self) -> None:
        self._forget_names()
        if self._telling is not None:
            self._telling.cancel()
        self._line = None
        await self._host.remove(self._name)

    def _names_changed(self) -> None:
        """Tell the recogniser soon. Continuous changes do not delay it."""
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(self._settle_s, self._tell_names)

    def _tell_names(self) -> None:
        self._telling = None
        if self._line is None or self._told is None:
            return
        names = self._hints.keyterms()
        if set(names) == set(self._told):
            return
        self._line.send(KeytermsFrame(names))
        self._told = names


async def open_ear(spec: EarSpec) -> Ear:
    """Build an ear. Entry point `ear`."""
    whisper = spec.local.whisper
    if whisper is None:
        keyterms = spec.hints.keyterms()
        stt = build(spec.settings.providers.stt, section=STT, keyterms=keyterms, language=spec.language)
        return PipelineEar(spec, stt, keyterms=keyterms)
    # All ears share one recogniser, because two at once on two cores are both late.
    recogniser = host_of(spec.host).shared(Recogniser, lambda: Recogniser(whisper.transcribe))
    stt = WhisperSTT(spec.player.id, recogniser, glossary=spec.hints.glossary, clock=spec.now_ms)
    return PipelineEar(spec, stt)
