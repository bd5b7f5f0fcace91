"""`glyphoxa discord` as a process: what it needs to start, and a Discord that refuses it or is not there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from discord.gateway import DiscordWebSocket
from discord.http import Route
from yarl import URL

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.scope import Scope
from glyphoxa.config.check import check
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.plugins.discord.access import DiscordSettings
from glyphoxa.plugins.discord.bot import Bot, serve
from glyphoxa.plugins.discord.commands import Services
from tests.support.command_line import SALTMERE, CommandLine, a_settings_file
from tests.support.discord_server import OutsideTables
from tests.support.patience import DEADLINE_S

GUILD = 4_200
_HEARTBEAT, _IDENTIFY, _RESUME = 1, 2, 6
TOKEN = "the.token.of-a-bot"
USER = {"id": "1", "username": "bot", "discriminator": "0", "avatar": None}
APPLICATION = {
    "id": "1",
    "name": "bot",
    "description": "",
    "icon": None,
    "bot_public": False,
    "bot_require_code_grant": False,
    "verify_key": "",
    "owner": USER,
    "flags": 0,
    "team": None,
    "rpc_origins": None,
}
SECTION = f"discord: {{guild: {GUILD}, dm: [1], players: {{2: tamsin}}}}\n"


@asynccontextmanager
async def a_rest_server(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """Discord's REST API on this machine. Yields its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def as_json(body: object, *, status: int = 200) -> web.Response:
    headers = {"Content-Type": "application/json"}  # without a charset, as Discord sends it
    return web.Response(body=json.dumps(body).encode(), headers=headers, status=status)


async def refused_by(discord: str, dsn: str, monkeypatch: pytest.MonkeyPatch) -> GlyphoxaError:
    """The error with which the bot ends, given the address of Discord."""
    monkeypatch.setattr(Route, "BASE", discord)
    async with open_store(dsn) as store:
        source = Scope(store, Settings(), SALTMERE)
        services = Services(source, OutsideTables(store), lambda _: "")
        with pytest.raises(GlyphoxaError) as raised:
            await serve(Bot(services, DiscordSettings(guild=GUILD, dm=(1,))), TOKEN)
    assert TOKEN not in str(raised.value) and "\n" not in str(raised.value)
    return raised.value


async def test_wrong_token_is_one_clear_error(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_: web.Request) -> web.Response:
        return as_json({"message": "401: Unauthorized", "code": 0}, status=401)

    async with a_rest_server(answer) as url:
        error = await refused_by(url, dsn, monkeypatch)
    assert isinstance(error, InvalidInput)
    assert str(error) == "Discord refused the bot's token; copy it again from the Developer Portal"


