"""The contract of `TranscriptLog`, in PostgreSQL and in memory alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.heard import Correction
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.transcript.ports import TranscriptLog
from tests.support.builders import CAMPAIGN, INNKEEPER, SESSION, SMITH, an_utterance
from tests.support.memory import LogTwin


@pytest.fixture(params=["PostgreSQL", "memory"])
def log(request: pytest.FixtureRequest) -> TranscriptLog:
    if request.param == "memory":
        return LogTwin()
    stored: TranscriptLog = request.getfixturevalue("store").log
    return stored


async def test_utterance_is_read_back_unchanged(log: TranscriptLog) -> None:
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
    await log.append([said, answer])
    assert await log.recent(CAMPAIGN, SESSION, since_ms=0) == [said, answer]


async def test_an_utterance_that_is_sent_twice_is_stored_once_as_it_was_first(log: TranscriptLog) -> None:
    said = an_utterance("I was here first.")
    await log.append([said])
    await log.append([replace(said, text="No, I was."), an_utterance("And I second.", id="u2")])
    assert [u.text for u in await log.recent(CAMPAIGN, SESSION, since_ms=0)] == [
        "I was here first.",
        "And I second.",
    ]
    assert await log.count(CAMPAIGN) == 2


async def test_recent_talk_is_this_session_s_last_and_oldest_first(log: TranscriptLog) -> None:
    ours = [replace(an_utterance(f"line {n}", id=f"u{n}"), at_ms=1_000 * n) for n in range(10)]
    other_session = replace(an_utterance("elsewhere", id="x"), session_id=SessionId("s2"), at_ms=9_500)
    other_campaign = replace(an_utterance("far away", id="y"), campaign_id=CampaignId("other"), at_ms=9_500)
    await log.append([*ours, other_session, other_campaign])
    found = await log.recent(CAMPAIGN, SESSION, since_ms=4_000, limit=3)
    assert [u.text for u in found] == ["line 7", "line 8", "line 9"]
    assert [u.at_ms for u in await log.recent(CAMPAIGN, SESSION, since_ms=8_000)] == [8_000, 9_000]


async def test_the_same_utterance_id_in_two_campaigns_is_two_utterances(log: TranscriptLog) -> None:
    await log.append([an_utterance("ours"), replace(an_utterance("theirs"), campaign_id=CampaignId("other"))])
    assert await log.count(CAMPAIGN) == 1
    assert await log.count(CampaignId("other")) == 1


async def test_counts_are_of_a_campaign_or_of_one_of_its_sessions(log: TranscriptLog) -> None:
    await log.append([an_utterance("one"), replace(an_utterance("two", id="u2"), session_id=SessionId("s2"))])
    assert await log.count(CAMPAIGN) == 2
    assert await log.count(CAMPAIGN, SESSION) == 1
    assert await log.count(CAMPAIGN, SessionId("s3")) == await log.count(CampaignId("other")) == 0


async def test_revision_replaces_the_words_of_its_utterance(log: TranscriptLog) -> None:
    said = replace(an_utterance("Where is fay lith?"), raw_text="Where is fay lith?")
    by_name = Correction(9, 17, "fay lith", "Vaelith", 0.9, "review", "it was spelled out")
    better = replace(said, text="Where is Vaelith?", corrections=(by_name,))
    await log.append([said])
    assert await log.revise(better, was=said)
    assert await log.recent(CAMPAIGN, SESSION, since_ms=0) == [better]
    assert not await log.revise(better, was=said)  # done twice, it is done once
    assert not await log.revise(replace(said, text="Where is Faylis?"), was=said)
    assert await log.recent(CAMPAIGN, SESSION, since_ms=0) == [better]


async def test_words_that_are_the_same_are_no_revision(log: TranscriptLog) -> None:
    said = an_utterance("It rains.")
    await log.append([said])
    assert not await log.revise(said, was=said)


async def test_unknown_utterance_cannot_be_revised(log: TranscriptLog) -> None:
    said = an_utterance("It rains.", id="u9")
    with pytest.raises(NotFound, match="'u9'"):
        await log.revise(replace(said, text="It pours."), was=said)


async def test_revision_leaves_other_campaigns_unchanged(log: TranscriptLog) -> None:
    ours, theirs = an_utterance("It rains."), replace(an_utterance("It rains."), campaign_id=CampaignId("other"))
    await log.append([ours, theirs])
    assert await log.revise(replace(ours, text="It pours."), was=ours)
    assert await log.recent(CampaignId("other"), SESSION, since_ms=0) == [theirs]
