"""`glyphoxa recall`: what an NPC would be reminded of by a question, and why. Nothing is changed."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.bootstrap.embedder import load_embedder
from glyphoxa.cli.desk import Desk, desk_at
from glyphoxa.cli.facts_shown import add_limit
from glyphoxa.cli.opened import add_campaign_options, opened_store, settings_with_memory
from glyphoxa.cli.recall_shown import Shown, listing, signals_in_words
from glyphoxa.config.settings import Settings
from glyphoxa.context.budgets import Budgets
from glyphoxa.context.by_name import known_by_name
from glyphoxa.context.choice import chosen
from glyphoxa.context.knowledge import sentences_of, within
from glyphoxa.context.relevance import without_call, worth_telling
from glyphoxa.context.told import told_of
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.ids import FactId, NpcId
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.embedding import Embedder
from glyphoxa.memory.recall.asked import MOST_CHARACTERS
from glyphoxa.memory.recall.exact.facts import facts_asked
from glyphoxa.memory.recall.recall import RecallSettings, Reminded
from glyphoxa.speech.names.gazetteer import Gazetteer
from glyphoxa.speech.names.keywords import KeywordSpotter

_MOST_SHOWN: Final = 10
_ALL_FACTS: Final = 100_000
_PATIENT: Final = RecallSettings(
    deadline_ms=60_000, patient_embed_deadline_ms=10_000, refresh_deadline_ms=10_000, summaries_deadline_ms=10_000
)
"""Nobody waits for an answer at a table."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verb = verbs.add_parser(
        "recall",
        help="what an NPC would be reminded of by a question, and why",
        description="What an NPC would be reminded of by a question: facts that it asks for by name, and what was said "
        "before. An NPC is reminded of what it knows and what it heard, and of nothing else.",
    )
    verb.add_argument("question", nargs="+", metavar="QUESTION")
    verb.add_argument("--npc", required=True, metavar="NPC", help="who is asked")
    verb.add_argument("--lexical", action="store_true", help="by words alone, as while somebody still speaks")
    verb.add_argument(
        "--explain", action="store_true", help="say of each why it is found, and why this NPC may know it"
    )
    add_limit(verb, _MOST_SHOWN)
    add_campaign_options(verb)
    verb.set_defaults(run=lambda options: asyncio.run(_run(options)))


async def _run(options: argparse.Namespace) -> int:
    question = " ".join(" ".join(options.question).split())
    if not question:
        raise InvalidInput('ask something, such as: glyphoxa recall "Who owns the inn?" --npc grimjaw')
    settings = settings_with_memory(options.config, to_hold="talk or facts")
    async with (
        _embedder(settings, by_words=options.lexical) as embedder,
        opened_store(settings, embedder=embedder, recall=_PATIENT) as store,
    ):
        return await _answer(await desk_at(store, settings, options.campaign), question, options)


@asynccontextmanager
async def _embedder(settings: Settings, *, by_words: bool) -> AsyncIterator[Embedder | None]:
    """None where words alone decide, and why is said if nobody wanted it."""
    if by_words or settings.providers.embeddings.name == "none":
        yield None
        return
    try:
        embedder = await load_embedder(settings)
    except GlyphoxaError as error:
        print(f"glyphoxa: by words alone: {error}", file=sys.stderr)
        yield None
        return
    async with aclosing(embedder):
        yield embedder


