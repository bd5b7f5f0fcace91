"""Runs the graphs of a session. Each ear and each mouth has its own worker and runner.

Importing this module imports everything a graph needs, including model runtimes and provider SDKs. Some first imports
take half a second, which must not happen in the event loop of a live session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, cast

import anyio._backends._asyncio  # noqa: F401
import h11  # noqa: F401
import pipecat.audio.vad.silero
import pipecat.services.openai.llm
import pipecat.services.tts_service  # noqa: F401
from openai import AsyncOpenAI
from pipecat.audio.utils import create_stream_resampler
from pipecat.frames.frames import ErrorFrame, Frame, MetricsFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.workers.runner import WorkerRunner

from glyphoxa.actors.clock import now_ms
from glyphoxa.actors.deadline import end_tasks
from glyphoxa.app.engines import Host
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.npc.table_interface import INPUT_RATE_HZ, OUTPUT_RATE_HZ
from glyphoxa.observability import ServiceTime
from glyphoxa_processors.frames import service_times

create_stream_resampler()  # imports its library at the first call
AsyncOpenAI(api_key="none").chat.completions  # noqa: B018 - imports the rest of the SDK and its HTTP client

OnError = Callable[[str], None]
_START_WITHIN_MS = 20_000
"""Time for the services of a graph to become ready."""


class _Closeable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=_Closeable)


class RunningGraph:
    """A running graph and its input."""

    def __init__(self, worker: PipelineWorker, runner: WorkerRunner) -> None:
        self.worker = worker
        self._runner = runner
        self._frames: asyncio.Queue[Frame] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self._feeding = loop.create_task(self._feed(), name=f"feed {worker.name}")
        self._running = loop.create_task(self._runner.run(), name=f"run {worker.name}")

    def send(self, frame: Frame) -> None:
        """Queue a frame. None is dropped: this queue has no limit, as the queues of the graph have none."""
        self._frames.put_nowait(frame)

    async def wait_until_drained(self) -> None:
        """Wait until all frames sent so far, and their results, have passed through the graph."""
        await self._frames.join()
        await self.worker.flush_pipeline()

    async def close(self) -> None:
        """End the graph. Frames inside are dropped, and no task remains."""
        await end_tasks(self._feeding)
        await self._runner.cancel(reason="closed")
        await self._running

    async def _feed(self) -> None:
        while True:
            await self.worker.queue_frame(await self._frames.get())
            self._frames.task_done()


class PipelineHost:
    """Runs graphs until they are closed. Entry point `host`. A failing or idle graph does not end the others.

    Each graph has its own runner, because a runner keeps every worker it ever ran, and players come and go.
    """

    def __init__(self) -> None:
        self._lines: dict[str, RunningGraph] = {}
        self._shared: dict[type, _Closeable] = {}
        self._measured: Callable[[ServiceTime], None] | None = None

    def measure(self, tell: Callable[[ServiceTime], None]) -> None:
        """See `glyphoxa.app.engines.Host`."""
        self._measured = tell

    def shared(self, kind: type[T], make: Callable[[], T]) -> T:
        """Return the shared object of this kind, created on first use and closed with the host."""
        if kind not in self._shared:
            self._shared[kind] = make()
        return cast(T, self._shared[kind])

    async def add(self, name: str, processors: Sequence[FrameProcessor], *, on_error: OnError) -> RunningGraph:
        """Run a graph of these processors.

        Args:
            name: Unique among the running graphs.
            on_error: Called for every error of a processor; the graph continues.

        Raises:
            InvalidInput: A graph with this name is running.
            Unavailable: A service of the graph did not start in time.
        """
        if name in self._lines:
            raise InvalidInput(f"a pipeline named {name!r} is already running")
        worker = PipelineWorker(
            Pipeline(list(processors)),
            name=name,
            params=PipelineParams(
                audio_in_sample_rate=INPUT_RATE_HZ,
                audio_out_sample_rate=OUTPUT_RATE_HZ,
                enable_metrics=self._measured is not None,
            ),
            # By default, a worker and its runner end after five minutes of silence.
            idle_timeout_secs=None,
            cancel_on_idle_timeout=False,
            cancel_runner_on_idle_timeout=False,
            enable_rtvi=False,
            enable_turn_tracking=False,
        )
        ready = asyncio.Event()

        async def started(*_: object) -> None:
            ready.set()

        async def failed(_: object, frame: ErrorFrame) -> None:
            on_error(frame.error)

        worker.add_event_handler("on_pipeline_started", started)
        worker.add_event_handler("on_pipeline_error", failed)
        if (tell := self._measured) is not None:

            async def measured(_: object, frame: MetricsFrame) -> None:
                for each in service_times(frame, graph=name, at_ms=now_ms()):
                    tell(each)

            # An observer would add a queue at every processor.
            worker.add_event_handler("on_frame_reached_downstream", measured)
            worker.set_reached_downstream_filter((MetricsFrame,))
        runner = WorkerRunner(name=f"runner-{name}", handle_sigint=False)
        await runner.add_workers(worker)
        line = self._lines[name] = RunningGraph(worker, runner)
        try:
            async with asyncio.timeout(_START_WITHIN_MS / 1_000):
                await ready.wait()
        except TimeoutError as error:
            await self.remove(name)
            raise Unavailable(f"the pipeline {name!r} did not start within {_START_WITHIN_MS} ms") from error
        except BaseException:  # including cancellation
            await self.remove(name)  # free the name
            raise
        return line

    async def remove(self, name: str) -> None:
        """End a graph, if it runs, and free its name."""
        line = self._lines.pop(name, None)
        if line is not None:
            await line.close()

    async def close(self) -> None:
        """End all graphs, then close shared objects."""
        for name in list(self._lines):
            await self.remove(name)
        for shared in self._shared.values():
            shared.close()
        self._shared.clear()


def host_of(host: Host) -> PipelineHost:
    """Return a table's host as the one that these pipelines run on."""
    if not isinstance(host, PipelineHost):
        raise TypeError(f"these pipelines need a {PipelineHost.__qualname__}, not a {type(host).__qualname__}")
    return host
