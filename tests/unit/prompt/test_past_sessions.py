"""NPCs recall earlier sessions without being asked."""

from __future__ import annotations

import pytest

from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.domain.knowledge import Claim, Provenance, RecalledSummary
from glyphoxa.prompt.prompt import HotContext, Message, Prompt, with_hot_context
from glyphoxa.prompt.scene import Past
from glyphoxa.prompt.wording import SaidWhen
from tests.support.builders import FORGE, INNKEEPER, SESSION, SMITH, a_campaign, known
from tests.support.memory import GraphTwin
from tests.support.minds import Mind, SessionsTwin


def summary(text: str) -> RecalledSummary:
    return RecalledSummary(SessionId("before"), text, 1_000)


class Summaries:
    """In memory, with one of the session that is played."""

    def __init__(self, told: dict[NpcId, list[str]]) -> None:
        self.told = told
        self.is_away = False
        self.asked: list[NpcId] = []

    def __call__(self, npc: NpcId) -> list[RecalledSummary]:
        self.asked.append(npc)
        if self.is_away:
            raise Unavailable("away")
        return [RecalledSummary(SESSION, "They are at the forge."), *(summary(text) for text in self.told.get(npc, []))]


def past(summaries: Summaries | None, *, tokens: int = 60) -> Past:
    return Past(SaidWhen(a_campaign(), SESSION, None), summaries and SessionsTwin(summaries), tokens=tokens)


async def test_the_latest_sessions_are_told_in_the_order_in_which_they_were() -> None:
    told = past(Summaries({SMITH: ["They lost the boat.", "They found the seal."]}))
    await told.read(SMITH)
    assert told.of(SMITH) == "They found the seal. They lost the boat."
    assert told.of(INNKEEPER) == "", "it was not read"


async def test_what_has_no_room_ends_with_a_sentence_and_older_sessions_are_left_out_before_newer_ones() -> None:
    told = past(Summaries({SMITH: ["They lost the boat. It sank in the bay.", "They found the seal."]}), tokens=7)
    await told.read(SMITH)
    assert told.of(SMITH) == "They lost the boat."


@pytest.mark.parametrize(("summaries", "tokens"), [(None, 60), (Summaries({SMITH: ["They sang."]}), 0)])
async def test_without_summaries_or_room_for_them_nothing_is_told(summaries: Summaries | None, tokens: int) -> None:
    told = past(summaries, tokens=tokens)
    await told.read(SMITH)
    assert told.of(SMITH) == ""


async def test_it_stays_as_it_was_read_and_one_that_could_not_be_read_is_read_later() -> None:
    summaries = Summaries({SMITH: ["They sang."]})
    told = past(summaries)
    summaries.is_away = True
    with pytest.raises(Unavailable):
        await told.read(SMITH)
    summaries.is_away = False
    await told.read(SMITH)
    summaries.told[SMITH] = ["They danced."]
    await told.read(SMITH)
    assert told.of(SMITH) == "They sang."
    assert summaries.asked == [SMITH] * 2


async def test_open_threads_and_holdings_take_half_of_the_room() -> None:
    asked: list[NpcId] = []

    async def threads(npc: NpcId) -> list[RecalledSummary]:
        asked.append(npc)
        said = ["Bran said: I promise to mend it.", "Tamsin said: I will find the seal.", "They lost the boat."]
        return [summary(text) for text in said]

    summaries = Summaries({SMITH: ["They lost the boat. It sank in the bay of the drowned bell."]})
    told = Past(SaidWhen(a_campaign(), SESSION, None), SessionsTwin(summaries, threads), tokens=40)
    await told.read(SMITH, ["Bran gave Grimjaw a lantern."])
    assert told.of(SMITH) == (
        "They lost the boat. It sank in the bay of the drowned bell. Bran gave Grimjaw a lantern."
        " Bran said: I promise to mend it."
    )
    assert asked == [SMITH]
    alone = Past(SaidWhen(a_campaign(), SESSION, None), SessionsTwin(Summaries({}), threads), tokens=40)
    await alone.read(SMITH)
    assert alone.of(SMITH) == "Bran said: I promise to mend it. Tamsin said: I will find the seal."


async def test_holdings_learned_in_play_are_in_the_prompt() -> None:
    lantern = Claim.attribute(a_campaign().npc(SMITH).entity_id, "took", "the lantern of Bran")
    heard = Provenance(origin="talk", session_id=SessionId("before"))
    graph = GraphTwin.of(a_campaign())
    graph.of_world.append(known(lantern, provenance=heard))
    mind = Mind(a_campaign(), graph=graph, past=past(Summaries({})))
    await mind.assembly.enter(a_campaign().scene(FORGE))
    hot = await mind.assembly.gather(SMITH, "Hello.")
    assert "took: the lantern of Bran" in hot.past
    assert "lantern" not in " ".join(hot.identity)
    await mind.prefetch.close()


def test_it_stands_where_the_talk_begins_in_front_of_the_scene() -> None:
    scene: Scene = a_campaign().scenes[0]
    talk = (Message("assistant", "Aye."), Message("user", "Tamsin says: Well?"), Message("assistant", "Well."))
    messages = (Message("system", "You are Grimjaw."), *talk, Message("user", "Tamsin says: And now?"))
    prompt = Prompt(SMITH, messages, "And now?", "Tamsin", scenes=((2, scene),))
    hot = HotContext(past="They sang.", scenes={scene: "Evening, the market."}, facts=("It is late.",))
    joined = with_hot_context(prompt, hot).messages
    assert joined[2].content == "Earlier: They sang.\nScene: Evening, the market.\nTamsin says: Well?"
    assert joined[-1].content == "Tamsin says: And now?\nFacts: It is late."
    assert [message.content for message in (joined[0], joined[1], joined[3])] == ["You are Grimjaw.", "Aye.", "Well."]
