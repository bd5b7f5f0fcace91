"""Whole prompts of campaigns full of secrets: no NPC reads a word that is not for it, whatever it is asked, wherever
the table moves, and whatever the DM decides meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.identity import beginning_of
from glyphoxa.prompt.prompt import HotContext, with_hot_context
from glyphoxa.recall.vectors import QuestionVectors, TextVectors
from glyphoxa.recall.world import World
from tests.support.builders import an_utterance
from tests.support.embedders import embedder_of_one_topic
from tests.support.memory import LogTwin, WorldTwin
from tests.support.minds import Mind
from tests.support.patience import DEADLINE_MS
from tests.support.proof import IS_PROOF, n_examples
from tests.support.secret_campaigns import SecretCampaign, words_in

N_CAMPAIGNS = n_examples(100)
N_PROMPTS = 1_000 if IS_PROOF else 20
"""Number of prompts for each campaign."""
TAMSIN = PlayerId("tamsin")
MOST_SAID = 60


class WhenChanged(WorldTwin):
    """It reads a world again only when that is another one, as the product does."""

    is_old = True

    async def refresh(self) -> World:
        known = self.world
        if known is None or self.is_old:
            known = await super().refresh()
            self.is_old = False
        return known


class SecretTable:
    """A table in such a campaign, without sound."""

    def __init__(self, town: SecretCampaign, budgets: Budgets) -> None:
        self.town, campaign = town, town.campaign
        self.log, self.by_name = LogTwin(), WhenChanged(town.graph)
        if town.random.random() < 0.5:
            # Everything that anybody may know is near to every question.
            embedder = embedder_of_one_topic()
            self.by_name.meanings = TextVectors(embedder, QuestionVectors(embedder))
        self.talks = {npc.id: Conversation(npc) for npc in campaign.npcs}
        self.scene = campaign.scenes[0]
        self._ids = count()
        mind = Mind(
            campaign,
            graph=town.graph,
            by_name=self.by_name,
            talk=self.log,
            present=lambda: {npc: campaign.npc(npc).name for npc in self.scene.npcs},
            conversations=self.talks,
            budgets=budgets,
        )
        self.prefetch, self.assembly = mind.prefetch, mind.assembly

    async def enter(self, scene: Scene) -> None:
        self.scene = scene
        await self.assembly.enter(scene)
        for npc in self.town.campaign.npcs:
            talk = self.talks[npc.id]
            talk.beginning = beginning_of(self.town.campaign, npc, self.assembly.known(npc.id))
            if npc.id in scene.npcs:
                talk.enter(scene)

    def decide(self) -> None:
        self.town.decide()
        self.by_name.is_old = True

    async def ask(self, npc: NpcId, question: str) -> AsyncIterator[str]:
        """The prompts that are made for an answer: as it is spoken, and at its end."""
        before = asyncio.all_tasks()
        self.prefetch.begin(TAMSIN)
        await asyncio.gather(*(asyncio.all_tasks() - before))
        self.prefetch.on_partial(TAMSIN, question)
        await asyncio.gather(*(asyncio.all_tasks() - before))
        yield self._prompt(npc, question, await self.assembly.gather(npc, question))
        yield self._prompt(npc, question, self.assembly.gather_nowait(npc, question))
        await asyncio.gather(*(asyncio.all_tasks() - before))

    async def say(self, text: str) -> None:
        witnesses, campaign = frozenset(self.scene.npcs), self.town.campaign.id
        utterance = an_utterance(text, id=f"u{next(self._ids)}", campaign_id=campaign, witnesses=witnesses)
        for word in words_in(text):
            self.town.said[word] = self.town.said.get(word, frozenset()) | utterance.witnesses
        for npc in self.scene.npcs:
            self.talks[npc].hear(utterance)
        if len(self.log.utterances) < MOST_SAID:
            await self.log.append([utterance])

    def _prompt(self, npc: NpcId, question: str, hot: HotContext) -> str:
        assert hot.omitted == ()
        whole = with_hot_context(self.talks[npc].prompt(question, "Tamsin"), hot)
        return "\n".join(message.content for message in whole.messages)


@pytest.mark.parametrize("seed", range(N_CAMPAIGNS))
async def test_no_prompt_holds_a_word_that_is_not_for_its_npc(seed: int) -> None:
    town = SecretCampaign.of(seed)
    random, questions = town.random, town.questions()
    scene_tokens, facts_tokens = random.choice([(60, 90), (300, 1_500)])
    budgets = Budgets(
        scene_tokens=scene_tokens,
        facts_tokens=facts_tokens,
        recall_deadline_ms=DEADLINE_MS,
    )
    table = SecretTable(town, budgets)
    await table.enter(table.scene)
    composed = n_words = 0
    while composed < N_PROMPTS:
        if random.random() < 0.1:
            # Default examples are made when a scene is entered, and follow what is decided when the next one is.
            table.decide()
            await table.enter(random.choice(town.campaign.scenes))
        elif seed % 2 and random.random() < 0.2:
            table.decide()
        npc, question = random.choice(table.scene.npcs), next(questions)
        may_know, asked = town.may_know(npc), words_in(question)
        async for prompt in table.ask(npc, question):
            found = words_in(prompt) - asked
            assert [word for word in found if not may_know(word)] == []
            composed += 1
            n_words += len(found)
        if random.random() < 0.5:
            await table.say(f"{question} So says Tul{random.randrange(1000)}or.")
    await table.prefetch.close()
    assert n_words > composed  # of what is for them they read much
