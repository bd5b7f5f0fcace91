"""A player sees and decides what of their own lines is remembered: the server checks whose they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.app import LINES_PER_PAGE, OwnLinesOfTable
from tests.support.builders import an_utterance
from tests.support.web_door import Visitor, a_door
from tests.support.web_table import BRAN, SESSION, TAMSIN, TwinTable
from tests.support.world_tables import a_campaign_row

SHARO = "sharothrix"


def said(n: int, text: str, *, by: str = "Tamsin", npc: str | None = None) -> Utterance:
    line = replace(an_utterance(text, id=f"u{n}", speaker=by), campaign_id=CAMPAIGN, session_id=SESSION)
    return replace(line, at_ms=1_000_000 + n, raw_text=text, npc_id=None if npc is None else NpcId(npc))


CAMPAIGN = TwinTable().campaign.id


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Store]:
    async with open_store(dsn) as opened:
        await a_campaign_row(opened, CAMPAIGN)
        yield opened


def remembered(store: Store) -> OwnLinesOfTable:
    return OwnLinesOfTable(CAMPAIGN, SESSION, PostgresInspection(store.database), store.world, lambda: 2_000_000)


async def lines(visitor: Visitor, player: str = "tamsin", **query: str) -> list[tuple[str, str]]:
    answer = await visitor.http.get("/api/remembered", params={"player": player, **query})
    assert answer.status_code == 200
    return [(each["text"], each["state"]) for each in answer.json()["lines"]]


async def decides(visitor: Visitor, player: str = "tamsin", **decision: Any) -> tuple[int, int | None]:
    answer = await visitor.http.post("/api/remembered", json={"player": player, **decision})
    return answer.status_code, answer.json().get("changed")


async def evening(store: Store, said: Sequence[Utterance]) -> None:
    await store.log.append(said)


async def test_player_withholds_and_allows_own_lines(store: Store, tmp_path: Path) -> None:
    heard = replace(said(2, f"Who is {SHARO}?"), text="Who is Zharothrix?")
    await evening(store, [said(1, "I stole the ring."), heard, said(3, "Hm.", by="Grimjaw", npc="grimjaw")])
    await evening(store, [said(4, "I saw nothing.", by="Bran")])
    async with a_door(tmp_path, remembered=remembered(store)) as door:
        tamsin = await door.invited(Grant(Role.PLAYER, TAMSIN.id))
        assert await lines(tamsin) == [(f"Who is {SHARO}?", "given"), ("I stole the ring.", "given")]
        assert await lines(tamsin, before="u2") == [("I stole the ring.", "given")]
        assert await decides(tamsin, line="u1", remember=False) == (200, 1)
        assert await lines(tamsin) == [(f"Who is {SHARO}?", "given"), ("I stole the ring.", "withheld")]
        assert await decides(tamsin, session=True, remember=False) == (200, 1)
        assert [state for _, state in await lines(tamsin)] == ["withheld", "withheld"]
        assert await decides(tamsin, session=True, remember=True) == (200, 2)
        assert [state for _, state in await lines(tamsin)] == ["given", "given"]
        assert (AuditKind.WITHDREW, "player:tamsin") in door.recorded
        assert (await decides(tamsin, remember=True))[0] == 400
        assert (await decides(tamsin, line="u1", session=True, remember=True))[0] == 400


async def test_nobody_reads_or_decides_about_lines_of_others(store: Store, tmp_path: Path) -> None:
    await evening(store, [said(1, "I stole the ring."), said(2, "I saw nothing.", by="Bran")])
    async with a_door(tmp_path, remembered=remembered(store)) as door:
        bran, stranger = await door.invited(Grant(Role.PLAYER, BRAN.id)), door.browser()
        assert (await bran.http.get("/api/remembered?player=tamsin")).status_code == 403
        assert (await stranger.http.get("/api/remembered?player=tamsin")).status_code == 401
        assert (await decides(bran, line="u1", remember=False))[0] == 403
        assert await decides(bran, "bran", line="u1", remember=False) == (200, 0)
        assert await lines(bran, "bran", before="u1") == []
        spectator = await door.invited(Grant(Role.SPECTATOR))
        assert (await spectator.http.get("/api/remembered?player=tamsin")).status_code == 403


async def test_dm_withholds_but_does_not_allow_for_a_player(store: Store, tmp_path: Path) -> None:
    await evening(store, [said(1, "I stole the ring.")])
    async with a_door(tmp_path, remembered=remembered(store)) as door:
        dm = await door.invited(Grant(Role.DM))
        assert await decides(dm, line="u1", remember=False) == (200, 1)
        assert (await decides(dm, line="u1", remember=True))[0] == 403
        assert await lines(dm) == [("I stole the ring.", "withheld")]


async def test_list_is_paged_and_rationed(store: Store, tmp_path: Path) -> None:
    await evening(store, [said(n, f"line {n}") for n in range(LINES_PER_PAGE + 5)])
    async with a_door(tmp_path, remembered=remembered(store)) as door:
        tamsin = await door.invited(Grant(Role.PLAYER, TAMSIN.id))
        first = (await tamsin.http.get("/api/remembered?player=tamsin")).json()
        assert first["has_more"]
        assert len(first["lines"]) == LINES_PER_PAGE
        rest = await lines(tamsin, before=first["lines"][-1]["id"])
        assert [text for text, _ in rest] == [f"line {n}" for n in reversed(range(5))]
        statuses = {(await tamsin.http.get("/api/remembered?player=tamsin")).status_code for _ in range(30)}
        assert statuses == {200, 429}


async def test_table_without_memory_lists_nothing(tmp_path: Path) -> None:
    async with a_door(tmp_path) as door:
        tamsin = await door.invited(Grant(Role.PLAYER, TAMSIN.id))
        assert (await tamsin.http.get("/api/remembered?player=tamsin")).status_code == 400
        assert not (await tamsin.http.get("/api/table")).json()["lists_memory"]
