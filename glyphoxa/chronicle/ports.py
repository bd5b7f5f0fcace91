"""Who reads talk for the chronicle, and where it is kept how far it was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.chronicle.effects import Effect
from glyphoxa.chronicle.talk import Extraction, KnownEntity, NumberedUtterance, SceneTalk
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId


class LeaseLost(GlyphoxaError):
    """Another worker has taken the session: what this one found does not count."""


class Extractor(Protocol):
    """Finds what a stretch of talk tells of the world: by rules, or by a model."""

    async def extract(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
        """What is learned from `talk.said`, each with the utterances that say it. It says only what is there: whether
        that is new, and who may know it, is decided behind it.

        Raises:
            Unavailable: A model cannot be reached in time.
            Unparseable: A model answered something else than was asked for; nothing of it counts.
        """
        ...


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """How far a session was read.

    Attributes:
        last_ordinal: Of what was said in it.
        read_ordinal: All up to it was read.
        n_rereads: Utterances that say something else since they were read.
        attempts: Failures in a row; `error` is the last one's reason.
        retry_at_ms: It is not tried again before; milliseconds since the Unix epoch.
        is_dead: It failed too often, and waits for somebody who has it tried again.
        n_refused: Findings that were not believed; `refused` is the last one's reason.
    """

    session: SessionId
    last_ordinal: int
    read_ordinal: int
    n_rereads: int = 0
    attempts: int = 0
    error: str | None = None
    retry_at_ms: int | None = None
    is_dead: bool = False
    n_refused: int = 0
    refused: str | None = None

    @property
    def has_news(self) -> bool:
        return self.read_ordinal < self.last_ordinal or self.n_rereads > 0


@dataclass(frozen=True, slots=True)
class Reread:
    """An utterance that says something else since it was read. `change_seq` is that of the change."""

    ordinal: int
    change_seq: int


@dataclass(frozen=True, slots=True)
class Unread:
    """What of a session is to be read next.

    Attributes:
        said: In order; what was retracted is left out.
        before: What was said right before it.
        up_to: Ordinal of the last that was looked at.
        rereads: Of utterances up to `up_to`.
    """

    said: tuple[NumberedUtterance, ...]
    before: tuple[NumberedUtterance, ...]
    up_to: int
    rereads: tuple[Reread, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadingStep:
    """What becomes of a stretch of talk, in one transaction.

    Attributes:
        read_from, read_to: The session was read up to the first of these, and now is up to the second.
        effects: What the stretch tells.
        unlearned: What was learned from these utterances goes first, as of `at_ms`, milliseconds since the Unix epoch.
        rereads: What is done with.
        refused: What was found and not believed, each with the reason.
    """

    session: SessionId
    read_from: int
    read_to: int
    effects: tuple[Effect, ...] = ()
    unlearned: tuple[UtteranceId, ...] = ()
    rereads: tuple[Reread, ...] = ()
    at_ms: int = 0
    refused: tuple[str, ...] = ()


class ChronicleLog(Protocol):
    """How far talk has become knowledge. All methods raise `Unavailable` when the database is away or late; nothing is
    written then.
    """

    async def progress(self, campaign: CampaignId) -> Sequence[SessionProgress]:
        """Of all sessions, in the order in which they began."""
        ...

    async def take(self, campaign: CampaignId, session: SessionId) -> int | None:
        """Read it from now on, alone; the ordinal up to which it was read. It is free again after some time in which
        nothing of it was learned. None: another worker reads it.
        """
        ...

    async def release(self, campaign: CampaignId, session: SessionId) -> None: ...

    async def unread(self, campaign: CampaignId, session: SessionId, *, after: int, limit: int) -> Unread | None:
        """What comes next; None: nothing does.

        Args:
            after: The ordinal up to which it was read.
        """
        ...

    async def reread(self, campaign: CampaignId, session: SessionId, *, up_to: int) -> Unread | None:
        """The first that was read and says something else now, with those of such that follow it at once; None: there
        is none.
        """
        ...

    async def read_again(self, campaign: CampaignId, session: SessionId) -> None:
        """Have all that was read of a session read again: what it told goes, stretch by stretch."""
        ...

    async def known(self, campaign: CampaignId) -> Sequence[KnownEntity]: ...

    async def learn(self, campaign: CampaignId, step: ReadingStep) -> None:
        """Write it all, or nothing.

        Raises:
            LeaseLost: Another worker has taken the session meanwhile.
            InvalidInput: The world, or the database, cannot hold some of it.
        """
        ...

    async def failed(self, campaign: CampaignId, session: SessionId, error: str) -> SessionProgress:
        """Note a failure: it is tried again later, and after some of them not at all."""
        ...

    async def revive(self, campaign: CampaignId, session: SessionId | None = None) -> list[SessionId]:
        """Have what failed tried again at once; None: all of it. Returns which sessions had failed."""
        ...
