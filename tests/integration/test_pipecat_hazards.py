"""Faults of pipecat graphs that are built like its examples, and that ours do not have.

Where pipecat 1.14 still has the hazard, the test shows it first: when that part fails, the precaution may go.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import pytest
from pipecat.frames.frames import (
    EagerTranscriptionFrame,
    Frame,
    InputAudioRawFrame,
    InterimTranscriptionFrame,
    InterruptionFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
)
from pipecat.pipeline.parallel_pipeline import ParallelPipeline
from pipecat.pipeline.pipeline import Pipeline
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.tests.utils import run_test

from glyphoxa.domain.heard import TurnEnded
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.mouth import Finished
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_processors.frames import notes_of
from glyphoxa_processors.transcripts import PhoneticCorrector
from glyphoxa_processors.whisper_stt import Recogniser, WhisperSTT
from tests.support.patience import DEADLINE_S
from tests.support.pipecat_fakes import (
    ALICE,
    BOB,
    MIRA,
    Listening,
    ModelServer,
    Scripted,
    listening,
    put_right,
    stage,
)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as running:
        yield running


class _Gate(FrameProcessor):
    """Holds transcripts until it is opened, as a slow processor would."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.entered = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame):
            self.entered.set()
            await self.open.wait()
        await self.push_frame(frame, direction)


class _Interrupts(FrameProcessor):
    """Behaves like pipecat's user aggregator: whoever begins to speak interrupts, upstream too."""

    def __init__(self, gate: _Gate) -> None:
        super().__init__()
        self._gate = gate

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, VADUserStartedSpeakingFrame):
            await self._gate.entered.wait()
            await self.broadcast_interruption()
            self._gate.open.set()
        await self.push_frame(frame, direction)


@pytest.mark.parametrize(("corrected", "survives"), [(False, False), (True, True)])
async def test_a_transcript_is_not_deleted_by_its_own_interruption(corrected: bool, survives: bool) -> None:
    gate = _Gate()
    correct = [PhoneticCorrector(put_right, clock=lambda: 0)] if corrected else []
    said = TranscriptionFrame("Hello Grimjaw.", "alice", "now", finalized=True)
    down, _ = await run_test(
        Pipeline([*correct, gate, _Interrupts(gate)]), frames_to_send=[said, VADUserStartedSpeakingFrame()]
    )
    assert any(isinstance(frame, TranscriptionFrame) for frame in down) is survives


async def test_an_ear_keeps_a_transcript_through_an_interruption() -> None:
    scripted = Scripted({100: "Hello Grimjaw."})
    scripted.let_go.clear()
    async with listening(scripted) as play:
        play.say(100, ms=100)
        await play.drained()
        play.send(InterruptionFrame())
        scripted.let_go.set()
        assert (await play.until(TurnEnded)).draft.text == "Hello Grimjaw."


class _Counter(FrameProcessor):
    n_sounds = 0

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        self.n_sounds += isinstance(frame, InputAudioRawFrame)
        await self.push_frame(frame, direction)


async def test_sound_that_comes_faster_than_its_graph_takes_it_is_not_dropped() -> None:
    """A pause of the event loop does this. Sound is spoken words: none may be lost without a message."""
    host, counter = PipelineHost(), _Counter()
    line = await host.add("ear", [counter], on_error=pytest.fail)
    try:
        for _ in range(1_500):
            line.send(InputAudioRawFrame(bytes(640), 16_000, 1))
        await line.wait_until_drained()
        assert counter.n_sounds == 1_500
    finally:
        await host.close()


async def test_no_worker_ends_because_nobody_speaks(server: ModelServer) -> None:
    """pipecat's default: one NPC that says nothing for five minutes ends the runner with every other NPC."""
    async with listening(Scripted({})) as ear, stage(server) as mouth:
        for line in (ear.ear._line, mouth.mouth._line):
            assert line is not None
            assert line.worker._idle_timeout_secs is None
            assert not line.worker._cancel_on_idle_timeout
            assert not line.worker._cancel_runner_on_idle_timeout


async def test_one_graph_that_ends_leaves_the_others_running(server: ModelServer) -> None:
    host = PipelineHost()
    async with stage(server, host=host) as grimjaw, stage(server, host=host, npc=MIRA) as mira:
        await mira.mouth.close()
        grimjaw.begin()
        grimjaw.release()
        assert (await grimjaw.finished()).heard


