"""Writes session summaries that NPCs recall later, each made from what that NPC heard players say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from loguru import logger

from glyphoxa.chronicle.ports import ChronicleLog, said_in
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.summaries import TOKENS, LineSelection, Summariser, in_order
from glyphoxa.chronicle.talk import NumberedUtterance
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import TOOK_PART, Claim, Fact, Provenance, witnessed_by
from glyphoxa.domain.session_state import SummarySentence
from glyphoxa.judgement.safety import topics_of
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.transcript.sessions import EPISODE, episode_name, episode_of
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import Cause, Event
from glyphoxa.world.fact_events import FactStated


def heard_by(npc: NpcId, said: Sequence[NumberedUtterance]) -> list[NumberedUtterance]:
    """Return the utterances that a summary for this NPC may use."""
    return [each for each in said if npc in each.utterance.witnesses]


_SURE: Final = 0.9
NAMED_IN: Final = "INVOLVED_IN"
_MORE: Final = 4
"""A model sums up this many times the tokens of its summary."""
Told = Mapping[NpcId, Sequence[SummarySentence]]


class Episodes(Protocol):
    """Stored session summaries. All methods raise `Unavailable` if the database is unreachable or late."""

    async def summaries(self, campaign: CampaignId, session: SessionId) -> Sequence[Fact]:
        """Return a session's current summaries for all knowers."""
        ...

    async def replace(self, campaign: CampaignId, session: SessionId, events: Sequence[Event], cause: Cause) -> bool:
        """Replace this author's summaries of a session, in one transaction.

        False: the DM has written, hidden or removed one, and nothing was changed.
        """
        ...


@dataclass(frozen=True, slots=True)
class EpisodeWriter:
    """Writes the summaries of sessions.

    Args:
        dated: Returns a text that was said at a time in a session with days instead of words such as "yesterday".
        summariser: None: lines are selected.
    """

    campaign: Campaign
    log: ChronicleLog
    episodes: Episodes
    dated: Callable[[str, SessionId, int], str] = lambda text, _session, _at_ms: text
    summariser: Summariser | None = None

    async def write(self, session: SessionId) -> Mapping[NpcId, str] | None:
        """Write a session's summary for each NPC. Returns the current summaries.

        None: the DM has decided on the summary, which stays.

        Raises:
            Unavailable: The database is unreachable; nothing was written.
        """
        campaign, forbids = self.campaign, topics_of(self.campaign).forbids
        known = await self.episodes.summaries(campaign.id, session)
        said = [each for each in await said_in(self.log, campaign.id, session) if not forbids(each.utterance.text)]
        names = names_of(await self.log.known(campaign.id), campaign.language)
        told = await Teller(campaign, names, TOKENS, self.dated, self.summariser).tell(said)
        texts = {npc: " ".join(one.text for one in sentences) for npc, sentences in told.items()}
        before = {
            npc: str(fact.claim.content) for fact in known for npc in (knower.npc for knower in fact.visibility.knowers)
        }
        if texts != before:
            at_ms = said[-1].utterance.at_ms if said else 0
            events = self._events(session, told, at_ms)
            if events:
                links = await asyncio.to_thread(people_in, episode_of(session), said, names)
                events += links_of(links, selected_from(session, at_ms))
            if not await self.episodes.replace(campaign.id, session, events, Cause("talk", at_ms, session)):
                return None
        return texts

    def _events(self, session: SessionId, told: Told, at_ms: int) -> list[Event]:
        if not told:
            return []
        episode, everybody = episode_of(session), witnessed_by(told, at_ms=at_ms)
        sure = selected_from(session, at_ms)
        people = [self.campaign.npc(npc).entity_id for npc in told]
        return [
            EntityAdded(episode, "event", episode_name(session), (), everybody, "talk"),
            FactStated(Claim.attribute(episode, "kind", EPISODE), sure, everybody),
            *summaries_of(episode, told, sure),
            *(FactStated(Claim.relation(each, TOOK_PART, episode), sure, everybody) for each in people),
        ]


def selected_from(session: SessionId, at_ms: int, ordinal: int | None = None) -> Provenance:
    """Return the source of a summary: talk up to this time, and to this number of an utterance."""
    return Provenance(_SURE, "inferred", session_id=session, ordinal=ordinal, at_ms=at_ms, reason="selected lines")


