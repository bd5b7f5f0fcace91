"""A store's memory as a table asks it."""

from __future__ import annotations

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.recall.guard import MemoryGuard
from glyphoxa.transcript.ports import PastTalk
from glyphoxa.transcript.watch import MemoryWatch


def memory_of(store: Store, *, talk: PastTalk | None = None) -> MemoryGuard:
    """
    Args:
        talk: None for the store's own.
    """
    watch = MemoryWatch(ping=store.database.ping, make_good=_nothing, changed=lambda: None, now_ms=lambda: 0)
    return MemoryGuard(store.graph, talk or store.past_talk, store.summaries, watch, by_name=store.by_name)


async def _nothing() -> None:
    return None
