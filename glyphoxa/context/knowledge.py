"""Entities and relationships as short sentences an NPC can use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from glyphoxa.domain.campaign import Entity, Relationship

_PHRASES: Mapping[str, str] = {
    "KNOWS": "{source} knows {target}",
    "LOCATED_AT": "{source} is at {target}",
    "OWNS": "{source} owns {target}",
    "MEMBER_OF": "{source} belongs to {target}",
    "ALLIED_WITH": "{source} is allied with {target}",
    "HOSTILE_TO": "{source} is hostile to {target}",
    "PARTICIPATED_IN": "{source} took part in {target}",
    "QUEST_GIVER": "{source} asks for help with {target}",
    "CHILD_OF": "{source} is a child of {target}",
    "EMPLOYED_BY": "{source} works for {target}",
}
_SPOKEN_FIRST = ("description", "summary", "lore_text", "common_knowledge")


def relation_sentence(relationship: Relationship, source: Entity, target: Entity) -> str:
    """One sentence for an edge; a custom type is read out ("SWORN_TO" as "sworn to")."""
    note = relationship.attributes.get("description") or relationship.attributes.get("note")
    phrase = _PHRASES.get(relationship.type)
    if phrase is None:
        phrase = "{source} is " + relationship.type.lower().replace("_", " ") + " {target}"
    sentence = phrase.format(source=source.name, target=target.name)
    return _sentence(f"{sentence}: {note}" if note else sentence)


def entity_sentences(entity: Entity, edges: Iterable[tuple[Relationship, Entity]] = ()) -> list[str]:
    """What is commonly known of an entity, the most telling first."""
    sentences = [_about(entity, str(entity.attributes[key])) for key in _SPOKEN_FIRST if entity.attributes.get(key)]
    for key, value in entity.attributes.items():
        if key not in _SPOKEN_FIRST and isinstance(value, str | int | float) and str(value).strip():
            sentences.append(_sentence(f"{entity.name}, {key.replace('_', ' ')}: {value}"))
    for relationship, other in edges:
        source, target = (entity, other) if relationship.source == entity.id else (other, entity)
        sentences.append(relation_sentence(relationship, source, target))
    return list(dict.fromkeys(sentences))


def within(sentences: Sequence[str], *, tokens: int) -> list[str]:
    """The first sentences that fit the budget (4 characters a token, R-239)."""
    fitting, left = [], tokens * 4
    for sentence in sentences:
        if len(sentence) > left:
            break
        fitting.append(sentence)
        left -= len(sentence) + 1
    return fitting


def _about(entity: Entity, text: str) -> str:
    names = (entity.name, *entity.aliases)
    if any(re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) for name in names):
        return _sentence(text)
    return _sentence(f"{entity.name}: {text}")


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
