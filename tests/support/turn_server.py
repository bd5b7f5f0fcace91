"""coturn on this machine, with the recipe of `deploy/`."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from glyphoxa.adapters.certificates import Tls, self_signed
from tests.support.patience import DEADLINE_S
from tests.support.programs import program

RECIPE = Path(__file__).parents[2] / "deploy" / "turnserver.conf"
HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class TurnServer:
    """
    Attributes:
        certificate: For clients that use `tls`.
    """

    port: int
    tls_port: int
    certificate: Path

    @property
    def udp(self) -> str:
        return f"turn:{HERE}:{self.port}?transport=udp"

    @property
    def tls(self) -> str:
        return f"turns:{HERE}:{self.tls_port}?transport=tcp"


@asynccontextmanager
async def a_turn_server(secret: str, place: Path) -> AsyncIterator[TurnServer]:
    """coturn with the recipe, on loopback: there its clients reach each other, which is the recipe's one exception."""
    turnserver = program("turnserver", package="coturn")
    port, tls_port = _free_ports(2)
    tls = self_signed(place / "tls", [])
    (place / "turnserver.conf").write_text(_recipe(secret, port, tls_port, tls, place))
    running = await asyncio.create_subprocess_exec(
        *(turnserver, "-c", str(place / "turnserver.conf")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "HOME": str(place)},
    )
    assert running.stdout is not None
    read = asyncio.create_task(running.stdout.read())
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (_is_bound(port, socket.SOCK_DGRAM) and _is_bound(tls_port, socket.SOCK_STREAM)):
                assert running.returncode is None, (await read).decode()
                await asyncio.sleep(0.02)
        yield TurnServer(port, tls_port, tls.certificate)
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()
        (output,) = await asyncio.gather(read, return_exceptions=True)
    assert b"Bad configuration format" not in output, output.decode()


def _recipe(secret: str, port: int, tls_port: int, tls: Tls, place: Path) -> str:
    recipe = RECIPE.read_text("utf-8")
    for ours, tests in (
        ("static-auth-secret=CHANGE-THIS-SECRET", f"static-auth-secret={secret}"),
        ("listening-port=3478", f"listening-port={port}"),
        ("tls-listening-port=5349", f"tls-listening-port={tls_port}"),
        ("/etc/letsencrypt/live/turn.example/fullchain.pem", str(tls.certificate)),
        ("/etc/letsencrypt/live/turn.example/privkey.pem", str(tls.key)),
    ):
        assert f"\n{ours}" in recipe or f"={ours}" in recipe
        recipe = recipe.replace(ours, tests)
    ours = (f"listening-ip={HERE}", f"relay-ip={HERE}", "allow-loopback-peers", f"allowed-peer-ip={HERE}")
    return "\n".join([recipe, *ours, f"pidfile={place}/pid", f"userdb={place}/users", ""])


def _free_ports(n: int) -> list[int]:
    held = [socket.create_server((HERE, 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def _is_bound(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind((HERE, port))
        except OSError:
            return True
    return False
