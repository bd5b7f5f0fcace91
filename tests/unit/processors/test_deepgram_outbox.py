"""What is sent to a recogniser that may take nothing."""

from __future__ import annotations

import asyncio

from glyphoxa_processors.deepgram_nova import DeepgramOutbox


class Line:
    """Connections by name. Those in `stuck` take nothing."""

    def __init__(self, *, stuck: str = "") -> None:
        self.open = "first"
        self.stuck = stuck
        self.taken: list[tuple[str, str]] = []
        self.cut: list[str] = []
        self.settled = asyncio.Event()
        self.outbox: DeepgramOutbox[str, str] = DeepgramOutbox(
            self._send, is_open=lambda name: name == self.open, cut=self._cut, start=asyncio.create_task
        )

    async def _send(self, name: str, message: str) -> None:
        if name == self.stuck:
            await asyncio.Event().wait()
        self.taken.append((name, message))
        if message == "last":
            self.settled.set()

    def _cut(self, name: str) -> None:
        self.cut.append(name)
        self.open = ""
        self.settled.set()

    async def close(self) -> None:
        task = self.outbox.close()
        assert task is not None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_messages_go_in_order() -> None:
    line = Line()
    for message in ("one", "two", "last"):
        line.outbox.put("first", message)
    await line.settled.wait()
    await line.close()
    assert line.taken == [("first", "one"), ("first", "two"), ("first", "last")]


async def test_a_connection_that_takes_nothing_is_cut_and_what_waited_for_it_is_not_sent_to_the_next() -> None:
    line = Line(stuck="first")
    line.outbox.within_s = 0.01
    line.outbox.put("first", "one")
    line.outbox.put("first", "two")
    await line.settled.wait()
    line.settled.clear()
    line.open = "second"
    line.outbox.put("second", "last")
    await line.settled.wait()
    await line.close()
    assert (line.cut, line.taken) == (["first"], [("second", "last")])


async def test_a_connection_that_lags_behind_the_sound_is_cut_once() -> None:
    line = Line(stuck="first")
    line.outbox.within_s = 3_600
    for _ in range(60):
        line.outbox.put("first", "a second", lasts_s=1)
    await line.close()
    assert line.cut == ["first"]
