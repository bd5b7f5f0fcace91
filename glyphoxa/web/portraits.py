"""Pictures of NPCs. Players are sent those of the scene they are in: whom they have not met, they do not see."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.table import Table
from glyphoxa.web.access.authenticator import Authenticator
from glyphoxa.web.access.roles import Action
from glyphoxa.web.answers import error_answer


class PortraitDoor:
    """See the module."""

    def __init__(self, table: Table, authenticator: Authenticator) -> None:
        self._table = table
        self._authenticator = authenticator

    async def get(self, request: Request) -> Response:
        """The route. An NPC that is elsewhere, one without a picture and one that never was have the same answer."""
        grants = self._authenticator.grants(request.cookies)
        grants.need(Action.WATCH)
        wanted = NpcId(request.path_params["npc"])
        there = next((npc for npc in self._table.campaign.npcs if npc.id == wanted), None)
        may_see = wanted in self._table.scene.npcs or grants.may(Action.DIRECT)
        if there is None or there.portrait is None or not may_see:
            return error_answer("not_found", "there is no such picture here", status=404)
        return Response(there.portrait.content, media_type=there.portrait.content_type)
