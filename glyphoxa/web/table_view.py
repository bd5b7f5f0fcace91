"""What a page is told of the table when it asks: of everything only what its reader may know."""

from __future__ import annotations

from glyphoxa.npc.table import Table
from glyphoxa.web.access.roles import Action, Grants
from glyphoxa.web.events import Json, memory_json, scene_json, whole_scene_json
from glyphoxa.web.page_socket import MAX_TEXT_LENGTH
from glyphoxa.web.seats import Seats


class TableView:
    """See the module."""

    def __init__(self, table: Table, seats: Seats) -> None:
        self._table = table
        self._seats = seats

    def described(self, grants: Grants) -> Json:
        """Scenes, and what the game master wrote of them, are for the game master alone."""
        table, campaign = self._table, self._table.campaign
        sees_all = grants.may(Action.DIRECT)
        return {
            "campaign": {"id": campaign.id, "name": campaign.name, "language": campaign.language},
            "session": table.session,
            "role": grants.role,
            "scene": whole_scene_json(table.scene, campaign)
            if sees_all
            else scene_json(table.scene, campaign, table.may_show),
            "scenes": [whole_scene_json(scene, campaign) for scene in campaign.scenes] if sees_all else [],
            "players": self.players(),
            "seats": [player.id for player in campaign.players if grants.may(Action.PLAY, player.id)],
            "memory": memory_json(table.health),
            "is_paused": table.is_paused,
            "max_text_length": MAX_TEXT_LENGTH,
        }

    def players(self) -> list[Json]:
        taken = self._seats.taken
        return [{"id": p.id, "name": p.name, "taken": p.id in taken} for p in self._table.campaign.players]
