"""How far a stream of changes was read, and whether it is still the same stream.

Each change has a number, and a campaign's changes become visible in the order of their numbers. Who knows the change of
number n asks for what is from n on, which is one small question: nearly always there is that change and nothing else.
What stands at n tells the stream that was read from that of a database which was put back from a backup:

    the change that is known     the same stream; what is behind it is new
    nothing, or an earlier one   another stream: all is read anew
    a later one                  where rows are only added, another stream; where a row that changes again gets a later
                                 number, the known one may have moved: see `_has_moved`
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
Fetch = Callable[[int, int], Awaitable[Sequence[T]]]
"""Gives the changes from a number on, at most so many, in the order of their numbers."""


class Taken(Protocol[T]):
    """What is held of a stream whose rows change again."""

    def changed_before(self, seq: int, nth: int, /) -> T | None:
        """Of what changed before that number the nth latest, as it is now; the first, if there is not so much."""
        ...

    def changed_between(self, after: int, until: int, /) -> Collection[Hashable]:
        """The keys of what changed last behind the one number, and not behind the other."""
        ...

    def has(self, change: T, /) -> bool: ...


class Cursor(Generic[T]):
    """
    Args:
        seq_of: A change's number, from 1.
        key_of: What it is a change of.

    Attributes:
        last: The change that was taken last. It must be in the stream still, or have a later number there.
    """

    def __init__(self, *, seq_of: Callable[[T], int], key_of: Callable[[T], Hashable]) -> None:
        self._seq_of = seq_of
        self._key_of = key_of
        self._missing: set[Hashable] = set()
        self.last: T | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all that was known and is no longer where it was came with a later number. At the end of the stream
        it has to.
        """
        return not self._missing

    async def read(
        self, fetch: Fetch[T], *, limit: int, taken: Taken[T] | None = None
    ) -> tuple[Sequence[T], int] | None:
        """The next page, and how many changes at its beginning are known; None when it is another stream. As many as
        asked for: there may be more.

        Args:
            taken: What is held; None where rows are only added.
        """
        if self.last is None:
            return await fetch(0, limit), 0
        page = await fetch(self._seq_of(self.last), limit)
        if page and page[0] == self.last:
            return page, 1
        if taken is None or not await self._has_moved(self.last, page, fetch, limit=limit, taken=taken):
            return None
        return page, 0

    def take(self, page: Sequence[T], *, again: Collection[Hashable] = ()) -> None:
        """
        Args:
            again: Of what the page has changes of, what was known before.
        """
        self.last = page[-1]
        self._missing.difference_update(again)

    async def _has_moved(self, last: T, page: Sequence[T], fetch: Fetch[T], *, limit: int, taken: Taken[T]) -> bool:
        """Whether `last`, which is not where it was, has a later number by now. In a stream that was put back to an
        earlier day and went on otherwise there may be later numbers too, and earlier ones that nobody here has read:
        the latest that is still as it was tells from where on what is held has to be looked for.

        Args:
            page: What there is from the number of `last` on.
        """
        until = self._seq_of(last)
        if not page or self._seq_of(page[0]) <= until:
            return False
        known, tried, nth = taken.changed_before(until, 1), None, 1
        while known is not None and known != tried:
            page = await fetch(self._seq_of(known), limit)
            if page and page[0] == known:
                break
            nth *= 2
            known, tried = taken.changed_before(until, nth), known
        else:
            return False
        missing = set(taken.changed_between(self._seq_of(known), until))
        while page and self._seq_of(page[0]) <= until:
            for change in page:
                if self._seq_of(change) <= until and change != known and not taken.has(change):
                    return False
                missing.discard(self._key_of(change))
            page = await fetch(self._seq_of(page[-1]) + 1, limit)
        self._missing |= missing
        return True
