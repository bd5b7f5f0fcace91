"""Somebody before a page, and every byte that their browser was sent: answers with their headers, and messages."""

from __future__ import annotations

import asyncio
import html
import json
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.patience import DEADLINE_S

Message = dict[str, Any]


@dataclass
class RecordingReader:
    """
    Attributes:
        got: Each text that was sent, in order.
        messages: Those of websockets, read.
    """

    name: str
    origin: str
    http: httpx.AsyncClient
    got: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def at(cls, origin: str, name: str) -> RecordingReader:
        http = httpx.AsyncClient(base_url=origin, timeout=DEADLINE_S, headers={"Origin": origin})
        return cls(name, origin, http)

    async def get(self, path: str) -> httpx.Response:
        return self._kept(await self.http.get(path))

    async def post(self, path: str, **content: Any) -> httpx.Response:
        """
        Args:
            content: Arguments of httpx: `json`, `data` of a form, or `content`.
        """
        return self._kept(await self.http.post(path, **content))

    async def joins(self, link: str) -> None:
        response = await self.post("/api/join", json={"token": link.partition("#")[2]})
        assert response.status_code == 200, response.text

    @asynccontextmanager
    async def opens(self, query: str) -> AsyncIterator[ClientConnection]:
        """A websocket that is read until the context ends; every message is kept."""
        async with self._connected(query) as socket:
            reading = asyncio.create_task(self._read(socket))
            try:
                yield socket
            finally:
                await socket.close()
                await reading

    async def looks_in(self, query: str) -> int:
        """Open a websocket and close it after its first message; return the status of the answer, or 101."""
        try:
            async with self._connected(query) as socket:
                while self._take(str(await socket.recv()))["type"] == "beat":
                    pass
        except InvalidStatus as refused:
            body = refused.response.body or b""
            self.got.append(f"{refused.response.headers}\n{body.decode()}")
            return refused.response.status_code
        return 101

    async def until(self, wanted: Callable[[Message], object], *, behind: int = 0) -> Message:
        """The first message that is `wanted`, of those behind so many."""
        async with asyncio.timeout(DEADLINE_S):
            while (found := next((each for each in self.messages[behind:] if wanted(each)), None)) is None:
                self._news.clear()
                await self._news.wait()
        return found

    def _connected(self, query: str) -> connect:
        cookies = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        return connect(
            f"{self.origin.replace('http', 'ws', 1)}/ws?{query}",
            origin=self.origin,  # type: ignore[arg-type]
            additional_headers={"Cookie": cookies} if cookies else {},
        )

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for text in socket:
                self._take(str(text))
        except ConnectionClosed:
            pass
        self.got.append(str(socket.close_reason))

    def _take(self, text: str) -> Message:
        self.got.append(text)
        message: Message = json.loads(text)
        self.messages.append(message)
        self._news.set()
        return message

    def _kept(self, response: httpx.Response) -> httpx.Response:
        self.got.append(f"{response.headers}\n{response.text}")
        return response


def held_in(texts: list[str], secrets: tuple[str, ...]) -> dict[str, str]:
    """Which secrets a text contains, ignoring case, accents and escapes, with the words around each."""
    wanted = {secret: plain(secret) for secret in secrets}
    found: dict[str, str] = {}
    for text in texts:
        for form in _forms(text):
            for secret, sought in wanted.items():
                at = form.find(sought)
                if at >= 0:
                    found.setdefault(secret, form[max(0, at - 200) : at + 200])
    return found


def plain(text: str) -> str:
    """Without case, accents, and what stands between words."""
    bare = "".join(sign for sign in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(sign))
    return " ".join(bare.replace("-", " ").replace("_", " ").split())


def _forms(text: str) -> Iterator[str]:
    """Yield the text as it was sent, and with the escapes of HTML, URLs and JSON decoded."""
    yield plain(text)
    yield plain(html.unescape(text))
    yield plain(unquote_plus(text))
    yield plain(text.encode("ascii", "backslashreplace").decode("unicode_escape"))
    yield plain(" ".join(_strings(text)))


def _strings(text: str) -> Iterator[str]:
    """Those of a JSON text, or of the one behind the headers; a string may hold another text."""
    try:
        left = [json.loads(text.partition("\n")[2] if text.startswith("Headers(") else text)]
    except ValueError:
        return
    while left:
        match left.pop():
            case str(one):
                yield one
            case list(many):
                left += many
            case dict(named):
                left += [*named.keys(), *named.values()]
