"""What a tool answers a model: JSON values only, in the words of `glyphoxa.context.knowledge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from glyphoxa.context.knowledge import fact_sentence, is_secret, why_known
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.world.api import Known

MOST_FOUND: Final = 10

Found = dict[str, object]
"""`found` (a list) and optionally `note`."""


def found(answers: Sequence[object]) -> Found:
    if not answers:
        return nothing("nothing found")
    if len(answers) > MOST_FOUND:
        return {"found": list(answers[:MOST_FOUND]), "note": f"{len(answers) - MOST_FOUND} more: ask for less"}
    return {"found": list(answers)}


def nothing(note: str) -> Found:
    return {"found": [], "note": note}


def described(known: Known, relation: str) -> Found:
    """All that an NPC knows of an entity.

    Args:
        relation: Only relations of this type; empty for all.
    """
    about: dict[str, object] = {}
    secrets: list[str] = []
    for fact in known.attributes:
        name, value = fact.claim.predicate, fact.claim.content
        if is_secret(fact):
            secrets.append(_told(fact, {known.entity.id: known.entity}))
        else:
            about[name] = value if name not in about else [*_as_list(about[name]), value]
    wanted = relation.replace(" ", "_").casefold()
    relations: list[str] = []
    for fact, other in known.relations:
        if not wanted or fact.claim.predicate.casefold() == wanted:
            told = _told(fact, {known.entity.id: known.entity, other.id: other})
            (secrets if is_secret(fact) else relations).append(told)
    return {
        "name": known.entity.name,
        "type": known.entity.type,
        **({"about": about} if about else {}),
        "relations": relations,
        **({"keep secret": secrets} if secrets else {}),
    }


def fact_found(fact: Fact, entities: Mapping[EntityId, Entity], npc: NpcId) -> Found | None:
    """A fact, why the NPC knows it, and from when it is; None when there are no words for it."""
    told = _told(fact, entities)
    if not told:
        return None
    source = fact.provenance
    return {
        "keep secret" if is_secret(fact) else "fact": told,
        "why": why_known(fact, npc),
        "session": source.session_id,
        "when": when(source.at_ms),
    }


def best_match(name: str, entities: Sequence[Entity]) -> Entity | None:
    """The entity that is called so: by its name, else by an alias, an article in front left aside."""
    wanted = bare(name)
    by_name = next((entity for entity in entities if bare(entity.name) == wanted), None)
    return by_name or next(
        (entity for entity in entities if any(bare(alias) == wanted for alias in entity.aliases)), None
    )


def when(at_ms: int | None) -> str | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="minutes")


def _told(fact: Fact, entities: Mapping[EntityId, Entity]) -> str:
    """In words; empty when one of its ends is not known."""
    subject = entities.get(fact.claim.subject)
    other = entities.get(fact.claim.object) if fact.claim.object is not None else None
    if subject is None or (fact.claim.object is not None and other is None):
        return ""
    sentence = fact_sentence(fact, subject, other)
    is_sure = fact.provenance.dm_confirmed or fact.provenance.origin in ("campaign_file", "dm")
    return f"{sentence} (not certain)" if sentence and not is_sure else sentence


def bare(name: str) -> str:
    """A name as it is compared."""
    return " ".join(name.casefold().split()).removeprefix("the ")


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
