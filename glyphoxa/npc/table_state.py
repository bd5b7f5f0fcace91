"""What the parts of one table share: where it is, who is there, and what each NPC has in mind of the talk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glyphoxa.context.conversation import Conversation
from glyphoxa.domain.campaign import Campaign, Player, Scene
from glyphoxa.domain.ids import NpcId, PlayerId, SessionId, UtteranceId
from glyphoxa.domain.utterance import Utterance


class TableState:
    """Made before any of the parts. `LiveTable` and its seats change it; the others ask.

    Args:
        conversations: Of every NPC of the campaign.

    Attributes:
        scene: Where the table is now.
    """

    def __init__(
        self, campaign: Campaign, session: SessionId, scene: Scene, conversations: Mapping[NpcId, Conversation]
    ) -> None:
        self.campaign = campaign
        self.session = session
        self.scene = scene
        self.conversations = conversations
        self._seated: dict[PlayerId, Player] = {}
        self._names = {player.id: player.name for player in campaign.players}

    # -- humans

    def sits_down(self, player: Player) -> None:
        """Perhaps somebody who is not in the campaign file."""
        self._seated[player.id] = player
        self._names[player.id] = player.name

    def stands_up(self, player: PlayerId) -> None:
        self._seated.pop(player, None)

    @property
    def is_empty(self) -> bool:
        return not self._seated

    def is_seated(self, player: PlayerId) -> bool:
        return player in self._seated

    def name_of(self, player: PlayerId) -> str:
        """Also of an NPC whose words another one answers."""
        if player in self._names:
            return self._names[player]
        return next((npc.name for npc in self.campaign.npcs if str(npc.id) == player), str(player))

    def somebody(self) -> str:
        """Who will probably speak next; a guess only costs the cache a few words."""
        return next(iter(self._names.values()), "Somebody")

    # -- NPCs

    def remember(self, said: Sequence[Utterance]) -> None:
        """What was said in this session before the table was opened, oldest first."""
        for utterance in said:
            for npc in utterance.witnesses & self.conversations.keys():
                conversation = self.conversations[npc]
                (conversation.spoke if utterance.npc_id == npc else conversation.hear)(utterance)

    def present(self) -> tuple[NpcId, ...]:
        return self.scene.npcs

    def present_names(self) -> dict[NpcId, str]:
        return {npc: self.campaign.npc(npc).name for npc in self.scene.npcs}

    def known_utterances(self, npc: NpcId) -> Sequence[UtteranceId]:
        """What an NPC's prompt holds already."""
        return self.conversations[npc].utterance_ids

    def holds_words(self, npc: NpcId, words: str) -> bool:
        """Whether it holds these words, whenever they were said."""
        return self.conversations[npc].holds(words)

    def talk_of(self, npc: NpcId, question: str) -> Sequence[str]:
        """What was said in an NPC's prompt, the question aside."""
        return self.conversations[npc].said_beside(question)

    def heard_before(self, npc: NpcId, question: str) -> str:
        """What was said to an NPC last, before the question."""
        return self.conversations[npc].heard_before(question)
