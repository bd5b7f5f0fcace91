"""How two that a question names hang together, looked up before the answer.

What is known of each stands in the prompt by its name. A chain over others ("Is Orla anything to Bram?": she is
Tamsin's sister, and Tamsin works for him) does not, and a small model cannot ask for it. So where a question asks for
it, it is asked in the model's place. Any other question asks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from glyphoxa.context.knowledge import fact_sentence, is_secret, recalled
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.recalled import RecalledFact
from glyphoxa.recall.entities.named_world import KnownByName
from glyphoxa.speech.language.phonetics import primary_language
from glyphoxa.world.api import KnowledgeGraph

_FARTHEST: Final = 4
"""Relations. A longer chain tells nothing, and fills the prompt."""
_BESIDE: Final = 0.5
"""Of what else is known of both, against the chain that was asked for."""

_ASKS: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(
        r"\b(?:related to|relat(?:ed|ions?|ionship)|connect(?:ed|ion)|ties? between|to do with"
        r"|(?:who|what) (?:is|was|are|were) [^?.!]{1,60} to (?!be\b)[^?.!]{1,60}"
        r"|(?:is|was|are|were) [^?.!]{1,60} (?:anything|something) to"
        r"|know each other|know one another)\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:verwandt|beziehung(?:en)?|verbindung(?:en)?|verbindet|verbunden|zu tun|zusammenhäng\w+"
        r"|häng\w+ [^?.!]{1,60} zusammen|steh(?:t|en|st) [^?.!]{1,60} zu [^?.!]{1,60}"
        r"|(?:wer|was) (?:ist|sind|war|waren) [^?.!]{1,60} für [^?.!]{1,60}"
        r"|kennen sich|kennen einander)\b",
        re.IGNORECASE,
    ),
}
_SAYS_YOU: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(r"\byou\b", re.IGNORECASE),
    "de": re.compile(r"\b(?:du|dir|dich|ihr|euch|sie|ihnen)\b", re.IGNORECASE),
}


def asks_how_related(question: str, *, language: str) -> bool:
    """Whether a question asks what somebody or something is to another.

    >>> asks_how_related("How is Orla related to the smith?", language="en")
    True
    >>> asks_how_related("Who is Orla?", language="en")
    False
    """
    return _of(_ASKS, language).search(question) is not None


class HowRelated:
    """See the module.

    Args:
        graph: None without long-term memory: nothing is found.
    """

    def __init__(self, campaign: Campaign, graph: KnowledgeGraph | None) -> None:
        self._campaign = campaign
        self._graph = graph

    def ends(self, npc: NpcId, question: str, named: Sequence[KnownByName]) -> tuple[Entity, ...]:
        """The two that are asked about; empty where the question asks for no relation or names nobody.

        Args:
            named: Whom the question names, of whom the NPC knows.
        """
        if self._graph is None or not asks_how_related(question, language=self._campaign.language):
            return ()
        two = [one.known.entity for one in named if one.is_named][:2]
        if len(two) == 1 and _of(_SAYS_YOU, self._campaign.language).search(question):
            own = self._campaign.npc(npc)
            two.append(Entity(own.entity_id, "npc", own.name))
        return tuple(two) if len(two) == 2 else ()

    async def chain(self, npc: NpcId, ends: Sequence[Entity]) -> tuple[RecalledFact, ...]:
        """The shortest chain of relations from one end to the other, as this NPC may know it and may tell it; empty
        where there is none.

        Raises:
            GlyphoxaError: Memory cannot answer.
        """
        if self._graph is None or not ends:
            return ()
        at, other = ends
        steps = await self._graph.path(self._campaign.id, npc, at.id, other.id, max_depth=_FARTHEST)
        found: list[RecalledFact] = []
        for fact, entity in steps or ():
            if is_secret(fact):
                return ()
            subject, end = (at, entity) if fact.claim.subject == at.id else (entity, at)
            why = f"asks how {ends[0].name!r} and {ends[1].name!r} are related"
            found.append(replace(recalled(fact_sentence(fact, subject, end), fact, npc), path=why))
            at = entity
        return tuple(found)


def with_chain(chain: Sequence[RecalledFact], facts: Sequence[RecalledFact]) -> tuple[RecalledFact, ...]:
    """The facts for a prompt: the chain first, where there is one."""
    if not chain:
        return tuple(facts)
    known = {one.fact_id for one in chain}
    return (*chain, *(replace(one, score=min(one.score, _BESIDE)) for one in facts if one.fact_id not in known))


def _of(patterns: Mapping[str, re.Pattern[str]], language: str) -> re.Pattern[str]:
    return patterns.get(primary_language(language), patterns["en"])
