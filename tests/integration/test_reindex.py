"""Another embeddings model for a whole database, while it is being used."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.chunks import HARMLESS, Filled, Reindexed, reindex
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.cli.main import main
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import TalkQuery
from tests.integration.test_migrations import schema
from tests.support.builders import CAMPAIGN, SMITH, an_utterance
from tests.support.embedders import an_embedder, embedder_of_topics
from tests.support.patience import DEADLINE_S
from tests.support.postgres import TestServer, wait_until
from tests.support.recalled import PATIENT

TOPICS = {"sister": 0, "kin": 0, "rain": 1, "weather": 1}
OLD = embedder_of_topics(TOPICS, name="old")
NEW = embedder_of_topics(TOPICS, name="new")
WIDE = embedder_of_topics(TOPICS, name="wide", dimensions=768)
OTHER = CampaignId("other")


def said(n: int, text: str = "", **changes: Any) -> Utterance:
    return replace(an_utterance(text or f"line {n}", id=f"u{n}"), at_ms=1_000 + n, **changes)


@asynccontextmanager
async def opened(dsn: str, embedder: Embedder | None, *, any_model: bool = False) -> AsyncIterator[Store]:
    dimensions, model = (embedder.dimensions, embedder.name) if embedder else (384, None)
    database = Database(dsn, embedding_dimensions=dimensions, embedding_model=model, any_model=any_model)
    async with open_store(database, embedder=embedder, recall=PATIENT) as store:
        await store.database.open()
        yield store


async def reindexed(dsn: str, embedder: Embedder, **options: Any) -> Reindexed:
    async with opened(dsn, embedder, any_model=True) as store:
        return await reindex(store.database, embedder, **options)


async def recalled(store: Store, question: str, *, limit: int = 1) -> list[str]:
    return [
        str(r.utterance_id) for r in await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery(question, limit=limit))
    ]


async def first_of(event: asyncio.Event, task: asyncio.Task[Any]) -> None:
    """Wait for the event; a task that ends before it tells why."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        waiting.cancel()
        raise AssertionError(f"it ended before its time: {await task}")


async def models(dsn: str) -> dict[str, int]:
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch(
        "SELECT model || ' ' || vector_dims(embedding) AS model, count(*) AS n FROM chunks GROUP BY 1"
    )
    await connection.close()
    return {row["model"]: row["n"] for row in rows}


async def test_missing_vectors_are_added_and_existing_ones_skipped(dsn: str) -> None:
    async with opened(dsn, OLD) as store:
        await store.log.append([said(1), said(2), said(3, campaign_id=OTHER)])
        await store.chunks.fill_missing(CAMPAIGN)
    assert await reindexed(dsn, OLD) == Reindexed(Filled(embedded=1), is_full=False)
    assert await reindexed(dsn, OLD) == Reindexed(Filled(), is_full=False)
    assert await models(dsn) == {"old 384": 3}


async def test_another_model_embeds_everything_and_takes_the_place_of_the_old(dsn: str) -> None:
    async with opened(dsn, OLD) as store:
        await store.log.append([said(1, "My sister is a pirate."), said(2), said(3, campaign_id=OTHER)])
        await store.chunks.fill_missing(CAMPAIGN)
    assert await reindexed(dsn, WIDE) == Reindexed(Filled(embedded=3), is_full=True)
    assert await models(dsn) == {"wide 768": 3}
    async with opened(dsn, WIDE) as store:
        assert await recalled(store, "Who are your kin?") == ["u1"]
        await store.log.append([said(4, "It rains.")])
        assert (await store.chunks.fill_missing(CAMPAIGN)).embedded == 1
        assert await recalled(store, "Bad weather?") == ["u4"]


