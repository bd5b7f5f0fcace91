"""Where an NPC is: when, which place, who is there; and what it looks like there.

They are two texts, for what it looks like stands where a prompt is the same from turn to turn. All that stands right
before a question is read again in every turn, and a small model on a processor reads 30 to 90 tokens a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from glyphoxa.context.knowledge import names_of, shortened
from glyphoxa.context.of_file import ScopedKnowledge, scoped_entities
from glyphoxa.context.wording import wording
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.ids import EntityId, NpcId

_SENTENCES = re.compile(r"(?<=[.!?…])\s+")


class Scenes:
    """A campaign's scenes, each as one NPC may know it.

    Args:
        tokens: Of what it looks like there (4 characters a token); it is shortened to that.
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

    def line(self, scene: Scene, npc: NpcId, *, players: Sequence[str] = ()) -> str:
        """When, where and with whom.

        Args:
            players: Who sits at the table, by name.
        """
        place = self._of_file.entity(npc, scene.location) if self._may_know(npc, scene.location) else None
        others = [self._campaign.npc(other).name for other in scene.npcs if other != npc]
        where = ", ".join(part for part in (scene.time_of_day, place.name if place is not None else "") if part)
        here = self._words.here([*others, *players])
        return " ".join(part for part in (f"{where}." if where else "", here) if part)

    def looks(self, scene: Scene, npc: NpcId) -> str:
        """The description of the place, without the sentences that name what the NPC may not know of."""
        if scene not in self._described:
            self._described[scene] = self._sentences(scene)
        sentences = self._described[scene]
        known = " ".join(sentence for sentence, named in sentences if all(self._may_know(npc, one) for one in named))
        return shortened(known, self._most_characters)

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
