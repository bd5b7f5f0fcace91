"""A hub of model files on this machine, as tests reach it."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
