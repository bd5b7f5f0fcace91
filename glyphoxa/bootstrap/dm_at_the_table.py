"""How the DM's commands reach an open table, and where what is in force is kept."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.table_commands import PostgresTableCommands
from glyphoxa.dm.table_commands import CommandReader
from glyphoxa.domain.commands import TableCommand
from glyphoxa.npc.followed_commands import FollowedCommands
from glyphoxa.npc.kept_controls import KeptControls
from glyphoxa.npc.live_table import LiveTable
from glyphoxa.npc.room import Room
from glyphoxa.npc.table_state import TableState


@dataclass(frozen=True, slots=True)
class DmAtTheTable:
    """Of a table with long-term memory: the database is the way for both."""

    state: TableState
    room: Room
    commands: PostgresTableCommands
    kept: KeptControls

    @classmethod
    def of(cls, state: TableState, store: Store, room: Room) -> DmAtTheTable:
        commands = PostgresTableCommands(store.database, store.listener)
        return cls(state, room, commands, KeptControls(state.campaign.id, state.session, commands))

    async def open(self) -> None:
        """What was in force in this session is so again. Before anybody speaks."""
        control = self.room.control
        control.restore(await self.kept.before(control.controls.npcs))
        control.on_change(self.kept.on_changed)

    def start(self, supervisor: Supervisor, table: LiveTable) -> None:
        campaign = self.state.campaign

        async def obey(command: TableCommand) -> str:
            told = await table.obey(command)
            await self.kept.wait_until_kept()
            return told

        followed = FollowedCommands(
            campaign.id, self.state.session, self.commands, read=CommandReader(campaign).read, obey=obey
        )
        supervisor.start("the DM's commands", followed.run)
        supervisor.start("what the DM has in force", self.kept.run)
