"""The NPCs of a campaign as players may mean them: their roles, their trades, and who answers only when called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from glyphoxa.domain.campaign import Campaign, Npc
from glyphoxa.domain.ids import NpcId
from glyphoxa.turns.mention import AddresseeMention
from glyphoxa.turns.trades import is_business, is_called_by, trades_of

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


@dataclass(frozen=True, slots=True)
class CastMember:
    """
    Attributes:
        role: The last word of it, in lower case: "smith"; "" for none.
        trades: What that is, as numbers of `glyphoxa.turns.trades`.
    """

    npc: NpcId
    name: str
    role: str = ""
    trades: frozenset[int] = frozenset()
    address_only: bool = False

    def knows_about(self, words: Iterable[str]) -> int:
        """How many of these words, in lower case, are its business."""
        return sum(is_business(word, self.trades) for word in words)


@dataclass(frozen=True, slots=True)
class Cast:
    characters: Mapping[NpcId, CastMember] = field(default_factory=dict)

    def answers_uncalled(self, npc: NpcId) -> bool:
        character = self.characters.get(npc)
        return character is None or not character.address_only

    def roles_in(self, text: str, present: Iterable[NpcId]) -> list[AddresseeMention]:
        """Words by which somebody may be called that is known by a trade; of several, who is here. Also those of trades
        that no NPC has: who calls a guard means no innkeeper.
        """
        here = set(present)
        found: list[AddresseeMention] = []
        for position, match in enumerate(_WORD.finditer(text)):
            noun = match[0].lower()
            fitting = [c for c in self.characters.values() if c.role and is_called_by(noun, c.role)]
            if not fitting and not trades_of(noun):
                continue
            best = min(fitting, key=lambda c: (c.npc not in here, c.role != noun), default=None)
            npc, name = (best.npc, best.name) if best is not None else (None, match[0])
            found.append(
                AddresseeMention(npc, name, position, False, is_played=False, start=match.start(), end=match.end())
            )
        return found

    def expert(self, text: str, present: Iterable[NpcId]) -> NpcId | None:
        """Of those who are here, the one whose business it is most; None for nobody, or for two alike."""
        words = [word.lower() for word in _WORD.findall(text)]
        counted = [
            (character.knows_about(words), npc)
            for npc in present
            if (character := self.characters.get(npc)) is not None and not character.address_only
        ]
        most = max((count for count, _ in counted), default=0)
        best = [npc for count, npc in counted if count == most]
        return best[0] if most and len(best) == 1 else None


def cast_of(campaign: Campaign) -> Cast:
    return Cast({npc.id: _character(npc) for npc in campaign.npcs})


def _character(npc: Npc) -> CastMember:
    role = npc.role.lower().split()[-1:]
    trades = trades_of(role[0]) if role else frozenset[int]()
    return CastMember(npc.id, npc.name, "".join(role), trades, npc.address_only)
