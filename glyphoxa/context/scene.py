"""Where an NPC is, in a line: when, which place, what it looks like there, which NPCs are there.

Players are not named: they come and go, each line of talk says who speaks, and the line stands where the talk in the
scene begins, where a change makes a prompt cache read everything behind it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from glyphoxa.context.knowledge import names_of, shortened
from glyphoxa.context.of_file import ScopedKnowledge, scoped_entities
from glyphoxa.context.wording import wording
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.ids import EntityId, NpcId

_SENTENCES = re.compile(r"(?<=[.!?…])\s+")
_LEAST_DESCRIPTION = 20
"""Characters; less of it says nothing."""


class Scenes:
    """A campaign's scenes, each as one NPC may know it.

    Args:
        tokens: Of a line (4 characters a token). What it looks like there is shortened to what is left.
        is_taken: Whether an NPC may no longer know of something that the file lets it know.
    """

    def __init__(
        self,
        campaign: Campaign,
        *,
        tokens: int,
        is_taken: Callable[[NpcId, EntityId], bool] = lambda _npc, _entity: False,
    ) -> None:
        self._campaign = campaign
        self._words = wording(campaign.language)
        self._of_file = ScopedKnowledge(scoped_entities(campaign), ())
        self._most_characters = tokens * 4
        self._is_taken = is_taken
        self._described: dict[Scene, list[tuple[str, frozenset[EntityId]]]] = {}

    def line(self, scene: Scene, npc: NpcId) -> str:
        place = self._of_file.entity(npc, scene.location) if self._may_know(npc, scene.location) else None
        others = [self._campaign.npc(other).name for other in scene.npcs if other != npc]
        where = ", ".join(part for part in (scene.time_of_day, place.name if place is not None else "") if part)
        here = self._words.here(others)
        left = self._most_characters - len(where) - len(here) - 3
        looks = shortened(self._looks(scene, npc), left) if left >= _LEAST_DESCRIPTION else ""
        return " ".join(part for part in (f"{where}." if where else "", looks, here) if part)

    def _looks(self, scene: Scene, npc: NpcId) -> str:
        """Without the sentences that name what the NPC may not know of."""
        if scene not in self._described:
            self._described[scene] = self._sentences(scene)
        sentences = self._described[scene]
        return " ".join(sentence for sentence, named in sentences if all(self._may_know(npc, one) for one in named))

    def _may_know(self, npc: NpcId, entity: EntityId) -> bool:
        return self._of_file.entity(npc, entity) is not None and not self._is_taken(npc, entity)

    def _sentences(self, scene: Scene) -> list[tuple[str, frozenset[EntityId]]]:
        """Of its description, each with what it names."""
        text = " ".join(scene.description.split())
        folded = text.casefold()
        # A campaign may have thousands of names, and the line is made for every answer.
        names = [(e.id, name) for e in self._campaign.entities for name in names_of(e) if name.casefold() in folded]
        return [
            (sentence, frozenset(entity for entity, name in names if _names(sentence, name)))
            for sentence in _SENTENCES.split(text)
        ]


def _names(sentence: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}(?:['’]?s|es|en|n)?\b", sentence, re.IGNORECASE) is not None
