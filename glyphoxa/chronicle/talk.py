"""A stretch of talk as the chronicle reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import PUBLIC, Visibility


@dataclass(frozen=True, slots=True)
class NumberedUtterance:
    """
    Attributes:
        utterance: As it stands in the log, with the DM's corrections.
        ordinal: Its number in its session, from 1.
    """

    utterance: Utterance
    ordinal: int


@dataclass(frozen=True, slots=True)
class SceneTalk:
    """Utterances that follow each other and hang together: the talk of a scene, or a part of it.

    Attributes:
        language: BCP 47 tag of the campaign.
        said: In the order of their ordinals; never empty.
        before: What was said right before it, for reading only: nothing is learned from it again.
    """

    campaign: CampaignId
    session: SessionId
    language: str
    said: tuple[NumberedUtterance, ...]
    before: tuple[NumberedUtterance, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """Somebody or something the campaign knows already, by all its names.

    Attributes:
        is_of_talk: It was learned from talk; nobody wrote it down.
    """

    id: EntityId
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    visibility: Visibility = PUBLIC
    is_of_talk: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


# Where talk is cut into stretches that are read at once.


LONGEST: Final = 40
"""Utterances of a stretch: what a model reads at once, and what is read again when a worker dies."""
BEFORE: Final = 8
"""Utterances in front of a stretch that say what its pronouns mean."""
_BREAK_MS: Final = 10 * 60_000
"""A table that was silent for so long has had a pause, or another scene."""


def stretches(
    campaign: CampaignId,
    session: SessionId,
    language: str,
    said: Sequence[NumberedUtterance],
    before: Sequence[NumberedUtterance] = (),
) -> Iterator[SceneTalk]:
    """The talk in stretches, each with what was said in front of it in the same scene. A scene ends where others
    listen, and where nobody said anything for ten minutes.
    """
    context: list[NumberedUtterance] = list(before)
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
    """Whether another scene begins between two utterances that follow each other."""
    if now.utterance.at_ms - last.utterance.at_ms >= _BREAK_MS:
        return True
    heard, hears = _hearers(last), _hearers(now)
    # One who comes or goes does not end a scene.
    return bool(heard) and bool(hears) and heard.isdisjoint(hears)


def _hearers(said: NumberedUtterance) -> frozenset[NpcId]:
    return said.utterance.witnesses


# What a stretch of talk tells of the world, before it is compared with what is known.


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
