"""What an author gives an NPC for every prompt."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.context.identity import Bible, KnownSentences
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import HIDDEN
from tests.support.builders import FORGE, INNKEEPER, SMITH, a_campaign
from tests.support.memory import GraphTwin
from tests.support.minds import Mind

BIBLE = "Tamsin seeks the bell. Eldrinax stole it."
COINED = "tithebound: who works off a debt."
PROMISE = "You promised never to speak of the ferry."
SPEAKS = "You speak only English and Dwarvish. To any other language you say that you do not understand it."


def with_bible(campaign: Campaign) -> Campaign:
    smith, *others = campaign.npcs
    smith = replace(smith, standing=(PROMISE,), speaks=("English", "Dwarvish"))
    glossary = {"tithebound": "who works off a debt"}
    return replace(campaign, npcs=(smith, *others), bible=BIBLE, glossary=glossary)


def lines(campaign: Campaign, *, tokens: int) -> tuple[str, ...]:
    return Bible(campaign, KnownSentences(campaign, lambda _npc: None), tokens=tokens).lines(SMITH)


def test_what_is_always_kept_to_is_told_however_little_room_there_is() -> None:
    town = with_bible(a_campaign())
    seeks, stole = "Tamsin seeks the bell.", "Eldrinax stole it."
    assert lines(town, tokens=100) == (seeks, stole, COINED, PROMISE, SPEAKS)
    assert lines(town, tokens=12) == (seeks, stole, PROMISE, SPEAKS)
    assert lines(town, tokens=6) == (seeks, PROMISE, SPEAKS)
    assert lines(town, tokens=0) == (PROMISE, SPEAKS)
    assert lines(a_campaign(), tokens=100) == ()


def test_in_german() -> None:
    town = replace(with_bible(a_campaign()), language="de")
    assert lines(town, tokens=0)[-1].startswith("Du sprichst nur English und Dwarvish.")


async def test_bible_is_in_every_prompt_without_hidden_names() -> None:
    town = with_bible(a_campaign())
    graph = GraphTwin.of(town)
    mind = Mind(town, graph=graph)
    assembly = mind.assembly
    await assembly.enter(town.scene(FORGE))
    told = ("Tamsin seeks the bell.", "Eldrinax stole it.", COINED)
    assert (await assembly.gather(SMITH, "Hello.")).identity[:5] == (*told, PROMISE, SPEAKS)
    assert assembly.standing(SMITH)[:5] == (*told, PROMISE, SPEAKS)
    assert PROMISE not in (await assembly.gather(INNKEEPER, "Hello.")).identity
    eldrinax = EntityId("e-eldrinax")
    graph.scoped = [(e, HIDDEN if e.id == eldrinax else seen) for e, seen in graph.scoped]
    assert "Eldrinax" not in " ".join((await assembly.gather(SMITH, "Hello.")).identity)
    await mind.prefetch.close()
