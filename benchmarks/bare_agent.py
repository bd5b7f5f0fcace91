"""Run pipecat alone, the other arm of the gate.

It uses the same detector, services and plain aggregators, and nothing of ours between them: no name correction, room,
memory or spool, one listener and one voice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.audio.vad.vad_analyzer import VADParams
from pipecat.frames.frames import Frame, InputAudioRawFrame, TTSAudioRawFrame, TTSStoppedFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair, LLMUserAggregatorParams
from pipecat.processors.audio.vad_processor import VADProcessor
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.turns.user_start import VADUserTurnStartStrategy
from pipecat.turns.user_stop.speech_timeout_user_turn_stop_strategy import SpeechTimeoutUserTurnStopStrategy
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.workers.runner import WorkerRunner

from benchmarks.provider_process import Recorded
from benchmarks.table import Microphone, clock_ms
from glyphoxa.config.settings import Settings
from glyphoxa.npc.table_interface import INPUT_RATE_HZ, OUTPUT_RATE_HZ
from glyphoxa.providers.registry import LLM, STT, TTS, build

PATIENCE_S = 15.0
_PERSONA = "You are Korvald, a smith. Answer in one or two short sentences."
_QUIET_AFTER_S = 0.3


class _Sink(FrameProcessor):
    """Records the first sound of an answer and the arrival of its last one."""

    def __init__(self) -> None:
        super().__init__()
        self.first_audio_ms: float | None = None
        self.spoken = asyncio.Event()

    def forget(self) -> None:
        self.first_audio_ms = None
        self.spoken.clear()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame) and self.first_audio_ms is None:
            self.first_audio_ms = clock_ms()
        elif isinstance(frame, TTSStoppedFrame):
            self.spoken.set()
        await self.push_frame(frame, direction)


class BareAgent:
    """See `bare_agent`."""

    def __init__(self, microphone: Microphone, sink: _Sink) -> None:
        self._microphone = microphone
        self._sink = sink

    async def ask(self, recorded: Recorded) -> float | None:
        """Return milliseconds from the true end of the speech to the first sound; None if none came in time."""
        self._sink.forget()
        speech_end_ms = await self._microphone.speak(recorded)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._sink.spoken.wait()
        except TimeoutError:
            return None
        await asyncio.sleep(_QUIET_AFTER_S)
        return None if self._sink.first_audio_ms is None else self._sink.first_audio_ms - speech_end_ms


@asynccontextmanager
async def bare_agent(settings: Settings) -> AsyncIterator[BareAgent]:
    """Open a voice agent of pipecat's own parts, for the time of the block."""
    services = settings.providers
    sink = _Sink()
    # The detector defines the wait. After a final transcript it waits for nothing else, as our ear does.
    strategies = UserTurnStrategies(
        start=[VADUserTurnStartStrategy()], stop=[SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=0.0)]
    )
    context = LLMContext([{"role": "user", "content": _PERSONA}])
    aggregators = LLMContextAggregatorPair(
        context, user_params=LLMUserAggregatorParams(user_turn_strategies=strategies)
    )
    params = VADParams(start_secs=0.2, confidence=0.6, min_volume=0.4, stop_secs=settings.turns.pause_ms / 1_000)
    worker = PipelineWorker(
        Pipeline(
            [
                VADProcessor(vad_analyzer=SileroVADAnalyzer(params=params)),
                build(services.stt, section=STT),
                aggregators.user(),
                build(services.llm, section=LLM),
                build(services.tts, section=TTS),
                sink,
                aggregators.assistant(),
            ]
        ),
        name="bare",
        params=PipelineParams(audio_in_sample_rate=INPUT_RATE_HZ, audio_out_sample_rate=OUTPUT_RATE_HZ),
        idle_timeout_secs=None,
        cancel_on_idle_timeout=False,
        enable_rtvi=False,
        enable_turn_tracking=False,
    )
    started = asyncio.Event()

    async def on_started(*_: object) -> None:
        started.set()

    worker.add_event_handler("on_pipeline_started", on_started)
    runner = WorkerRunner(name="bare-runner", handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    frames: asyncio.Queue[Frame] = asyncio.Queue()
    microphone = Microphone(lambda pcm: frames.put_nowait(InputAudioRawFrame(pcm, INPUT_RATE_HZ, 1)))

    async def feed() -> None:
        while True:
            await worker.queue_frame(await frames.get())

    tasks: list[asyncio.Task[None]] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            await started.wait()
        tasks = [asyncio.create_task(feed()), asyncio.create_task(microphone.run())]
        yield BareAgent(microphone, sink)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await runner.cancel(reason="closed")
        # Stopped within a turn, pipecat's worker may wait for ever, and it ignores the first cancellation.
        while (await asyncio.wait({running}, timeout=PATIENCE_S))[1]:
            running.cancel()
        await asyncio.gather(running, return_exceptions=True)
