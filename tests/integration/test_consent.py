"""What a player does not want to be remembered is recalled by nobody, until that player allows it again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.chronicle_log import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.bundle import export_campaign, import_campaign
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker
from glyphoxa.dm.timeline import Timeline
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.judgement import ConsentChange
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.world.events import Cause
from tests.support.builders import SMITH, a_campaign, an_utterance
from tests.support.embedders import embedder_of_topics

CAMPAIGN, EVENING = a_campaign().id, SessionId("evening")
TAMSIN, BRAN = SpeakerId("tamsin"), SpeakerId("bran")
BY_PLAYER, BY_DM = Cause("player", 2_000_000), Cause("dm", 2_000_000)
PROMISE = "I promise to bring you six crowns by Friday."
EMBEDDER = embedder_of_topics({"crowns": 0, "six": 0, "bridge": 1})


def said(n: int, text: str, *, by: str = "Tamsin", npc: str | None = None) -> Utterance:
    line = replace(an_utterance(text, id=f"u{n}", speaker=by), session_id=EVENING, at_ms=1_000_000 + n)
    return replace(line, npc_id=None if npc is None else NpcId(npc), witnesses=frozenset({SMITH}))


@pytest.fixture
async def table(dsn: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(dsn, data_dir=tmp_path, embedder=EMBEDDER) as opened:
        await opened.campaigns.load(a_campaign())
        yield opened


async def read_new(store: Store) -> None:
    await chronicle_worker(store).read_new(CAMPAIGN)


async def known(store: Store, campaign: CampaignId = CAMPAIGN) -> set[str]:
    """What the smith knows of talk: contents of facts."""
    facts = await PostgresInspection(store.database).current(campaign, SMITH, limit=1_000)
    return {str(fact.claim.content) for fact in facts if fact.provenance.origin == "talk"}


async def recalled(store: Store, question: str = "How many crowns?") -> list[str]:
    found = await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery(question))
    return [str(one.utterance_id) for one in found]


async def states(store: Store, campaign: CampaignId = CAMPAIGN) -> dict[str, tuple[bool, bool]]:
    """Of each utterance that is retracted: whether it is, and whether it is withheld."""
    async with store.database.use(campaign) as connection:
        rows = await connection.fetch("SELECT utterance_id, retracted, withheld FROM session_entries ORDER BY ordinal")
    return {row["utterance_id"]: (row["retracted"], row["withheld"]) for row in rows if row["retracted"]}


def withhold(*utterances: str, by: SpeakerId = TAMSIN) -> ConsentChange:
    return ConsentChange(by, "withheld", tuple(UtteranceId(each) for each in utterances))


def give(*utterances: str, by: SpeakerId = TAMSIN) -> ConsentChange:
    return ConsentChange(by, "given", tuple(UtteranceId(each) for each in utterances))


async def test_spoken_request_withholds_until_consent_is_given_again(table: Store) -> None:
    await table.log.append([said(1, PROMISE), said(2, "Six crowns, then!", by="Grimjaw", npc="grimjaw")])
    await read_new(table)
    before = await known(table), await recalled(table)
    assert before[0]
    await table.log.append([said(3, "Don't remember that."), said(4, "The bridge is out.", by="Bran")])
    await read_new(table)
    assert await states(table) == dict.fromkeys(("u1", "u2", "u3"), (True, True))
    assert await known(table) == set()
    assert not {"u1", "u2", "u3"} & set(await recalled(table))
    async with table.database.use(CAMPAIGN) as connection:
        gone = await connection.fetch("SELECT kind, predicate, consent_state FROM withheld_knowledge")
    assert ("fact", "promise", "withheld") in [tuple(row) for row in gone]

    await table.log.append([said(5, "You can remember that again.")])
    await read_new(table)
    await read_new(table)
    assert await states(table) == {}
    assert await known(table) == before[0]


async def test_line_withheld_before_it_was_read_is_read_with_consent(table: Store) -> None:
    await table.log.append([said(1, PROMISE), said(2, "Forget what I said.")])
    await read_new(table)
    assert await known(table) == set()
    assert await table.world.consent(CAMPAIGN, give("u1"), BY_PLAYER)
    await read_new(table)
    assert {"I promise to bring you six crowns by Friday"} <= await known(table)
    assert await states(table) == {"u2": (True, True)}


async def test_answer_that_comes_later_is_withheld_with_its_line(table: Store) -> None:
    await table.log.append([said(1, f"Off the record: {PROMISE}")])
    await read_new(table)
    await table.log.append([said(2, "Six crowns!", by="Grimjaw", npc="grimjaw"), said(3, "Hm.", by="Bran")])
    await table.log.append([said(4, "Fine.", by="Grimjaw", npc="grimjaw")])
    assert await states(table) == {"u1": (True, True), "u2": (True, True)}
    await table.world.consent(CAMPAIGN, give("u1"), BY_PLAYER)
    assert await states(table) == {}


async def test_request_counts_once_however_often_it_is_read(table: Store) -> None:
    await table.log.append([said(1, PROMISE), said(2, "Don't write that down.")])
    await read_new(table)
    await table.world.consent(CAMPAIGN, give("u1", "u2"), BY_PLAYER)
    await PostgresChronicleLog(table.database, table.world).read_again(CAMPAIGN, EVENING)
    await read_new(table)
    assert await states(table) == {}
    assert await known(table)


async def test_reread_of_changed_words_keeps_consent(table: Store) -> None:
    first = said(1, PROMISE)
    await table.log.append([first, said(2, "Don't write that down.")])
    await read_new(table)
    await table.log.revise(replace(first, text="I promise to bring you ten crowns by Friday."), was=first)
    await read_new(table)
    assert set(await states(table)) == {"u1", "u2"}
    assert await known(table) == set()


async def test_dm_and_player_do_not_overrule_each_other(table: Store) -> None:
    await table.log.append([said(1, PROMISE)])
    await read_new(table)
    before = await known(table)
    [withheld] = await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    struck = await table.world.retract(CAMPAIGN, UtteranceId("u1"), BY_DM)
    timeline = Timeline(CAMPAIGN, table.world, PostgresInspection(table.database), lambda: 3_000_000)
    with pytest.raises(InvalidInput, match="only they can change it"):
        await timeline.undo(withheld.seq)
    await table.world.consent(CAMPAIGN, give("u1"), BY_PLAYER)
    assert await states(table) == {"u1": (True, False)}
    assert await known(table) == set()
    await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    await timeline.undo(struck.seq)
    assert await states(table) == {"u1": (True, True)}
    assert await known(table) == set()
    await table.world.consent(CAMPAIGN, give("u1"), BY_PLAYER)
    assert await states(table) == {}
    assert await known(table) == before


async def test_player_decides_about_their_own_lines_only(table: Store) -> None:
    await table.log.append([said(1, PROMISE), said(2, "The bridge is out.", by="Bran")])
    assert await table.world.consent(CAMPAIGN, withhold("u1", by=BRAN), BY_PLAYER) == []
    await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    assert await table.world.consent(CAMPAIGN, give("u1", by=BRAN), BY_PLAYER) == []
    assert set(await states(table)) == {"u1"}
    await table.world.consent(CAMPAIGN, ConsentChange(BRAN, "withheld", session=EVENING), BY_PLAYER)
    assert set(await states(table)) == {"u1", "u2"}


async def test_entity_stays_if_another_player_named_it_too(table: Store) -> None:
    await table.log.append([said(1, "My sister Wenna Thistlebrook lives in Dunharrow.")])
    await read_new(table)
    await table.log.append([said(2, "Wenna Thistlebrook is a blacksmith.", by="Bran")])
    await read_new(table)
    before = await known(table)
    await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    await read_new(table)
    assert "blacksmith" in await known(table)
    await table.world.consent(CAMPAIGN, give("u1"), BY_PLAYER)
    await read_new(table)
    assert await known(table) == before


async def test_copies_of_a_campaign_keep_consent(table: Store) -> None:
    await table.log.append([said(1, PROMISE), said(2, "Aye.", by="Grimjaw", npc="grimjaw")])
    await read_new(table)
    before = await known(table)
    await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    fork, imported = CampaignId("fork"), CampaignId("imported")
    await table.world.fork(CAMPAIGN, fork, name="Fork")
    await import_campaign(table.database, await export_campaign(table.database, CAMPAIGN), into=imported)
    for copy in (fork, imported):
        assert await states(table, copy) == {"u1": (True, True), "u2": (True, True)}
        await table.world.consent(copy, give("u1"), BY_PLAYER)
        assert await states(table, copy) == {}
        assert await known(table, copy) == before
    assert set(await states(table)) == {"u1", "u2"}
