"""A table that is played while its database is away, slow, or cut off: the voice goes on, and nothing said is lost.

The table and the server are real; what is between them breaks. "Slow" is slower than every deadline: in the product
that is a second for a look-up, here less, so that nobody waits for it.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NoReturn

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import Corrupt
from glyphoxa.domain.events import Degraded, MemoryChanged
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId
from glyphoxa.domain.turn_record import Outcome, TurnRecord
from glyphoxa.transcript.spool import Spool
from glyphoxa.web.events import Hub
from glyphoxa.world.event_kinds import AliasAdded
from glyphoxa.world.event_log import Cause
from tests.support.live_table import SESSION, Evening, an_evening, settings_for, write_campaign
from tests.support.network import Network, a_network
from tests.support.patience import DEADLINE_MS, DEADLINE_S

TOWN = CampaignId("town")
SLOW_MS = 5_000
IN_TIME_MS = 100
"""The deadline of everything while the network is slow."""


@pytest.fixture
async def network(dsn: str) -> AsyncIterator[Network]:
    async with a_network(dsn) as network:
        yield network


@pytest.fixture(autouse=True)
def without_hurry(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """A healthy database is waited for, however slow this machine is; from a slow network nobody waits 5 s."""
    use = Database.use

    def in_time(
        self: Database, campaign: CampaignId | None, *, deadline_ms: int = DEADLINE_MS
    ) -> AbstractAsyncContextManager[Any]:
        return use(self, campaign, deadline_ms=IN_TIME_MS if network.delay_ms else max(deadline_ms, DEADLINE_MS))

    monkeypatch.setattr(Database, "use", in_time)
    monkeypatch.setattr("glyphoxa.app.memory.OPEN_MS", 2_000)
    # An outage has as many attempts as one of an hour, and takes a moment.
    monkeypatch.setattr("glyphoxa.transcript.delivery._FIRST_PAUSE_MS", 5)
    monkeypatch.setattr("glyphoxa.transcript.delivery._LONGEST_PAUSE_MS", 20)


@pytest.fixture
def settings(tmp_path: Path, network: Network) -> Settings:
    return settings_for(write_campaign(tmp_path, language="de"), network.dsn, tmp_path)


async def answered(evening: Evening, text: str) -> TurnRecord:
    """Say it; the turn it came to, once both what was said and what was answered are on disk."""
    n_answers = evening.kept_texts.count("Aye.")
    turn = await evening.asked(text)
    await evening.until(lambda: evening.kept_texts.count("Aye.") > n_answers)
    assert turn.outcome is Outcome.ANSWERED
    return turn


def states(evening: Evening) -> list[str]:
    return [event.health.state for event in evening.told if isinstance(event, MemoryChanged)]


async def until_well(evening: Evening) -> None:
    await evening.until(lambda: evening.table.health.state == "ok" and states(evening)[-1:] == ["ok"])


async def fetch(dsn: str, query: str) -> list[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def logged(dsn: str) -> list[str]:
    """Return the session's texts in the database, in order of arrival."""
    return await fetch(dsn, "SELECT text FROM session_entries ORDER BY session_id, ordinal")


def said(*lines: str) -> list[str]:
    """These lines and Grimjaw's answers."""
    return [text for line in lines for text in (line, "Aye.")]


