"""Every example of docs/building.md but the plug-in, word for word: found by its settings, and run."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from demo.recordings import read_recording
from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.local.hibari_voice import load_engine
from glyphoxa.adapters.local.whisper import Whisper
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.app.engines import EarSpec, MouthSpec, find_ear, find_mouth
from glyphoxa.app.models import LocalModels
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.heard import EarEvent, TurnEnded
from glyphoxa.domain.ids import TurnId
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.keyterms import Hints
from glyphoxa.npc.mouth import Finished, MouthEvent
from glyphoxa.npc.table_interface import INPUT_RATE_HZ, OUTPUT_RATE_HZ
from glyphoxa_pipelines.host import PipelineHost
from tests.support.patience import DEADLINE_S
from tests.support.pipecat_fakes import ALICE, GRIMJAW, VALE, Memory, ModelServer, prompt, put_right
from tests.support.postgres import a_directory
from tests.support.proof import proof_only

_ROOT = Path(__file__).parents[2]
_TWENTY_MS = INPUT_RATE_HZ // 50 * 2
DOCUMENT = re.sub(
    r"^## Your own plug-in$.*?(?=^## )", "", (_ROOT / "docs" / "building.md").read_text("utf-8"), flags=re.M | re.S
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(DOCUMENT)
FILES = {block.splitlines()[0].removeprefix("# "): block for kind, block in BLOCKS if kind in ("python", "yaml")}


@pytest.fixture
def folder() -> Iterator[Path]:
    """The folder of a reader who saved every example."""
    with a_directory() as directory:
        for name, example in FILES.items():
            (directory / name).write_text(example, "utf-8")
        yield directory


def test_page_shows_files_commands_and_an_output_alone() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "yaml", "sh", "text"}
    assert list(FILES) == ["glyphoxa.yaml", "loud.py", "other-provider.yaml", "chimes.py", "my_ear.py", "memory.py"]


@proof_only
def test_commands_of_the_page_run_in_its_order(folder: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GLYPHOXA_DATA": str(folder / "elsewhere")}
    shown = [block for kind, block in BLOCKS if kind == "text"]
    said = ""
    for kind, block in BLOCKS:
        if kind == "sh":
            done = subprocess.run(
                ["bash", "-ec", block], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            said = done.stdout
    assert [said] == shown


def test_other_provider_of_the_page_is_taken(folder: Path) -> None:
    assert read_settings(folder / "other-provider.yaml").providers.llm.name == "openai-compatible"


async def test_pipeline_of_the_page_gives_an_npc_its_voice(folder: Path) -> None:
    heard, sound = await answer_of("loud", folder)
    assert heard == "WELL MET! THE BLADE IS READY!"
    assert max(sound) > 0


async def test_voice_of_the_page_speaks(folder: Path) -> None:
    heard, sound = await answer_of("chimes", folder)
    assert heard == "Well met. The blade is ready."
    assert loudest_hz(sound, rate_hz=OUTPUT_RATE_HZ) == pytest.approx(440, abs=5)


@pytest.mark.models
async def test_ear_of_the_page_hears_a_player(folder: Path) -> None:
    pcm = read_recording(_ROOT / "demo" / "players" / "greeting.wav").pcm
    ended: asyncio.Future[TurnEnded] = asyncio.get_running_loop().create_future()

    def listen(event: EarEvent) -> None:
        if isinstance(event, TurnEnded) and not ended.done():
            ended.set_result(event)

    host, settings = PipelineHost(), read_settings(folder / "glyphoxa.yaml")
    ear = await find_ear(files=settings.engines)(
        EarSpec(
            player=ALICE,
            language="en",
            settings=settings,
            local=LocalModels(whisper=Whisper(WeightStore().path("whisper-tiny.en"))),
            host=host,
            correct=put_right,
            hints=Hints(VALE, Gazetteer.build(()), now_ms=now_ms),
            on_partial=lambda *_: None,
            listener=listen,
            now_ms=now_ms,
        )
    )
    await ear.start()
    async with asyncio.timeout(DEADLINE_S):
        for at in itertools.count(0, _TWENTY_MS):  # as a microphone: silence follows
            ear.hear(pcm[at : at + _TWENTY_MS].ljust(_TWENTY_MS, b"\0"))
            if ended in (await asyncio.wait([ended], timeout=0.02))[0]:
                break
    await ear.close()
    await host.close()
    assert ended.result().draft.text.startswith("Good evening, Marta.")  # once for each stretch of speech


async def answer_of(engine: str, folder: Path) -> tuple[str, bytes]:
    """Ask an NPC with an engine of the page. Returns what was heard of its answer, and the sound."""
    finished: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()
    sound = bytearray()

    def listen(event: MouthEvent) -> None:
        if isinstance(event, Finished):
            finished.set_result(event)

    async with ModelServer() as server:
        provider = {"name": "openai-compatible", "base_url": server.base_url, "model": "m"}
        host = PipelineHost()
        files = read_settings(folder / "glyphoxa.yaml").engines
        mouth = await find_mouth(engine, files=files)(
            MouthSpec(
                campaign=VALE,
                npc=GRIMJAW,
                slot=0,
                settings=Settings.model_validate({"providers": {"llm": provider}}),
                local=LocalModels(hibari=load_engine()),
                host=host,
                context=Memory(),
                tools=None,
                listener=listen,
                sink=lambda _, pcm: sound.extend(pcm),
                now_ms=now_ms,
            )
        )
        await mouth.start()
        mouth.begin(TurnId("t1"), prompt("How is my blade?"))
        mouth.release(TurnId("t1"))
        heard = await asyncio.wait_for(finished, DEADLINE_S)
        await mouth.close()
        await host.close()
    return heard.heard, bytes(sound)


def loudest_hz(pcm: bytes, *, rate_hz: int) -> float:
    samples = np.frombuffer(pcm, np.int16)
    return float(np.fft.rfftfreq(len(samples), 1 / rate_hz)[np.abs(np.fft.rfft(samples)).argmax()])
