from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.erasure import Meant, PostgresErasure
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SpeakerId, TurnId
from glyphoxa.domain.turn_record import LookUp, Outcome, Stage, TurnRecord
from glyphoxa.transcript.delivery import pause_ms
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.spool import Spool
from tests.support.builders import CAMPAIGN, SESSION, a_campaign, an_utterance
from tests.support.patience import DEADLINE_MS
from tests.support.recording import ClosableLog, a_journal, lines


async def logged(store: Store) -> list[str]:
    return [str(u.id) for u in await store.log.recent(CAMPAIGN, SESSION, since_ms=0, limit=10_000)]


async def keep(journal: Journal, *utterances: Utterance) -> None:
    for said in utterances:
        await journal.keep(said)


async def test_line_that_vanished_from_the_database_is_sent_again(store: Store, tmp_path: Path) -> None:
    async with a_journal(tmp_path / "spool", store.log) as journal:
        await keep(journal, *lines(5))
        assert await journal.delivery.flush(30_000)
        assert await journal.delivery.send_missing() == 0
        async with store.database.use(CAMPAIGN, deadline_ms=DEADLINE_MS) as connection:
            await connection.execute("DELETE FROM session_entries WHERE utterance_id = 'u2'")
        assert await journal.delivery.send_missing() == 1
    assert sorted(await logged(store)) == [f"u{i}" for i in range(5)]


async def test_erased_line_is_not_sent_again(store: Store, tmp_path: Path) -> None:
    await store.campaigns.load(a_campaign())
    async with a_journal(tmp_path / "spool", store.log) as journal:
        await keep(journal, *lines(5))
        assert await journal.delivery.flush(30_000)
        await PostgresErasure(store.database).erase(CAMPAIGN, Meant(session=SESSION), at_ms=1)
        assert await journal.delivery.send_missing() == 0
    assert await logged(store) == []


async def test_one_utterance_that_can_never_be_stored_keeps_no_other_out(store: Store, tmp_path: Path) -> None:
    impossible = replace(an_utterance("in the year 300000", id="bad"), at_ms=10**16)
    async with a_journal(tmp_path / "spool", store.log) as journal:
        await keep(journal, *lines(3), impossible, *lines(3, start=3))
        assert await journal.delivery.flush(30_000)
    assert await logged(store) == [f"u{i}" for i in range(6)]
    assert b"300000" in (tmp_path / "spool" / "damaged").read_bytes()


@pytest.mark.parametrize("trouble", ["58030", "XX001", "57P05"])
async def test_whatever_ails_the_server_talk_waits_until_it_is_well(store: Store, tmp_path: Path, trouble: str) -> None:
    """A failing disk, a damaged index, ...: none of it is the fault of what was said."""
    async with store.database.administer() as connection:
        await connection.execute(
            "CREATE FUNCTION ail() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'out of order' USING ERRCODE = '{trouble}'; END $$"
        )
        await connection.execute("CREATE TRIGGER ail BEFORE INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION ail()")
    async with a_journal(tmp_path / "spool", store.log) as journal:
        await keep(journal, *lines(3))
        while not journal.delivery.is_degraded:  # a slow server refuses later
            assert not await journal.delivery.flush(300)
        async with store.database.administer() as connection:
            await connection.execute("DROP TRIGGER ail ON sessions")
        assert await journal.delivery.flush(DEADLINE_MS)
    assert await logged(store) == ["u0", "u1", "u2"]
    assert not (tmp_path / "spool" / "damaged").exists()


async def test_talk_of_another_campaign_in_a_session_of_the_same_name_is_not_heard_here(tmp_path: Path) -> None:
    theirs = replace(an_utterance("the king is dead", id="u9"), campaign_id=CampaignId("another"))
    async with a_journal(tmp_path / "spool", None) as journal:
        await keep(journal, *lines(2), theirs)
        assert [str(said.id) for said in await journal.unsent(CAMPAIGN, SESSION)] == ["u0", "u1"]


async def test_with_a_full_spool_and_a_database_nothing_is_lost(store: Store, tmp_path: Path) -> None:
    journal = Journal(Spool(tmp_path / "spool", max_bytes=100, alarm=lambda _text: None), store.log)
    await journal.keep(lines(1)[0])
    await journal.close()
    assert await logged(store) == ["u0"]


async def test_with_a_full_spool_and_no_database_the_caller_is_told(tmp_path: Path) -> None:
    journal = Journal(Spool(tmp_path / "spool", max_bytes=100, alarm=lambda _text: None), None)
    with pytest.raises(Unavailable, match="is full"):
        await journal.keep(lines(1)[0])
    assert journal.delivery.is_degraded
    await journal.close()


def test_after_each_failure_the_pause_doubles_up_to_half_a_minute() -> None:
    assert [pause_ms(n) for n in (1, 2, 3, 5, 6, 100)] == [1_000, 2_000, 4_000, 16_000, 30_000, 30_000]


async def test_work_that_needs_an_utterance_in_the_log_waits_for_the_journal_to_bring_it(
    store: Store, tmp_path: Path
) -> None:
    [said, other] = lines(2)
    journal = Journal(Spool(tmp_path / "spool"), store.log)
    await journal.keep(said)
    waiting = asyncio.create_task(journal.delivery.wait_until_logged(said.id))
    assert await journal.delivery.wait_until_logged(other.id)  # never kept here
    assert not waiting.done()
    running = asyncio.create_task(journal.delivery.run())
    assert await waiting
    assert await logged(store) == [said.id]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await journal.close()


async def test_nobody_waits_for_a_log_that_is_away(store: Store, tmp_path: Path) -> None:
    door = ClosableLog(store.log, is_open=False)
    [said] = lines(1)
    async with a_journal(tmp_path / "spool", door) as journal:
        await journal.keep(said)
        assert not await journal.delivery.wait_until_logged(said.id)
        assert not await journal.delivery.wait_until_logged(said.id)
        door.is_open = True
        assert await journal.delivery.flush(5_000)
        assert await journal.delivery.wait_until_logged(said.id)


async def test_a_turn_that_no_database_can_hold_keeps_no_other_out(store: Store, tmp_path: Path) -> None:
    good = TurnRecord(TurnId("t1"), SESSION, SpeakerId("tamsin"), "Tamsin", "", "", None, "", Outcome.FAILED)
    nested: object = []
    for _ in range(5_000):
        nested = [nested]
    no_number = replace(good, id=TurnId("t2"), stages={Stage.TURN_END: float("nan")})  # type: ignore[dict-item] # a bug
    too_deep = replace(good, id=TurnId("t3"), looked_up=(LookUp("search", {"query": nested}, {}, 1),))
    async with a_journal(tmp_path / "spool", store.log) as journal:
        for turn in (no_number, too_deep, good):
            journal.delivery.record_turn(CAMPAIGN, turn)
        assert await journal.delivery.flush(DEADLINE_MS)
        assert not journal.delivery.is_degraded
    async with store.database.use(CAMPAIGN) as connection:
        assert [row["id"] for row in await connection.fetch("SELECT id FROM turns")] == ["t1"]
