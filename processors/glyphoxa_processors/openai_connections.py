"""The HTTP connections of OpenAI's clients, kept open between two turns."""

from __future__ import annotations

import importlib
from typing import Any

from openai import DefaultAsyncHttpxClient

IDLE_S = 240.0
"""Minutes pass between two answers of an NPC, and a new connection costs two or three ways there and back. What stands
in between forgets one that is idle after four minutes at the earliest (Azure; AWS: 350 s); a server that closes it says
so."""


def kept_open() -> Any:
    """An HTTP client for `AsyncOpenAI`, whose own forgets a connection after five seconds. To be closed by its user."""
    kind: Any = DefaultAsyncHttpxClient
    # httpx, or what has taken its place: whichever this SDK is made of.
    http = importlib.import_module(kind.__base__.__module__.partition(".")[0])
    return kind(limits=http.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=IDLE_S))
