"""A table that is being played obeys what the DM commands from another process, and answers each command once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from loguru import logger

from glyphoxa.domain.commands import TableCommand
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId

_AGAIN_S: Final = 1.0
_PUT_RIGHT_S: Final = 60.0
_OBEYED_WITHIN_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class AskedCommand:
    """A command that was taken, and that nobody else takes."""

    id: str
    told: Mapping[str, object]


class CommandInbox(Protocol):
    """What DMs command. Each command is taken by one table, and soon after it was given, or never."""

    async def take(self, campaign: CampaignId, session: SessionId) -> AskedCommand | None:
        """The oldest for this table.

        Raises:
            Unavailable: The database is away.
        """
        ...

    async def answer(self, campaign: CampaignId, command: str, text: str, *, is_done: bool) -> None:
        """Whoever gave it waits for this.

        Raises:
            Unavailable: The database is away.
        """
        ...

    def changes(self, campaign: CampaignId) -> AsyncGenerator[object, None]:
        """Yields whenever there may be a command."""
        ...


class FollowedCommands:
    """
    Args:
        read: Finds whom a command means; raises `InvalidInput`.
        obey: Does it, and says what was done; likewise.
    """

    def __init__(
        self,
        campaign: CampaignId,
        session: SessionId,
        inbox: CommandInbox,
        *,
        read: Callable[[Mapping[str, object]], TableCommand],
        obey: Callable[[TableCommand], Awaitable[str]],
    ) -> None:
        self._campaign = campaign
        self._session = session
        self._inbox = inbox
        self._read = read
        self._obey = obey

    async def run(self) -> None:
        """The actor's body."""
        has_told = False
        while True:
            try:
                async with aclosing(self._inbox.changes(self._campaign)) as changes:
                    async for _ in changes:
                        await self._take_all()
            except GlyphoxaError as error:  # one that does not pass by itself: a password, a schema
                if not has_told:
                    logger.error("the DM's commands from elsewhere are not seen until this is put right: {}", error)
                has_told = True
                await asyncio.sleep(_PUT_RIGHT_S)

    async def _take_all(self) -> None:
        try:
            while (asked := await self._inbox.take(self._campaign, self._session)) is not None:
                text, is_done = await self._done(asked)
                await self._inbox.answer(self._campaign, asked.id, text, is_done=is_done)
        except Unavailable as error:
            logger.debug("the DM's commands are not read now: {}", error)
            await asyncio.sleep(_AGAIN_S)

    async def _done(self, asked: AskedCommand) -> tuple[str, bool]:
        try:
            command = self._read(asked.told)
            async with asyncio.timeout(_OBEYED_WITHIN_S):
                return await self._obey(command), True
        except InvalidInput as error:
            return str(error), False
        except TimeoutError:
            return "the table took the command and has not obeyed it yet: it is busy, or closing", False