async def test_a_database_that_is_away_at_the_start_gets_campaign_and_talk_when_it_comes(
    settings: Settings, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network.cut()
    async with an_evening(settings, monkeypatch) as evening:
        assert evening.table.health.state == "degraded"
        turn = await answered(evening, "Grimjaw, are you there?")
        assert any(
            part.startswith("recall: ") and part.endswith("long-term memory is unavailable")
            for part in turn.prompt.omitted
        )
        await answered(evening, "Grimjaw, is it raining?")
        health = evening.table.health
        assert (health.state, health.waiting) == ("degraded", 4)
        assert health.since_ms is not None
        assert "away" in health.why
        network.well()
        await until_well(evening)
        assert await evening.table.kept() == 4
        assert evening.table.health.waiting == 0
        turn = await answered(evening, "Grimjaw, and now?")
        assert not any("away" in part for part in turn.prompt.omitted)
        assert await evening.table.kept() == 6
    assert await logged(dsn) == said("Grimjaw, are you there?", "Grimjaw, is it raining?", "Grimjaw, and now?")
    # The campaign came before its talk: its language says how words are found.
    assert await fetch(dsn, "SELECT DISTINCT fts_config::text FROM session_entries") == ["german"]
    assert "Eldrinax" in await fetch(dsn, "SELECT name FROM entities")


async def test_a_database_that_returns_without_what_was_sent_last_gets_it_again(
    settings: Settings, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that was promoted too early comes back like this."""
    async with an_evening(settings, monkeypatch) as evening:
        await answered(evening, "Grimjaw, are you there?")
        assert await evening.table.kept() == 2
        network.cut()
        connection = await asyncpg.connect(dsn)
        await connection.execute("DELETE FROM session_entries")
        await connection.close()
        await answered(evening, "Grimjaw, is it raining?")
        await evening.until(lambda: evening.table.health.state == "degraded")
        network.well()
        await until_well(evening)
        assert sorted(await logged(dsn)) == sorted(said("Grimjaw, are you there?", "Grimjaw, is it raining?"))


async def test_a_database_that_is_slow_is_not_waited_for(
    settings: Settings, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each query takes 5 s."""
    async with an_evening(settings, monkeypatch) as evening:
        await answered(evening, "Grimjaw, one.")
        assert await evening.table.kept() == 2
        network.slow(SLOW_MS)
        turn = await answered(evening, "Grimjaw, two.")
        assert any(part.startswith("facts: ") for part in turn.prompt.omitted)
        await evening.until(lambda: evening.table.health.state == "degraded")
        asked = ["Grimjaw, one.", "Grimjaw, two."]
        async with asyncio.timeout(DEADLINE_S):
            # When it was last checked, it may still have answered in time.
            while not any(part.startswith("facts: long-term memory is unavailable") for part in turn.prompt.omitted):
                asked.append(f"Grimjaw, {len(asked) + 1}.")
                turn = await answered(evening, asked[-1])
        network.well()
        await until_well(evening)
        assert await evening.table.kept() == 2 * len(asked)
    assert await logged(dsn) == said(*asked)


async def test_a_table_does_not_wait_long_for_a_slow_database_to_open(
    settings: Settings, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glyphoxa.app.memory.OPEN_MS", IN_TIME_MS)
    network.slow(SLOW_MS)
    async with an_evening(settings, monkeypatch) as evening:
        assert evening.table.health.state == "degraded"
        await answered(evening, "Grimjaw, one.")
        monkeypatch.setattr("glyphoxa.app.memory.OPEN_MS", DEADLINE_MS)
        network.well()
        await until_well(evening)
        assert await evening.table.kept() == 2
    assert await logged(dsn) == said("Grimjaw, one.")
    assert "Eldrinax" in await fetch(dsn, "SELECT name FROM entities")


@pytest.mark.parametrize("at", [b"session_entries", b"COMMIT"])
async def test_a_connection_that_breaks_within_a_transaction_neither_loses_nor_doubles(
    at: bytes, settings: Settings, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With COMMIT nobody knows whether it was done."""
    async with an_evening(settings, monkeypatch) as evening:
        broken = network.cut_after(at)
        await answered(evening, "Grimjaw, one.")
        await broken.wait()
        await answered(evening, "Grimjaw, two.")
        network.well()
        assert await evening.table.kept() == 4
        assert network.n_cut > 0
    assert await logged(dsn) == said("Grimjaw, one.", "Grimjaw, two.")


async def test_a_table_that_is_opened_again_while_its_database_is_away_goes_on_where_it_was(
    settings: Settings, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier utterances are read from disk, and sent from there."""
    network.cut()
    with monkeypatch.context() as hasty:
        hasty.setattr("glyphoxa.app.memory.FLUSH_MS", IN_TIME_MS)
        async with an_evening(settings, hasty) as evening:
            await answered(evening, "Grimjaw, my name is Wilbur.")
    async with an_evening(settings, monkeypatch) as evening:
        turn = await answered(evening, "Grimjaw, who am I?")
        assert "my name is Wilbur" in turn.prompt.text
        network.well()
        await until_well(evening)
        assert await evening.table.kept() == 4
    assert await logged(dsn) == said("Grimjaw, my name is Wilbur.", "Grimjaw, who am I?")
    assert Counter(await fetch(dsn, "SELECT session_id FROM session_entries")) == {SESSION: 4}


async def test_without_long_term_memory_a_table_is_as_well_as_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(write_campaign(tmp_path), "none", tmp_path)
    async with an_evening(settings, monkeypatch) as evening:
        turn = await answered(evening, "Grimjaw, are you there?")
        assert turn.prompt.omitted == ()
        assert evening.table.health.state == "off"
        assert await evening.table.kept() == 2


async def test_a_disk_that_is_full_is_told_of_and_the_database_takes_what_is_said(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        full = OSError(errno.ENOSPC, "No space left on device")

        def refuse(*_: object) -> NoReturn:
            raise full

        with monkeypatch.context() as disk:
            disk.setattr("glyphoxa.transcript.spool.os.fsync", refuse)
            await answered(evening, "Grimjaw, one.")
            await evening.until(lambda: evening.table.health.state == "degraded")
            assert any(isinstance(event, Degraded) and "No space left" in event.what for event in evening.told)
        assert "the disk rejects writes" in "".join(warnings)
        assert "stored on disk" not in "".join(warnings)
        assert "is kept on disk" not in "".join(warnings)
        await answered(evening, "Grimjaw, two.")
        await until_well(evening)
        assert await evening.table.kept() == 4
    assert await logged(dsn) == said("Grimjaw, one.", "Grimjaw, two.")


async def test_unusable_database_counts_as_away_until_repaired(
    settings: Settings, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another password, another schema: nothing that passes by waiting, and nothing that costs a word."""

    refused = asyncio.Event()

    async def refuse(*_: object, **__: object) -> NoReturn:
        refused.set()
        raise Corrupt("migration 0007 was changed after it was applied")

    async with an_evening(settings, monkeypatch) as evening:
        await answered(evening, "Grimjaw, one.")
        assert await evening.table.kept() == 2
        with monkeypatch.context() as wrong:
            wrong.setattr("glyphoxa.adapters.postgres.server.database.migrate", refuse)
            wrong.setattr("glyphoxa.app.memory.FLUSH_MS", IN_TIME_MS)
            network.cut()
            await answered(evening, "Grimjaw, two.")
            network.well()
            turn = await answered(evening, "Grimjaw, three.")
            assert any(part.startswith("facts: ") for part in turn.prompt.omitted)
            assert await evening.table.kept() == 6
            await refused.wait()
        await until_well(evening)
        assert await evening.table.kept() == 6
    assert await logged(dsn) == said("Grimjaw, one.", "Grimjaw, two.", "Grimjaw, three.")


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_session_that_goes_on_is_shown_as_it_was_also_while_the_database_is_away(
    settings: Settings, network: Network, monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await answered(evening, "Grimjaw, one.")
        await evening.table.move(SceneId("inn"))
        assert await evening.table.kept() == 2
    if is_away:
        network.cut()
    async with an_evening(settings, monkeypatch) as evening:
        assert [one.text for one in evening.table.earlier] == said("Grimjaw, one.")
        assert evening.table.scene.id == "inn"
        history = [
            message for message in Hub(evening.table).history(PlayerId("tamsin")) if message["type"] == "utterance"
        ]
        assert [message["speaker"]["kind"] for message in history] == ["player", "npc"]
        if is_away:
            network.well()
            await until_well(evening)
        await answered(evening, "Grimjaw, two.")
    async with an_evening(settings, monkeypatch, session="another") as evening:
        assert list(evening.table.earlier) == []


async def test_what_was_rolled_back_is_not_shown_though_it_is_still_on_disk(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies before it has noted that the database has it."""
    async with an_evening(settings, monkeypatch) as evening:
        await answered(evening, "Grimjaw, one.")
        with monkeypatch.context() as dying:
            dying.setattr(Spool, "acknowledge", lambda *_: None)
            await answered(evening, "Grimjaw, two.")
            assert await evening.table.kept() == 4
    async with open_store(dsn) as store:
        assert await store.world.rollback(TOWN, SESSION, 1, Cause("dm", 0)) is not None
    async with an_evening(settings, monkeypatch) as evening:
        assert [one.text for one in evening.table.earlier] == ["Grimjaw, one."]


async def test_a_session_without_long_term_memory_goes_on_from_the_disk(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = settings.model_copy(update={"memory": settings.memory.model_copy(update={"postgres_dsn": "none"})})
    async with an_evening(without, monkeypatch) as evening:
        await answered(evening, "Grimjaw, one.")
    async with an_evening(without, monkeypatch) as evening:
        assert [one.text for one in evening.table.earlier] == said("Grimjaw, one.")
        await answered(evening, "Grimjaw, two.")
        assert "one" in str(evening.mouths[NpcId("grimjaw")].asked[-1].messages)


async def test_names_that_changed_meanwhile_are_heard_when_the_database_is_back(
    settings: Settings, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        ear = await evening.ear()
        network.cut()
        await answered(evening, "Grimjaw, one.")
        async with open_store(dsn) as store:
            await store.world.commit(TOWN, [AliasAdded(EntityId("eldrinax"), "Vashkari")], Cause("dm", at_ms=1))
        assert ear.partial("and then vash karri came") == "and then vash karri came"
        changed = evening.names_change()
        network.well()
        async with asyncio.timeout(DEADLINE_MS / 1_000):
            while "Vashkari" not in ear.partial("and then vash karri came"):
                changed.clear()
                await changed.wait()
