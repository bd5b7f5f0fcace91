"""Where an NPC is, in a line: when, which place, what it looks like there, who is there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from glyphoxa.context.knowledge import names_of, shortened
from glyphoxa.context.of_file import ScopedKnowledge, scoped_entities
from glyphoxa.context.wording import wording
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.ids import NpcId

_SENTENCES = re.compile(r"(?<=[.!?…])\s+")
_LEAST_DESCRIPTION = 20
"""Characters; less of it says nothing."""


class Scenes:
    """A campaign's scenes, each as one NPC may know it.

    Args:
        tokens: Of a line (4 characters a token). What it looks like there is shortened to what is left.
    """

    def __init__(self, campaign: Campaign, *, tokens: int) -> None:
        self._campaign = campaign
        self._words = wording(campaign.language)
        self._of_file = ScopedKnowledge(scoped_entities(campaign), ())
        self._most_characters = tokens * 4

    def line(self, scene: Scene, npc: NpcId, *, players: Sequence[str] = ()) -> str:
        """
        Args:
            players: Who sits at the table, by name.
        """
        place = self._of_file.entity(npc, scene.location)
        others = [self._campaign.npc(other).name for other in scene.npcs if other != npc]
        where = ", ".join(part for part in (scene.time_of_day, place.name if place is not None else "") if part)
        here = self._words.here([*others, *players])
        left = self._most_characters - len(where) - len(here) - 3
        looks = shortened(self._looks(scene, npc), left) if left >= _LEAST_DESCRIPTION else ""
        return " ".join(part for part in (f"{where}." if where else "", looks, here) if part)

    def _looks(self, scene: Scene, npc: NpcId) -> str:
        """Without the sentences that name what the NPC may not know of."""
        known = {entity.id for entity in self._of_file.entities(npc)}
        hidden = [name for entity in self._campaign.entities if entity.id not in known for name in names_of(entity)]
        sentences = _SENTENCES.split(" ".join(scene.description.split()))
        return " ".join(sentence for sentence in sentences if not _names_any(sentence, hidden))


def _names_any(sentence: str, names: Sequence[str]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", sentence, re.IGNORECASE) for name in names)
