"""An NPC that lies keeps its lie: the truth is in none of its prompts unasked, and in nobody else's at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.prompt import with_hot_context
from tests.support.builders import FORGE, INNKEEPER, SMITH, a_campaign, an_utterance
from tests.support.memory import LogTwin
from tests.support.minds import Mind

TRUTH = "Grimjaw forged the king's false crown."
LIE = "That winter I was ill in bed and touched no metal."
ROUNDS = (
    ("Were you really ill all that winter?", "As ill as a dog."),
    ("And nobody came to you for work?", "Nobody at all."),
    ("So you touched no metal for months?", "Not one nail."),
    ("Mirelle says that you look well now.", "She is kind."),
    ("What do you forge these days?", "Horseshoes and hinges."),
)


class LyingTable:
    """A smith that lies to a player, and an innkeeper that hears it."""

    def __init__(self) -> None:
        town = a_campaign()
        self.talks = {npc.id: Conversation(npc) for npc in town.npcs}
        self.log = LogTwin()
        self.mind = Mind(
            town,
            talk=self.log,
            conversations=self.talks,
        )
        self._n = 0

    async def say(self, text: str, *, by: NpcId | None = None) -> None:
        self._n += 1
        said = an_utterance(text, id=f"u{self._n}", speaker="Tamsin" if by is None else "Grimjaw", npc=by)
        said = replace(said, witnesses=frozenset({SMITH, INNKEEPER}))
        for talk in self.talks.values():
            talk.hear(said)
        await self.log.append([said])

    async def prompt(self, npc: NpcId, question: str) -> str:
        hot = await self.mind.assembly.gather(npc, question, asker="Tamsin")
        messages = with_hot_context(self.talks[npc].prompt(question, "Tamsin"), hot).messages
        return "\n".join(message.content for message in messages)


@pytest.fixture
async def table() -> AsyncIterator[LyingTable]:
    table = LyingTable()
    await table.mind.assembly.enter(a_campaign().scene(FORGE))
    yield table
    await table.mind.prefetch.close()


async def test_truth_enters_no_prompt_while_a_lie_is_kept_for_five_rounds(table: LyingTable) -> None:
    await table.say("What did you do that winter?")
    await table.say(LIE, by=SMITH)
    for question, reply in ROUNDS:
        for npc in (SMITH, INNKEEPER):
            prompt = await table.prompt(npc, question)
            assert LIE in prompt, question
            assert TRUTH not in prompt and "false crown" not in prompt, (npc, question)
        await table.say(question)
        await table.say(reply, by=SMITH)


async def test_lie_stays_in_the_liars_prompt_after_its_lines_left(table: LyingTable) -> None:
    await table.say("What did you do that winter?")
    await table.say(LIE, by=SMITH)
    said = [an_utterance(LIE, id="u2", speaker="Grimjaw", npc=SMITH)]
    for npc, talk in table.talks.items():
        talk.cover(LineSelection("en").own_words(said, npc), [UtteranceId("u1"), UtteranceId("u2")])
        talk.fold()
        talk.hear(an_utterance("Good evening.", id="next"))
    for question, _ in ROUNDS:
        assert f'You said: "{LIE}"' in await table.prompt(SMITH, question)
        assert f'You said: "{LIE}"' not in await table.prompt(INNKEEPER, question)
        for npc in (SMITH, INNKEEPER):
            assert TRUTH not in await table.prompt(npc, question)
