"""The NPCs of a table, each with the engine that the campaign names and with the tools of its tier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.bootstrap.engines import Host, MouthSpec, OpenMouth
from glyphoxa.bootstrap.local_models import LocalModels
from glyphoxa.bootstrap.memory import TableMemory
from glyphoxa.bootstrap.outside_tools import OutsideTools
from glyphoxa.config.settings import Settings
from glyphoxa.context.ports import HotContextSource
from glyphoxa.domain.campaign import Npc
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn import LookUp
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.budget import DEFAULT_RULES, TierSelector, trigger_words
from glyphoxa.npc.look_ups import MemoryOf
from glyphoxa.npc.mouth import Listener, Mouth
from glyphoxa.npc.room_messages import LookedUp, LooksUpLong, RoomMessage
from glyphoxa.npc.table import AudioSink
from glyphoxa.npc.table_state import TableState
from glyphoxa.npc.tool_latency import ToolLatencies
from glyphoxa.npc.toolbox import CallableTools, Toolbox
from glyphoxa.npc.tools import MemoryTools
from glyphoxa.transcript.ports import PastTalk


@dataclass(frozen=True, slots=True)
class Npcs:
    """What the NPCs of a table are made with.

    Attributes:
        mouths: By the NPCs' engines.
        deep_talk: What NPCs of tier DEEP ask for past talk; None without long-term memory.
        outside: Tools of servers outside, by the NPCs that have them.
        room: The room's mailbox.
        sink: Takes what they say.
    """

    settings: Settings
    local: LocalModels
    host: Host
    mouths: Mapping[str, OpenMouth]
    state: TableState
    context: HotContextSource
    memory: TableMemory
    deep_talk: PastTalk | None
    outside: OutsideTools
    room: Mailbox[RoomMessage]
    sink: AudioSink
    latencies: ToolLatencies = field(default_factory=ToolLatencies)

    def made(self) -> dict[NpcId, NpcActor]:
        tiers = self.settings.tiers
        language = self.state.campaign.language
        words = trigger_words(language, deep=tiers.deep_words, standard=tiers.standard_words)
        return {
            npc.id: NpcActor(
                self.state.conversations[npc.id],
                open_mouth=partial(self._open_mouth, slot),
                tell=self.room.post,
                now_ms=now_ms,
                tiers=TierSelector(npc.budget_tier, words=words),
            )
            for slot, npc in enumerate(self.state.campaign.npcs)
        }

    async def _open_mouth(self, slot: int, npc: Npc, listener: Listener) -> Mouth:
        spec = MouthSpec(
            campaign=self.state.campaign.id,
            npc=npc,
            others=self._names_of_others(npc),
            slot=slot,
            language=self.state.campaign.language,
            settings=self.settings,
            local=self.local,
            host=self.host,
            context=self.context,
            tools=self._tools_of(npc),
            listener=listener,
            sink=self.sink,
            now_ms=now_ms,
        )
        return await self.mouths[npc.engine](spec)

    def _tools_of(self, npc: Npc) -> CallableTools | None:
        memory, outside = self._memory_tools_of(npc), self.outside.get(npc.id, ())
        if memory is None and not outside:
            return None
        return Toolbox(
            memory,
            outside,
            rule=DEFAULT_RULES[npc.budget_tier],
            tell=partial(self._looked_up, npc.id),
            tell_slow=lambda: self.room.post(LooksUpLong(npc.id)),
        )

    def _memory_tools_of(self, npc: Npc) -> MemoryTools | None:
        guard = self.memory.guard
        if guard is None or self.deep_talk is None:
            return None
        campaign = self.state.campaign
        memory = MemoryOf(
            campaign.id,
            npc.id,
            guard,
            guard,
            guard,
            npc.name,
            campaign.language,
            around=self.memory.around,
            deep_talk=self.deep_talk,
        )
        tell = partial(self._looked_up, npc.id)
        return MemoryTools(memory, tier=npc.budget_tier, tell=tell, latencies=self.latencies)

    def _looked_up(self, npc: NpcId, look_up: LookUp) -> None:
        self.room.post(LookedUp(npc, look_up))

    def _names_of_others(self, npc: Npc) -> tuple[str, ...]:
        campaign = self.state.campaign
        npcs = [other.name for other in campaign.npcs if other.id != npc.id]
        return (*npcs, *(player.name for player in campaign.players))
