"""Processors and services running as they do in a session, with what comes out of them at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from pipecat.frames.frames import ErrorFrame, Frame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.workers.runner import WorkerRunner

from tests.support.patience import DEADLINE_S

F = TypeVar("F", bound=Frame)


class _Recorder(FrameProcessor):
    def __init__(self, take: Callable[[Frame], None], direction: FrameDirection) -> None:
        super().__init__()
        self._take = take
        self._of = direction

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if direction is self._of:
            self._take(frame)
        await self.push_frame(frame, direction)


class RunningGraph:
    """The given processors as one worker, for as long as the `async with` block.

    `out` holds the frames that left at the end, `errors` the messages that went up.
    """

    def __init__(
        self, *processors: FrameProcessor, sample_rate_in: int = 16_000, sample_rate_out: int = 24_000
    ) -> None:
        self.out: list[Frame] = []
        self.errors: list[str] = []
        self._started = asyncio.Event()
        self._worker = PipelineWorker(
            Pipeline(
                [
                    _Recorder(self._went_up, FrameDirection.UPSTREAM),
                    *processors,
                    _Recorder(self._came_out, FrameDirection.DOWNSTREAM),
                ]
            ),
            params=PipelineParams(audio_in_sample_rate=sample_rate_in, audio_out_sample_rate=sample_rate_out),
            enable_rtvi=False,
            enable_turn_tracking=False,
            idle_timeout_secs=None,
        )
        self._runner = WorkerRunner(handle_sigint=False)
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def __aenter__(self) -> Self:
        started = self._started

        @self._worker.event_handler("on_pipeline_started")
        async def on_started(*_args: object) -> None:
            started.set()

        await self._runner.add_workers(self._worker)
        self._running = asyncio.create_task(self._runner.run())
        async with asyncio.timeout(DEADLINE_S):
            await started.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cancel()
        await self._running

    async def send(self, *frames: Frame) -> None:
        for frame in frames:
            await self._worker.queue_frame(frame)

    async def wait_until(self, true: Callable[[], bool]) -> None:
        """Until the condition holds; it is looked at whenever a frame comes out or an error goes up."""
        if true():
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((true, done))
        async with asyncio.timeout(DEADLINE_S):
            await done

    async def wait_for(self, kind: type[F], *, n: int = 1) -> list[F]:
        await self.wait_until(lambda: len(self.of(kind)) >= n)
        return self.of(kind)

    async def wait_for_error(self) -> str:
        await self.wait_until(lambda: bool(self.errors))
        return self.errors[0]

    def of(self, kind: type[F]) -> list[F]:
        return [frame for frame in self.out if isinstance(frame, kind)]

    def _came_out(self, frame: Frame) -> None:
        self.out.append(frame)
        self._look()

    def _went_up(self, frame: Frame) -> None:
        if isinstance(frame, ErrorFrame):
            self.errors.append(frame.error)
            self._look()

    def _look(self) -> None:
        for true, done in self._waiters:
            if not done.done() and true():
                done.set_result(None)
