"""Writes down what happens: utterances to the spool, finished turns to the log. In order, off the voice path."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from loguru import logger

from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.events import Degraded, TableEvent, Trouble, UtteranceKept
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.domain.utterance import Utterance


class Keeper(Protocol):
    """Keeps utterances: `glyphoxa.transcript.recorder.Recorder`."""

    async def keep(self, utterance: Utterance) -> None:
        """Returns once it is on disk.

        Raises:
            Unavailable: It cannot be kept (disk full).
        """
        ...

    async def keep_so_far(self, utterance: Utterance) -> None:
        """Returns once it is on disk what was heard so far of an utterance that is still being said.

        Raises:
            Unavailable: It cannot be kept (disk full).
        """
        ...


class TurnLog(Protocol):
    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None: ...


@dataclass(frozen=True, slots=True)
class SoFar:
    """What was heard so far of an utterance that is still being said. Its end comes under the same id."""

    utterance: Utterance


@dataclass(frozen=True, slots=True)
class _Mark:
    """Reached when everything posted before it has been written."""

    written: asyncio.Event


class Scribe:
    """An actor that writes. What it could not write stays in its hand and is tried again; the table plays on.

    Args:
        turns: Where finished turns go; None without long-term memory.
        pause: Awaited between tries at an utterance that could not be kept.
    """

    def __init__(
        self,
        campaign: CampaignId,
        *,
        keeper: Keeper,
        turns: TurnLog | None,
        tell: Callable[[TableEvent], None],
        now_ms: Callable[[], int],
        pause: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(1.0),
    ) -> None:
        self.mailbox: Mailbox[Utterance | SoFar | TurnRecord | _Mark] = Mailbox("scribe", capacity=100_000)
        self._campaign = campaign
        self._keeper = keeper
        self._turns = turns
        self._tell = tell
        self._now_ms = now_ms
        self._pause = pause
        self._in_hand: Utterance | SoFar | TurnRecord | _Mark | None = None

    async def run(self) -> None:
        """The actor's body."""
        while True:
            if self._in_hand is None:
                self._in_hand = await self.mailbox.receive()
            match self._in_hand:
                case Utterance() as utterance:
                    await self._keep(utterance)
                case SoFar(utterance):
                    await self._keep_so_far(utterance)
                case TurnRecord() as turn:
                    await self._record(turn)
                case _Mark(written):
                    written.set()
            self._in_hand = None

    async def wait_until_written(self) -> None:
        """Until all that was posted before this call is on disk."""
        mark = _Mark(asyncio.Event())
        self.mailbox.post(mark)
        await mark.written.wait()

    def unwritten(self) -> list[Utterance]:
        """What is not on disk yet, taken out of the scribe's hand: for who must write it without the scribe."""
        in_hand, waiting = self._in_hand, self.mailbox.take_all()
        said = [message.utterance if isinstance(message, SoFar) else message for message in (in_hand, *waiting)]
        return [message for message in said if isinstance(message, Utterance)]

    async def _keep(self, utterance: Utterance) -> None:
        has_told = False
        while True:
            try:
                await self._keeper.keep(utterance)
            except GlyphoxaError as error:
                if not has_told:
                    what = f"what is said cannot be written down: {error}"
                    self._tell(Degraded(what, self._now_ms(), Trouble.UNWRITTEN))
                    has_told = True
                await self._pause()
            else:
                self._tell(UtteranceKept(utterance))
                return

    async def _keep_so_far(self, utterance: Utterance) -> None:
        try:
            await self._keeper.keep_so_far(utterance)
        except GlyphoxaError as error:
            logger.debug("what was heard so far is not kept: {}", error)  # its end will be tried until it is

    async def _record(self, turn: TurnRecord) -> None:
        if self._turns is None:
            return
        try:
            await self._turns.record_turn(self._campaign, turn)
        except GlyphoxaError as error:
            # A turn's timeline is for figures; what was said is kept without it.
            logger.warning("the timeline of turn {} was not stored: {}", turn.id, error)
