"""What an NPC recalls of earlier sessions without being asked: their summaries, the latest ones that there is room for.

Read once, when the table opens, and the same to the end of the session: it stands in front of all talk.
"""

from __future__ import annotations

from typing import Final

from glyphoxa.context.tokens import characters_in
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.transcript.api import SessionSummaries

_MOST_SESSIONS: Final = 5


class Past:
    """
    Args:
        summaries: None without long-term memory.
        session: The one that is played.
        tokens: For each NPC. A summary that has no room is cut at the end of a sentence.
    """

    def __init__(
        self, campaign: Campaign, summaries: SessionSummaries | None, *, session: SessionId, tokens: int
    ) -> None:
        self._campaign = campaign
        self._summaries = summaries
        self._session = session
        self._most_characters = characters_in(tokens)
        self._read: dict[NpcId, str] = {}

    async def read(self, npc: NpcId) -> None:
        """Once for each NPC.

        Raises:
            Unavailable: The database is away. The next call tries again.
        """
        if self._summaries is None or npc in self._read or not self._most_characters:
            return
        found = await self._summaries.latest(self._campaign.id, npc, but=self._session, limit=_MOST_SESSIONS)
        self._read[npc] = self._fitting(found)

    def of(self, npc: NpcId) -> str:
        """In the order in which it happened; empty if there is nothing, or it was not read."""
        return self._read.get(npc, "")

    def _fitting(self, latest_first: list[str]) -> str:
        left, kept = self._most_characters, list[str]()
        for text in latest_first:
            words = " ".join(text.split())
            shown = words if len(words) <= left else _whole_sentences(words, left)
            if shown:
                kept.insert(0, shown)
            left -= len(shown) + 1
            if shown != words or left <= 0:
                break
        return " ".join(kept)


def _whole_sentences(text: str, most: int) -> str:
    """As many from the beginning as fit; empty where the first is too long."""
    cut = text[: most + 1]
    end = max(cut.rfind(f"{mark} ") for mark in ".!?…")
    return text[: end + 1]
