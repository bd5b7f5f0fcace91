"""The directory of a table on its node: copied for other nodes, sent when its process was lost, then deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.erasure import Meant, PostgresErasure
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, PlayerId
from glyphoxa.plugins.cluster.directory import Directory, raise_epoch
from glyphoxa.plugins.cluster.placement import Node
from glyphoxa.plugins.cluster.table_directory import TableFiles, owned, send_what_is_left
from glyphoxa.transcript.spool import Spool, spool_of
from tests.support.builders import CAMPAIGN, SESSION, a_campaign, an_utterance

OTHER = CampaignId("other")


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Store]:
    async with open_store(dsn) as opened:
        yield opened


async def test_files_of_a_table_are_found_on_another_machine(store: Store, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "access").mkdir(parents=True)
    (here / "access" / "town.json").write_text("links")
    (here / "access" / "town.consents.jsonl").write_text("consents")
    (here / "sessions.json").write_text("{}")
    (here / "notes.txt").write_text("not copied")
    await TableFiles(store.database, CAMPAIGN, here).copy()
    await TableFiles(store.database, CAMPAIGN, there).restore()
    await TableFiles(store.database, OTHER, tmp_path / "other").restore()
    assert sorted(each.relative_to(there).as_posix() for each in there.rglob("*.*")) == [
        "access/town.consents.jsonl",
        "access/town.json",
        "sessions.json",
    ]
    assert (there / "access" / "town.json").read_text() == "links"
    assert (there / "access" / "town.json").stat().st_mode & 0o077 == 0
    assert not (tmp_path / "other").exists()


async def test_a_table_that_was_moved_overwrites_no_files(store: Store, dsn: str, tmp_path: Path) -> None:
    (tmp_path / "sessions.json").write_text("old")
    async with open_store(dsn) as elsewhere:
        await raise_epoch(store.database, CAMPAIGN, 1)
        await raise_epoch(elsewhere.database, CAMPAIGN, 2)
        with pytest.raises(Unavailable, match="the table was moved to another machine"):
            await TableFiles(store.database, CAMPAIGN, tmp_path).copy()


async def test_what_a_lost_process_did_not_send_is_sent_once_and_deleted(store: Store, tmp_path: Path) -> None:
    directory = tmp_path / "town"
    said = [an_utterance(f"Line {n}.", id=f"u{n}") for n in range(150)]
    with owned(directory), Spool(spool_of(directory)) as spool:
        for each in said:
            spool.append(each)
    await store.log.append(said[:40])  # the process was lost before it noted that
    with owned(directory):
        assert await send_what_is_left(directory, store.log) == 150
    assert await store.log.count(CAMPAIGN, SESSION) == 150
    assert not directory.exists()


async def test_the_directory_of_an_open_table_is_left_alone(tmp_path: Path) -> None:
    with (
        owned(tmp_path / "town"),
        pytest.raises(Unavailable, match="is used by another process"),
        owned(tmp_path / "town"),
    ):
        pass


async def test_what_cannot_be_sent_now_stays(store: Store, tmp_path: Path) -> None:
    directory = tmp_path / "town"
    with owned(directory), Spool(spool_of(directory)) as spool:
        spool.append(an_utterance("The mill burns."))
    await store.database.close()
    with owned(directory), pytest.raises(Unavailable):
        await send_what_is_left(directory, store.log)
    with Spool(spool_of(directory)) as spool:
        assert [each.utterance.text for each in spool.pending()] == ["The mill burns."]


async def test_erasing_a_player_erases_the_copies_of_consents_and_visits(store: Store, tmp_path: Path) -> None:
    (tmp_path / "access").mkdir()
    lines = [
        '{"player": "tamsin", "kind": "agreed"}',
        '{"who": "player:tamsin"}',
        '{"player": "tamsin2"}',
        '{"who": "dm"}',
    ]
    (tmp_path / "access" / "town.consents.jsonl").write_text("".join(f"{each}\n" for each in lines))
    files = TableFiles(store.database, CAMPAIGN, tmp_path)
    await files.copy()
    await store.campaigns.load(a_campaign())
    await store.log.append([an_utterance("The mill burns.")])
    await PostgresErasure(store.database).erase(CAMPAIGN, Meant(player=PlayerId("tamsin")), at_ms=1)
    await files.restore()
    assert (tmp_path / "access" / "town.consents.jsonl").read_text().splitlines() == lines[2:]


async def test_nothing_is_erased_while_the_table_is_open_on_a_node(store: Store) -> None:
    directory = Directory(store.database, lease_ms=60_000)
    await directory.report(Node("node-1", "http://a/", 3), ())
    await directory.place(CAMPAIGN)
    with pytest.raises(Unavailable, match="the table of 'town' is open on node-1; end the session, then erase again"):
        await PostgresErasure(store.database).erase(CAMPAIGN, Meant(player=PlayerId("tamsin")), at_ms=1)
