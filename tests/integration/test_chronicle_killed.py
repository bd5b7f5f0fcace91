"""Workers are processes, and a process may be killed at any moment."""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import replace
from pathlib import Path

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker
from glyphoxa.chronicle.talk import LONGEST
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM
from glyphoxa.world.events import WorldEvent
from tests.support.builders import a_campaign, a_known_party, an_utterance
from tests.support.command_line import a_settings_file
from tests.support.patience import DEADLINE_S
from tests.support.proof import IS_PROOF

CAMPAIGN, EVENING = a_campaign().id, SessionId("evening")
KILLS = 200 if IS_PROOF else 3
"""A worker takes two seconds to start."""
LINES_A_KILL = 60


async def test_workers_that_are_killed_leave_nothing_out_and_nothing_twice(
    store: Store, dsn: str, tmp_path: Path
) -> None:
    await store.campaigns.load(a_known_party())
    settings = a_settings_file(tmp_path, dsn)
    dice, n_said = random.Random(7), 0
    for _ in range(KILLS):
        lines = [promise(n) for n in range(n_said, n_said + LINES_A_KILL)]
        n_said += LINES_A_KILL
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "glyphoxa.cli.main", "worker", "--config", str(settings)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert worker.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            await worker.stdout.readline()
        for at in range(0, LINES_A_KILL, 5):
            await store.log.append(lines[at : at + 5])
        # Anywhere in its work: the moment is not what is asserted.
        await asyncio.sleep(dice.random() / 10)
        worker.kill()
        await worker.wait()
        async with store.database.use(CAMPAIGN) as connection:
            # As if the time had passed for which the dead one holds the session.
            await connection.execute("UPDATE chronicle_progress SET taken_until = clock_timestamp()")
    await chronicle_worker(store).read_new(CAMPAIGN)
    facts = await PostgresInspection(store.database).current(CAMPAIGN, DM, limit=100_000)
    promises = [fact for fact in facts if fact.claim.predicate == "promise"]
    assert sorted(str(fact.claim.content) for fact in promises) == sorted(
        f"I promise to bring you {n} crowns by Friday" for n in range(n_said)
    )
    assert {fact.mentions for fact in promises} == {1}
    async with store.database.use(CAMPAIGN) as connection:
        judged = await connection.fetch("SELECT ordinal FROM turn_judgements ORDER BY ordinal")
        atoms = await connection.fetch("SELECT utterance_id FROM live_atoms")
    assert [row["ordinal"] for row in judged] == list(range(1, n_said + 1))
    assert sorted(row["utterance_id"] for row in atoms) == sorted(f"u{n}" for n in range(n_said))
    events: list[WorldEvent] = []
    after = 0
    while page := await store.world.events(CAMPAIGN, after=after):
        events += page
        after = page[-1].seq
    told = [event.cause.ordinal or 0 for event in events if event.cause.by == "talk" and event.cause.utterance_id]
    assert told == sorted(told)
    timeline = await store.episodes.read(CAMPAIGN)
    assert len(timeline.ids) == len(timeline.nodes) >= n_said // LONGEST
    assert all(len(node.summaries) == 1 for node in timeline.nodes)


def promise(n: int) -> Utterance:
    line = an_utterance(f"I promise to bring you {n} crowns by Friday.", id=f"u{n}")
    return replace(line, id=UtteranceId(f"u{n}"), session_id=EVENING, at_ms=1_000_000 + n)