async def test_the_tables_are_then_as_if_they_had_been_made_for_the_new_model(
    postgres: TestServer, dsn: str, empty_dsn: str
) -> None:
    async with opened(dsn, OLD) as store:
        await store.log.append([said(1)])
    await reindexed(dsn, WIDE)
    async with opened(empty_dsn, WIDE):
        pass
    after, fresh = await schema(dsn), await schema(empty_dsn)
    assert after == fresh
    assert {"idx_chunks_entity_ids", "idx_chunks_embedding"} <= after["indexes"].keys()


async def test_open_table_recalls_during_a_reindex_and_no_line_of_it_is_lost(dsn: str) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(texts: list[str]) -> NDArray[float32]:
        if texts != HARMLESS:
            begun.set()
            await go_on.wait()
        return await WIDE.embed(texts)

    async with opened(dsn, OLD) as live:
        await live.log.append([said(1, "My sister is a pirate."), said(2)])
        await live.chunks.fill_missing(CAMPAIGN)
        assert await recalled(live, "Who are your kin?") == ["u1"]
        running = asyncio.create_task(reindexed(dsn, an_embedder(slowly, name="wide", dimensions=768)))
        await first_of(begun, running)
        assert await recalled(live, "Who are your kin?") == ["u1"]
        await live.log.append([said(3, "It rains.")])
        assert await live.chunks.fill_missing(CAMPAIGN) == Filled()
        async with asyncio.timeout(DEADLINE_S):
            while await recalled(live, "Does it rain?") != ["u3"]:
                pass  # a search with a short deadline may miss the latest utterances
        go_on.set()
        assert (await running).is_full
        await live.log.append([said(4, "More rain.")])
    async with opened(dsn, WIDE) as store:
        await store.chunks.fill_missing(CAMPAIGN)
        assert await models(dsn) == {"wide 768": 4}
        assert sorted(await recalled(store, "Bad weather?", limit=2)) == ["u3", "u4"]


@pytest.mark.parametrize("new", [NEW, WIDE], ids=["of equal dimensions", "of other dimensions"])
async def test_who_still_has_the_old_model_compares_nothing_with_the_new_and_says_so_once(
    dsn: str, new: Embedder
) -> None:
    told: list[str] = []
    async with opened(dsn, OLD) as live:
        await live.log.append([said(1, "My sister is a pirate."), said(2)])
        await live.chunks.fill_missing(CAMPAIGN)
        await reindexed(dsn, new)
        listening = logger.add(lambda message: told.append(message.record["message"]), level="WARNING")
        try:
            for _ in range(2):
                assert await recalled(live, "Who are your kin?") == []
                assert await recalled(live, "Is she a pirate?") == ["u1"]
                await live.log.append([said(3)])
                assert await live.chunks.fill_missing(CAMPAIGN) == Filled()
        finally:
            logger.remove(listening)
    assert len([line for line in told if "glyphoxa worker reindex" in line]) == 1
    assert [line for line in told if "glyphoxa worker reindex" not in line] == [
        "town was embedded again: new lines are found by words until the table is reopened"
    ]
    assert await models(dsn) == {f"{new.name} {new.dimensions}": 2}


@pytest.mark.parametrize(
    ("embedder", "words"),
    [(NEW, "embedding model is 'new', but the vectors in this database are of 'old'"), (WIDE, "is for 384")],
)
async def test_another_model_in_the_settings_than_in_the_database_is_told_with_the_command_that_helps(
    dsn: str, embedder: Embedder, words: str
) -> None:
    async with opened(dsn, OLD):
        pass
    with pytest.raises(InvalidInput, match=f"{words}.*`glyphoxa worker reindex`"):
        async with opened(dsn, embedder):
            pass
    async with opened(dsn, None):
        """Who embeds nothing does not care which model it is."""


async def test_two_at_a_time_are_refused(dsn: str) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(texts: list[str]) -> NDArray[float32]:
        begun.set()
        await go_on.wait()
        return await NEW.embed(texts)

    async with opened(dsn, OLD) as live:
        await live.log.append([said(1)])
    first = asyncio.create_task(reindexed(dsn, an_embedder(slowly, name="new")))
    await first_of(begun, first)
    with pytest.raises(InvalidInput, match="being reindexed by another process"):
        await reindexed(dsn, NEW)
    go_on.set()
    assert (await first).is_full


