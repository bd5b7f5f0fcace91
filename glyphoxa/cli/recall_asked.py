"""What an NPC would recall for a question, at a desk and without hurry.

Talk and facts come the way of a turn, and `glyphoxa.context.selection` says of them what it says at a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli.recall_shown import Shown
from glyphoxa.context.budgets import Budgets
from glyphoxa.context.fact_selection import select_facts
from glyphoxa.context.identity import NOTHING_KNOWN, Identity, identity_of
from glyphoxa.context.knowledge import sentences_of
from glyphoxa.context.relevance import without_call
from glyphoxa.context.selection import IN_EVERY_PROMPT, Candidates, PromptSoFar, Selection, select
from glyphoxa.dm.wording import signals_in_words, validity_in_words
from glyphoxa.domain.ids import CampaignId, FactId, NpcId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.domain.recalled import Recalled, RecalledFact, RecalledTalk, RecalledUtterance
from glyphoxa.recall.api import FactsByName, RecallResult
from glyphoxa.transcript.api import TalkQuery

_SAME_WORDS: Final = "the same words stand in it"
_NOT_ASKED_FOR: Final = "beyond what a turn asks for"


class DeepSearch(Protocol):
    """Talk, searched as the tools of an NPC of tier DEEP can."""

    @property
    def asks_a_model(self) -> bool: ...

    async def recall(self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, world: str = "") -> RecallResult:
        """
        Args:
            world: What the NPC knows of itself, for a language model.
        """
        ...


@dataclass(frozen=True, slots=True)
class AskedAbout:
    """
    Attributes:
        facts: What the question asks for by name.
        said: What was said before, best first.
        left_out: What has no part in it, each with the reason.
    """

    facts: Sequence[Shown]
    said: Sequence[Shown]
    left_out: Sequence[str]


@dataclass(frozen=True, slots=True)
class ExplainedQuestion:
    """One question, in the name of one NPC.

    Attributes:
        by_name: Who is asked for facts.
        deep: Who searches talk; None: as in a turn.
    """

    desk: Desk
    npc: NpcId
    question: str
    by_name: FactsByName
    deep: DeepSearch | None = None

    async def ask(self, *, limit: int, by_words: bool) -> AskedAbout:
        """
        Args:
            limit: Of what was said.
            by_words: Without what the question means.

        Raises:
            Unavailable: The database cannot be reached.
        """
        budgets = self.desk.settings.budgets
        left_out: list[str] = []
        facts, known = await self._facts(left_out)
        found = await self._search(limit=max(limit, budgets.max_recalled), by_words=by_words)
        # A turn chooses among so many.
        candidates = Candidates(self.npc, self.question, self.desk.language, facts, found.items[: budgets.max_recalled])
        selection = select(candidates, budgets, PromptSoFar(await self._identity(budgets)))
        places = places_of(selection, [*facts, *found.items], n_candidates=len(facts) + len(candidates.talk))
        shown: list[Shown] = []
        for fact, place in zip(facts, places, strict=False):
            if place == f"no: {IN_EVERY_PROMPT}":
                left_out.append(f"{fact.text!r}: {IN_EVERY_PROMPT}")
            else:
                shown.append(Shown(fact, fact.path, selected=place, holds=self._holds(known.get(fact.fact_id))))
        said = [
            Shown(one, _signals_of(one), selected=place)
            for one, place in zip(found.items, places[len(facts) :], strict=True)
        ]
        return AskedAbout(shown, said[:limit], [*left_out, *found.left_out])

    async def _search(self, *, limit: int, by_words: bool) -> RecallResult:
        campaign, npc, query = self.desk.campaign, self.npc, TalkQuery(self._called, limit=limit)
        if self.deep is not None:
            world = await self._world() if self.deep.asks_a_model else ""
            return await self.deep.recall(campaign, npc, query, world=world)
        return await self.desk.past_talk.search(campaign, npc, query, by_words=by_words, patient=True)

    async def _world(self) -> str:
        """What the NPC knows of itself."""
        itself = self.desk.resolver.played(self.npc)
        known = None if itself is None else await self.desk.graph.known(self.desk.campaign, self.npc, itself)
        return "" if known is None else "\n".join(sentence.text for sentence in sentences_of(known))

    @property
    def _called(self) -> str:
        """The question without the name that the NPC is called by."""
        return without_call(self.question, self.desk.resolver.person(self.npc)) or self.question

    async def _facts(self, left_out: list[str]) -> tuple[list[RecalledFact], dict[FactId, Fact]]:
        """Those of whom the question names, each once by its words; and all that is known of them."""
        desk, npc = self.desk, self.npc
        await self.by_name.refresh(desk.campaign)
        found = self.by_name.by_name(desk.campaign, npc, self._called) or []
        others = [one for one in found if one.known.entity.id != desk.resolver.played(npc)]
        if len(others) < len(found):
            left_out.append(f"what {desk.resolver.person(npc)} knows of itself: {IN_EVERY_PROMPT}")
        facts: dict[str, RecalledFact] = {}
        known: dict[FactId, Fact] = {}
        for one, selected in select_facts(others, self.question, npc, language=desk.language):
            known |= {fact.id: fact for fact in (*one.known.attributes, *(fact for fact, _ in one.known.relations))}
            for each in selected:
                facts.setdefault(each.text, each)
        return list(facts.values()), known

    def _holds(self, fact: Fact | None) -> str:
        return "" if fact is None else validity_in_words(fact.validity, self.desk.days.calendar) or "always"

    async def _identity(self, budgets: Budgets) -> Identity:
        entity = self.desk.resolver.played(self.npc)
        if entity is None:
            return NOTHING_KNOWN
        snapshot = await self.desk.graph.identity_snapshot(self.desk.campaign, self.npc, entity)
        return NOTHING_KNOWN if snapshot is None else identity_of(snapshot.known, tokens=budgets.identity_tokens)


def places_of(selection: Selection, recalled: Sequence[Recalled], *, n_candidates: int) -> list[str]:
    """Of each, whether it has a place in a prompt: "yes", or "no" with the reason.

    Args:
        recalled: The candidates of the selection, then what else was found.
    """
    rejected = [(one.recalled, one.why) for one in selection.rejected]

    def place(at: int, one: Recalled) -> str:
        if at >= n_candidates:
            return f"no: {_NOT_ASKED_FOR}"
        if one in selection.chosen:
            return "yes"
        return f"no: {next((why for other, why in rejected if other == one), _SAME_WORDS)}"

    return [place(at, one) for at, one in enumerate(recalled)]


def _signals_of(one: RecalledTalk) -> str:
    return signals_in_words(one.signals) if isinstance(one, RecalledUtterance) else ""
