"""The desk's pages of the campaign's world: its people, places and things, and how they are related."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import Request
from fastapi.responses import Response

from glyphoxa.domain.ids import EntityId
from glyphoxa.web.access.audit import AuditKind
from glyphoxa.web.desk import world_views
from glyphoxa.web.desk.entity_decisions import GONE_AFTER, add_entity, change_entity
from glyphoxa.web.desk.frame import DeskFrame, form_of, seen


class WorldPages:
    """Entities. An entity's id may hold slashes."""

    def __init__(self, frame: DeskFrame) -> None:
        self._frame = frame
        self.looked_at = {"/desk/world": self.world, "/desk/world/{entity:path}": self.entity}
        self.posted = {"/desk/world": self.add, "/desk/world/{entity:path}": self.change}

    async def world(self, request: Request) -> Response:
        asked = request.query_params
        desk = await self._frame.desk()
        shown = world_views.entities(desk, asked.get("type", ""), asked.get("name", ""), asked.get("page", ""))
        return self._frame.page("world", request, **shown)

    async def entity(self, request: Request) -> Response:
        asked = request.query_params
        shown = await world_views.entity(
            await self._frame.desk(), request.path_params["entity"], asked.get("hops", ""), asked.get("npc", "")
        )
        return self._frame.page("entity", request, **shown)

    async def add(self, request: Request) -> Response:
        made, done = await add_entity(await self._frame.desk(), await form_of(request))
        self._frame.record(AuditKind.DECIDED, done)
        return seen("", _page_of(made), done)

    async def change(self, request: Request) -> Response:
        entity, form = EntityId(request.path_params["entity"]), await form_of(request)
        done = await change_entity(await self._frame.desk(), entity, form)
        self._frame.record(AuditKind.DECIDED, done)
        return seen("", "/desk/world" if form.get("do") in GONE_AFTER else _page_of(entity), done)


def _page_of(entity: EntityId) -> str:
    return f"/desk/world/{quote(entity, safe='')}"
