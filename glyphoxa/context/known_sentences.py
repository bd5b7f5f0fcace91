"""Of a text that an author wrote for everybody, the sentences that one NPC may read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from glyphoxa.context.knowledge import names_of
from glyphoxa.context.of_file import ScopedKnowledge, scoped_entities
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.world.api import Known

_SENTENCES = re.compile(r"(?<=[.!?…])\s+")
_MOST_HELD: Final = 256
"""Texts whose sentences are held."""

WorldOf: TypeAlias = Callable[[NpcId], Callable[[EntityId], Known | None] | None]
"""What an NPC may know of an entity now; None: its world is not in memory."""


class KnownSentences:
    """
    Args:
        world_of: Where it is not in memory the campaign's file tells.
    """

    def __init__(self, campaign: Campaign, world_of: WorldOf) -> None:
        self._campaign = campaign
        self._of_file = ScopedKnowledge(scoped_entities(campaign), ())
        self._world_of = world_of
        self._held: dict[str, list[tuple[str, frozenset[EntityId]]]] = {}

    def known(self, npc: NpcId, entity: EntityId) -> Known | None:
        """What an NPC may know of an entity; None if of nothing."""
        know = self._world_of(npc)
        if know is not None:
            return know(entity)
        found = self._of_file.entity(npc, entity)
        return None if found is None else Known(found)

    def of(self, npc: NpcId, text: str) -> list[tuple[str, frozenset[EntityId]]]:
        """Those that name nothing that the NPC may not know of, each with what it names."""
        if text not in self._held:
            if len(self._held) >= _MOST_HELD:
                self._held.clear()
            self._held[text] = self._sentences(text)
        return [
            (sentence, named)
            for sentence, named in self._held[text]
            if all(self.known(npc, one) is not None for one in named)
        ]

    def _sentences(self, text: str) -> list[tuple[str, frozenset[EntityId]]]:
        text = " ".join(text.split())
        folded = text.casefold()
        # A campaign may have thousands of names, and this is asked for every answer.
        names = [(e.id, name) for e in self._campaign.entities for name in names_of(e) if name.casefold() in folded]
        return [
            (sentence, frozenset(entity for entity, name in names if _names(sentence, name)))
            for sentence in _SENTENCES.split(text)
            if sentence
        ]


def _names(sentence: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}(?:['’]?s|es|en|n)?\b", sentence, re.IGNORECASE) is not None
