"""Which utterance the DM means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.dm.ports import CitedUtterance, Review
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.domain.knowledge import DM
from glyphoxa.transcript.api import TalkFilter, TalkSearch

_MOST_LISTED: Final = 5
_SHORT: Final = 10
"""Of an id of ours: its number in its session, and the end of when that was opened."""


def short(utterance: UtteranceId) -> str:
    """An ending that hardly another id has."""
    return utterance[-_SHORT:]


@dataclass(frozen=True, slots=True)
class SaidDesk:
    """What was said in one campaign. An utterance is named by its id, an ending of it that no other has, or its words.
    Every call raises `Unavailable` when the database is away.
    """

    campaign: CampaignId
    review: Review
    talk: TalkSearch

    async def find(self, named: str) -> CitedUtterance:
        """
        Args:
            named: Words are found as by `glyphoxa show said --all-words`; who said it may be among them.

        Raises:
            NotFound: Nothing like that was said.
            InvalidInput: It may be several utterances; the message lists them.
        """
        named = named.strip()
        if not named:
            raise InvalidInput("name an utterance by its id, as `glyphoxa show said` shows it, or by words of it")
        found: Sequence[CitedUtterance] = await self.review.said_ending_with(
            self.campaign, named, limit=_MOST_LISTED + 1
        )
        if len(found) != 1:
            found = [said for said in found if said.utterance_id == named] or found
        if not found:
            found = await self._with_words(named)
        if not found:
            raise NotFound(
                f"nobody said {named!r}, and no utterance has that id: `glyphoxa show said` lists the latest"
            )
        if len(found) > 1:
            listed = "; ".join(f"{short(each.utterance_id)} {_in_short(each)}" for each in found[:_MOST_LISTED])
            more = "; and more" if len(found) > _MOST_LISTED else ""
            raise InvalidInput(f"{named!r} may be several utterances: {listed}{more}")
        return found[0]

    async def _with_words(self, words: str) -> list[CitedUtterance]:
        found = await self.talk.search(self.campaign, DM, TalkFilter(words, match="all", limit=_MOST_LISTED + 1))
        exact = [one for one in found if one.utterance.text.casefold() == words.casefold()]
        ids = [one.utterance.id for one in exact or found]
        return [said for each in ids if (said := await self.review.said(self.campaign, each)) is not None]


def _in_short(said: CitedUtterance) -> str:
    text = said.text if len(said.text) <= 40 else f"{said.text[:40]}..."
    return f"({said.speaker_name}: {text!r})"