async def test_bot_that_was_not_invited_is_one_clear_error(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.method == "PUT":
            return as_json({"message": "Missing Access", "code": 50001}, status=403)
        return as_json(USER if request.path.endswith("users/@me") else APPLICATION)

    async with a_rest_server(answer) as url:
        error = await refused_by(url, dsn, monkeypatch)
    assert isinstance(error, InvalidInput)
    assert str(error).startswith(f"the bot may not add commands in server {GUILD}: invite it there")


async def test_gateway_that_is_not_there_is_one_clear_error(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.method == "PUT":
            return as_json([])
        return as_json(USER if request.path.endswith("users/@me") else APPLICATION)

    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", URL("ws://127.0.0.1:1"))
    async with a_rest_server(answer) as url:
        error = await refused_by(url, dsn, monkeypatch)
    assert isinstance(error, Unavailable)


async def test_discord_that_is_not_there_is_one_clear_error(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = await refused_by("http://127.0.0.1:1", dsn, monkeypatch)
    assert isinstance(error, Unavailable)
    assert str(error).startswith("Discord cannot be reached: ")


BOT = """
import sys, discord.gateway, discord.http, yarl
discord.http.Route.BASE = sys.argv.pop(1)
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(discord.http.Route.BASE.replace("http", "ws"))
from glyphoxa.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


async def test_bot_reconnects_without_a_traceback_and_ends_on_a_signal(evenings_dsn: str, tmp_path: Path) -> None:
    ops: asyncio.Queue[int] = asyncio.Queue()
    attempts: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if "websocket" not in request.headers.get("Upgrade", ""):
            if request.method == "PUT":
                return as_json([])
            return as_json(USER if request.path.endswith("users/@me") else APPLICATION)
        attempts.append(request.path)
        if len(attempts) == 2:
            return web.Response(status=503)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 60_000}})
        while (op := (await socket.receive_json())["op"]) == _HEARTBEAT:
            pass
        ops.put_nowait(op)
        if len(attempts) == 1:
            ready = {"v": 10, "user": USER, "guilds": [], "session_id": "1", "application": {"id": "1", "flags": 0}}
            ready["resume_gateway_url"] = f"ws://{request.host}"
            await socket.send_json({"op": 0, "t": "READY", "s": 1, "d": ready})
            await socket.close(code=4000)
        else:
            await socket.receive()  # until the bot goes
        return socket

    settings = a_settings_file(tmp_path, evenings_dsn)
    settings.write_text(f"{settings.read_text()}data_dir: {tmp_path}\n{SECTION}")
    async with a_rest_server(answer) as url:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", BOT, url, "discord", "--config", settings),
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "DISCORD_TOKEN": TOKEN},
        )
        async with asyncio.timeout(DEADLINE_S):
            assert [await ops.get(), await ops.get()] == [_IDENTIFY, _RESUME]
            process.send_signal(signal.SIGTERM)
            _, err = await process.communicate()
    told = err.decode()
    assert process.returncode == 0, told
    assert "the bot serves The Bell of Saltmere in Discord" in told
    assert "Attempting a reconnect" in told and "Traceback" not in told and TOKEN not in told


# Settings


async def test_what_is_missing_is_said_at_once(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCORD_TOKEN", raising=False)
    problem = await cli.problem("discord")
    for words in ("discord.guild is not set", "discord.dm is empty", "environment variable DISCORD_TOKEN is not set"):
        assert words in problem


async def test_user_must_be_a_player_of_the_campaign(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", TOKEN)
    cli.settings.write_text(f"{cli.settings.read_text()}{SECTION.replace('tamsin', 'tamsyn')}")
    assert "discord.players: user 2 is 'tamsyn', which is no player" in await cli.problem("discord")


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ("{guild: my-server}", "guild"),
        ("{dm: [gm#1234]}", "dm"),
        (f"{{token_env: {TOKEN}}}", "must be the name of an environment variable"),
        ("{players: {tamsin: 2}}", "players"),
    ],
)
def test_wrong_setting_is_named_and_a_pasted_token_is_not_shown(section: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "glyphoxa.yaml"
    file.write_text(f"discord: {section}\n")
    with pytest.raises(InvalidInput, match=why) as raised:
        read_settings(file)
    assert TOKEN not in str(raised.value)


def test_check_reports_what_the_bot_uses_or_misses(tmp_path: Path) -> None:
    file = tmp_path / "glyphoxa.yaml"
    file.write_text(SECTION)

    def found(environ: dict[str, str], *, settings: Settings, is_installed: bool = True) -> list[tuple[str, str]]:
        every = check(settings, environ=environ, has_module=lambda _: is_installed)
        return [(each.level, each.text) for each in every if each.subject == "discord"]

    used = f"server {GUILD}, 1 game master and 1 player, token from DISCORD_TOKEN"
    settings = read_settings(file)
    assert found({"DISCORD_TOKEN": TOKEN}, settings=settings) == [("ok", used)]
    assert [level for level, _ in found({}, settings=settings)] == ["error"]
    assert "glyphoxa[discord]" in found({"DISCORD_TOKEN": TOKEN}, settings=settings, is_installed=False)[0][1]
    assert found({}, settings=Settings()) == []
