"""What an NPC would be reminded of by a question, at a desk and without hurry.

Talk and facts come the way of a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from glyphoxa.cli.desk import Desk
from glyphoxa.cli.facts_shown import validity_in_words
from glyphoxa.cli.recall_shown import Shown, signals_in_words
from glyphoxa.context.budgets import Budgets
from glyphoxa.context.choice import chosen
from glyphoxa.context.knowledge import fitting, sentences_of
from glyphoxa.context.passed_over import IN_EVERY_PROMPT, NOT_NEAR, no_room
from glyphoxa.context.relevance import without_call, worth_telling
from glyphoxa.context.told import told_by_name
from glyphoxa.domain.ids import FactId, NpcId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.domain.turn import Recalled
from glyphoxa.experimental.deep import DeepRecall
from glyphoxa.experimental.graph.methods import RecallMethod
from glyphoxa.recall.by_name import FactsByName
from glyphoxa.recall.recall import Reminded
from glyphoxa.speech.language.past import speaks_of_the_past


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
class Asking:
    """One question, in the name of one NPC.

    Attributes:
        by_name: Who is asked for facts.
        deep: Who searches talk by `method`; None: as in a turn.
    """

    desk: Desk
    npc: NpcId
    question: str
    by_name: FactsByName
    deep: DeepRecall | None = None
    method: RecallMethod = RecallMethod.HYBRID

    async def ask(self, *, limit: int, by_words: bool) -> AskedAbout:
        """
        Args:
            limit: Of what was said.
            by_words: Without what the question means.

        Raises:
            Unavailable: The database cannot be reached.
        """
        settings = self.desk.settings.context
        budgets = Budgets(facts_tokens=settings.facts_tokens, max_facts=settings.max_facts)
        facts, left_out = await self._facts(budgets)
        reminded = await self._reminded(limit=max(limit, budgets.max_recalled), by_words=by_words)
        said = [Shown(one, signals_in_words(one.signals)) for one in reminded.items]
        placed = self._placed(facts, said, budgets)
        return AskedAbout(placed[: len(facts)], placed[len(facts) :][:limit], [*left_out, *reminded.left_out])

    async def _reminded(self, *, limit: int, by_words: bool) -> Reminded:
        campaign, npc = self.desk.campaign, self.npc
        if self.deep is not None:
            world = await self._world() if self.method.asks_a_model else ""
            return await self.deep.recall(campaign, npc, self._called, method=self.method, limit=limit, world=world)
        return await self.desk.past_talk.reminded(
            campaign, npc, self._called, limit=limit, by_words=by_words, patient=True
        )

    async def _world(self) -> str:
        """What the NPC knows of itself."""
        itself = self.desk.cast.played(self.npc)
        known = None if itself is None else await self.desk.graph.known(self.desk.campaign, self.npc, itself)
        return "" if known is None else "\n".join(sentence.text for sentence in sentences_of(known))

    @property
    def _called(self) -> str:
        """The question without the name that the NPC is called by."""
        return without_call(self.question, self.desk.cast.person(self.npc)) or self.question

    async def _facts(self, budgets: Budgets) -> tuple[list[Shown], list[str]]:
        desk, npc = self.desk, self.npc
        await self.by_name.refresh(desk.campaign)
        found = self.by_name.by_name(desk.campaign, npc, self._called) or []
        persistent = await self._in_every_prompt(budgets)
        shown: dict[str, Shown] = {}
        left_out: list[str] = []
        others = [one for one in found if one.known.entity.id != desk.cast.played(npc)]
        if len(others) < len(found):
            left_out.append(f"what {desk.cast.person(npc)} knows of itself: {IN_EVERY_PROMPT}")
        for one, told in told_by_name(others, self.question, npc, language=desk.language):
            facts = {fact.id: fact for fact in (*one.known.attributes, *(fact for fact, _ in one.known.relations))}
            for each in told:
                fact = facts.get(each.fact_id) if each.fact_id is not None else None
                if each.fact_id in persistent:
                    left_out.append(f"{each.text!r}: {IN_EVERY_PROMPT}")
                else:
                    shown.setdefault(each.text, Shown(each, each.path, holds=self._holds(fact)))
        return list(shown.values()), left_out

    def _holds(self, fact: Fact | None) -> str:
        return "" if fact is None else validity_in_words(fact.validity, self.desk.days.calendar) or "always"

    async def _in_every_prompt(self, budgets: Budgets) -> set[FactId]:
        entity = self.desk.cast.played(self.npc)
        if entity is None:
            return set()
        snapshot = await self.desk.graph.identity_snapshot(self.desk.campaign, self.npc, entity)
        sentences = [] if snapshot is None else sentences_of(snapshot.known)
        return {one.fact.id for one in fitting(sentences, tokens=budgets.identity_tokens) if one.is_whole}

    def _placed(self, facts: Sequence[Shown], said: Sequence[Shown], budgets: Budgets) -> list[Shown]:
        """All of it, with what of it would have a place in a prompt."""
        of_the_past = speaks_of_the_past(self.question, language=self.desk.language)
        tokens = budgets.facts_tokens
        talk = [one.recalled for one in said]
        near = worth_telling(self.question, talk, npc=self.npc, tokens=tokens, asks_of_the_past=of_the_past)
        known = [one.recalled for one in facts]
        ranked = [*near, *known] if of_the_past else [*known, *near]
        places = chosen(ranked, tokens=tokens, most=budgets.most_facts)

        def place(one: Recalled) -> str:
            if one in places:
                return "yes"
            if one in ranked:
                return f"no: {no_room(tokens=tokens, most=budgets.most_facts)}"
            return f"no: {NOT_NEAR}"

        return [replace(one, told=place(one.recalled)) for one in (*facts, *said)]
