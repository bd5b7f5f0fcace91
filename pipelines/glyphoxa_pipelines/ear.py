"""An ear: one human's speech becomes turns."""

from __future__ import annotations

import asyncio
from asyncio import sleep as wait
from collections.abc import Callable, Sequence
from typing import Any, Protocol

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

from glyphoxa.npc.table import INPUT_RATE_HZ, Ear
from glyphoxa.turns.endpointing import Endpointing, SpeechEnd
from glyphoxa_pipelines.host import RunningGraph
from glyphoxa_pipelines.parts import EarParts
from glyphoxa_processors.corrector import PhoneticCorrector
from glyphoxa_processors.end_of_turn import EndOfTurn
from glyphoxa_processors.hot_context import KeywordPrefetcher

# One call for a burst of changes.


CallLater = Callable[[float, Callable[[], None]], "_Timer"]
"""Takes seconds and what to call then."""


class _Timer(Protocol):
    def cancel(self) -> None: ...


class Settled:
    """Calls `act` once, `after_ms` behind the first of any number of changes: changes that never end do not keep it
    from being called.
    """

    def __init__(self, act: Callable[[], None], *, after_ms: int, call_later: CallLater | None = None) -> None:
        self._act = act
        self._after_s = after_ms / 1_000
        self._call_later: CallLater = call_later or (lambda s, what: asyncio.get_running_loop().call_later(s, what))
        self._timer: _Timer | None = None

    def changed(self) -> None:
        if self._timer is None:
            self._timer = self._call_later(self._after_s, self._fire)

    def close(self) -> None:
        """What has not been called yet never is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._act()


_SHORTEST_STOP_MS = 96
"""Three of the detector's windows: with less, one that it is unsure of ends the speech."""
_WINDOW = 512
_BYTES_PER_MS = INPUT_RATE_HZ // 1_000 * 2
_TWENTY_MS = 20 * _BYTES_PER_MS


class Detector(SileroVADAnalyzer):
    """Tells speech from other sound, when it ended, and whether there is some that it is not yet sure of.

    pipecat counts a pause in whole windows from the end of the last window of speech, which is behind the end of the
    speech. Here it is counted from the end of the voice, and is over when it is over: not with the next window, nor
    with the next piece of sound.

    Args:
        pause_ms: So much silence is a pause.
    """

    hears_onset = False

    def __init__(self, *, params: VADParams, pause_ms: int) -> None:
        # pipecat's own count never comes first.
        super().__init__(params=params.model_copy(update={"stop_secs": (2 * _SHORTEST_STOP_MS + pause_ms) / 1_000}))
        self._pause_ms = pause_ms
        self._end = SpeechEnd(INPUT_RATE_HZ)
        self._begun = b""
        self.quiet_ms = pause_ms
        """At the last pause: from the end of the voice until it was reported."""

    async def analyze_audio(self, buffer: bytes) -> VADState:
        state = await super().analyze_audio(buffer)
        self.hears_onset = state is VADState.STARTING
        self._follow(buffer, state)
        if state is VADState.STOPPING and self._end.detected_quiet_ms >= _SHORTEST_STOP_MS:
            quiet_ms = self._end.quiet_ms + len(self._begun) // _BYTES_PER_MS
            left_ms = max(0, self._pause_ms - quiet_ms)
            if left_ms * _BYTES_PER_MS < len(buffer):
                # Less than the next piece of sound lasts: that one would come too late.
                await wait(left_ms / 1_000)
                self.quiet_ms = quiet_ms + left_ms
                state = self._vad_state = VADState.QUIET
                self._vad_stopping_count = 0
        return state

    def _follow(self, buffer: bytes, state: VADState) -> None:
        is_speech = state in (VADState.STARTING, VADState.SPEAKING)
        sound = self._begun + buffer
        whole = len(sound) - len(sound) % (2 * _WINDOW)
        self._begun = sound[whole:]
        for at in range(0, whole, 2 * _WINDOW):
            self._end.hear(np.frombuffer(sound, np.int16, count=_WINDOW, offset=at), is_speech=is_speech)


class PauseFinder(VADProcessor):
    """Tells when speech began and paused by the ear's clock; pipecat's own stamps are the machine's.

    In the report of a pause, `stop_secs` is how long ago the voice ended.
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


def processors(parts: EarParts) -> list[FrameProcessor]:
    """The graph, in the order of the frames. The detector and the recogniser belong to this human alone."""
    player, clock, pauses = parts.player.id, parts.clock, parts.pauses
    endpointing = Endpointing(
        player,
        language=parts.language,
        end_of_turn_ms=pauses.end_of_turn_ms,
        unfinished_ms=pauses.unfinished_ms,
        final_within_ms=pauses.final_within_ms,
        confirm_within_ms=pauses.confirm_within_ms,
        punctuated=pauses.punctuated,
    )
    detector = Detector(params=parts.vad, pause_ms=pauses.pause_ms)
    return [
        PauseFinder(detector, clock=clock),
        parts.stt,
        PhoneticCorrector(parts.correct, clock=clock),
        KeywordPrefetcher(player, parts.on_partial),
        EndOfTurn(endpointing, parts.listener, clock=clock, hears_onset=lambda: detector.hears_onset),
    ]


async def build(parts: EarParts) -> Ear:
    """An ear that is ready to `start`."""
    return PipelineEar(parts)


class PipelineEar:
    def __init__(self, parts: EarParts) -> None:
        self._parts = parts
        self._line: RunningGraph | None = None
        self._rest = b""
        self._told: Sequence[str] = ()
        self._names = Settled(self._tell_names, after_ms=parts.expects.settle_ms if parts.expects else 0)
        self._forget_names: Callable[[], None] = lambda: None

    async def start(self) -> None:
        player = self._parts.player

        def report(error: str) -> None:
            logger.warning("an ear's service failed: player={} error={}", player.id, error)

        self._line = await self._parts.host.add(f"ear-{player.id}", processors(self._parts), on_error=report)
        if (expects := self._parts.expects) is not None:
            self._told = expects.told
            self._forget_names = expects.on_changed(self._names.changed)
            self._names.changed()  # it may have missed one while the graph started

    def hear(self, pcm: bytes) -> None:
        """Sound before `start` or after `close` is dropped; so is what is ten seconds late, newest first."""
        if self._line is None:
            return
        sound = self._rest + pcm
        whole = len(sound) - len(sound) % _TWENTY_MS
        self._rest = sound[whole:]
        for at in range(0, whole, _TWENTY_MS):
            self._line.send(InputAudioRawFrame(sound[at : at + _TWENTY_MS], INPUT_RATE_HZ, 1))

    async def wait_until_drained(self) -> None:
        """Until the graph is at rest. A turn that waits for its end is not part of it."""
        if self._line is not None:
            await self._line.wait_until_drained()

    async def close(self) -> None:
        self._forget_names()
        self._names.close()
        self._line = None
        await self._parts.host.remove(f"ear-{self._parts.player.id}")

    def _tell_names(self) -> None:
        expects = self._parts.expects
        if self._line is None or expects is None:
            return
        names = tuple(expects.keyterms())
        if set(names) == set(self._told):
            return
        if self._line.send(expects.frame(names)):
            self._told = names
        else:  # the graph is far behind
            self._names.changed()
