"""A server whose user is nobody special: what many hosted databases give."""

from __future__ import annotations

import json
from dataclasses import replace

import asyncpg
import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.adapters.postgres.world.erasure import Meant, PostgresErasure
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.knowledge import Claim
from glyphoxa.world.event_kinds import FactStated
from tests.support.builders import CAMPAIGN, SESSION, an_utterance
from tests.support.bundles import exported, exported_for_players, imported
from tests.support.patience import DEADLINE_MS
from tests.support.postgres import TestServer
from tests.support.world_tables import DM, MIRA, TOWN, a_town, stands_as_replayed

OTHER = CampaignId("another")


async def test_memory_works_and_campaigns_are_apart_for_an_owner_without_special_rights(
    owners_dsn: str,
) -> None:
    async with open_store(owners_dsn) as store:
        await store.database.open()
        await store.log.append([an_utterance("The bell is cracked.")])
        async with store.database.use(CAMPAIGN, deadline_ms=DEADLINE_MS) as connection:
            assert await connection.fetchval("SELECT current_user") == "just_a_user"
            assert await connection.fetchval("SELECT count(*) FROM session_entries") == 1
        async with store.database.use(OTHER, deadline_ms=DEADLINE_MS) as connection:
            assert await connection.fetchval("SELECT count(*) FROM session_entries") == 0
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("INSERT INTO sessions VALUES ($1, 's', now())", CAMPAIGN)
        assert [u.id for u in await store.log.recent(CAMPAIGN, SESSION, since_ms=0)] == ["u1"]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_schema_that_is_named_like_the_user_hides_nothing_and_opens_nothing(owners_dsn: str, when: str) -> None:
    """A server looks there first, by itself."""
    async with open_store(owners_dsn) as store:
        if when == "after":
            await a_town(store, TOWN)
            await store.log.append([an_utterance("The bell is cracked.")])
    owner = await asyncpg.connect(owners_dsn)
    try:
        await owner.execute("CREATE SCHEMA just_a_user")
        await owner.execute(
            "CREATE FUNCTION just_a_user.glyphoxa_walk(text, text, text, int) RETURNS TABLE (depth INT, level TEXT[]) "
            "LANGUAGE sql AS $$ SELECT 0, ARRAY['all'] $$"
        )
    finally:
        await owner.close()
    async with open_store(owners_dsn) as store:
        if when == "before":
            await a_town(store, TOWN)
            await store.log.append([an_utterance("The bell is cracked.")])
        assert [u.id for u in await store.log.recent(CAMPAIGN, SESSION, since_ms=0)] == ["u1"]
        async with store.database.use(TOWN, deadline_ms=DEADLINE_MS) as connection:
            walked = await connection.fetch("SELECT level FROM glyphoxa_walk($1, $2, $3, 3)", TOWN, None, MIRA)
            assert walked[0]["level"] == [MIRA]
        async with store.database.use(OTHER, deadline_ms=DEADLINE_MS) as connection:
            assert await connection.fetchval("SELECT count(*) FROM session_entries") == 0


async def test_a_user_who_may_make_no_tables_is_told_what_an_administrator_must_do(
    owners_dsn: str,
) -> None:
    owner = await asyncpg.connect(owners_dsn)
    try:
        await owner.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC, pg_database_owner")
    finally:
        await owner.close()
    async with open_store(owners_dsn) as store:
        with pytest.raises(InvalidInput, match="GRANT CREATE ON SCHEMA public"):
            await store.database.open()


async def test_a_world_lives_and_is_forked_for_an_owner_without_special_rights(owners_dsn: str) -> None:
    async with open_store(owners_dsn) as store:
        await a_town(store, TOWN)
        (event,) = await store.world.commit(TOWN, [FactStated(Claim.attribute(MIRA, "note", "one-eyed"))], DM)
        await store.world.fork(TOWN, OTHER, name="Another town")
        await store.world.undo(TOWN, [event.seq], DM)
        assert len((await stands_as_replayed(store, OTHER)).facts) == 1
        assert not (await stands_as_replayed(store, TOWN)).facts


async def test_a_campaign_comes_in_for_an_owner_without_special_rights(owners_dsn: str) -> None:
    async with open_store(owners_dsn) as store:
        await a_town(store, TOWN)
        await store.log.append([replace(an_utterance("hello", id="u1"), campaign_id=TOWN)])
        bundle = await exported(store, TOWN)
        await imported(store, bundle, OTHER)
        assert await exported(store, OTHER) == bundle.replace('"id": "town"', f'"id": "{OTHER}"')
        assert len(json.loads(bundle)["tables"]["session_entries"]) == await store.log.count(OTHER) == 1
        assert len((await stands_as_replayed(store, OTHER)).entities) == 4
        await imported(store, await exported_for_players(store, TOWN), CampaignId("for-players"))
        assert len((await stands_as_replayed(store, CampaignId("for-players"))).entities) == 4


async def test_an_owner_above_the_rules_about_rows_is_told_of_it(
    owners_dsn: str, postgres: TestServer, warnings: list[str]
) -> None:
    administrator = await asyncpg.connect(postgres.server.dsn("postgres"))
    try:
        for right, n_told in (("BYPASSRLS", 1), ("NOBYPASSRLS", 0)):
            warnings.clear()
            await administrator.execute(f"ALTER ROLE just_a_user {right}")
            async with open_store(owners_dsn) as store:
                await store.database.open()
            assert sum("BYPASSRLS" in line for line in warnings) == n_told
    finally:
        await administrator.execute("ALTER ROLE just_a_user NOBYPASSRLS")
        await administrator.close()


async def test_talk_is_erased_for_an_owner_without_special_rights(owners_dsn: str) -> None:
    async with open_store(owners_dsn) as store:
        await store.database.open()
        await a_town(store, TOWN)
        await store.log.append([replace(an_utterance("The bell is cracked."), campaign_id=TOWN)])
        await store.world.fork(TOWN, OTHER, name="The other town")
        done = await PostgresErasure(store.database).erase(TOWN, Meant(session=SESSION), at_ms=1)
        assert [(each.campaign, len(each.utterances)) for each in done] == [(TOWN, 1), (OTHER, 1)]
        for campaign in (TOWN, OTHER):
            assert await store.log.recent(campaign, SESSION, since_ms=0) == []
            await stands_as_replayed(store, campaign)
