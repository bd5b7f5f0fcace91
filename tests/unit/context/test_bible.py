"""What an author gives an NPC for every prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
    return bible(campaign, tokens=tokens).lines(SMITH)


def bible(campaign: Campaign, *, tokens: int = 100, **options: Any) -> Bible:
    return Bible(campaign, KnownSentences(campaign, lambda _npc: None), tokens=tokens, **options)


def test_what_is_always_kept_to_is_told_however_little_room_there_is() -> None:
    town = with_bible(a_campaign())
    seeks, stole = "Tamsin seeks the bell.", "Eldrinax stole it."
    assert lines(town, tokens=100) == (seeks, stole, PROMISE, SPEAKS)
    assert lines(town, tokens=12) == (seeks, stole, PROMISE, SPEAKS)
    assert lines(town, tokens=6) == (seeks, PROMISE, SPEAKS)
    assert lines(town, tokens=0) == (PROMISE, SPEAKS)
    assert lines(a_campaign(), tokens=100) == ()


def test_glossary_with_meanings_is_never_shortened() -> None:
    town = replace(a_campaign(), glossary={f"term{n}": "what a long meaning says" for n in range(50)})
    coined = [("ORACLE", "the machine below the keep"), ("Geometers", ""), ("GeoNet", "")]
    assert len(bible(town, tokens=0).glossary(SMITH)) == 50
    told = bible(town, tokens=0, glossary_tokens=0, terms=lambda _npc: coined).glossary(SMITH)
    assert len(told) == 51 and told[-1] == "ORACLE: the machine below the keep."


def test_terms_without_a_meaning_follow_as_far_as_there_is_room() -> None:
    coined = [("ORACLE", ""), ("Geometers", "")]
    roomy = bible(a_campaign(), terms=lambda _npc: coined)
    assert roomy.glossary(SMITH) == ("Words of this world: ORACLE, Geometers.",)
    small = bible(a_campaign(), glossary_tokens=8, terms=lambda _npc: coined)
    assert small.glossary(SMITH) == ("Words of this world: ORACLE.",)
    assert bible(a_campaign(), glossary_tokens=0, terms=lambda _npc: coined).glossary(SMITH) == ()


def test_in_german() -> None:
    town = replace(with_bible(a_campaign()), language="de")
    assert lines(town, tokens=0)[-1].startswith("Du sprichst nur English und Dwarvish.")


async def test_bible_is_in_every_prompt_without_hidden_names() -> None:
    town = with_bible(a_campaign())
    graph = GraphTwin.of(town)
    mind = Mind(town, graph=graph)
    assembly = mind.assembly
    await assembly.enter(town.scene(FORGE))
    told = ("Tamsin seeks the bell.", "Eldrinax stole it.", PROMISE, SPEAKS)
    hot = await assembly.gather(SMITH, "Hello.")
    assert (hot.identity[:4], hot.glossary) == (told, (COINED,))
    assert assembly.standing(SMITH)[:4] == told and COINED in assembly.standing(SMITH)
    assert PROMISE not in (await assembly.gather(INNKEEPER, "Hello.")).identity
    eldrinax = EntityId("e-eldrinax")
    graph.scoped = [(e, HIDDEN if e.id == eldrinax else seen) for e, seen in graph.scoped]
    assert "Eldrinax" not in " ".join((await assembly.gather(SMITH, "Hello.")).identity)
    await mind.prefetch.close()
