from __future__ import annotations

import gc
import threading

from glyphoxa.adapters.postgres.server.offload import gc_paused, offload


async def test_much_is_done_in_a_thread_and_little_at_once() -> None:
    assert await offload(threading.get_ident, amount=10) == threading.get_ident()
    assert await offload(threading.get_ident, amount=10_000) != threading.get_ident()


def test_garbage_is_looked_for_again_when_the_work_is_done() -> None:
    with gc_paused(amount=10):
        assert gc.isenabled()
    with gc_paused(amount=10_000):
        assert not gc.isenabled()
        with gc_paused(amount=10_000):
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
