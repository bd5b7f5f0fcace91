"""Requests read within limits, and errors as the page reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.requests import HTTPConnection

from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.web.access.invitations import BadInvitation
from glyphoxa.web.access.roles import Forbidden, NotInvited
from glyphoxa.web.page_socket import error_code, first_problem, in_words
from glyphoxa.web.refusals import values_of
from glyphoxa.web.seats import SeatTaken

MAX_BODY_BYTES = 64 * 1024
BODY_WITHIN_MS = 10_000


class TooSlow(InvalidInput):
    def __init__(self) -> None:
        super().__init__(f"the request did not arrive within {BODY_WITHIN_MS} ms")


class TooLarge(InvalidInput):
    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"a request has at most {most_bytes} bytes")


async def content_of(request: Request, *, most_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Raises: InvalidInput: It is too long, or too slow to come."""
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN_MS / 1_000):
            async for chunk in request.stream():
                content += chunk
                if len(content) > most_bytes:
                    raise TooLarge(most_bytes)
    except TimeoutError:
        raise TooSlow from None
    return bytes(content)


async def on_invalid_input(_: HTTPConnection, error: Exception) -> JSONResponse:
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 400)
    return error_answer(error_code(error), str(error), status=status, values=values_of(error))


async def on_invalid_body(_: Request, error: Exception) -> JSONResponse:
    problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
    return error_answer("invalid_request", problem, status=422)


async def on_unavailable(_: Request, error: Exception) -> JSONResponse:
    return error_answer("unavailable", in_words(error), status=503)


def error_answer(
    code: str, message: str, *, status: int, values: Mapping[str, str | int] | None = None
) -> JSONResponse:
    """
    Args:
        values: As of a `Refusal`.
    """
    return JSONResponse({"error": {"code": code, "message": message, "values": values or {}}}, status_code=status)


def rationed(what: str, *, wait_ms: int) -> JSONResponse:
    message = f"{what}; try again in {wait_ms} ms"
    return error_answer("rationed", message, status=429, values={"wait_s": -(-wait_ms // 1_000)})


_STATUS: dict[type[InvalidInput], int] = {
    NotInvited: 401,
    Forbidden: 403,
    BadInvitation: 403,
    SeatTaken: 409,
    NotFound: 404,
    TooSlow: 408,
    TooLarge: 413,
}