async def test_words_are_attributed_to_whoever_said_them() -> None:
    """One recogniser for two ears would take the speaker from the last frame it saw."""
    scripted = Scripted({100: "Alice was here.", 200: "Bob was here."})
    recogniser, host = Recogniser(scripted), PipelineHost()
    alice, bob = Listening(recogniser, player=ALICE, host=host), Listening(recogniser, player=BOB, host=host)
    await alice.ear.start()
    await bob.ear.start()
    try:
        for ear, voice in ((alice, 100), (bob, 200)):
            ear.hear(voice, ms=300)
            ear.detect(speech=True)
        for _ in range(20):  # overlapping, frame by frame
            alice.hear(100, ms=20)
            bob.hear(200, ms=20)
        alice.detect(speech=False)
        bob.detect(speech=False)
        for ear, player, words in ((alice, ALICE, "Alice was here."), (bob, BOB, "Bob was here.")):
            ended = await ear.until(TurnEnded)
            assert (ended.draft.player, ended.draft.text) == (player.id, words)
    finally:
        await host.close()
        recogniser.close()


_BUILD = """
import asyncio, sys
import glyphoxa_pipelines.host
import glyphoxa_pipelines.ear, glyphoxa_pipelines.cascaded
from glyphoxa.domain.heard import TurnEnded
from tests.support import pipecat_fakes as fakes

async def main():
    before = set(sys.modules)
    says_yes = fakes.Scripted({1: "Yes."})
    async with fakes.ModelServer() as server, fakes.stage(server) as play, fakes.listening(says_yes) as ear:
        play.begin(); play.release(); await play.finished()
        ear.say(1); await ear.until(TurnEnded)
    heavy = {"openai", "numba", "onnxruntime", "soxr", "scipy", "google", "transformers", "httpx", "httpx2"}
    print(sorted({name.split(".")[0] for name in set(sys.modules) - before} & heavy))
    print(sorted(name for name in sys.modules if "smart_turn" in name))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def imports() -> Iterator[tuple[str, str]]:
    done = subprocess.run(
        [sys.executable, "-c", _BUILD], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    late, smart_turn = done.stdout.splitlines()
    yield late, smart_turn


def test_nothing_heavy_is_imported_once_a_session_runs(imports: tuple[str, str]) -> None:
    """The first import of a provider's SDK stalls the event loop for so long that ICE fails."""
    assert imports[0] == "[]"


def test_smart_turn_is_not_loaded(imports: tuple[str, str]) -> None:
    assert imports[1] == "[]"


@pytest.mark.usefixtures("paced")
async def test_an_interruption_silences_one_npc_and_only_that_one(server: ModelServer) -> None:
    """A broadcast interruption reaches only the default destination of a shared transport; a mouth has its own."""
    server.reply = ("One two three four five six seven eight nine ten eleven twelve.",)
    host = PipelineHost()
    async with stage(server, host=host) as grimjaw, stage(server, host=host, npc=MIRA) as mira:
        for play in (grimjaw, mira):
            play.begin()
            play.release()
        for play in (grimjaw, mira):
            await play.until(lambda play=play: len(play.sound) > 4_800)  # type: ignore[misc]
        grimjaw.cancel()
        n_heard = len(grimjaw.sound)
        assert (await mira.finished()).heard == server.reply[0]
        assert len(grimjaw.sound) == n_heard
        (finished,) = grimjaw.of(Finished)
        assert finished.interrupted and finished.npc == NpcId("grimjaw")


def _all(processors: list[FrameProcessor]) -> Iterator[FrameProcessor]:
    for processor in processors:
        yield processor
        yield from _all(list(processor.processors))


async def test_no_graph_holds_a_parallel_pipeline(server: ModelServer) -> None:
    """It remembers the id of every frame it ever saw: 42 MiB in four hours of one microphone."""
    async with stage(server) as mouth:
        ear = Listening(Recogniser(Scripted({})))
        graphs = [*ear.ear._processors, *mouth.mouth.processors]
        assert len(graphs) == 11
        assert not [processor for processor in _all(graphs) if isinstance(processor, ParallelPipeline)]


async def test_every_kind_of_transcript_is_corrected_alike() -> None:
    """A corrector that knows only the final one makes every answer prepared for the eager one useless."""
    corrector = PhoneticCorrector(put_right, clock=lambda: 0)
    kinds = (InterimTranscriptionFrame, EagerTranscriptionFrame, TranscriptionFrame)
    down, _ = await run_test(corrector, frames_to_send=[kind("ask glif oxa", "alice", "now") for kind in kinds])
    heard = [frame for frame in down if isinstance(frame, kinds)]
    assert [type(frame) for frame in heard] == list(kinds)
    assert {frame.text for frame in heard} == {"ask Glyphoxa"}
    assert {noted.raw_text for frame in heard if (noted := notes_of(frame).heard)} == {"ask glif oxa"}
    assert {notes_of(frame).words for frame in heard} == {()}  # a recogniser that tells nothing of its words


async def test_make_stt_gives_every_ear_its_own() -> None:
    recogniser = Recogniser(Scripted({}))
    first, second = (WhisperSTT(p.id, recogniser, glossary=str, clock=lambda: 0) for p in (ALICE, BOB))
    assert first is not second
    recogniser.close()
