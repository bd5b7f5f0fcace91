"""What is known of the world as short sentences an NPC can use, and why it may know them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from glyphoxa.context.tokens import characters_in
from glyphoxa.context.wording import RELATIONS
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.domain.recalled import RecalledFact
from glyphoxa.recall.entities.facts import TOOK_PART
from glyphoxa.world.api import Known

_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)]*(?=\s|$)")
_SPOKEN_FIRST = ("description", "summary", "lore_text", "common_knowledge")
_WHOLE_SENTENCES = (*_SPOKEN_FIRST, "secret", "note", "rumour")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A fact in words.

    Attributes:
        is_whole: False where only its beginning had room.
    """

    text: str
    fact: Fact
    is_whole: bool = True


def fact_sentence(fact: Fact, subject: Entity, other: Entity | None = None) -> str:
    """A fact in words; a custom type of relation is read out (SWORN_TO as "is sworn to", FEARS as "fears").

    Args:
        subject: The entity the claim speaks of.
        other: The entity it is related to; None for an attribute.

    Returns:
        One sentence; empty when the value is nothing that can be said (an empty text, a JSON object).
    """
    if other is not None:
        note = fact.attributes.get("description") or fact.attributes.get("note")
        phrase = RELATIONS.get(fact.claim.predicate)
        if phrase is None:
            phrase = f"{{source}} {_as_verb(fact.claim.predicate)} {{target}}"
        sentence = phrase.format(source=subject.name, target=other.name)
        return _sentence(f"{sentence}: {note}" if note else sentence)
    value = _spoken(fact.claim.content)
    if not value:
        return ""
    if fact.claim.predicate in _WHOLE_SENTENCES:
        return _about(subject, value)
    return _sentence(f"{subject.name}, {_in_words(fact.claim.predicate)}: {value}")


def sentences_of(known: Known) -> list[Sentence]:
    """What is known of an entity, the most telling first; last what it took part in, which comes along when that is
    named. Without secrets: they stand in the identity of who keeps them.
    """
    sentences = [Sentence(_sentence_of(fact, other, known), fact) for fact, other in _told_first(known)]
    by_text = {sentence.text: sentence for sentence in reversed(sentences) if sentence.text}
    return list(reversed(by_text.values()))


def most_telling(known: Known, npc: NpcId) -> list[RecalledFact]:
    """The first of what is known of an entity, and of what not everybody knows of it the first: without the words for
    all the others, of which there may be a thousand.
    """
    found: list[RecalledFact] = []
    for fact, other in _told_first(known):
        if found and why_known(fact, npc) == "public":
            continue
        text = _sentence_of(fact, other, known)
        if text and all(text != one.text for one in found):
            found.append(recalled(text, fact, npc))
            if len(found) == 2:
                break
    return found


def _told_first(known: Known) -> Iterator[tuple[Fact, Entity | None]]:
    first = {predicate: n for n, predicate in enumerate(_SPOKEN_FIRST)}
    for fact in sorted(known.attributes, key=lambda fact: first.get(fact.claim.predicate, len(first))):
        if not is_secret(fact):
            yield fact, None
    for fact, other in sorted(known.relations, key=lambda each: each[0].claim.predicate == TOOK_PART):
        if not is_secret(fact):
            yield fact, other


def _sentence_of(fact: Fact, other: Entity | None, known: Known) -> str:
    if other is None:
        return fact_sentence(fact, known.entity)
    subject, end = (known.entity, other) if fact.claim.subject == known.entity.id else (other, known.entity)
    return fact_sentence(fact, subject, end)


def why_known(fact: Fact, npc: NpcId) -> str:
    """Why an NPC may know a fact: "public", "secret", "witnessed in session s1", "told by tamsin"."""
    knower = next((one for one in fact.visibility.knowers if one.npc == npc), None)
    if fact.visibility.scope == "public" or knower is None:
        return "public"
    match knower.how:
        case "secret":
            return "secret"
        case "told":
            return f"told by {knower.by or 'somebody'}"
        case "witnessed":
            session = fact.provenance.session_id
            return f"witnessed in session {session}" if session else "witnessed"


def names_of(entity: Entity) -> tuple[str, ...]:
    return (entity.name, *entity.aliases)


def is_secret(fact: Fact) -> bool:
    """Whether those who know it are to keep it."""
    return fact.visibility.scope in ("secret", "hidden")


def recalled_of(known: Known, npc: NpcId) -> tuple[RecalledFact, ...]:
    """The sentences about an entity for an NPC, each with where it is from and why it may know it."""
    return tuple(recalled(sentence.text, sentence.fact, npc) for sentence in sentences_of(known))


def recalled(text: str, fact: Fact, npc: NpcId) -> RecalledFact:
    """A fact in words, with where it is from and why the NPC may know it."""
    provenance = fact.provenance
    return RecalledFact(
        fact.id,
        text,
        session_id=provenance.session_id,
        utterance_id=provenance.utterance_id,
        at_ms=provenance.at_ms,
        reason=why_known(fact, npc),
    )


def fitting(sentences: Sequence[Sentence], *, tokens: int) -> list[Sentence]:
    """The sentences that fit the budget, in order.

    What is too long for what is left is passed over. The first sentence is the most telling: one that is too long by
    itself is shortened, so that something is always told.
    """
    found: list[Sentence] = []
    left = characters_in(tokens)
    for sentence in sentences:
        if len(sentence.text) <= left:
            found.append(sentence)
        elif not found:
            found.append(replace(sentence, text=shortened(sentence.text, left), is_whole=False))
        else:
            continue
        left -= len(found[-1].text) + 1
    return found


def shortened(text: str, most_characters: int) -> str:
    """The first whole sentences of a text that have room; else its first whole words, and what shows that more would
    follow.
    """
    if len(text) <= most_characters:
        return text
    ends = [found.end() for found in _SENTENCE_END.finditer(text) if found.end() <= most_characters]
    if ends:
        return text[: ends[-1]]
    cut = text[: most_characters - 2]  # room for " …"
    at = cut.rfind(" ")
    return f"{(cut[:at] if at > 0 else cut).rstrip(' ,;:')} …"


def _spoken(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case str() | int() | float():
            return str(value).strip()
        case list():
            return ", ".join(spoken for one in value if (spoken := _spoken(one)))
        case _:
            return ""


def _in_words(predicate: str) -> str:
    words = predicate.replace("_", " ")
    return words.lower() if predicate.isupper() else words


def _as_verb(predicate: str) -> str:
    words = _in_words(predicate)
    first = words.partition(" ")[0]
    return words if first.endswith("s") and not first.endswith("ss") else f"is {words}"


def _about(entity: Entity, text: str) -> str:
    if any(re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) for name in names_of(entity)):
        return _sentence(text)
    return _sentence(f"{entity.name}: {text}")


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
