from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId, SpeakerId, TurnId
from glyphoxa.domain.turn import Outcome, Recalled, Stage, TurnRecord
from glyphoxa.domain.utterance import Correction
from tests.support.builders import CAMPAIGN, INNKEEPER, SESSION, SMITH, an_utterance


async def test_what_was_said_is_read_back_as_it_was(store: Store) -> None:
    """R-044 to R-053"""
    said = replace(
        an_utterance("Grimjaw, is the blade of Vaelith mended?"),
        raw_text="Grim jaw, is the blade of fay lith mended?",
        at_ms=1_790_000_000_123,
        duration_ms=2_345,
        witnesses=frozenset({SMITH, INNKEEPER}),
        corrections=(
            Correction(0, 8, "Grim jaw", "Grimjaw", 0.97, "phonetic", "sounds alike"),
            Correction(26, 34, "fay lith", "Vaelith", 0.91, "phonetic", "sounds alike"),
        ),
    )
    answer = replace(an_utterance("Aye.", id="u2", speaker="Grimjaw", npc=SMITH), at_ms=1_790_000_004_000)
    await store.log.append([said, answer])
    assert await store.log.recent(CAMPAIGN, SESSION, since_ms=0) == [said, answer]


async def test_an_utterance_that_is_sent_twice_is_stored_once_as_it_was_first(store: Store) -> None:
    """R-046, C-09"""
    said = an_utterance("I was here first.")
    await store.log.append([said])
    await store.log.append([replace(said, text="No, I was."), an_utterance("And I second.", id="u2")])
    assert [u.text for u in await store.log.recent(CAMPAIGN, SESSION, since_ms=0)] == [
        "I was here first.",
        "And I second.",
    ]
    assert await store.log.count(CAMPAIGN) == 2


async def test_recent_talk_is_this_session_s_last_and_oldest_first(store: Store) -> None:
    """R-055"""
    ours = [replace(an_utterance(f"line {n}", id=f"u{n}"), at_ms=1_000 * n) for n in range(10)]
    other_session = replace(an_utterance("elsewhere", id="x"), session_id=SessionId("s2"), at_ms=9_500)
    other_campaign = replace(an_utterance("far away", id="y"), campaign_id=CampaignId("other"), at_ms=9_500)
    await store.log.append([*ours, other_session, other_campaign])
    found = await store.log.recent(CAMPAIGN, SESSION, since_ms=4_000, limit=3)
    assert [u.text for u in found] == ["line 7", "line 8", "line 9"]
    assert [u.at_ms for u in await store.log.recent(CAMPAIGN, SESSION, since_ms=8_000)] == [8_000, 9_000]


async def test_the_same_utterance_id_in_two_campaigns_is_two_utterances(store: Store) -> None:
    """C-19"""
    await store.log.append([an_utterance("ours"), replace(an_utterance("theirs"), campaign_id=CampaignId("other"))])
    assert await store.log.count(CAMPAIGN) == 1
    assert await store.log.count(CampaignId("other")) == 1


async def test_characters_a_database_cannot_hold_do_not_stop_the_rest(store: Store) -> None:
    await store.log.append([an_utterance("a\0b \ud83d c"), an_utterance("fine", id="u2")])
    assert [u.text for u in await store.log.recent(CAMPAIGN, SESSION, since_ms=0)] == ["a\ufffdb ? c", "fine"]


async def test_a_batch_is_stored_whole_or_not_at_all(store: Store) -> None:
    too_late = replace(an_utterance("in the year 300000", id="u2"), at_ms=10**16)
    with pytest.raises(InvalidInput):
        await store.log.append([an_utterance("fine"), too_late])
    assert await store.log.count(CAMPAIGN) == 0


async def test_a_turn_is_logged_once_with_its_outcome_and_timeline(store: Store) -> None:
    """R-054"""
    turn = TurnRecord(
        id=TurnId("t1"),
        session_id=SESSION,
        speaker_id=SpeakerId("tamsin"),
        speaker_name="Tamsin",
        raw_text="raw",
        text="text",
        npc_id=SMITH,
        address_reason="named",
        outcome=Outcome.INTERRUPTED,
        reply="A long story.",
        reply_heard="A long",
        recalled=(Recalled("Tamsin said: x", "said", 0.5),),
        stages={Stage.SPEECH_END: 1_000, Stage.FIRST_AUDIO: 1_700},
        omitted=("scene: late",),
    )
    await store.log.record_turn(CAMPAIGN, turn)
    await store.log.record_turn(CAMPAIGN, replace(turn, reply="another"))
    async with store.database.use(CAMPAIGN) as connection:
        rows = await connection.fetch("SELECT * FROM turns")
    assert len(rows) == 1
    assert rows[0]["outcome"] == "interrupted"
    assert rows[0]["reply"] == "A long story."
    assert rows[0]["stages"] == {"speech_end": 1_000, "first_audio": 1_700}
    assert rows[0]["recalled"][0]["text"] == "Tamsin said: x"


async def test_a_database_that_is_not_there_is_unavailable_and_nothing_else(tmp_path: Path) -> None:
    """R-251, R-252"""
    async with open_store("postgresql://nobody@127.0.0.1:1/none", data_dir=tmp_path) as store:
        with pytest.raises(Unavailable, match="the database is away"):
            await store.log.append([an_utterance("into the void")])
        with pytest.raises(Unavailable):
            await store.log.recent(CAMPAIGN, SESSION, since_ms=0)


async def test_a_query_is_cut_off_at_its_deadline_and_the_next_one_works(store: Store) -> None:
    await store.database.open()
    with pytest.raises(Unavailable, match="did not answer within 20 ms"):
        async with store.database.use(CAMPAIGN, deadline_ms=20) as connection:
            await connection.fetchval("SELECT pg_sleep(5)")
    assert await store.log.count(CAMPAIGN) == 0
