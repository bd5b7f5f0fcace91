"""Ports of the chronicle: the extractor, and the log of reading progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from glyphoxa.chronicle.effects import Effect
from glyphoxa.chronicle.talk import Extraction, KnownEntity, NumberedUtterance, SceneTalk
from glyphoxa.chronicle.utterance_nodes import StateAtom
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.judgement.safety import Judged


class LeaseLost(GlyphoxaError):
    """Another worker has taken the session, or its transcript has changed: these findings are dropped."""


class Extractor(Protocol):
    """Finds facts about the world in a stretch of the transcript, by rules or a model."""

    async def extract(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
        """Return the findings in `talk.said`, each with its evidence.

        Later steps decide whether a finding is new and who may know it.

        Raises:
            Unavailable: A model cannot be reached in time.
            Unparseable: A model returned an invalid answer, all of which is dropped.
        """
        ...


@dataclass(frozen=True, slots=True)
class JudgedUtterance:
    said: NumberedUtterance
    judged: Judged


class TurnJudge(Protocol):
    """Judges utterances: what they ask for, how risky they are, and whether to learn from them."""

    async def judge(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Sequence[JudgedUtterance]:
        """Return the judgement of each utterance in `talk.said`, in order. Never fails: the rules decide instead."""
        ...

    async def judge_again(
        self, checked: Checked, talk: SceneTalk, known: Sequence[KnownEntity]
    ) -> Sequence[JudgedUtterance]:
        """Return the utterances of `talk.said` that the first judgement missed, with their new judgement.

        Args:
            checked: The first judgements, and what was said afterwards.
        """
        ...


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """Reading progress of a session.

    Attributes:
        last_ordinal: Number of its last utterance.
        read_ordinal: Everything up to it was read.
        n_rereads: Utterances changed since they were read.
        attempts: Failures in a row; `error` is the last reason.
        retry_at_ms: Not retried before; milliseconds since the Unix epoch.
        is_dead: It failed too often and is not retried until requested.
        n_refused: Rejected findings; `refused` is the last reason.
        n_unchecked: Utterances at the end of a session that is over, without their second judgement.
        n_replies: Replies of NPCs among what was not read.
        is_unfinished: Its last reading failed or was cut off, perhaps after everything was read.
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
    n_unchecked: int = 0
    n_replies: int = 0
    is_unfinished: bool = False

    @property
    def has_news(self) -> bool:
        return self.read_ordinal < self.last_ordinal or self.n_rereads + self.n_unchecked > 0 or self.is_unfinished


@dataclass(frozen=True, slots=True)
class Reread:
    """An utterance changed since it was read. `change_seq` is that of the change."""

    ordinal: int
    change_seq: int


