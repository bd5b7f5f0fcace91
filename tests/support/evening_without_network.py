"""`glyphoxa serve` on a machine without a network, with its cloud providers on that machine: who asks for others?

    python -m tests.support.evening_without_network FOLDER

A player sits down, has sound, types a line and hears the answer; then the table is closed as by Ctrl-C. The last line
says, as JSON, what was looked up, to where something was sent, and which files were left in the user's home.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import httpx
import yaml
from websockets.asyncio.client import connect

from benchmarks.servers.openai import OpenAiServer, Reply
from glyphoxa.adapters.weights.store import default_directory
from tests.support.command_line import CAMPAIGN_FILE
from tests.support.no_network import NOT_PERMITTED, NotPermitted, packets
from tests.support.patience import DEADLINE_S
from tests.support.web_client import Browser, next_of

REPLY = "Well met, Tamsin."
_OF_THE_NETWORK = ("PROXY", "TELEMETRY", "XDG_", "GLYPHOXA_", "CI", "GITHUB_ACTIONS")
"""Environment variables that change whether a library uses the network."""


async def evening(folder: Path) -> None:
    home = folder / "home"
    home.mkdir()
    async with OpenAiServer([Reply(REPLY)], key="secret-1234") as server:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not any(part in name.upper() for part in _OF_THE_NETWORK) or name == "GLYPHOXA_MODELS"
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "glyphoxa.cli.main", "serve", "--open", "--port", "0"),
            *("--config", str(_settings(folder, server.base_url)), "--campaign", str(CAMPAIGN_FILE)),
            env=environment | {"HOME": str(home), "OPENAI_API_KEY": "secret-1234", "PYTHONUNBUFFERED": "1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=sys.stderr,
        )
        try:
            await _play(await _page_of(process), server)
            process.send_signal(signal.SIGINT)
            await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()


def _settings(folder: Path, base_url: str) -> Path:
    """The ear, memory and what past talk is found by are those of a table without a key."""
    path = folder / "settings.yaml"
    at_provider = {"base_url": base_url, "api_key_env": "OPENAI_API_KEY"}
    settings = {
        "data_dir": str(folder / "data"),
        "models": {"dir": str(default_directory())},
        "providers": {
            "llm": {"name": "openai", **at_provider},
            "tts": {"name": "openai", **at_provider},
        },
        "turns": {"reply_deadline_ms": 120_000},
    }
    path.write_text(yaml.safe_dump(settings))
    return path


async def _page_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async for line in process.stdout:
        sys.stderr.write(line.decode())
        if b"is open at" in line:
            return line.decode().split(" is open at ")[1].split()[0].rstrip("/")
    raise AssertionError("the table did not open")


async def _play(url: str, server: OpenAiServer) -> None:
    address = f"{url.replace('http', 'ws')}/ws?player=tamsin"
    async with (
        httpx.AsyncClient(base_url=url, timeout=DEADLINE_S, headers={"Origin": url}) as http,
        connect(address, origin=url, open_timeout=DEADLINE_S) as socket,  # type: ignore[arg-type]
    ):
        welcome = await next_of(socket, "welcome")
        ticket = welcome["ticket"]
        agreed = {"player": "tamsin", "agrees": True, "text": welcome["consent"]["text"]}
        (await http.post("/api/consent", json=agreed)).raise_for_status()
        browser = Browser()
        body = {"player": "tamsin", "type": "offer", "sdp": await browser.offer(), "ticket": ticket}
        await browser.accept(await http.post("/api/offer", json=body))
        await browser.wait_until_connected()
        await socket.send(json.dumps({"say": "Grimjaw, good evening!"}))
        await server.wait_until(lambda: bool(server.speeches), patience_s=DEADLINE_S)
        await browser.wait_until_loud()
        await browser.close()


def main(folder: Path) -> int:
    try:
        with packets() as seen:
            asyncio.run(asyncio.wait_for(evening(folder), DEADLINE_S))
    except NotPermitted as error:
        sys.stdout.write(f"{error}\n")
        return NOT_PERMITTED
    home = folder / "home"
    left = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
    found = {"names": sorted(seen.names), "addresses": sorted(seen.addresses), "files": left}
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
