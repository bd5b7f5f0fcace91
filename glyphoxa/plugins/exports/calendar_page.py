"""The calendar of sessions of a served table."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.plugins.exports.formats import CalendarFeed
from glyphoxa.web.access.links import BadInvitation
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.desk.frame import ServedTable
from glyphoxa.web.page_socket import SeatLimits


def add_calendar(served: ServedTable) -> None:
    """Add the calendar. Players' calendar programs have no cookies: the address carries a token."""
    limits: dict[Grant, SeatLimits] = {}
    entrance = served.desk.entrance
    feed = None if served.store is None else CalendarFeed(served.store, served.desk.table.campaign.id)

    async def calendar(request: Request) -> Response:
        try:
            token, links = request.query_params.get("token", ""), entrance.links
            reader = Grant(Role.DM) if links is None else links.calendar_reader(token)
        except BadInvitation:
            entrance.visitor(request).record(AuditKind.REFUSED, what="an invalid calendar address")
            raise
        limits.setdefault(reader, SeatLimits()).need_request("requests for the calendar")
        if feed is None:
            raise InvalidInput("this table has no long-term memory")
        return Response(await feed.read(), media_type="text/calendar")

    served.app.add_api_route("/calendar.ics", calendar, methods=["GET"])
