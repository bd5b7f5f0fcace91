"""`glyphoxa recall --explain` describes the prompt that a table uses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from glyphoxa.cli.recall import would_recall
from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Fact, RecalledSummary, RecalledTalk, Signal
from glyphoxa.domain.turn_record import AssembledPrompt
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import HotContext
from glyphoxa.recall.recall import RecallResult
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH, a_campaign
from tests.support.memory import GraphTwin, WorldTwin
from tests.support.minds import Mind
from tests.support.patience import DEADLINE_MS
from tests.support.recalled import heard, said_itself

ELDRINAX = "e-eldrinax"
SESSION = SessionId("s1")


@dataclass
class Found:
    """Recall that finds always the same."""

    items: Sequence[RecalledTalk]

    async def recall(self, _: CampaignId, __: NpcId, query: TalkQuery, **____: Any) -> list[RecalledTalk]:
        return list(self.items[: query.limit])

    async def search(self, _: CampaignId, __: NpcId, query: TalkQuery, **____: Any) -> RecallResult:
        return RecallResult(tuple(self.items[: query.limit]))


def a_graph(rumours: Sequence[str]) -> GraphTwin:
    graph = GraphTwin.of(a_campaign())
    entity = next(one for one, _ in graph.scoped if one.id == ELDRINAX)
    graph.of_world += [_known(entity, n, rumour) for n, rumour in enumerate(rumours)]
    return graph


def _known(entity: Entity, n: int, rumour: str) -> Fact:
    claim = Claim.attribute(entity.id, ("rumour", "note", "lore_text")[n], rumour)
    return Fact(claim.fact_id, claim, seq=n, visibility=PUBLIC)


async def at_a_table(npc: NpcId, question: str, found: Found, graph: GraphTwin, budgets: Budgets) -> HotContext:
    campaign = a_campaign()
    mind = Mind(campaign, graph=graph, talk=found, budgets=budgets)
    assembly = mind.assembly
    await assembly.enter(campaign.scenes[0])
    try:
        return await assembly.gather(npc, question)
    finally:
        await mind.prefetch.close()


async def at_a_desk(npc: NpcId, question: str, found: Found, graph: GraphTwin, budgets: Budgets) -> AssembledPrompt:
    campaign = a_campaign()
    world = KnownWorld(campaign, WorldTwin(graph))
    contexts = HotContexts(Prefetch(world, talk=None, present=dict), budgets=budgets, repairs=False)
    await contexts.enter(campaign.scenes[0])
    await world.understand(npc, question, deadline_ms=DEADLINE_MS)
    return await would_recall(contexts, npc, question, partial(found.search, CAMPAIGN, npc), limit=100)


LINES = st.sampled_from(
    [
        "My brother Joren was lost in the fen.",
        "Where was my brother lost?",
        "In the fen.",
        "Eldrinax is an old wizard.",
        "The harvest festival begins tomorrow, and everybody from the marsh will be there with lanterns.",
        "Aye.",
        "The tithe box was stolen by Eldrinax.",
        "Good evening.",
    ]
)
SIGNALS = st.sampled_from([{}, {Signal.ANSWERS: 2.0}, {Signal.RECAP: 1.0}, {Signal.TIME: 6.0}, {Signal.THEN: 1.0}])
SCORES, TIMES, COSINES = st.floats(0, 1), st.integers(0, 9), st.none() | st.floats(0, 1)
HEARD: dict[str, Any] = {"score": SCORES, "at_ms": TIMES, "similarity": COSINES, "signals": SIGNALS}
TALK = st.lists(
    st.one_of(
        st.builds(heard, LINES, by=st.sampled_from(["tamsin", "bran"]), utterance=st.uuids().map(str), **HEARD),
        st.builds(said_itself, LINES, npc=st.just(str(SMITH)), utterance=st.uuids().map(str), **HEARD),
        st.builds(RecalledSummary, st.just(SESSION), LINES, TIMES, SCORES),
    ),
    max_size=12,
)
QUESTIONS = st.sampled_from(
    [
        "What do you know of Eldrinax?",
        "Where was my brother Joren lost?",
        "What did you say of the tithe box?",
        "Who knows Mirelle?",
        "Grimjaw, what is your occupation?",
        "Who is your brother?",
        "Do you remember what happened last session, and who stole the tithe box?",
        "Pass the salt, please.",
    ]
)
BUDGETS = st.sampled_from([(0, None), (20, None), (90, None), (90, 1), (1_500, None), (1_500, 4)])
RUMOURS = st.lists(LINES, max_size=3, unique=True)


@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.sampled_from([SMITH, INNKEEPER]), QUESTIONS, TALK, RUMOURS, BUDGETS)
@example(SMITH, "Who knows Mirelle?", [], [], (90, None))
def test_a_desk_and_a_table_choose_the_same_and_reject_the_rest_for_the_same_reason(
    npc: NpcId, question: str, talk: list[RecalledTalk], rumours: list[str], budget: tuple[int, int | None]
) -> None:
    tokens, most = budget
    budgets = Budgets(facts_tokens=tokens, max_facts=most, recall_deadline_ms=DEADLINE_MS)
    found, graph = Found(talk), a_graph(rumours)
    hot = asyncio.run(at_a_table(npc, question, found, graph, budgets))
    shown = asyncio.run(at_a_desk(npc, question, found, graph, budgets))
    assert hot.omitted == shown.omitted == ()
    chosen = {*map(recalled_line, shown.recalled)}
    # What a prompt says where nothing is known was not recalled.
    assert chosen == {*hot.facts, *hot.remembered} - {*hot.not_known}
    rejected, others = (
        sorted((recalled_line(each.recalled), each.why) for each in prompt.rejected) for prompt in (hot, shown)
    )
    assert [other for other in others if other[0] not in chosen] == rejected
