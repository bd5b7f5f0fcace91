"""A session as its NPCs recall it in later ones: written when it ends, each NPC's from what it heard players say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from glyphoxa.chronicle.ports import ChronicleLog
from glyphoxa.chronicle.rules.extractor import names_of
from glyphoxa.chronicle.rules.summaries import heard_by, in_words, summary_of
from glyphoxa.chronicle.talk import NumberedUtterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Fact, Provenance, witnessed_by
from glyphoxa.transcript.api import EPISODE, episode_of
from glyphoxa.world.api import Cause, EntityAdded, Event, FactStated

PAGE: Final = 500
"""Utterances that are fetched at once."""
_SURE: Final = 0.9


class Episodes(Protocol):
    """Summaries of sessions, as they are kept. All methods raise `Unavailable` when the database is away or late."""

    async def summaries(self, campaign: CampaignId, session: SessionId) -> Sequence[Fact]:
        """What is kept as summary of a session now, whoever may know it."""
        ...

    async def replace(self, campaign: CampaignId, session: SessionId, events: Sequence[Event], cause: Cause) -> None:
        """Put these in place of what was written of the session as a whole before, by the same hand: all or nothing."""
        ...


@dataclass(frozen=True, slots=True)
class EpisodeWriter:
    """
    Args:
        npcs: The NPCs of the campaign with their entities.
        language: BCP 47 tag of the campaign.
    """

    campaign: CampaignId
    language: str
    npcs: Mapping[NpcId, EntityId]
    log: ChronicleLog
    episodes: Episodes

    async def write(self, session: SessionId) -> Mapping[NpcId, str] | None:
        """Write what each NPC recalls of a session. Returns what each of them does now.

        None: the DM has said what happened, and that stands.

        Raises:
            Unavailable: The database is away; nothing was written.
        """
        kept = await self.episodes.summaries(self.campaign, session)
        if any(fact.provenance.origin != "talk" for fact in kept):
            return None
        # What an NPC says may be made up by its model: it is recalled as talk where a question asks for it, and stands
        # in front of no later session.
        said = [each for each in await said_in(self.log, self.campaign, session) if each.utterance.npc_id is None]
        names = names_of(await self.log.known(self.campaign), self.language)
        lines = {npc: summary_of(heard_by(npc, said), language=self.language, names=names) for npc in self.npcs}
        told = {npc: in_words(chosen, self.language) for npc, chosen in lines.items() if chosen}
        before = {npc: str(fact.claim.content) for fact in kept for npc in _knowers(fact)}
        if told != before:
            at_ms = said[-1].utterance.at_ms if said else 0
            evidence = {told[npc]: [line.said.utterance.id for line in lines[npc]] for npc in told}
            await self.episodes.replace(
                self.campaign, session, self._events(session, told, evidence, at_ms), Cause("talk", at_ms, session)
            )
        return told

    def _events(
        self, session: SessionId, told: Mapping[NpcId, str], evidence: Mapping[str, Sequence[UtteranceId]], at_ms: int
    ) -> list[Event]:
        """
        Args:
            evidence: What each text was selected from: it goes when one of these is retracted, or says something else.
        """
        if not told:
            return []
        episode, everybody = episode_of(session), witnessed_by(told, at_ms=at_ms)
        sure = Provenance(_SURE, "inferred", origin="talk", session_id=session, at_ms=at_ms, reason="selected lines")
        events: list[Event] = [
            EntityAdded(episode, "event", f"Session {session}", (), everybody, "talk"),
            FactStated(Claim.attribute(episode, "kind", EPISODE), sure, everybody),
        ]
        for text in dict.fromkeys(told.values()):
            knowers = witnessed_by((npc for npc in told if told[npc] == text), at_ms=at_ms)
            rests_on = {"evidence": list(evidence[text])}
            events.append(FactStated(Claim.attribute(episode, "summary", text), sure, knowers, attributes=rests_on))
        events += [
            FactStated(Claim.relation(self.npcs[npc], "PARTICIPATED_IN", episode), sure, everybody) for npc in told
        ]
        return events


async def said_in(log: ChronicleLog, campaign: CampaignId, session: SessionId) -> list[NumberedUtterance]:
    """All that was said in a session, but for what was retracted."""
    said: list[NumberedUtterance] = []
    after = 0
    while (page := await log.unread(campaign, session, after=after, limit=PAGE)) is not None:
        said += page.said
        after = page.up_to
    return said


def _knowers(fact: Fact) -> list[NpcId]:
    return [knower.npc for knower in fact.visibility.knowers]
