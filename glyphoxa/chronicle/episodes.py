"""Writes session summaries that NPCs recall later, each made from what that NPC heard players say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from glyphoxa.chronicle.ports import ChronicleLog, pages_of
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.chronicle.talk import NumberedUtterance
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Fact, Provenance, witnessed_by
from glyphoxa.judgement.safety import topics_of
from glyphoxa.transcript.sessions import EPISODE, episode_name, episode_of
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import Cause, Event
from glyphoxa.world.fact_events import FactStated


def heard_by(npc: NpcId, said: Sequence[NumberedUtterance]) -> list[NumberedUtterance]:
    """Return the utterances that a summary for this NPC may use."""
    return [each for each in said if npc in each.utterance.witnesses]


_SURE: Final = 0.9


class Episodes(Protocol):
    """Stored session summaries. All methods raise `Unavailable` if the database is unreachable or late."""

    async def summaries(self, campaign: CampaignId, session: SessionId) -> Sequence[Fact]:
        """Return a session's current summaries for all knowers."""
        ...

    async def replace(self, campaign: CampaignId, session: SessionId, events: Sequence[Event], cause: Cause) -> None:
        """Replace this author's summaries of a session, in one transaction."""
        ...


@dataclass(frozen=True, slots=True)
class EpisodeWriter:
    """Writes the summaries of sessions.

    Args:
        dated: Returns a text that was said at a time in a session with days instead of words such as "yesterday".
    """

    campaign: Campaign
    log: ChronicleLog
    episodes: Episodes
    dated: Callable[[str, SessionId, int], str] = lambda text, _session, _at_ms: text

    async def write(self, session: SessionId) -> Mapping[NpcId, str] | None:
        """Write a session's summary for each NPC. Returns the current summaries.

        None: the DM has written a summary, which stays.

        Raises:
            Unavailable: The database is unreachable; nothing was written.
        """
        campaign, forbids = self.campaign, topics_of(self.campaign).forbids
        npcs = [npc.id for npc in campaign.npcs]
        known = await self.episodes.summaries(campaign.id, session)
        if any(fact.provenance.origin != "talk" for fact in known):
            return None
        said = [each for each in await said_in(self.log, campaign.id, session) if not forbids(each.utterance.text)]
        names = names_of(await self.log.known(campaign.id), campaign.language)
        selection = LineSelection(campaign.language, lambda: names)
        heard = {npc: [each.utterance for each in heard_by(npc, said)] for npc in npcs}
        said_ms = {each.utterance.id: each.utterance.at_ms for each in said}
        lines = {
            npc: [
                replace(one, text=self.dated(one.text, session, said_ms[one.evidence[0]]))
                for one in selection.select(heard[npc], own=npc)
            ]
            for npc in npcs
        }
        texts = {npc: " ".join(one.text for one in chosen) for npc, chosen in lines.items() if chosen}
        before = {
            npc: str(fact.claim.content) for fact in known for npc in (knower.npc for knower in fact.visibility.knowers)
        }
        if texts != before:
            at_ms = said[-1].utterance.at_ms if said else 0
            evidence = {texts[npc]: [each for one in lines[npc] for each in one.evidence] for npc in texts}
            await self.episodes.replace(
                campaign.id, session, self._events(session, texts, evidence, at_ms), Cause("talk", at_ms, session)
            )
        return texts

    def _events(
        self, session: SessionId, texts: Mapping[NpcId, str], evidence: Mapping[str, Sequence[UtteranceId]], at_ms: int
    ) -> list[Event]:
        """Build the events.

        Args:
            evidence: Sources of each text. Retracting or rewording one removes the text.
        """
        if not texts:
            return []
        episode, everybody = episode_of(session), witnessed_by(texts, at_ms=at_ms)
        sure = Provenance(_SURE, "inferred", origin="talk", session_id=session, at_ms=at_ms, reason="selected lines")
        events: list[Event] = [
            EntityAdded(episode, "event", episode_name(session), (), everybody, "talk"),
            FactStated(Claim.attribute(episode, "kind", EPISODE), sure, everybody),
        ]
        for text in dict.fromkeys(texts.values()):
            knowers = witnessed_by((npc for npc in texts if texts[npc] == text), at_ms=at_ms)
            rests_on = {"evidence": list(evidence[text])}
            events.append(FactStated(Claim.attribute(episode, "summary", text), sure, knowers, attributes=rests_on))
        events += [
            FactStated(Claim.relation(self.campaign.npc(npc).entity_id, "PARTICIPATED_IN", episode), sure, everybody)
            for npc in texts
        ]
        return events


async def said_in(
    log: ChronicleLog, campaign: CampaignId, session: SessionId, *, after: int = 0
) -> list[NumberedUtterance]:
    """Return all utterances of a session after an ordinal, except retracted ones."""
    return [each async for page in pages_of(log, campaign, session, after=after) for each in page.said]
