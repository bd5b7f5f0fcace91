"""Decides by meaning which NPC a question to anybody present concerns: "Can anyone here look at my bad tooth?".

The question's content words are compared, as vectors, with each NPC's role, description and other attributes, and with
the words of its trade. An NPC is meant only if it fits clearly: better than the others present, and no worse than the
best of all trades, whether or not somebody here has it. "Did anyone see a red coat?" concerns a tailor, so it is not
for the medic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Self

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import NpcId
from glyphoxa.language.sentence_form import without_call_to_all
from glyphoxa.language.text import FUNCTION_WORDS, Text
from glyphoxa.language.trades import TRADE_WORDS, cast_of

Embed = Callable[[Sequence[str]], NDArray[float32]]
"""Returns rows of unit length. It may take some milliseconds, because only questions to everybody are embedded."""
_CLEARLY: Final = 0.06
"""Least distance in cosine to the next NPC."""
_BELOW_A_TRADE: Final = 0.05
"""How much closer the question may be to a trade that the NPC does not have."""
_LEAST: Final = 0.24
_MOST_WORDS: Final = 16
_REMEMBERED: Final = 64


class Expertise:
    """
    Args:
        profiles: For each NPC, the vectors of its role, attributes and trades; shape (n, dimensions).
        trades: The vectors of each trade's words.
    """

    def __init__(
        self, profiles: Mapping[NpcId, NDArray[float32]], trades: Sequence[NDArray[float32]], embed: Embed
    ) -> None:
        self._profiles = profiles
        self._trades = trades
        self._embed = embed
        self._asked = lru_cache(_REMEMBERED)(self._vector)

    @classmethod
    def of(cls, campaign: Campaign, embed: Embed) -> Self:
        """Embed the profiles of the NPCs that answer without being called. Takes a second: call it in a thread."""
        entities = {entity.id: entity for entity in campaign.entities}
        trades = {trade: embed(sorted(words)) for trade, words in TRADE_WORDS.items()}
        profiles: dict[NpcId, NDArray[float32]] = {}
        for npc, member in cast_of(campaign).characters.items():
            entity = entities.get(campaign.npc(npc).entity_id)
            told = entity.attributes.values() if entity is not None else ()
            texts = [text for text in (member.role, *told) if isinstance(text, str) and text.strip()]
            if texts and not member.address_only:
                profiles[npc] = np.concatenate([embed(texts), *(trades[trade] for trade in sorted(member.trades))])
        return cls(profiles, list(trades.values()), embed)

    def fitting(self, question: str, present: Sequence[NpcId]) -> NpcId | None:
        """Return the present NPC that a question to everybody clearly concerns; None for none."""
        known = [npc for npc in present if npc in self._profiles]
        asked = [word for word in Text.of(without_call_to_all(question)).spoken if word not in FUNCTION_WORDS]
        if not known or not asked:
            return None
        vector = self._asked(" ".join(asked[-_MOST_WORDS:]))
        fits = sorted(((float((self._profiles[npc] @ vector).max()), npc) for npc in known), reverse=True)
        best, npc = fits[0]
        another = fits[1][0] if len(fits) > 1 else 0.0
        trade = max(float((words @ vector).max()) for words in self._trades)
        is_clear = best >= max(_LEAST, another + _CLEARLY, trade - _BELOW_A_TRADE)
        return npc if is_clear else None

    def _vector(self, text: str) -> NDArray[float32]:
        vector: NDArray[float32] = self._embed([text])[0]
        return vector
