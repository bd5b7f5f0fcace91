"""Requests read within limits, and errors as the page reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fastapi import Request
from fastapi.responses import JSONResponse
from loguru import logger
from pydantic import ValidationError
from starlette.requests import HTTPConnection

from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.web.access.roles import Refusal
from glyphoxa.web.seats import NotNow

MAX_BODY_BYTES = 64 * 1024
BODY_WITHIN_MS = 10_000


class TooSlow(Refusal):
    status = 408

    def __init__(self) -> None:
        super().__init__(f"the request did not arrive within {BODY_WITHIN_MS} ms")


class TooLarge(Refusal):
    status = 413

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
    status = error.status if isinstance(error, Refusal) else 404 if isinstance(error, NotFound) else 400
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


def values_of(error: Exception) -> Mapping[str, str | int]:
    return error.values if isinstance(error, Refusal) else {}


def error_code(error: Exception) -> str:
    """One word for a page to know an error by."""
    match error:
        case Refusal():
            return error.code
        case NotFound():
            return "not_found"
        case Unavailable():
            return "unavailable"
        case _:
            return "invalid"


def in_words(error: Exception) -> str:
    """For players. What a provider or the database answered is for the DM alone, and is logged."""
    if isinstance(error, InvalidInput | NotNow):
        return str(error)
    logger.warning("a page was refused: {}", error)
    return "something that the table needs is away; the DM's log says what"


def first_problem(error: ValidationError) -> str:
    """In words for whoever wrote the request."""
    problem = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])