async def test_one_campaign_is_filled_or_rebuilt_by_itself_but_not_by_another_model(dsn: str) -> None:
    async with opened(dsn, OLD) as store:
        await store.log.append([said(1), said(2, campaign_id=OTHER)])
    assert await reindexed(dsn, OLD, campaign=CAMPAIGN) == Reindexed(Filled(embedded=1), is_full=False)
    assert await reindexed(dsn, OLD, campaign=CAMPAIGN) == Reindexed(Filled(), is_full=False)
    assert await reindexed(dsn, OLD, campaign=CAMPAIGN, full=True) == Reindexed(Filled(embedded=1), is_full=False)
    with pytest.raises(InvalidInput, match="omit --campaign"):
        await reindexed(dsn, NEW, campaign=CAMPAIGN)
    with pytest.raises(NotFound, match=r"no utterances of a campaign 'othr' here.*other"):
        await reindexed(dsn, OLD, campaign=CampaignId("othr"))


async def test_talk_that_is_rolled_back_or_revised_meanwhile_is_so_afterwards(dsn: str) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    n_calls = 0

    async def slowly(texts: list[str]) -> NDArray[float32]:
        nonlocal n_calls
        n_calls += texts != HARMLESS
        if n_calls == 2:
            begun.set()
            await go_on.wait()
        return await NEW.embed(texts)

    async with opened(dsn, OLD) as live:
        await live.log.append([said(n) for n in range(20)])
        running = asyncio.create_task(reindexed(dsn, an_embedder(slowly, name="new")))
        await first_of(begun, running)
        # The first sixteen are embedded by now.
        async with live.database.use(CAMPAIGN) as connection:
            await connection.execute("UPDATE session_entries SET retracted = true WHERE utterance_id = 'u1'")
        await live.log.revise(said(2, "My sister sails."), was=said(2))
        go_on.set()
        await running
    async with opened(dsn, NEW) as store:
        async with store.database.use(CAMPAIGN) as connection:
            rows = await connection.fetch(
                "SELECT id, retracted, content FROM chunks WHERE id IN ('u1', 'u2') ORDER BY id"
            )
        assert [row["retracted"] for row in rows] == [True, False]
        assert rows[1]["content"].endswith("My sister sails.")


_SLOW_PROCESS = """
import asyncio, sys
from pathlib import Path
from glyphoxa.adapters.postgres.chunks import reindex
from glyphoxa.adapters.postgres.server.database import Database
from tests.integration.test_reindex import WIDE
from tests.support.embedders import an_embedder

async def main():
    n = 0
    async def embed(texts):
        nonlocal n
        n += len(texts)
        if n > 40:
            print("in the middle", flush=True)
            await asyncio.Event().wait()
        return await WIDE.embed(texts)
    slow = an_embedder(embed, name="wide", dimensions=768)
    database = Database(sys.argv[1], embedding_dimensions=768, embedding_model="wide", any_model=True)
    await reindex(database, slow)

asyncio.run(main())
"""


