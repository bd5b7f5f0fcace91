"""How every prompt of an NPC begins: who it is, how it speaks, and examples of how it answers.

The same words from the first turn to the last: a prompt cache reads them once. An NPC whose author gave no examples has
some by itself, made of what the campaign's file says of it: without any a small model tells of the NPC instead of
speaking as it. They are in the form that questions have at the table, which it copies.
"""

from __future__ import annotations

from glyphoxa.context.knowledge import is_secret
from glyphoxa.context.of_file import ScopedKnowledge
from glyphoxa.context.prompt import SAYS, Message, said_line, with_facts, with_kept
from glyphoxa.context.wording import Example, wording
from glyphoxa.domain.campaign import Campaign, Exchange, Npc

OCCUPATIONS = frozenset(("occupation", "profession", "job", "trade", "beruf"))
"""Attributes that say what somebody does."""
_LONGEST_VALUE = 60
_SURE = 1.0
"""What the DM may still have to look at is in no example."""


def beginning(campaign: Campaign, npc: Npc) -> tuple[Message, ...]:
    """The messages in front of all talk."""
    words = wording(campaign.language)
    persona = npc.persona or words.persona.format(name=npc.name)
    shown = [Message("system", f"{persona}\n{words.frame.format(name=npc.name)}")]
    somebody = nobodys_name(campaign, words.strangers)
    for example in npc.examples or default_examples(campaign, npc):
        said = example.said if SAYS.match(example.said) else said_line(somebody, example.said)
        asked = with_facts(said, example.facts, example.remembered)
        shown.append(Message("user", with_kept(asked, words.keeps, example.kept)))
        shown.append(Message("assistant", example.reply))
    return tuple(shown)


def default_examples(campaign: Campaign, npc: Npc) -> tuple[Exchange, ...]:
    """For an NPC that has none of its own; who speaks is added as it is to those."""
    words = wording(campaign.language)
    known = {"name": npc.name, **_known_of(campaign, npc)}
    first, *others = words.examples
    shown = [first]
    shown += [words.works] if "occupation" in known else []
    shown += [words.is_at] if "place" in known else []
    return tuple(_filled(example, known) for example in (*shown, *others))


def _filled(example: Example, known: dict[str, str]) -> Exchange:
    said, reply, facts, kept = (
        text.format(**known) for text in (example.said, example.reply, example.facts, example.kept)
    )
    return Exchange(said, reply, facts, kept=kept)


def _known_of(campaign: Campaign, npc: Npc) -> dict[str, str]:
    """What the NPC does and where it is, as far as the file lets it know and says so in a few words."""
    known = ScopedKnowledge.of_file(campaign, accept_at=_SURE).known(npc.id, npc.entity_id)
    if known is None:
        return {}
    found: dict[str, str] = {}
    for fact in known.attributes:
        value = fact.claim.content
        is_named = fact.claim.predicate.casefold() in OCCUPATIONS and isinstance(value, str) and value.strip()
        if is_named and not is_secret(fact) and len(str(value)) <= _LONGEST_VALUE:
            found.setdefault("occupation", str(value).strip())
    for fact, other in known.relations:
        is_its_place = fact.claim.predicate == "LOCATED_AT" and fact.claim.subject == npc.entity_id
        if is_its_place and not is_secret(fact):
            found.setdefault("place", other.name)
    return found


def nobodys_name(campaign: Campaign, strangers: tuple[str, ...]) -> str:
    """Who speaks in the examples is nobody of the story."""
    names = (name for entity in campaign.entities for name in (entity.name, *entity.aliases))
    players = (player.name for player in campaign.players)
    taken = {word for name in (*names, *players) for word in name.casefold().split()}
    return next((name for name in strangers if name.casefold() not in taken), strangers[-1])
