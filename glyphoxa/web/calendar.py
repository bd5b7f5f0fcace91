"""The calendar of sessions, for players' calendar programs, which have no cookies: the address carries a token."""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import Response

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.exports import CalendarFeed
from glyphoxa.web.access.links import BadInvitation, Entrance
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Grant
from glyphoxa.web.page_socket import Rationed, SeatLimits
from glyphoxa.web.requests import address_of

PATH: Final = "/calendar.ics"


def add_calendar(app: FastAPI, feed: CalendarFeed | None, entrance: Entrance) -> None:
    """Put the calendar on a page's server; without a feed, there is no long-term memory."""
    limits: dict[Grant, SeatLimits] = {}

    async def calendar(request: Request) -> Response:
        try:
            reader = entrance.authenticator.calendar_reader(request.query_params.get("token", ""))
        except BadInvitation:
            entrance.record(AuditKind.REFUSED, what="an invalid calendar address", address=address_of(request))
            raise
        now_ms = int(asyncio.get_running_loop().time() * 1_000)
        if wait_ms := limits.setdefault(reader, SeatLimits()).requests.take(at_ms=now_ms):
            raise Rationed("requests for the calendar", wait_ms=wait_ms)
        if feed is None:
            raise InvalidInput("this table has no long-term memory")
        return Response(await feed.read(), media_type="text/calendar")

    app.add_api_route(PATH, calendar, methods=["GET"])
