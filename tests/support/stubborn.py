"""`glyphoxa serve` in a process of its own, with twins for ears, mouths and browsers, one of which does not close.

Run as `python -m tests.support.stubborn WHAT ...`, with the arguments of `serve` behind it.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from contextlib import suppress

from glyphoxa.actors import supervisor
from glyphoxa.app import engines
from glyphoxa.app.engines import EarSpec, MouthSpec
from glyphoxa.cli import table_server
from glyphoxa.cli.main import main
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import TurnId
from glyphoxa.npc import session
from glyphoxa.npc.mouth import Mouth, SentenceStarted
from glyphoxa.npc.table_interface import Ear, Table
from glyphoxa.transcript.journal import Journal
from glyphoxa.web.serving import Server
from tests.support.live_table import AnsweringMouth, ToldEar


async def never() -> None:
    """Does not end, whoever wishes it."""
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


class Host:
    def measure(self, tell: object) -> None: ...

    async def close(self) -> None: ...


class Peers:
    """A transport that nobody comes through."""

    def __init__(self, what: str) -> None:
        self._what = what

    async def start(self) -> None: ...

    async def connect(self, *_: object, **__: object) -> None: ...

    async def close(self) -> None:
        if self._what == "peers":
            await never()


class StubbornEar(ToldEar):
    async def close(self) -> None:
        await never()


class StubbornMouth(AnsweringMouth):
    what = ""

    def release(self, turn: TurnId) -> None:
        """Says three sentences and does not come to an end."""
        self.reply = "Aye."
        super().release(turn)
        if self.what == "talks" and self.turn == turn and self._thinking is None:
            for text in ("It is sharp.", "Take it."):
                self._listener(SentenceStarted(self.npc.id, turn, text, self._now_ms()))

    def _done_with(self, turn: TurnId) -> None:
        if self.what != "talks":
            super()._done_with(turn)

    async def close(self) -> None:
        if self.what == "loop":
            time.sleep(1_000_000)  # noqa: ASYNC251 - what no event loop survives


async def _listen_in_vain(self: Server, listener: socket.socket) -> None:
    raise OSError("no sound comes through this wall")


async def _keep_never(self: Journal, utterance: Utterance) -> None:
    await never()


def serve_stubbornly(what: str, arguments: list[str]) -> int:
    async def open_ear(order: EarSpec) -> Ear:
        return StubbornEar(order) if what == "ear" else ToldEar(order)

    async def open_mouth(order: MouthSpec) -> Mouth:
        if what == "start":
            await asyncio.Event().wait()
        mouth = StubbornMouth(order)
        mouth.what = what
        return mouth

    def peers(_: Table) -> Peers:
        return Peers(what)

    engines.installed = {"host": Host, "webrtc": peers}.__getitem__
    engines.find_ear = lambda *, files: open_ear
    engines.find_mouth = lambda engine, *, files: open_mouth
    if what in ("journal", "peers"):  # nothing else tells that it will never close
        supervisor.END_MS = table_server.STEP_MS = session.STEP_MS = session.WRITE_DOWN_MS = 1_000
    if what == "journal":
        Journal.keep = _keep_never  # type: ignore[method-assign]
    if what == "page fails":
        Server.listen = _listen_in_vain  # type: ignore[method-assign]
    return main(["serve", *arguments])


if __name__ == "__main__":
    sys.exit(serve_stubbornly(sys.argv[1], sys.argv[2:]))
