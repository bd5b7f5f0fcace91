"""A stretch of talk as the chronicle reads it."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from glyphoxa.domain.knowledge import PUBLIC, Visibility
from glyphoxa.domain.utterance import Utterance


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
