"""A process that keeps the memory of a session may be killed at any moment."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.background import chronicle_log
from glyphoxa.chronicle.ports import said_in
from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.domain.events import UtteranceKept
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.npc.session_state_keeper import SessionStateKeeper, StoredSession
from glyphoxa.npc.table_state import Covered, TableState
from glyphoxa.prompt.conversation import Conversation, RollingSummary
from glyphoxa.transcript.sessions import DM_VIEW, View
from tests.support.builders import CAMPAIGN, SESSION, SMITH, a_campaign, an_utterance
from tests.support.patience import DEADLINE_S
from tests.support.proof import IS_PROOF

KILLS = 40 if IS_PROOF else 3
VIEWS = (DM_VIEW, View(SMITH))


async def opened(store: Store) -> TableState:
    """A table that continues the session."""
    views = {view: RollingSummary(100, interval=1) for view in VIEWS}
    campaign = a_campaign()
    talks = {SMITH: Conversation(campaign.npc(SMITH), history_tokens=100)}
    table = TableState(campaign, SESSION, campaign.scenes[0], talks, views)
    numbered = await said_in(chronicle_log(store), CAMPAIGN, SESSION)
    ordinals = {each.utterance.id: each.ordinal for each in numbered}
    states = await store.states(CAMPAIGN, SESSION).all()
    table.remember([each.utterance for each in numbered], Covered(states, ordinals))
    return table


def line(n: int) -> Utterance:
    text = f"I promise to bring you {n} crowns by Friday." if n % 2 else f"Then I will wait for {n} crowns."
    said = an_utterance(text, id=f"u{n}", npc=None if n % 2 else SMITH)
    return replace(said, at_ms=n * 10_000, typed=True)


async def play(dsn: str) -> None:
    """Say line after line, until this process is killed."""

    async def logged(_: UtteranceId) -> bool:
        return True

    async with open_store(dsn) as store:
        table = await opened(store)
        stored = StoredSession(store.states(CAMPAIGN, SESSION), logged)
        keeper = SessionStateKeeper(
            table.summaries, LineSelection("en", tokens=60), tell=lambda *_: None, stored=stored
        )
        n = await store.log.count(CAMPAIGN, SESSION)
        begin = n
        while True:
            n += 1
            await store.log.append([line(n)])
            keeper.on(UtteranceKept(line(n)))
            await keeper.finish()
            if n == begin + 2:
                print("ready", flush=True)  # noqa: T201 - the test reads it


async def at_rest(store: Store) -> tuple[int, Any]:
    """Return the number of lines and the states, once the server has finished what the process had sent."""
    found = None
    while found != (now := (await store.log.count(CAMPAIGN, SESSION), await store.states(CAMPAIGN, SESSION).all())):
        found = now
        await asyncio.sleep(0.2)
    return now


async def test_killed_process_loses_no_line_and_tells_none_twice(store: Store, dsn: str) -> None:
    await store.campaigns.load(a_campaign())
    dice = random.Random(7)
    reached = dict.fromkeys(VIEWS, 0)
    for _ in range(KILLS):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.integration.test_session_state_killed", dsn, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            assert await process.stdout.readline() == b"ready\n"
        # Anywhere in its work: the moment is not what is asserted.
        await asyncio.sleep(dice.random() / 2)
        process.kill()
        await process.wait()
        n_said, states = await at_rest(store)
        table = await opened(store)
        for view in VIEWS:
            rolling, last = table.summaries[view], states[view].last_ordinal if view in states else 0
            assert last >= reached[view]
            assert [each.id for each in rolling.lines] == [f"u{n}" for n in range(last + 1, n_said + 1)]
            told = [int(each[1:]) for one in rolling.summary for each in one.evidence]
            assert told == sorted(set(told))
            assert not told or told[-1] <= last
            reached[view] = last
    assert min(reached.values()) > 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(play(sys.argv[1]))
