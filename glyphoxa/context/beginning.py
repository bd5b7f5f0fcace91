"""How every prompt of an NPC begins: who it is, how it speaks, and examples of how it answers.

The same words from the first turn to the last: a prompt cache reads them once. An NPC whose author gave no examples has
some by itself, made of what the campaign's file says of it: without any a small model tells of the NPC instead of
speaking as it. They are in the form that questions have at the table, which it copies.
"""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.context.of_file import ScopedKnowledge
from glyphoxa.context.prompt import Message, with_facts, with_kept
from glyphoxa.context.wording import SAYS, Example, said_line, wording
from glyphoxa.domain.campaign import Campaign, Exchange, Npc
from glyphoxa.domain.knowledge import Fact
from glyphoxa.speech.language.quoted import in_one_line
from glyphoxa.world.api import Known

OCCUPATIONS = frozenset(("occupation", "profession", "job", "trade", "beruf"))
"""Attributes that say what somebody does."""
_LONGEST_VALUE = 60
_SURE = 1.0
"""What the DM may still have to look at is in no example."""


def beginning(campaign: Campaign, npc: Npc) -> tuple[Message, ...]:
    """The messages in front of all talk, as the campaign's file has it."""
    return beginning_of(campaign, npc, _known_of_file(campaign, npc))


def beginning_of(campaign: Campaign, npc: Npc, known: Known | None) -> tuple[Message, ...]:
    """The same.

    Args:
        known: What the NPC knows of itself now; None: nothing.
    """
    words = wording(campaign.language)
    persona = npc.persona or words.persona.format(name=npc.name)
    shown = [Message("system", f"{persona}\n{words.frame.format(name=npc.name)}")]
    somebody = nobodys_name(campaign, words.strangers)
    for example in npc.examples or default_examples(campaign, npc, known):
        said = in_one_line(example.said) if SAYS.match(example.said) else said_line(somebody, example.said)
        asked = with_facts(said, in_one_line(example.facts), in_one_line(example.remembered))
        shown.append(Message("user", with_kept(asked, words.keeps, in_one_line(example.kept))))
        shown.append(Message("assistant", example.reply))
    return tuple(shown)


def default_examples(campaign: Campaign, npc: Npc, known: Known | None) -> tuple[Exchange, ...]:
    """For an NPC that has none of its own; who speaks is added as it is to those. `known` is as of `beginning_of`."""
    words = wording(campaign.language)
    told = {"name": npc.name, **_told_of(known)}
    first, *others = words.examples
    shown = [first]
    shown += [words.works] if "occupation" in told else []
    shown += [words.is_at] if "place" in told else []
    return tuple(_filled(example, told) for example in (*shown, *others))


def _filled(example: Example, told: dict[str, str]) -> Exchange:
    said, reply, facts, kept = (
        text.format(**told) for text in (example.said, example.reply, example.facts, example.kept)
    )
    return Exchange(said, reply, facts, kept=kept)


def _known_of_file(campaign: Campaign, npc: Npc) -> Known | None:
    return ScopedKnowledge.of_file(campaign, accept_at=_SURE).known(npc.id, npc.entity_id)


def _told_of(known: Known | None) -> dict[str, str]:
    """What the NPC does and where it is, as far as everybody may know it and it takes a few words."""
    if known is None:
        return {}
    found: dict[str, str] = {}
    for fact in known.attributes:
        value = fact.claim.content
        is_named = fact.claim.predicate.casefold() in OCCUPATIONS and isinstance(value, str) and value.strip()
        if is_named and _is_plain(fact) and len(str(value)) <= _LONGEST_VALUE:
            found.setdefault("occupation", str(value).strip())
    for fact, other in known.relations:
        is_its_place = fact.claim.predicate == "LOCATED_AT" and fact.claim.subject == known.entity.id
        if is_its_place and _is_plain(fact):
            found.setdefault("place", other.name)
    return found


def _is_plain(fact: Fact) -> bool:
    return fact.visibility.scope == "public" and replace(fact.provenance, accept_at=_SURE).is_enough


def nobodys_name(campaign: Campaign, strangers: tuple[str, ...]) -> str:
    """Who speaks in the examples is nobody of the story."""
    names = (name for entity in campaign.entities for name in (entity.name, *entity.aliases))
    players = (player.name for player in campaign.players)
    taken = {word for name in (*names, *players) for word in name.casefold().split()}
    return next((name for name in strangers if name.casefold() not in taken), strangers[-1])
