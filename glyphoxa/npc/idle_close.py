"""Ends a session at which nobody sits any more: an evening that was over hours ago holds a machine's memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from loguru import logger

_LOOK_EVERY_MS: Final = 10_000
"""Who comes and leaves between two looks does not count."""


class IdleClose:
    """
    Args:
        is_empty: Whether nobody sits at the table.
        after_ms: How long nobody must have.
        end: Ends the session.
    """

    def __init__(self, is_empty: Callable[[], bool], *, after_ms: int, end: Callable[[], None]) -> None:
        self._is_empty = is_empty
        self._after_ms = after_ms
        self._end = end

    async def run(self) -> None:
        """The actor's body."""
        empty_ms = 0
        while empty_ms < self._after_ms:
            await asyncio.sleep(_LOOK_EVERY_MS / 1_000)
            empty_ms = empty_ms + _LOOK_EVERY_MS if self._is_empty() else 0
        logger.info("nobody has sat at the table for {} minutes: the session ends", self._after_ms // 60_000)
        self._end()
