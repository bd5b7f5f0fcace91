"""The example of docs/configuration.md for cloud models, typed as it is written, up to the sound of an answer."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect

from benchmarks.servers.deepgram import DeepgramServer, Word
from benchmarks.servers.openai import OpenAiServer, Reply
from demo.recordings import pcm16, read_recording, resample, samples_of
from glyphoxa.adapters.weights.store import default_directory
from tests.support.patience import DEADLINE_S
from tests.support.web_client import OPUS_RATE_HZ, Browser, Speech, next_of

PROJECT = Path(__file__).parents[2]
REPLY = "Good evening to you, traveller."
SAID = ("Korvald,", "good", "evening.")

pytestmark = [pytest.mark.models, pytest.mark.realtime]


def example() -> str:
    page = (PROJECT / "docs" / "configuration.md").read_text("utf-8")
    [found] = re.findall(r"```\n(export [^`]*config check glyphoxa.yaml --live\n[^`]*)```", page)
    return str(found)


def at_stand_ins(script: str, openai: OpenAiServer, deepgram: DeepgramServer, data: Path) -> str:
    """Add the addresses of the stand-ins, a free port and a directory of this test; change nothing else."""
    for name, url in (("openai", openai.base_url), ("deepgram-nova", deepgram.http_url)):
        script = script.replace(f"{{name: {name}", f"{{name: {name}, base_url: '{url}'")
    more = f"server: {{port: 0}}\ndata_dir: {data}\nmodels: {{dir: {default_directory()}}}\n"
    return script.replace("\nEND\n", f"\n{more}END\n")


@asynccontextmanager
async def typed(script: str, folder: Path) -> AsyncIterator[tuple[str, list[str]]]:
    """Run the lines in a shell; yield the address of the page and what was printed before."""
    (folder / "demo").symlink_to(PROJECT / "demo")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euc", script),
        cwd=folder,
        env=os.environ | {"PATH": path, "PYTHONUNBUFFERED": "1", "COLUMNS": "300"},
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        printed: list[str] = []
        async for row in process.stdout:
            printed.append(row.decode())
            if found := re.search(r"is open at (http\S+?)/? ", f"{printed[-1].rstrip()} "):
                yield found[1], printed
                break
        else:
            pytest.fail("".join(printed))
        os.killpg(process.pid, signal.SIGINT)
        await asyncio.wait_for(process.communicate(), DEADLINE_S)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def test_documented_example_answers_a_spoken_line_aloud(reachable_dir: Path, tmp_path: Path) -> None:
    openai = OpenAiServer([Reply(REPLY)], key="YOUR_OPENAI_KEY")
    deepgram = DeepgramServer(on_finalize=tuple(map(Word, SAID)), key="YOUR_DEEPGRAM_KEY")
    spoken = read_recording(PROJECT / "demo" / "players" / "greeting.wav")
    pcm = pcm16(resample(samples_of(spoken.pcm), from_hz=spoken.rate_hz, to_hz=OPUS_RATE_HZ))
    async with openai, deepgram:
        script = at_stand_ins(example(), openai, deepgram, reachable_dir)
        async with typed(script, tmp_path) as (url, printed), asyncio.timeout(DEADLINE_S):
            found = re.findall(r"^(\w+) +(\S+), live ", "".join(printed), re.MULTILINE)
            assert found == [("ok", subject) for subject in ("stt", "llm", "tts", "embeddings")]
            n_asked = len(openai.completions)
            async with _answered_aloud(Speech(pcm), url):
                # A recogniser is sent silence, too, and charges for it.
                silent_ms = spoken.duration_ms + 2_000
                await deepgram.wait_until(lambda: deepgram.connections[-1].heard_ms > silent_ms, patience_s=DEADLINE_S)
    answered = openai.completions[n_asked]
    assert answered["model"] == "gpt-4.1-mini"
    assert " ".join(SAID) in json.dumps(answered["messages"][-1])
    assert openai.speeches[-1]["input"] in REPLY


@asynccontextmanager
async def _answered_aloud(microphone: Speech, url: str) -> AsyncIterator[None]:
    """Sit down as a browser does, and wait until an answer to what is said is heard."""
    address = f"{url.replace('http', 'ws')}/ws?player=hanna"
    async with (
        httpx.AsyncClient(base_url=url, timeout=DEADLINE_S, headers={"Origin": url}) as http,
        connect(address, origin=url, open_timeout=DEADLINE_S) as socket,  # type: ignore[arg-type]
    ):
        welcome = await next_of(socket, "welcome")
        agreed = {"player": "hanna", "agrees": True, "text": welcome["consent"]["text"]}
        (await http.post("/api/consent", json=agreed)).raise_for_status()
        browser = Browser(microphone=microphone)
        offer = {"player": "hanna", "type": "offer", "sdp": await browser.offer(), "ticket": welcome["ticket"]}
        await browser.accept(await http.post("/api/offer", json=offer))
        await browser.wait_until_loud()
        yield
        await browser.close()
