"""A coined term from the talk to the prompts of those who heard it, by way of the DM's review."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.background import chronicle_worker
from glyphoxa.app.desk import Desk, desk_of
from glyphoxa.app.scope import Scope
from glyphoxa.chronicle.chronicler import ChronicleWorker
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.domain.knowledge import DM, Fact
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import Message, Prompt, with_hot_context
from tests.support.builders import FORGE, INNKEEPER, SMITH, a_campaign, an_utterance
from tests.support.minds import PATIENT
from tests.support.proof import IS_PROOF

EVENING = SessionId("evening")
CAMPAIGN = a_campaign()
FIRST = "The Geometers are the builders of this hall."


async def say(
    store: Store,
    *texts: str,
    heard_by: Sequence[NpcId] = (SMITH,),
    campaign: Campaign = CAMPAIGN,
    worker: ChronicleWorker | None = None,
) -> None:
    n_before = await store.log.count(campaign.id)
    said = [
        replace(
            an_utterance(text, id=f"{campaign.id}-{n}", speaker="Tamsin"),
            campaign_id=campaign.id,
            session_id=EVENING,
            at_ms=1_000_000 + n,
            witnesses=frozenset(heard_by),
        )
        for n, text in enumerate(texts, start=n_before + 1)
    ]
    await store.log.append(said)
    await (worker or chronicle_worker(store)).read_new(campaign.id)


@pytest.fixture
async def table(store: Store) -> Store:
    await store.campaigns.load(CAMPAIGN)
    return store


async def desk(store: Store, campaign: CampaignId = CAMPAIGN.id) -> Desk:
    return await desk_of(Scope(store, Settings(), campaign))


async def proposals(store: Store, campaign: CampaignId = CAMPAIGN.id) -> list[Fact]:
    facts = await (await desk(store, campaign)).inspection.current(campaign, DM, limit=1_000)
    return [fact for fact in facts if fact.claim.predicate == "meaning" and fact.status == "pending"]


async def prompt_of(
    store: Store, npc: NpcId, campaign: Campaign = CAMPAIGN, question: str = "Hello.", held: Sequence[Utterance] = ()
) -> str:
    """Return what stands in an NPC's prompt beside the transcript.

    Args:
        held: The lines that its transcript still has.
    """
    heard = Conversation(campaign.npc(npc), history_tokens=10_000)
    for line in held:
        heard.hear(line)
    prefetch = Prefetch(
        KnownWorld(campaign, store.world_memory(campaign.id)),
        talk=store.past_talk,
        present=lambda: {each.id: each.name for each in campaign.npcs},
        conversations={npc: heard},
    )
    context = HotContexts(
        prefetch,
        budgets=PATIENT,
    )
    await context.enter(campaign.scene(FORGE))
    hot = await context.gather(npc, question)
    await prefetch.close()
    asked = Prompt(npc, (Message("system", "You are here."), Message("user", question)), question, "Tamsin")
    return "\n".join(message.content for message in with_hot_context(asked, hot).messages)


async def test_corrected_meaning_replaces_the_proposal(table: Store) -> None:
    await say(table, FIRST, "I fear the Geometers.")
    [meaning] = await proposals(table)
    await (await desk(table)).facts.edit(meaning.id, value="a guild of star readers")
    assert "Geometers: a guild of star readers." in await prompt_of(table, SMITH)
    assert "star readers" not in await prompt_of(table, INNKEEPER)
    await say(table, "The Geometers again.", "Those Geometers, the Geometers!")
    assert await proposals(table) == []


async def test_rejected_meaning_leaves_the_raw_term(table: Store) -> None:
    await say(table, FIRST, "I fear the Geometers.")
    [meaning] = await proposals(table)
    await (await desk(table)).facts.reject([meaning.id])
    await say(table, "Look, the Geometers!", "Where are the Geometers?")
    assert await proposals(table) == []
    told = await prompt_of(table, SMITH)
    assert "Words of this world: Geometers." in told and "builders" not in told


ROUNDS = (
    ("Good evening to you.", "The rain has stopped.", "A bell rings in the harbour.", "We sit down."),
    ("What a day.", "I ordered an ale.", "The fire burns low.", "Somebody laughs outside."),
)


async def test_what_was_unused_since_round_3_is_recalled_with_its_first_description(table: Store) -> None:
    term = "glass key"
    described = f"We found the {term} behind the altar, and it hums when a lie is told."
    await say(table, *ROUNDS[0], described, f"Keep the {term} safe.")
    for n in range(10):
        await say(table, *(f"{line} That was hour {n}." for line in ROUNDS[1]))
    last = await table.log.recent(CAMPAIGN.id, EVENING, since_ms=0, limit=8)
    for question in (f"What about the {term}?", f"Do we still have the {term}?"):
        assert described in await prompt_of(table, SMITH, question=question, held=last), question
        assert "hums" not in await prompt_of(table, INNKEEPER, question=question, held=last)


async def test_retracted_lines_take_their_proposal_with_them(table: Store) -> None:
    await say(table, FIRST, "I fear the Geometers.")
    assert len(await proposals(table)) == 1
    await (await desk(table)).timeline.rollback(EVENING, 0)
    assert await proposals(table) == []
    assert "Geometers" not in await prompt_of(table, SMITH)


async def test_withheld_line_is_no_use_of_a_term(table: Store) -> None:
    worker = chronicle_worker(table)
    await say(table, "I sold my soul to ORACLE once.", worker=worker)
    await say(table, "Forget what I said.", worker=worker)
    await say(table, "ORACLE answers every question.", worker=worker)
    assert await proposals(table) == []
    await say(table, "Then we will ask ORACLE.", worker=worker)
    [meaning] = await proposals(table)
    assert meaning.claim.content == "ORACLE answers every question."


async def test_terms_of_one_campaign_are_in_no_prompt_of_another(table: Store) -> None:
    other = replace(a_campaign(), id=CampaignId("other"))
    await table.campaigns.load(other)
    await say(table, FIRST, "I fear the Geometers.", heard_by=(SMITH, INNKEEPER))
    [meaning] = await proposals(table)
    await (await desk(table)).facts.confirm([meaning.id])
    assert await proposals(table, other.id) == []
    for npc in (SMITH, INNKEEPER):
        assert "Geometers" in await prompt_of(table, npc)
        assert "Geometers" not in await prompt_of(table, npc, other)


@pytest.mark.parametrize("seed", range(4 if IS_PROOF else 2))
async def test_prompts_have_each_accepted_term_of_their_npc_and_no_other(table: Store, seed: int) -> None:
    chance = random.Random(seed)
    heard: dict[str, set[NpcId]] = {}
    for n in range(8):
        term = f"QUORN{'ABCDEFGH'[n]}"
        heard[term] = {npc for npc in (SMITH, INNKEEPER) if chance.random() < 0.5}
        await say(table, f"{term} means the sea.", f"So {term} it is.", heard_by=tuple(heard[term]))
    found = {meaning.claim.subject: meaning for meaning in await proposals(table)}
    assert len(found) == len(heard)
    accepted = {one for one in found if chance.random() < 0.6}
    await (await desk(table)).facts.confirm([found[one].id for one in accepted])
    for npc in (SMITH, INNKEEPER):
        told = await prompt_of(table, npc)
        for term, hearers in heard.items():
            is_explained = f"{term}: {term} means the sea." in told
            assert is_explained == (npc in hearers and term.lower() in accepted), (npc, term)
            assert (term in told) == (npc in hearers), (npc, term)


async def test_session_shows_the_terms_that_were_coined_in_it(table: Store) -> None:
    await say(table, FIRST, "I fear the Geometers.")
    later = replace(an_utterance("The Geometers again."), campaign_id=CAMPAIGN.id, session_id=SessionId("morning"))
    await table.log.append([replace(later, at_ms=9_000_000)])
    [meaning] = await proposals(table)
    assert [view.terms for view in await (await desk(table)).session_views(EVENING)] == [{}] * 3
    await (await desk(table)).facts.edit(meaning.id, value="a guild of star readers")
    views = {view.name: view.terms for view in await (await desk(table)).session_views(EVENING)}
    told = {"Geometers": "a guild of star readers"}
    assert views == {"DM": told, CAMPAIGN.npc(SMITH).name: told, CAMPAIGN.npc(INNKEEPER).name: {}}
    assert not any(view.terms for view in await (await desk(table)).session_views(SessionId("morning")))
