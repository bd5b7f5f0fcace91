"""What a stretch of talk tells of the world, before it is compared with what is known."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.ids import EntityId, UtteranceId


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """
    Attributes:
        key: What relations and facts of the same `Extraction` call it.
        type: One of `ENTITY_TYPES`, or the campaign's own.
        known: Which entity of the campaign it is; None: none that is known.
        evidence: The utterances that speak of it; never empty.
        confidence: 0 to 1.
    """

    key: str
    name: str
    type: str
    evidence: tuple[UtteranceId, ...]
    confidence: float
    aliases: tuple[str, ...] = ()
    known: EntityId | None = None


@dataclass(frozen=True, slots=True)
class ExtractedRelation:
    """That two of them are related: `source` and `target` are keys, `type` is such as `MEMBER_OF`."""

    source: str
    type: str
    target: str
    evidence: tuple[UtteranceId, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """Something about one of them.

    Attributes:
        subject: A key.
        about: What of it, in snake case: `occupation`, `promise`, `decision`, `state`, ...
        value: In the words of the talk.
    """

    subject: str
    about: str
    value: str
    evidence: tuple[UtteranceId, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Extraction:
    """
    Attributes:
        refused: What an extractor was told and does not believe, each with the reason.
    """

    entities: tuple[ExtractedEntity, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()
    facts: tuple[ExtractedFact, ...] = ()
    refused: tuple[str, ...] = ()
