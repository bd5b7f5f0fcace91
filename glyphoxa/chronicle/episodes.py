"""A session as its NPCs recall it in later ones: written when it ends, each NPC's from what it heard players say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from glyphoxa.chronicle.ports import ChronicleLog
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.salience import SalienceJudge
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Fact, Provenance, witnessed_by
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.quoted import as_label, quoted
from glyphoxa.language.sentences import shortened
from glyphoxa.language.vocabulary import vocabulary_of
from glyphoxa.language.words import words
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.transcript.sessions import EPISODE, episode_of
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import Cause, Event
from glyphoxa.world.fact_events import FactStated

# What happened, in the words of those who were there: lines are selected, nothing is made up.


TOKENS: Final = 200
"""Of a summary."""
_CHARACTERS_PER_TOKEN: Final = 4
_LONGEST_LINE: Final = 240
"""Characters: who talks longer is cut at the end of a sentence, or of a word."""
_ALIKE: Final = 0.6
"""Share of a line's telling words that a chosen line has already, from which on it says nothing new."""
_LEAST: Final = 0.3
"""Salience of a line that is worth a place."""


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One utterance of a summary, in full or its beginning."""

    said: NumberedUtterance
    text: str

    def in_words(self, language: str) -> str:
        form = (lexicon("chronicle", language) or lexicon("chronicle", "en")).value("said")
        return str(form).format(speaker=as_label(self.said.utterance.speaker_name), text=quoted(self.text))


def heard_by(npc: NpcId, said: Sequence[NumberedUtterance]) -> list[NumberedUtterance]:
    """All that a summary for that NPC may be made of."""
    return [each for each in said if npc in each.utterance.witnesses]


def for_players(
    said: Sequence[NumberedUtterance], known: Sequence[KnownEntity], language: str
) -> list[NumberedUtterance]:
    """All that may be read to the players: what was said, in words that name nobody whom not everybody may know. Names
    are put right for the log; where that made a guarded one of what was heard, the words are as they were heard.
    """
    guarded = names_of((each for each in known if each.visibility.scope != "public" and not each.is_of_talk), language)
    shown: list[NumberedUtterance] = []
    for each in said:
        utterance = each.utterance
        # Of an NPC `raw_text` is what it meant to say, and not all of it was heard.
        heard = (utterance.text,) if utterance.npc_id is not None else (utterance.text, utterance.raw_text)
        text = next((text for text in heard if not guarded.mentions(text)), None)
        if text is not None and not guarded.mentions(utterance.speaker_name):
            shown.append(replace(each, utterance=replace(utterance, text=text)))
    return shown


def summary_of(
    said: Sequence[NumberedUtterance], *, language: str, names: Gazetteer | None = None, tokens: int = TOKENS
) -> list[SummaryLine]:
    """The most salient lines that there is room for, none of which says what another does; in their order.

    Args:
        said: In order. Whoever the summary is for may know of all of it.
        tokens: About four characters each.
    """
    judge, vocabulary = SalienceJudge(language, names), vocabulary_of(language)
    judged = [(judge.judge(each.utterance.text), each) for each in said]
    by_salience = sorted(
        ((one, each) for one, each in judged if one.score >= _LEAST and not one.asks_to_forget),
        key=lambda pair: (-pair[0].score, pair[1].ordinal),
    )
    left = tokens * _CHARACTERS_PER_TOKEN
    chosen: list[SummaryLine] = []
    told: list[frozenset[str]] = []
    for _, each in by_salience:
        line = SummaryLine(each, shortened(" ".join(each.utterance.text.split()), _LONGEST_LINE))
        length = len(line.in_words(language)) + 1
        telling = frozenset(word.folded for word in words(line.text)) - vocabulary.stop
        if length > left or not telling or any(len(telling & other) >= _ALIKE * len(telling) for other in told):
            continue
        left -= length
        chosen.append(line)
        told.append(telling)
    return sorted(chosen, key=lambda line: line.said.ordinal)


def in_words(lines: Sequence[SummaryLine], language: str) -> str:
    return " ".join(line.in_words(language) for line in lines)


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
