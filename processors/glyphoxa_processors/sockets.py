"""WebSockets to providers, opened alike, with one line for each failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from glyphoxa.chat.questions import json_object

OPEN_WITHIN_S: Final = 5.0
FAULTS: Final = (WebSocketException, OSError, TimeoutError)
"""Raised by opening and using a socket."""
_CLOSE_WITHIN_S = 0.5
_PING_S = 10
"""A server that answers no ping for this long is lost."""
_LONGEST = 300


def socket_to(url: str, headers: Mapping[str, str]) -> connect:
    """Return a connection to be awaited, or entered as a context.

    Raises (when awaited): one of `FAULTS`; see `fault_of`.
    """
    return connect(
        url,
        additional_headers=dict(headers),
        compression=None,  # costs time and does not shrink sound
        open_timeout=OPEN_WITHIN_S,
        close_timeout=_CLOSE_WITHIN_S,
        max_size=None,
        ping_interval=_PING_S,
        ping_timeout=_PING_S,
    )


def socket_url(base_url: str) -> str:
    """Return the address of a provider with a scheme for sockets, without a final slash.

    >>> socket_url("https://api.example.com/")
    'wss://api.example.com'
    >>> socket_url("localhost:8080")
    'wss://localhost:8080'
    """
    scheme, _, host = base_url.rstrip("/").rpartition("://")
    return f"{'ws' if scheme in ('http', 'ws') else 'wss'}://{host}"


def fault_of(error: BaseException) -> str:
    """Describe in one line why a connection could not be opened, with the reason that the server gives."""
    if not isinstance(error, InvalidStatus):
        return f"could not be reached: {str(error) or type(error).__name__}"[:_LONGEST]
    response = error.response
    why = reason_in(json_object(response.body or b"")) or response.reason_phrase
    return f"refused the connection: HTTP {response.status_code} {why}"[:_LONGEST]


def reason_in(told: object) -> str:
    """Return the reason in an error message of a provider; "" if it gives none."""
    if not isinstance(told, dict):
        return ""
    nested = next((told[key] for key in ("error", "detail") if isinstance(told.get(key), dict)), None)
    if nested is not None:
        return reason_in(nested)
    keys = ("err_code", "code", "err_msg", "title", "error", "message", "description", "detail", "reason")
    return " ".join(str(told[key]) for key in keys if told.get(key))[:_LONGEST]


def is_refusal(error: BaseException) -> bool:
    """Return whether the server refused the request itself, so that repeating it does not help."""
    return (
        isinstance(error, InvalidStatus)
        and 400 <= error.response.status_code < 500
        and error.response.status_code not in (408, 429)
    )


def ending_of(socket: ClientConnection) -> str:
    """Describe in one line how a connection ended."""
    return f"code {socket.close_code} {socket.close_reason or ''}".strip()
