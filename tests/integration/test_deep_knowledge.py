"""The graph of all that an NPC knows, from a real database: facts, summaries and threads that a worker found."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.background import deep_recall, memory_of, timeline_writer
from glyphoxa.config.provider_sections import DeepRecallSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import RecalledFact, RecalledSummary
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.transcript.ports import TalkQuery
from tests.integration.test_chronicle import EVENING, a_known_party, read_new, said
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH

LINES = (
    "My sister Wenna Thistlebrook lives in Dunharrow.",
    "I promise to bring you six crowns by Friday.",
    "Wenna Thistlebrook has a boat with black rigging.",
    "I promise to bring you six crowns by Friday, all six crowns.",
)


async def an_evening(store: Store) -> None:
    await store.campaigns.load(a_known_party("accept"))
    secret = said(5, "Wenna Thistlebrook is a smuggler.", witnesses=frozenset({INNKEEPER}))
    await store.log.append([*(said(n, text) for n, text in enumerate(LINES, start=1)), secret])
    await read_new(store, CAMPAIGN)
    await (await timeline_writer(store, CAMPAIGN)).write(SessionId(EVENING), is_over=True)
    await store.atoms.consolidate(CAMPAIGN, least=1)


async def test_links_are_of_what_the_npc_heard(store: Store) -> None:
    await an_evening(store)
    of_smith, of_innkeeper = [await store.links(CAMPAIGN, npc) for npc in (SMITH, INNKEEPER)]
    kinds = Counter(kind for kind, _, _ in of_smith)
    assert kinds["involved_in"] and kinds["advances"]
    secret = str(said(5, "").id)
    assert secret not in str(of_smith)
    assert secret in str(of_innkeeper)


async def test_superseded_fact_links_the_new_one_to_its_line(store: Store) -> None:
    await an_evening(store)
    await store.log.append([said(6, "My sister Wenna Thistlebrook lives in Saltmarsh now.")])
    await read_new(store, CAMPAIGN)
    world = await store.world_memory(CAMPAIGN).refresh()
    links = await store.links(CAMPAIGN, SMITH)
    updates = [(world.fact(new), line) for kind, new, line in links if kind == "updates"]  # type: ignore[arg-type]
    assert [(fact.claim.predicate, line) for fact, line in updates if fact] == [("LOCATED_AT", str(said(1, "").id))]


async def test_search_of_a_deep_npc_returns_facts_and_summaries_that_it_knows(store: Store) -> None:
    await an_evening(store)
    campaign = await store.campaigns.get(CAMPAIGN)
    settings = Settings(recall=DeepRecallSettings(method="hybrid", stages=("diffusion",)))
    async with AsyncExitStack() as stack:
        deep = await deep_recall()(settings, store, campaign, stack)
        heard = [said(n, "").id for n in (1, 2, 3, 4)]
        found = await deep.search(
            CAMPAIGN, SMITH, TalkQuery("Is Eldrinax an old wizard, and who brings six crowns?", limit=30)
        )
        assert {str(one.utterance_id) for one in found.items if not isinstance(one, RecalledSummary)} <= {
            *heard,
            "None",
        }
        assert any(isinstance(one, RecalledFact) for one in found.items)
        assert "smuggler" not in str(found)
        memory = memory_of(store, campaign, SMITH)
        tools: Any = Toolbox(replace(memory, deep_talk=deep), tier="DEEP")
        answer = await tools.call("memory_search_sessions", {"query": "Is Eldrinax an old wizard?"})
        assert any("fact" in one for one in answer["found"])
        assert "smuggler" not in str(answer)