@dataclass(frozen=True, slots=True)
class Unread:
    """The next part of a session to read.

    Attributes:
        said: In order, without retracted utterances.
        before: The utterances just before it.
        up_to: Ordinal of the last utterance considered.
        rereads: Changed utterances up to `up_to`.
    """

    said: tuple[NumberedUtterance, ...]
    before: tuple[NumberedUtterance, ...]
    up_to: int
    rereads: tuple[Reread, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """A part of a session that was read, for its second judgement.

    Attributes:
        said: In order, without retracted utterances, with their first judgements.
        before, after: The utterances around it.
        up_to: Ordinal of the last utterance considered.
    """

    said: tuple[JudgedUtterance, ...]
    before: tuple[NumberedUtterance, ...]
    after: tuple[NumberedUtterance, ...]
    up_to: int


@dataclass(frozen=True, slots=True)
class ReadingStep:
    """The result of reading a stretch, written in one transaction.

    Attributes:
        read_from, read_to: Reading progress before and after.
        effects: Events of the stretch.
        unlearned: Facts from these utterances are removed first, as of `at_ms`, milliseconds since the Unix epoch.
        rereads: Changed utterances that are now read.
        refused: Reasons why findings were rejected.
        judged: Judgements of the stretch. They replace earlier ones.
        checked_to: Progress of the second judgement; None: unchanged, or back to before the first of `rereads`.
        atoms: State atoms of the stretch. Those of `unlearned` utterances are deleted first.
    """

    session: SessionId
    read_from: int
    read_to: int
    effects: tuple[Effect, ...] = ()
    unlearned: tuple[UtteranceId, ...] = ()
    rereads: tuple[Reread, ...] = ()
    at_ms: int = 0
    refused: tuple[str, ...] = ()
    judged: tuple[JudgedUtterance, ...] = ()
    checked_to: int | None = None
    atoms: tuple[StateAtom, ...] = ()


class ChronicleLog(Protocol):
    """Stores reading progress and findings.

    All methods raise `Unavailable` if the database is unreachable or late; nothing is written then.
    """

    async def progress(self, campaign: CampaignId) -> Sequence[SessionProgress]:
        """Return the progress of all sessions, in order of their start."""
        ...

    async def take(self, campaign: CampaignId, session: SessionId) -> int | None:
        """Lease a session for reading. Returns the ordinal reached, or None if another worker reads it.

        The lease expires after some time in which nothing is learned.
        """
        ...

    async def release(self, campaign: CampaignId, session: SessionId) -> None:
        """End the lease of a session that was read without a failure."""
        ...

    async def unread(self, campaign: CampaignId, session: SessionId, *, after: int, limit: int) -> Unread | None:
        """Return the next unread part, or None.

        Args:
            after: The ordinal reached.
        """
        ...

    async def reread(self, campaign: CampaignId, session: SessionId, *, up_to: int) -> Unread | None:
        """Return the first changed utterance that was read before, with changed ones right after it; or None."""
        ...

    async def decide(self, campaign: CampaignId, session: SessionId, said: Sequence[Utterance]) -> bool:
        """Withhold, or allow again, what players ask for in these utterances of the log. Returns whether any changed.

        Each request counts once: after that, only the player changes it.
        """
        ...

    async def unchecked(self, campaign: CampaignId, session: SessionId, *, up_to: int, every: int) -> Checked | None:
        """Return the next `every` utterances to judge a second time, or None if too little was said after them.

        Of a backlog, return a whole stretch.

        Args:
            up_to: The ordinal reached.
        """
        ...

    async def known(self, campaign: CampaignId) -> Sequence[KnownEntity]: ...

    async def learn(self, campaign: CampaignId, step: ReadingStep) -> None:
        """Write a step, all or nothing.

        Raises:
            LeaseLost: Another worker has taken the session.
            InvalidInput: The world or the database does not accept part of it.
        """
        ...

    async def consolidate(self, campaign: CampaignId) -> int:
        """Connect and merge state atoms, up to a limit. Returns how many; 0: too few are new."""
        ...

    async def failed(self, campaign: CampaignId, session: SessionId, error: str) -> SessionProgress:
        """Record a failure, unless another worker has the session now. It is retried later, up to a limit."""
        ...


PAGE: Final = 500
"""Utterances fetched at once."""


async def pages_of(
    log: ChronicleLog, campaign: CampaignId, session: SessionId, *, after: int = 0, up_to: int | None = None
) -> AsyncIterator[Unread]:
    """Yield the utterances of a session between two ordinals, except retracted ones, page by page."""
    while up_to is None or after < up_to:
        page = await log.unread(campaign, session, after=after, limit=PAGE)
        if page is None:
            return
        if up_to is not None and page.up_to > up_to:
            page = replace(page, said=tuple(each for each in page.said if each.ordinal <= up_to), up_to=up_to)
        yield page
        after = page.up_to


async def said_in(
    log: ChronicleLog, campaign: CampaignId, session: SessionId, *, after: int = 0
) -> list[NumberedUtterance]:
    """Return all utterances of a session after an ordinal, except retracted ones."""
    return [each async for page in pages_of(log, campaign, session, after=after) for each in page.said]
