"""What a DM says of a session as a whole. A summary is an event of the campaign's world, and can be undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.dm.ports import Review
from glyphoxa.dm.stating import attribute_claim, stated_by_dm
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import DM, PUBLIC, Fact, Visibility, witnessed_by
from glyphoxa.transcript.api import EPISODE, episode_of
from glyphoxa.world.api import Cause, EntityAdded, EntityScoped, Event, FactReplaced, FactScoped, World, WorldEvent

MOST_CHARACTERS: Final = 4_000
"""Of a summary. It is read in front of all talk: a thousand tokens are more than any model is given of it."""
_MOST_FACTS: Final = 100


@dataclass(frozen=True, slots=True)
class Summary:
    text: str
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class SessionDesk:
    """Sessions of one campaign. Every call raises `Unavailable` when the database is away.

    Args:
        now_ms: Milliseconds since the Unix epoch.
    """

    campaign: CampaignId
    world: World
    review: Review
    now_ms: Callable[[], int]

    async def summary(self, session: SessionId) -> Summary | None:
        """What is kept as its summary, whoever may know of it."""
        for fact in await self._known_of(episode_of(session)):
            if fact.claim.predicate == "summary":
                return Summary(str(fact.claim.content), fact.visibility)
        return None

    async def summarise(self, session: SessionId, text: str, known_by: Sequence[NpcId] | None) -> list[WorldEvent]:
        """Say what happened in a session. It takes the place of what was said of it before.

        Args:
            known_by: The NPCs that recall it so; None for everybody.

        Raises:
            InvalidInput: The text is empty, or longer than `MOST_CHARACTERS`.
        """
        words = " ".join(text.split())
        if not words:
            raise InvalidInput(f"the summary of session {session!r} is empty: say what happened")
        if len(words) > MOST_CHARACTERS:
            raise InvalidInput(
                f"the summary of session {session!r} has {len(words):,} characters: {MOST_CHARACTERS:,} at most"
            )
        at_ms = self.now_ms()
        visibility = PUBLIC if known_by is None else witnessed_by(dict.fromkeys(known_by), at_ms=at_ms)
        episode = episode_of(session)
        known = {fact.claim.predicate: fact for fact in await self._known_of(episode)}
        events: list[Event] = (
            [EntityScoped(episode, visibility)]
            if known
            else [EntityAdded(episode, "event", f"Session {session}", (), visibility)]
        )
        for name, value in (("kind", EPISODE), ("summary", words)):
            claim, held = attribute_claim(episode, name, value), known.get(name)
            if held is None:
                events.append(stated_by_dm(claim, visibility, at_ms=at_ms))
                continue
            events.append(FactScoped(held.id, visibility))
            if held.claim != claim:
                events.append(FactReplaced(held.id, claim))  # it is known to the same
        return await self.world.commit(self.campaign, events, Cause("dm", at_ms))

    async def _known_of(self, episode: EntityId) -> list[Fact]:
        return await self.review.current(self.campaign, DM, about=episode, limit=_MOST_FACTS)