@dataclass(frozen=True, slots=True)
class _Asking:
    """One question, in the name of one NPC.

    Attributes:
        question: Without the NPC's name, if it is called by it.
    """

    desk: Desk
    npc: NpcId
    question: str
    limit: int

    async def facts(self) -> tuple[list[Shown], list[str]]:
        """What the question asks for by name, and what of that is left out."""
        desk, npc = self.desk, self.npc
        entities = await desk.graph.entities(desk.campaign, npc)
        current = await desk.inspection.current(desk.campaign, npc, limit=_ALL_FACTS)
        found = await known_by_name(
            desk.graph, desk.campaign, npc, self.question, entities=entities, relations=current, language=desk.language
        )
        named = [one.known.entity.id for one in found]
        persistent = await self._in_every_prompt()
        left_out: list[str] = []
        shown: dict[str, Shown] = {}
        for one in found:
            entity = one.known.entity
            if entity.id == desk.cast.played(npc):
                left_out.append(f"what {entity.name} knows of itself: that stands in every prompt")
                continue
            asked = facts_asked(one.known, self.question, named=named, language=desk.language)
            answers = asked.answer
            facts = {fact.id: fact for fact in (*one.known.attributes, *(fact for fact, _ in one.known.relations))}
            answering = () if answers is None else (*answers.attributes, *(fact for fact, _ in answers.relations))
            for told in told_of(one.known, self.question, npc, named=named, language=desk.language):
                fact = facts.get(told.fact_id) if told.fact_id is not None else None
                if told.fact_id in persistent:
                    left_out.append(f"{told.text!r}: it stands in every prompt")
                    continue
                path = one.why
                if fact is not None and fact in answering:
                    path = f"{one.why}, asks for {fact.claim.predicate}"
                shown.setdefault(told.text, Shown(told, path, None if fact is None else fact.validity))
        return list(shown.values()), left_out

    async def _in_every_prompt(self) -> set[FactId]:
        entity = self.desk.cast.played(self.npc)
        if entity is None:
            return set()
        snapshot = await self.desk.graph.identity_snapshot(self.desk.campaign, self.npc, entity)
        sentences = [] if snapshot is None else sentences_of(snapshot.known)
        fitting = within([sentence.text for sentence in sentences], tokens=Budgets().identity_tokens)
        return {sentence.fact.id for sentence in sentences[: len(fitting)]}

    async def talk(self, *, by_words: bool) -> Reminded:
        return await self.desk.past_talk.reminded(
            self.desk.campaign, self.npc, self.question, limit=self.limit, by_words=by_words, patient=True
        )

    def told(self, facts: Sequence[Shown], said: Sequence[Recalled]) -> list[Shown]:
        """All of it, with what of it has a place in a prompt."""
        settings = self.desk.settings.context
        budgets = Budgets(facts_tokens=settings.facts_tokens, max_facts=settings.max_facts)
        spotter = KeywordSpotter(Gazetteer.build([], language=self.desk.language))
        of_the_past = spotter.spot(self.question).temporal
        near = worth_telling(
            self.question, said, npc=self.npc, tokens=budgets.facts_tokens, asks_of_the_past=of_the_past
        )
        known = [one.recalled for one in facts]
        ranked = [*near, *known] if of_the_past else [*known, *near]
        places = chosen(ranked, tokens=budgets.facts_tokens, most=budgets.most_facts)

        def place(one: Recalled) -> str:
            if any(_is_same(one, other) for other in places):
                return "yes"
            if any(_is_same(one, other) for other in ranked):
                return f"no: no room among {budgets.most_facts} in {budgets.facts_tokens} tokens"
            return "no: not near enough to the question"

        every = [*facts, *(Shown(one, signals_in_words(one.signals)) for one in said)]
        return [replace(one, told=place(one.recalled)) for one in every]


def _is_same(one: Recalled, other: Recalled) -> bool:
    ids = (one.source, one.fact_id, one.utterance_id, one.session_id)
    return ids == (other.source, other.fact_id, other.utterance_id, other.session_id)


async def _answer(desk: Desk, question: str, options: argparse.Namespace) -> int:
    npc = desk.cast.npc(options.npc)
    who = desk.cast.person(npc)
    asking = _Asking(desk, npc, without_call(question, who) or question, options.limit)
    facts, left_out = await asking.facts()
    said = await asking.talk(by_words=options.lexical)
    with_meaning = not options.lexical and not any(part.startswith("meaning") for part in said.left_out)
    found = asking.told(facts, said.items)
    if found:
        listing(found, explain=options.explain)
    else:
        print(f"{who} is reminded of nothing: {_why_nothing(desk, npc, who)}")
    if options.explain:
        left_out += said.left_out
        if not said.items:
            left_out.append(f"talk: {_why_nothing(desk, npc, who)}")
        elif with_meaning and all(one.similarity is None for one in said.items):
            left_out.append("meaning: what was said is not embedded yet (glyphoxa reindex)")
        if len(question) > MOST_CHARACTERS:
            left_out.append(
                f"all but the last {MOST_CHARACTERS:,} characters of the question, where talk is looked for"
            )
        for part in left_out:
            print(f"left out: {part}")
    return 0


def _why_nothing(desk: Desk, npc: NpcId, who: str) -> str:
    index = desk.past_talk.held.index(desk.campaign)
    if index is None or not len(index):
        return "nothing was said yet"
    if not index.speakers(npc):
        return f"{who} has heard nothing yet"
    return f"nothing that {who} heard has anything in common with it"
