"""A stretch of the transcript as the chronicle reads it, and the findings in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, UtteranceId
from glyphoxa.language.sentence_form import only_asks
from glyphoxa.language.sentences import sentences
from glyphoxa.language.table_talk import is_out_of_character
from glyphoxa.world.state import WorldEntity


@dataclass(frozen=True, slots=True)
class NumberedUtterance:
    """An utterance and its position.

    Attributes:
        utterance: The version in the log, with the DM's corrections.
        ordinal: Its number in its session, from 1.
    """

    utterance: Utterance
    ordinal: int


@dataclass(frozen=True, slots=True)
class SceneTalk:
    """Consecutive utterances of one scene, or of a part of it.

    Attributes:
        language: BCP 47 tag of the campaign.
        said: In the order of their ordinals; never empty.
        before: The utterances just before it, as context only.
        context: Utterances of `said` that are context only, too.
    """

    campaign: CampaignId
    session: SessionId
    language: str
    said: tuple[NumberedUtterance, ...]
    before: tuple[NumberedUtterance, ...] = ()
    context: frozenset[UtteranceId] = frozenset()

    def is_context(self, ids: Iterable[UtteranceId]) -> bool:
        """Return whether none of these utterances may be learned from: not from asides, and not from NPCs."""
        learned = {each.utterance.id for each in self.said if each.utterance.is_evidence} - self.context
        return learned.isdisjoint(ids)


@dataclass(frozen=True, slots=True)
class KnownEntity(WorldEntity):
    """An entity that the campaign knows, with all its names.

    Attributes:
        is_defined: A meaning was proposed for it, whatever the DM decided about that.
        occupations: The accepted ones of a person.
    """

    is_defined: bool = False
    occupations: tuple[str, ...] = ()


def tellable(said: Iterable[Utterance]) -> list[Utterance]:
    """Return what players stated in the story: no asides, no mere questions, and no words that a model invented."""
    return [each for each in said if each.is_evidence and _states(each.text)]


def _states(text: str) -> bool:
    if is_out_of_character(text):
        return False  # of a session that was stored before asides were marked
    return not all(map(only_asks, sentences(text)))


# Cutting the transcript into stretches.


LONGEST: Final = 40
"""Maximum utterances of a stretch: one model prompt, and the part read again if a worker dies."""
BEFORE: Final = 20
"""Utterances before a stretch. The judge compares with all of them; the nearest resolve pronouns."""
BREAK_MS: Final = 10 * 60_000
"""A longer silence is a break or a new scene."""


def stretches(
    campaign: CampaignId,
    session: SessionId,
    language: str,
    said: Sequence[NumberedUtterance],
    before: Sequence[NumberedUtterance] = (),
) -> Iterator[SceneTalk]:
    """Cut the transcript into stretches, each with its context.

    A scene ends when the listeners change completely, or after ten minutes of silence.
    """
    scene = max((n for n in range(1, len(before)) if is_break(before[n - 1], before[n])), default=0)
    context: list[NumberedUtterance] = list(before[scene:])
    stretch: list[NumberedUtterance] = []
    for each in said:
        last = (stretch or context)[-1] if stretch or context else None
        is_new_scene = last is not None and is_break(last, each)
        if stretch and (is_new_scene or len(stretch) == LONGEST):
            yield SceneTalk(campaign, session, language, tuple(stretch), tuple(context[-BEFORE:]))
            context, stretch = [*context, *stretch], []
        if is_new_scene:
            context = []
        stretch.append(each)
    if stretch:
        yield SceneTalk(campaign, session, language, tuple(stretch), tuple(context[-BEFORE:]))


def is_break(last: NumberedUtterance, now: NumberedUtterance) -> bool:
    """Return whether a new scene begins between two consecutive utterances."""
    if now.utterance.at_ms - last.utterance.at_ms >= BREAK_MS:
        return True
    listeners_before, listeners = last.utterance.witnesses, now.utterance.witnesses
    # A single arrival or departure does not end a scene.
    return bool(listeners_before) and bool(listeners) and listeners_before.isdisjoint(listeners)


# Findings in a stretch, before they are compared with what is known.


class Kind(StrEnum):
    """Relation of a statement to now.

    `RUMOUR` is what somebody else says or what may be. `UNREAL` is dreamt, sung, played, wished, feared or conditional.
    """

    NOW = "now"
    PAST = "past"
    DENIED = "denied"
    RUMOUR = "rumour"
    PLAN = "plan"
    UNREAL = "unreal"


STORED: Final = (Kind.PAST, Kind.DENIED, Kind.RUMOUR, Kind.PLAN)
"""Kinds of statements that are stored for the DM, each as a fact of this name that quotes the sentence."""
NOT_TOLD: Final = (Kind.RUMOUR, Kind.UNREAL)
"""Kinds of what the speaker does not state."""


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity in an extraction.

    Attributes:
        key: Used by relations and facts of the same `Extraction`.
        type: One of `ENTITY_TYPES`, or the campaign's own.
        known: The entity of the campaign; None if new.
        evidence: Utterances that mention it; never empty.
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
    """A relation: `source` and `target` are keys, `type` is for example `MEMBER_OF`.

    Attributes:
        is_inferred: A model found it. What the rules find was said in these words.
    """

    source: str
    type: str
    target: str
    evidence: tuple[UtteranceId, ...]
    confidence: float
    kind: Kind = Kind.NOW
    is_inferred: bool = False


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A fact about an entity.

    Attributes:
        subject: A key.
        about: Its attribute in snake case: `occupation`, `promise`, `decision`, `state`, ...
        value: In the words of the transcript.
        kind: Any other than now is also the attribute's name, and needs review whatever its confidence.
        is_inferred: See `ExtractedRelation`.
    """

    subject: str
    about: str
    value: str
    evidence: tuple[UtteranceId, ...]
    confidence: float
    kind: Kind = Kind.NOW
    is_inferred: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """All findings in a stretch.

    Attributes:
        refused: Reasons why an extractor rejected findings.
    """

    entities: tuple[ExtractedEntity, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()
    facts: tuple[ExtractedFact, ...] = ()
    refused: tuple[str, ...] = ()

    def learned_from(self, talk: SceneTalk) -> Extraction:
        """Drop findings that rest only on context, except entities that the others name."""
        relations = tuple(each for each in self.relations if not talk.is_context(each.evidence))
        facts = tuple(each for each in self.facts if not talk.is_context(each.evidence))
        named = {each.subject for each in facts}.union(*((each.source, each.target) for each in relations))
        entities = tuple(each for each in self.entities if each.key in named or not talk.is_context(each.evidence))
        return Extraction(entities, relations, facts, self.refused)
