"""The parts of one hot context while they are gathered: each has its own deadline, and all begin together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from loguru import logger

from glyphoxa.context.ports import Gathered
from glyphoxa.domain.errors import GlyphoxaError

T = TypeVar("T")

OF_FILE: Final = "the campaign's file"
OF_MEMORY: Final = "memory"
READ_AHEAD: Final = "memory, read while it was asked"
AS_BEFORE: Final = "as it was read before"
RECALLED_NOW: Final = "recalled now"
RECALLED_AHEAD: Final = "recalled while it was asked"


def monotonic_us() -> int:
    return time.perf_counter_ns() // 1_000


class Gathering:
    """Made where a hot context is needed, and asked for what came of it once all parts have ended.

    Args:
        now_us: A clock that only goes forward, in microseconds.
    """

    def __init__(self, now_us: Callable[[], int] = monotonic_us) -> None:
        self._now_us = now_us
        self._began_s: float | None = None
        self._omitted: dict[str, str] = {}
        self._took_us: dict[str, int] = {}
        self._sources: dict[str, str] = {}

    async def part(self, name: str, part: Awaitable[T], deadline_ms: int, *, source: str) -> T | None:
        """What `part` gives; None where it failed or was late, which is noted. Never raises.

        Args:
            deadline_ms: Since the first part of this gathering was begun, so that a part that is read twice takes no
                longer than one that is read once.
        """
        loop = asyncio.get_running_loop()
        if self._began_s is None:
            self._began_s = loop.time()
        began_us = self._now_us()
        try:
            async with asyncio.timeout_at(self._began_s + deadline_ms / 1000):
                found = await part
        except TimeoutError:
            self._omit(name, f"not there within {deadline_ms} ms")
        except GlyphoxaError as error:
            self._omit(name, str(error))
        except Exception as error:
            # The edge between memory and a turn: a bug in a look-up costs that look-up, never the NPC's answer.
            logger.exception("hot context without {}", name)
            self._omit(name, type(error).__name__)
        else:
            self._omitted.pop(name, None)
            self._sources[name] = source
            return found
        finally:
            self._took(name, began_us)
        return None

    def at_once(self, name: str, part: Callable[[], T], *, source: str) -> T | None:
        """The same for what is in memory and needs no waiting."""
        began_us = self._now_us()
        try:
            found = part()
        except Exception as error:
            logger.exception("hot context without {}", name)  # as above
            self._omit(name, type(error).__name__)
            return None
        else:
            if name not in self._omitted:  # else it is what was read before
                self._sources.setdefault(name, source)
            return found
        finally:
            self._took(name, began_us)

    def came_from(self, name: str, source: str) -> None:
        """Of a part that was there before it was asked for."""
        self._sources[name] = source

    def take(self, name: str, other: Gathering) -> None:
        """A part as another gathering has it: it was read ahead."""
        self._sources[name] = READ_AHEAD
        self._took_us[name] = other._took_us.get(name, 0)

    def has(self, name: str) -> bool:
        """Whether the part was gathered, and not left out."""
        return name in self._sources and name not in self._omitted

    @property
    def omitted(self) -> tuple[str, ...]:
        """Such as "recall: not there within 50 ms"."""
        return tuple(f"{name}: {why}" for name, why in self._omitted.items())

    @property
    def gathered(self) -> dict[str, Gathered]:
        """Of every part that was asked for, where what stands in the prompt is from and how long it took."""
        names = dict.fromkeys((*self._took_us, *self._sources))
        return {name: Gathered(self._sources.get(name, AS_BEFORE), self._took_us.get(name)) for name in names}

    def _omit(self, name: str, why: str) -> None:
        self._omitted[name] = why
        self._sources.pop(name, None)

    def _took(self, name: str, began_us: int) -> None:
        self._took_us[name] = self._took_us.get(name, 0) + self._now_us() - began_us
