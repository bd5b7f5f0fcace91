"""How a table tells the time, in what an NPC recalls: zones, evenings and the story's days, read beside talk."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar, StoryDays
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.recall.recall import Recall, RecallSettings
from glyphoxa.recall.transcript_memory import TranscriptMemory, Transcripts
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH
from tests.support.talk_feed import BOTH, FeedTwin, said

PATIENT = RecallSettings(deadline_ms=60_000, refresh_deadline_ms=60_000)
HARPTOS = StoryCalendar((("Hammer", 30), ("Midwinter", 1), ("Alturiak", 30)))


def ms(moment: str, zone: str = "Europe/Berlin") -> int:
    return round(datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1_000)


@dataclass
class TimesTwin:
    """
    Attributes:
        now: The times, which a DM may change.
        n_asked: How often it was asked.
    """

    now: CampaignTimes = field(default_factory=lambda: CampaignTimes("Europe/Berlin"))
    is_away: bool = False
    n_asked: int = 0

    async def times(self, campaign: CampaignId) -> CampaignTimes:
        self.n_asked += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise Unavailable("the database is away")
        return self.now


def a_saturday_night(*, witnesses: frozenset[NpcId] = BOTH) -> FeedTwin:
    """Friday's wine; Saturday's from eight until after midnight.

    Args:
        witnesses: Witnesses of the talk before midnight.
    """
    feed = FeedTwin(has_meanings=False)
    feed.tell(
        said("friday", "The wine was red.", session="s1", at_ms=ms("2026-11-20 21:00")),
        said("early", "The wine was white.", session="s2", at_ms=ms("2026-11-21 21:00"), witnesses=witnesses),
        said(
            "before", "More wine, please!", session="s2", ordinal=2, at_ms=ms("2026-11-21 23:50"), witnesses=witnesses
        ),
        said("night", "The wine was sour.", session="s2", ordinal=3, at_ms=ms("2026-11-22 00:40")),
    )
    return feed


def a_recall(feed: FeedTwin, times: TimesTwin, now: str) -> Recall:
    return Recall(Transcripts(feed, read_times=times.times), settings=PATIENT, now_ms=lambda: ms(now))


async def fits(recall: Recall, question: str, npc: NpcId = SMITH) -> set[str]:
    """Return the found utterances that fit the time of a question best; none if it tells no time."""
    found = await recall.search(CAMPAIGN, npc, TalkQuery(question, limit=20))
    by_time = {str(one.utterance_id): one.signals.get("time", 0.0) for one in found.items}
    return {one for one, time in by_time.items() if time and time == max(by_time.values())}


async def test_yesterdays_wine_is_that_of_the_whole_evening() -> None:
    recall = a_recall(a_saturday_night(), TimesTwin(), "2026-11-22 19:00")
    assert await fits(recall, "How was the wine yesterday?") == {"early", "before", "night"}
    assert await fits(recall, "How was the wine on Friday?") == {"friday"}
    assert recall.recall_nowait(CAMPAIGN, SMITH, TalkQuery("How was the wine yesterday?")) is not None


async def test_after_midnight_it_still_is_that_evening() -> None:
    recall = a_recall(a_saturday_night(), TimesTwin(), "2026-11-22 00:50")
    assert await fits(recall, "How was the wine yesterday?") == {"friday"}


async def test_player_after_midnight_belongs_to_the_same_evening() -> None:
    recall = a_recall(a_saturday_night(witnesses=frozenset({SMITH})), TimesTwin(), "2026-11-22 19:00")
    assert await fits(recall, "How was the wine yesterday?", INNKEEPER) == {"night"}


async def test_a_table_in_denver_has_its_own_days() -> None:
    """Eight in the evening is three in the morning UTC."""
    feed = FeedTwin(has_meanings=False)
    for day in (20, 21):
        feed.tell(
            said(f"{day}", "The wine was red.", session=f"s{day}", at_ms=ms(f"2026-11-{day} 20:00", "America/Denver"))
        )
    times = TimesTwin(CampaignTimes("America/Denver"))
    recall = Recall(
        Transcripts(feed, read_times=times.times),
        settings=PATIENT,
        now_ms=lambda: ms("2026-11-22 16:00", "America/Denver"),
    )
    assert await fits(recall, "How was the wine yesterday?") == {"21"}
    times.now = CampaignTimes("UTC")
    in_utc = Recall(
        Transcripts(feed, read_times=times.times),
        settings=PATIENT,
        now_ms=lambda: ms("2026-11-22 16:00", "America/Denver"),
    )
    assert await fits(in_utc, "How was the wine yesterday?") == {"20"}


def of_the_story(today: int = 40) -> CampaignTimes:
    return CampaignTimes("UTC", HARPTOS, today, {"s1": StoryDays(11, 11), "s2": StoryDays(24, 25)})


@pytest.mark.parametrize(
    ("question", "session"), [("on 12 Hammer", {"friday"}), ("in the night of 25 Hammer", {"early", "before", "night"})]
)
async def test_a_day_of_the_story_means_the_sessions_that_were_played_on_it(question: str, session: set[str]) -> None:
    recall = a_recall(a_saturday_night(), TimesTwin(of_the_story()), "2026-12-24 19:00")
    assert await fits(recall, f"How was the wine {question}?") == session


async def test_what_the_dm_says_meanwhile_is_known_to_the_next_question() -> None:
    times, feed = TimesTwin(), a_saturday_night()
    recall = a_recall(feed, times, "2026-12-24 19:00")
    question = "How was the wine on 12 Hammer?"
    assert await fits(recall, question) == set()
    assert await fits(recall, question) == set()
    assert times.n_asked == 1
    times.now, feed.times = of_the_story(), "of the story"
    assert await fits(recall, question) == {"friday"}
    times.is_away, feed.times = True, "another day"
    assert await fits(recall, question) == {"friday"}
    assert times.n_asked == 3


async def test_times_that_cannot_be_read_are_utc_and_keep_nobody_from_remembering() -> None:
    times = TimesTwin(is_away=True)
    recall = a_recall(a_saturday_night(), times, "2026-11-22 19:00")
    assert await fits(recall, "How was the wine yesterday?")
    assert times.n_asked == 1


@pytest.mark.parametrize(
    ("times", "in_words"),
    [
        (CampaignTimes(calendar=StoryCalendar((("Hammer", 30),)), today=11), "12 Hammer"),
        (CampaignTimes(calendar=StoryCalendar(), today=12), "12"),
        (CampaignTimes(calendar=StoryCalendar()), ""),
        (CampaignTimes(), ""),
    ],
)
async def test_the_day_of_the_story_is_written_as_its_calendar_writes_it(times: CampaignTimes, in_words: str) -> None:
    memory = TranscriptMemory(FeedTwin(), CAMPAIGN, read_times=TimesTwin(times).times)
    assert memory.story_day == ""
    await memory.refresh()
    assert memory.story_day == in_words
