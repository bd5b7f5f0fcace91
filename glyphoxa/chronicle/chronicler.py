"""Reads transcripts in order, judges each utterance, and stores the facts in those worth remembering.

The gate, in order:

- Every utterance is in the transcript before it is read, whatever becomes of it.
- The judge decides about each one (see `glyphoxa.chronicle.judge`). Facts are learned only from utterances that pass
  `TurnJudgement.may_extract`. The others are context for these, except redirected ones and those about consent, which
  are left out.
- Interval: an incomplete stretch is read when nobody has spoken for `gather_ms`.
- Cadence: facts are learned with every stretch. Every `check_every` utterances, the backstop judges again what the
  gate skipped, with what was said after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from loguru import logger

from glyphoxa.actors.deadline import answered_within
from glyphoxa.actors.supervisor import follow
from glyphoxa.chronicle.coined_terms import CoinedTerms
from glyphoxa.chronicle.effects import Effects, effects_of
from glyphoxa.chronicle.ports import (
    ChronicleLog,
    Extractor,
    JudgedUtterance,
    LeaseLost,
    ReadingStep,
    SessionProgress,
    TurnJudge,
    Unread,
)
from glyphoxa.chronicle.talk import LONGEST, Extraction, KnownEntity, NumberedUtterance, SceneTalk, stretches
from glyphoxa.chronicle.utterance_nodes import Grafter
from glyphoxa.domain.budgets import CHECK_EVERY
from glyphoxa.domain.campaign import Findings
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.judgement.safety import Mode

PAGE: Final = 200
"""Utterances fetched at once."""
EXTRACT_MS: Final = 10_000
"""Time limit for the rules, which need a few milliseconds for a stretch."""


@dataclass(slots=True)
class Tally:
    """Counts of one reading."""

    n_read: int = 0
    n_events: int = 0


@dataclass(frozen=True, slots=True)
class Chronicler:
    """Turns the transcript of one campaign into knowledge with a given extractor.

    It may be stopped at any time, and several may run: each stretch is written once, in order.

    Args:
        language: BCP 47 tag of the campaign.
        grafter: Makes state atoms; None: with the speakers' names alone.
        extract_ms: Time limit of the extractor for one stretch.
        check_every: Utterances after which the backstop runs.
        findings: See `Campaign`.
        terms: None: no coined terms are collected.
        give_way: Waited for before each stretch; None: nothing has precedence.
    """

    campaign: CampaignId
    language: str
    log: ChronicleLog
    extractor: Extractor
    judge: TurnJudge
    grafter: Grafter | None = None
    extract_ms: int = EXTRACT_MS
    check_every: int = CHECK_EVERY
    findings: Findings = "review"
    terms: CoinedTerms | None = None
    give_way: Callable[[], Awaitable[None]] | None = None

    async def run(
        self,
        session: SessionId,
        *,
        on_progress: Callable[[int], None] | None = None,
        then: Callable[[SessionId], Awaitable[object]] | None = None,
    ) -> Tally | None:
        """Read the unread part of a session.

        Args:
            on_progress: Called with the ordinal reached.
            then: Awaited after everything was read. If it fails or is cut off, the session is read once more.

        Returns:
            None: another worker reads it.

        Raises:
            Unavailable: The database or the extractor's model is unreachable. What was read so far is kept.
            GlyphoxaError: A stretch could not be read or written. The failure is recorded.
        """
        tally = Tally()
        reached = await self.log.take(self.campaign, session)
        if reached is None:
            return None
        try:
            while (changed := await self.log.reread(self.campaign, session, up_to=reached)) is not None:
                if not await self._decides(session, changed):
                    await self._page(session, changed, tally, reached)
            while (unread := await self.log.unread(self.campaign, session, after=reached, limit=PAGE)) is not None:
                if not await self._decides(session, unread):
                    reached = await self._page(session, unread, tally, reached, on_progress)
            while await self._check(session, tally, reached):
                pass
            await self._coin(session, reached)
        except LeaseLost:
            logger.info("session {} of campaign {} is read again, or by another worker", session, self.campaign)
            return None
        except GlyphoxaError as error:
            await self._note(session, error)
            raise
        if then is not None:
            await then(session)
        await self.log.release(self.campaign, session)
        return tally

    async def _page(
        self,
        session: SessionId,
        page: Unread,
        tally: Tally,
        reached: int,
        on_progress: Callable[[int], None] | None = None,
    ) -> int:
        """Read a page, and replace what was learned from it if it was read before. Returns the ordinal reached."""
        parts = list(stretches(self.campaign, session, self.language, page.said, page.before))
        if page.up_to - reached >= PAGE and len(parts) > 1:
            # The last stretch may continue on the next page. It is read with that, so that all pages are cut alike.
            page = replace(page, up_to=parts.pop().said[0].ordinal - 1)
        withheld: set[UtteranceId] = set()
        done_to = 0
        for n, whole in enumerate(parts or [None], start=1):
            # Utterances after the last one that were retracted have been read, too.
            end = page.up_to if whole is None or n == len(parts) else whole.said[-1].ordinal
            part = whole and replace(whole, before=_without(whole.before, withheld))
            judged = await self._judged(part)
            withheld |= _withheld(judged)
            extraction = await self._extraction(part, judged)
            if part is not None and end <= reached:
                # Learn first, so that a name found only here counts as new. If the worker dies now, the mark is
                # unchanged.
                gone = tuple(each.utterance.id for each in part.said)
                at_ms = max(each.utterance.at_ms for each in part.said)
                await self.log.learn(self.campaign, ReadingStep(session, reached, reached, unlearned=gone, at_ms=at_ms))
            effects = await self._effects(part, extraction, judged, tally)
            done = tuple(each for each in page.rereads if done_to < each.ordinal <= end)
            step = ReadingStep(session, reached, max(reached, end), judged=tuple(judged), rereads=done)
            await self._learn(step, effects)
            tally.n_read += len(judged)
            reached, done_to = step.read_to, end
            if on_progress is not None:
                on_progress(reached)
        return reached

    async def _learn(self, step: ReadingStep, effects: Effects) -> None:
        step = replace(step, effects=effects.of, refused=effects.refused, atoms=effects.atoms)
        await self.log.learn(self.campaign, step)

    async def _coin(self, session: SessionId, reached: int) -> None:
        """Propose the meanings of coined terms, each in a step of its own, which renews the lease."""
        if self.terms is None:
            return
        async for talk, found in self.terms.due(session, up_to=reached):
            effects = effects_of(found, talk, await self.log.known(self.campaign))
            await self.log.learn(self.campaign, ReadingStep(session, reached, reached, effects.of))

    async def _check(self, session: SessionId, tally: Tally, reached: int) -> bool:
        """Judge the next utterances again, and learn from those that the gate missed. False: none are due."""
        checked = await self.log.unchecked(self.campaign, session, up_to=reached, every=self.check_every)
        if checked is None:
            return False
        said = [each.said for each in checked.said]
        part = next(stretches(self.campaign, session, self.language, said, checked.before), None)
        end, missed = checked.up_to, list[JudgedUtterance]()
        effects = Effects(())
        if part is not None:
            if len(part.said) < len(said):
                end = part.said[-1].ordinal
            missed = list(await self.judge.judge_again(checked, part, await self._begin()))
            ids = {each.said.utterance.id for each in missed}
            # What passed the gate was learned then: now it is context.
            now = [each for each in checked.said[: len(part.said)] if each.said.utterance.id not in ids]
            extraction = await self._extraction(part, [*missed, *map(_as_context, now)])
            effects = await self._effects(part, extraction, missed, tally)
        await self._learn(ReadingStep(session, reached, reached, judged=tuple(missed), checked_to=end), effects)
        return True

    async def _judged(self, part: SceneTalk | None) -> Sequence[JudgedUtterance]:
        return () if part is None else await self.judge.judge(part, await self._begin())

    async def _begin(self) -> Sequence[KnownEntity]:
        """Wait until a stretch may be judged. Returns the entities known then."""
        if self.give_way is not None:
            await self.give_way()
        return await self.log.known(self.campaign)

    async def _decides(self, session: SessionId, page: Unread) -> bool:
        """Apply requests of players about being remembered. True: the page has changed and must be fetched again."""
        return await self.log.decide(self.campaign, session, [each.utterance for each in page.said])

    async def _extraction(self, part: SceneTalk | None, judged: Sequence[JudgedUtterance]) -> Extraction:
        learned = _kept(judged)
        if part is None or not learned:
            return Extraction()
        said = _without(part.said, _withheld(judged))
        context = frozenset(each.utterance.id for each in said) - learned
        talk = replace(part, said=said, context=context)
        known = await self.log.known(self.campaign)
        async with answered_within(self.extract_ms, f"{len(part.said)} utterances could not be read"):
            return (await self.extractor.extract(talk, known)).learned_from(talk)

    async def _effects(
        self, part: SceneTalk | None, extraction: Extraction, judged: Sequence[JudgedUtterance], tally: Tally
    ) -> Effects:
        if part is None:
            return Effects(())
        known = await self.log.known(self.campaign)
        effects = effects_of(extraction, part, known, findings=self.findings)
        grafter = self.grafter or Grafter(self.language, {})
        grafted = partial(grafter.atoms_of, part, extraction, effects.ids, known, kept=_kept(judged))
        effects = replace(effects, atoms=await asyncio.to_thread(grafted))
        for why in effects.refused:
            logger.debug("session {} of campaign {}: rejected: {}", part.session, part.campaign, why)
        tally.n_events += sum(len(effect.events) for effect in effects.of)
        return effects

    async def _note(self, session: SessionId, error: GlyphoxaError) -> None:
        try:
            await self.log.failed(self.campaign, session, str(error))
        except Unavailable as away:
            logger.debug("the failure of session {} could not be recorded: {}", session, away)


def _kept(judged: Sequence[JudgedUtterance]) -> set[UtteranceId]:
    return {each.said.utterance.id for each in judged if each.judged.judgement.may_extract}


def _withheld(judged: Sequence[JudgedUtterance]) -> set[UtteranceId]:
    """Return the utterances that are not even context: redirected ones, and those about consent."""
    return {each.said.utterance.id for each in judged if each.judged.judgement.mode is not Mode.IN_WORLD_ANSWER}


def _without(said: Sequence[NumberedUtterance], withheld: Collection[UtteranceId]) -> tuple[NumberedUtterance, ...]:
    return tuple(each for each in said if each.utterance.id not in withheld)


def _as_context(one: JudgedUtterance) -> JudgedUtterance:
    judgement = replace(one.judged.judgement, extract_memory=False)
    return replace(one, judged=replace(one.judged, judgement=judgement))


# The background worker: reads new utterances of all campaigns, one campaign after the other.


LOOK_AGAIN_MS: Final = 5_000
"""Interval of checks for sessions to retry, or whose worker died."""
_LONGEST_RETRY_MS: Final = 3_600_000


@dataclass(slots=True)
class ChronicleWorker:
    """Reads new utterances in the background.

    Args:
        log: Used by this worker only.
        campaigns: Returns the campaigns to read.
        chronicler: Creates a reader for a campaign that has news.
        said: Yields whenever anything was said, and now and then in between. See `glyphoxa.actors.supervisor.follow`.
        now_ms: Unix epoch.
        gather_ms: Time without speech after which an incomplete stretch is read.
        every: Replies of NPCs after which it is read in any case.
        tell: Adds what was read of a session to the timeline.
    """

    log: ChronicleLog
    campaigns: Callable[[], Awaitable[Sequence[CampaignId]]]
    chronicler: Callable[[CampaignId], Awaitable[Chronicler]]
    said: Callable[[], AsyncGenerator[object, None]]
    now_ms: Callable[[], int]
    gather_ms: int = 0
    every: int | None = None
    tell: Callable[[CampaignId, SessionId], Awaitable[object]] | None = None
    _seen: dict[tuple[CampaignId, SessionId], tuple[int, int]] = field(init=False, default_factory=dict)
    _troubles: set[str] = field(init=False, default_factory=set)

    async def run(self) -> None:
        """Read new utterances until cancelled. Failures are retried."""
        await follow(self.said, self._round, what="new utterances")

    async def _round(self, _: object) -> None:
        """Read each campaign once. A failure affects only its own campaign."""
        troubles: set[str] = set()
        try:
            campaigns = await self.campaigns()
        except GlyphoxaError as error:
            campaigns, troubles = (), {f"the chronicle cannot be read now: {error}"}
        for campaign in campaigns:
            try:
                await self.read_new(campaign)
                while await self.log.consolidate(campaign):
                    pass
            except GlyphoxaError as error:
                troubles.add(f"the chronicle of campaign {campaign} cannot be read now: {error}")
        for trouble in sorted(troubles - self._troubles):  # log each once while it lasts
            logger.warning("{}", trouble)
        self._troubles = troubles

    async def read_new(self, campaign: CampaignId) -> int:
        """Read all unpaused sessions of a campaign that have news. Returns how many were read.

        A failing session is recorded, and the others continue.

        Raises:
            Unavailable: The database or the extractor's model is unreachable.
        """
        sessions = due(await self.log.progress(campaign), self.now_ms())
        waiting = [each for each in sessions if self._is_gathered(campaign, each)]
        if not waiting:
            return 0
        chronicler, n_read = await self.chronicler(campaign), 0
        tell = None if self.tell is None else partial(self.tell, campaign)
        for each in waiting:
            try:
                n_read += await chronicler.run(each.session, then=tell) is not None
            except Unavailable:
                raise
            except GlyphoxaError as error:
                logger.warning("session {} of campaign {} cannot be read now: {}", each.session, campaign, error)
        return n_read

    def _is_gathered(self, campaign: CampaignId, session: SessionProgress) -> bool:
        if not self.gather_ms or session.n_rereads or session.last_ordinal - session.read_ordinal >= LONGEST:
            return True
        if self.every is not None and session.n_replies >= self.every:
            return True
        now_ms = self.now_ms()
        last, since_ms = self._seen.get((campaign, session.session), (0, now_ms))
        if last != session.last_ordinal:
            self._seen[campaign, session.session] = session.last_ordinal, now_ms
            return False
        return abs(now_ms - since_ms) >= self.gather_ms  # the clock may be set back


def due(sessions: Sequence[SessionProgress], now_ms: int) -> list[SessionProgress]:
    """Return the sessions to read now, the shortest backlog first."""
    later = range(now_ms + 1, now_ms + _LONGEST_RETRY_MS)  # what is later still is from before the clock was set back
    waiting = [each for each in sessions if each.has_news and not each.is_dead and (each.retry_at_ms or 0) not in later]
    return sorted(waiting, key=lambda each: each.last_ordinal - each.read_ordinal)