async def test_reindex_goes_on_after_a_killed_one(dsn: str) -> None:
    async with opened(dsn, OLD) as store:
        await store.log.append([said(0, "My sister is a pirate."), *(said(n) for n in range(1, 100))])
        await store.chunks.fill_missing(CAMPAIGN)
        assert await recalled(store, "Who are your kin?") == ["u0"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _SLOW_PROCESS, dsn, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            assert await process.stdout.readline() == b"in the middle\n"
        finally:
            process.kill()
            await process.wait()
        assert await recalled(store, "Who are your kin?") == ["u0"]
    await asyncio.to_thread(wait_until, lambda: asyncio.run(is_free(dsn)))
    done = await reindexed(dsn, WIDE)
    assert 0 < done.filled.embedded < 100
    assert await models(dsn) == {"wide 768": 100}


async def is_free(dsn: str) -> bool:
    """The server has noticed that the process is gone."""
    connection = await asyncpg.connect(dsn)
    n = await connection.fetchval(
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
        "WHERE l.locktype = 'advisory' AND d.datname = current_database()"
    )
    await connection.close()
    return int(n) == 0


async def test_reindex_with_a_model_that_is_away_deletes_no_vectors(dsn: str) -> None:
    async def away(texts: list[str]) -> NDArray[float32]:
        raise Unavailable("gone")

    async with opened(dsn, OLD) as store:
        await store.log.append([said(1)])
        await store.chunks.fill_missing(CAMPAIGN)
    with pytest.raises(Unavailable):
        await reindexed(dsn, an_embedder(away, name="wide", dimensions=768))
    assert await models(dsn) == {"old 384": 1}
    assert (await reindexed(dsn, NEW)).is_full
    assert await models(dsn) == {"new 384": 1}


async def test_an_owner_who_is_no_superuser_reindexes_all_campaigns_too(postgres: TestServer) -> None:
    """To him the rows of all campaigns are hidden by the rule that hides them from everybody."""
    name, owner = await postgres.create(migrated=False), "an_ordinary_owner"
    as_superuser = await asyncpg.connect(postgres.server.dsn(name))
    await as_superuser.execute(f"CREATE ROLE {owner} LOGIN; ALTER DATABASE {name} OWNER TO {owner}")
    await as_superuser.execute("CREATE EXTENSION vector")
    dsn = postgres.server.dsn(name).replace("postgres@", f"{owner}@")
    try:
        async with opened(dsn, OLD) as store:
            await store.log.append([said(1), said(2, campaign_id=OTHER)])
        assert await reindexed(dsn, WIDE) == Reindexed(Filled(embedded=2), is_full=True)
        async with opened(dsn, WIDE) as store:
            await store.log.append([said(3)])
            assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=1)
        assert await models(postgres.server.dsn(name)) == {"wide 768": 3}
    finally:
        await as_superuser.close()
        await postgres.drop(name)
        connection = await asyncpg.connect(postgres.server.dsn())
        await connection.execute(f"DROP ROLE {owner}")
        await connection.close()


async def test_the_command_tells_how_far_it_is_and_what_came_of_it(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.yaml"

    async def reindexed_by_command(embedder: Embedder, *arguments: str) -> tuple[int, str, str]:
        async def load(_settings: object) -> Embedder:
            return embedder

        monkeypatch.setattr("glyphoxa.cli.upkeep.fetch_embedder", load)
        settings.write_text(f"memory:\n  postgres_dsn: {dsn}\n  embedding_dimensions: {embedder.dimensions}\n")
        code = await asyncio.to_thread(main, ["worker", "reindex", "--config", str(settings), *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    async with opened(dsn, OLD) as store:
        await store.campaigns.load(Campaign(CAMPAIGN, "Town", "en", (), (), (), (), ()))
        await store.log.append([said(n) for n in range(40)])
    code, out, err = await reindexed_by_command(OLD)
    assert (code, out) == (0, "embedded 40 utterances\n")
    assert f"{CAMPAIGN}: 40 of 40 utterances\n" in err
    assert (await reindexed_by_command(OLD))[1] == "nothing was missing\n"
    code, out, err = await reindexed_by_command(WIDE)
    assert (code, out) == (0, "transcripts are now searched with wide; embedded 40 utterances\n")
    code, _, err = await reindexed_by_command(NEW, "--campaign", CAMPAIGN)
    assert code == 1
    assert "omit --campaign" in err
    assert await reindexed_by_command(WIDE, "--campaign", CAMPAIGN, "--full") == (
        0,
        "embedded 40 utterances\n",
        f"{CAMPAIGN}: 16 of 40 utterances\n{CAMPAIGN}: 32 of 40 utterances\n{CAMPAIGN}: 40 of 40 utterances\n",
    )
