"""The author's texts for every prompt of an NPC."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import HIDDEN
from glyphoxa.language.sentences import characters_in
from glyphoxa.prompt.identity import Bible, KnownSentences
from glyphoxa.prompt.known_world import KnownWorld
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


def bible(campaign: Campaign, *, tokens: int = 100, glossary_tokens: int = 298, **options: Any) -> Bible:
    budgets = Budgets(bible_tokens=tokens, glossary_tokens=glossary_tokens, facts_tokens=90)
    return Bible(campaign, KnownSentences(campaign, KnownWorld(campaign, None).known), budgets=budgets, **options)


def test_what_is_always_kept_to_is_told_however_little_room_there_is() -> None:
    town = with_bible(a_campaign())
    seeks, stole = "Tamsin seeks the bell.", "Eldrinax stole it."
    assert lines(town, tokens=100) == (seeks, stole, PROMISE, SPEAKS)
    assert lines(town, tokens=12) == (seeks, stole, PROMISE, SPEAKS)
    assert lines(town, tokens=6) == (seeks, PROMISE, SPEAKS)
    assert lines(town, tokens=0) == (PROMISE, SPEAKS)
    assert lines(a_campaign(), tokens=100) == ()


MANY = {f"term{n}": "what a long meaning says" for n in range(300)}


def test_glossary_that_fits_is_whole() -> None:
    town = replace(a_campaign(), glossary=dict(list(MANY.items())[:30]))
    coined = [("ORACLE", "the machine below the keep"), ("Geometers", "")]
    told = bible(town, terms=lambda _npc: coined).glossary(SMITH)
    assert told[-2:] == ("ORACLE: the machine below the keep.", "Words of this world: Geometers.")
    assert len(told) == 32


def test_glossary_that_does_not_fit_has_only_terms_of_the_prompt() -> None:
    town = replace(a_campaign(), glossary=MANY)
    coined = [("ORACLE", "the machine below the keep"), ("Geometers", ""), ("GeoNet", "")]
    book = bible(town, terms=lambda _npc: coined)
    assert book.glossary(SMITH) == ()
    beside = ("You fear the Oracle.", "The Geometers' hall, term7 and term12.")
    assert book.glossary(SMITH, beside) == (
        "ORACLE: the machine below the keep.",
        "term7: what a long meaning says.",
        "term12: what a long meaning says.",
        "Words of this world: Geometers.",
    )
    everything = " ".join(MANY)
    assert sum(map(len, book.glossary(SMITH, (everything,)))) <= characters_in(298 - 90)


def test_mentioned_terms_begin_with_those_of_the_question() -> None:
    book = bible(replace(a_campaign(), glossary=MANY | {"Long": "a meaning " * 60, "The Who": "a guild"}))
    shown = ("term3: what a long meaning says.",)
    assert book.mentioned(SMITH, ("What of term9?", "term1 and term9", "term3"), shown) == [
        "term9: what a long meaning says.",
        "term1: what a long meaning says.",
    ]
    assert book.mentioned(SMITH, (" ".join(MANY),), ())[:2] == [f"term{n}: what a long meaning says." for n in (0, 1)]
    [shortened] = book.mentioned(SMITH, ("What is long?",), ())
    assert shortened.startswith("Long: a meaning") and len(shortened) < characters_in(90)
    assert book.mentioned(SMITH, ("Who are the who?",), ()) == ["The Who: a guild."]
    assert book.mentioned(SMITH, ("Who is it?",), ()) == []


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
