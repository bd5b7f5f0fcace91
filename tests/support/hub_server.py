"""A hub of model files and an index of packages on this machine, as tests reach them, and how they can refuse."""

from __future__ import annotations

import hashlib
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self


class HubServer(ABC):
    """Answers every request for a while, in threads of its own.

    Attributes:
        address: Where, as a URL.
    """

    def __init__(self) -> None:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.send_response(200)
                self.end_headers()

            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._serving = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._serving.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._serving.join()
        self._server.server_close()

    @abstractmethod
    def answer(self, request: BaseHTTPRequestHandler) -> None: ...


def begins_at(request: BaseHTTPRequestHandler) -> int:
    """From which byte a file is wanted."""
    asked = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
    return int(asked[1]) if asked else 0


def begin_file(request: BaseHTTPRequestHandler, size: int, *, start: int) -> None:
    """Says that the bytes from `start` on follow, which the caller then sends."""
    request.send_response(206 if start else 200)
    request.send_header("Content-Length", str(size - start))
    request.end_headers()


def send(request: BaseHTTPRequestHandler, body: bytes, *, kind: str = "application/octet-stream") -> None:
    """A whole answer."""
    request.send_response(200)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


Refusal = Callable[[BaseHTTPRequestHandler], None]


def status(code: int) -> Refusal:
    return lambda request: request.send_error(code)


def login_page(request: BaseHTTPRequestHandler) -> None:
    """Answer any request with a login page, like the network of a hotel."""
    send(request, b"<!doctype html><title>Log in</title>" + b" " * 2_000, kind="text/html; charset=utf-8")


def endless_redirect(request: BaseHTTPRequestHandler) -> None:
    request.send_response(302)
    request.send_header("Location", request.path)
    request.end_headers()


def broken_half_way(request: BaseHTTPRequestHandler) -> None:
    """More is announced than comes."""
    request.send_response(200)
    request.send_header("Content-Length", "1000000")
    request.end_headers()
    request.wfile.write(b"x" * 1_000)


class PackageIndex(HubServer):
    """A simple index of the wheels in a directory.

    Attributes:
        yanked: Whether every release is.
        refuse: How paths are answered that begin with such a word: `simple` are pages of projects, `files` are wheels.
        asked: Paths, in order.
        stalled: Set at the end of the test: an answer that waits for it has not come before.
    """

    def __init__(self, wheels: Path) -> None:
        super().__init__()
        self._wheels = wheels
        self.yanked = False
        self.refuse: dict[str, Refusal] = {}
        self.asked: list[str] = []
        self.stalled = threading.Event()

    def __exit__(self, *_: object) -> None:
        self.stalled.set()
        super().__exit__()

    def stall(self, request: BaseHTTPRequestHandler) -> None:
        self.stalled.wait()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        kind, name = request.path.strip("/").split("/")
        self.asked.append(request.path)
        if kind in self.refuse:
            self.refuse[kind](request)
        elif kind == "files":
            send(request, (self._wheels / name).read_bytes())
        else:
            marked = ' data-yanked="a mistake"' if self.yanked else ""
            found = sorted(self._wheels.glob(f"{name.replace('-', '_')}-*.whl"))
            links = [
                f'<a href="/files/{wheel.name}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}"{marked}>'
                f"{wheel.name}</a>"
                for wheel in found
            ]
            send(request, f"<!doctype html><body>{''.join(links)}</body>".encode(), kind="text/html")
