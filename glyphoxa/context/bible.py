"""What an author gives an NPC for every prompt: the same words from turn to turn, in front of all that changes.

    1. what the NPC always keeps to, and the languages that it speaks    always
    2. the campaign's bible: the party, the world, how it began          in the room that there is, as all below
    3. the words that the campaign coined, each with its meaning

What stands last is trimmed first. It is read in another order: bible, coined words, what is always kept to. A sentence
that names what this NPC may not know of is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from glyphoxa.context.known_sentences import KnownSentences
from glyphoxa.context.wording import wording
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import NpcId


class Bible:
    """
    Args:
        tokens: Of bible and coined words (4 characters a token).
    """

    def __init__(self, campaign: Campaign, sentences: KnownSentences, *, tokens: int) -> None:
        self._campaign = campaign
        self._sentences = sentences
        self._words = wording(campaign.language)
        self._most_characters = tokens * 4

    def lines(self, npc: NpcId) -> tuple[str, ...]:
        """As this NPC may read it now."""
        who = self._campaign.npc(npc)
        kept_to = [sentence for text in who.standing for sentence in self._known(npc, text)]
        speaks = [self._words.speaks_only(who.speaks)] if who.speaks else []
        coined = [f"{term}: {_ended(meaning)}" for term, meaning in self._campaign.glossary.items()]
        told = [*self._known(npc, self._campaign.bible), *(line for one in coined for line in self._known(npc, one))]
        return (*self._fitting(told), *kept_to, *speaks)

    def _known(self, npc: NpcId, text: str) -> list[str]:
        return [sentence for sentence, _ in self._sentences.of(npc, _ended(text))] if text else []

    def _fitting(self, sentences: Sequence[str]) -> list[str]:
        left, found = self._most_characters, []
        for sentence in sentences:
            if len(sentence) + 1 > left:
                break
            left -= len(sentence) + 1
            found.append(sentence)
        return found


def _ended(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