def people_in(node: EntityId, said: Sequence[NumberedUtterance], names: Gazetteer) -> dict[Claim, Utterance]:
    """Return who spoke and what was named, as relations to a node, each with the first line that shows it."""
    shown: dict[Claim, Utterance] = {}
    for each in (one.utterance for one in said if one.utterance.is_evidence):
        speaker = names.spelled(each.speaker_name)
        if speaker is not None:
            shown.setdefault(Claim.relation(speaker.entity_id, TOOK_PART, node), each)
        for entity in names.entities_in(each.text):
            shown.setdefault(Claim.relation(entity, NAMED_IN, node), each)
    return shown


def links_of(shown: Mapping[Claim, Utterance], said: Provenance) -> list[FactStated]:
    """Return claims about a node, each known to those who heard the line that shows it, and gone with that line."""
    return [
        FactStated(claim, said, witnessed_by(sorted(by.witnesses), at_ms=by.at_ms), attributes={"evidence": [by.id]})
        for claim, by in shown.items()
    ]


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells each NPC what it heard.

    Args:
        tokens: Length of what is told.
        dated, summariser: See `EpisodeWriter`.
    """

    campaign: Campaign
    names: Gazetteer
    tokens: int
    dated: Callable[[str, SessionId, int], str]
    summariser: Summariser | None = None

    def compress(self, sentences: Sequence[SummarySentence]) -> list[SummarySentence]:
        """Return the most salient sentences that fit, in their order."""
        return self._selection(self.tokens).compress(sentences)

    async def tell(
        self, said: Sequence[NumberedUtterance], *, but: Callable[[NpcId], bool] = lambda _: False
    ) -> dict[NpcId, list[SummarySentence]]:
        """Return the sentences for each NPC that heard something worth telling.

        Args:
            but: Whether an NPC is told nothing.
        """
        told: dict[NpcId, list[SummarySentence]] = {}
        salient: dict[tuple[UtteranceId, ...], list[SummarySentence]] = {}
        of_lines: dict[tuple[UtteranceId, ...], list[SummarySentence]] = {}
        selection = self._selection(self.tokens)
        for npc in (npc.id for npc in self.campaign.npcs if not but(npc.id)):
            heard = [each.utterance for each in heard_by(npc, said)]
            at = {each.id: each for each in heard}
            if tuple(at) not in salient:
                salient[tuple(at)] = await asyncio.to_thread(selection.salient, heard)
            kept = [*salient[tuple(at)], *selection.own_words(heard, npc)]
            found = await self._condensed(selection.compress(in_order(kept, heard)), npc, heard, of_lines)
            if found:
                told[npc] = [replace(one, text=self._dated(one.text, at[one.evidence[0]])) for one in found]
        return told

    async def _condensed(
        self,
        selected: list[SummarySentence],
        npc: NpcId,
        heard: Sequence[Utterance],
        of_lines: dict[tuple[UtteranceId, ...], list[SummarySentence]],
    ) -> list[SummarySentence]:
        """Return the summary of a model, if there is one, of the most salient lines; else the selected ones.

        Args:
            of_lines: Summaries of others that heard the same.
        """
        if not selected or self.summariser is None:
            return selected
        most = self._selection(_MORE * self.tokens).select(heard, own=npc)
        lines = {line for one in most for line in one.evidence}
        shown = [each for each in heard if each.id in lines]
        key = tuple(each.id for each in shown)
        if key not in of_lines:
            try:
                of_lines[key] = self.compress(await self.summariser.summarise(shown))
            except GlyphoxaError as error:
                logger.info("a model does not sum up what is past, its lines do: {}", error)
                return selected
        return of_lines[key] or selected

    def _selection(self, tokens: int) -> LineSelection:
        return LineSelection(self.campaign.language, lambda: self.names, tokens)

    def _dated(self, text: str, said: Utterance) -> str:
        return self.dated(text, said.session_id, said.at_ms)


def summaries_of(node: EntityId, told: Told, said: Provenance) -> Iterator[FactStated]:
    """Yield each text once, for the NPCs that are told it. Retracting or rewording a line of it removes it."""
    by_text: dict[str, list[NpcId]] = {}
    for npc, sentences in told.items():
        by_text.setdefault(" ".join(one.text for one in sentences), []).append(npc)
    for text, npcs in by_text.items():
        rests_on = {"evidence": list(dict.fromkeys(line for npc in npcs for one in told[npc] for line in one.evidence))}
        knowers = witnessed_by(npcs, at_ms=said.at_ms)
        yield FactStated(Claim.attribute(node, "summary", text), said, knowers, attributes=rests_on)
