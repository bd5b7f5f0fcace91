"""Any question gets a defined answer in time, whatever the embedder does, and the answer lists what was ignored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Between, RecalledUtterance
from glyphoxa.recall.recall import Recall, RecallResult
from glyphoxa.recall.transcript_memory import Transcripts
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import CAMPAIGN, SMITH
from tests.support.embedders import an_embedder
from tests.support.proof import n_examples
from tests.support.recalled import PATIENT
from tests.support.talk_feed import DIMENSIONS, FeedTwin, embed, said
from tests.support.virtual_time import run_in_virtual_time

TALK = (
    said("u1", "My sister sails with the pirates.", ordinal=1),
    said("u2", "It rains, and the sword is done.", ordinal=2, at_ms=2_000),
    said("u3", "Where did Tamsin go?", speaker="Grimjaw", ordinal=3, at_ms=3_000),
    said("u4", "To the harbour 🏴‍☠️ of Skarn.", ordinal=4, at_ms=4_000),
)
LONG = "Do you remember the harbour? " * 400
STRANGE = [
    "\0",
    "a\0sister",
    "\ud800",
    "sister \udfff and \ud83d",
    "🏴‍☠️",
    "🐉🐉🐉",
    "أين أختي؟",
    "איפה אחותי?",
    "妹はどこですか？",
    "Где моя сестра?",
    "\u202eretsis\u202c",
    "sister\u0301",
    "' OR 1=1 --",
    "(((((",
    "[a-z]*+?{9999}",
    "\\",
    "%s %d {0}",
    "-" * 10_000,
    "a" * 10_000,
    "1" * 10_000,
    "what " * 2_000,
    "the " * 2_000,
    "last session " * 800,
    "before the " * 900,
    "when " * 2_000,
    "?" * 10_000,
    " " * 10_000 + "sister",
    "vor dem " * 1_200,
    "in the " * 1_000 + "sister",
    "since " * 1_600,
    "\n\t\v\f\r sister",
    "Tamsin " * 1_400,
    LONG,
]


def a_feed(*, with_talk: bool = True) -> FeedTwin:
    feed = FeedTwin()
    if with_talk:
        feed.tell(*TALK)
    return feed


def by_words(feed: FeedTwin | None = None, *, now_ms: int = 86_400_000) -> Recall:
    """The day after, if nothing else is said."""
    return Recall(Transcripts(feed or a_feed()), settings=PATIENT, now_ms=lambda: now_ms)


def texts(found: RecallResult) -> list[str]:
    return [str(one.utterance_id) for one in found.items]


@pytest.mark.parametrize("question", ["", "   ", "\n\t", "\u3000"])
async def test_who_asks_nothing_is_reminded_of_nothing(question: str) -> None:
    recall = by_words()
    found = await recall.search(CAMPAIGN, SMITH, TalkQuery(question))
    assert found == RecallResult((), ("everything: nothing was asked",))
    assert recall.recall_nowait(CAMPAIGN, SMITH, TalkQuery(question)) == []


@pytest.mark.parametrize("question", ["is it?", "the of and to", "?!", "...", "who was that"])
async def test_little_words_remind_of_nothing(question: str) -> None:
    assert texts(await by_words().search(CAMPAIGN, SMITH, TalkQuery(question))) == []


@pytest.mark.parametrize("question", STRANGE)
async def test_no_question_breaks_recall(question: str) -> None:
    recall = Recall(
        Transcripts(a_feed(), embedder=an_embedder(_embed_all, dimensions=DIMENSIONS)),
        settings=PATIENT,
        now_ms=lambda: 0,
    )
    found = await recall.search(CAMPAIGN, SMITH, TalkQuery(question))
    assert len(found.items) <= 5
    assert recall.recall_nowait(CAMPAIGN, SMITH, TalkQuery(question)) is not None


@settings(max_examples=n_examples(150), derandomize=True, deadline=None)
@given(st.text(st.characters(), max_size=200), st.sampled_from(["en", "de", "xx", ""]))
@example("\ud800 Tamsin's", "de")
def test_no_text_at_all_breaks_recall(question: str, language: str) -> None:
    async def scene() -> None:
        feed = a_feed()
        feed.languages[CAMPAIGN] = language
        recall = by_words(feed)
        found = await recall.search(CAMPAIGN, SMITH, TalkQuery(question))
        assert recall.recall_nowait(CAMPAIGN, SMITH, TalkQuery(question)) == list(found.items) or found.items

    asyncio.run(scene())


async def test_the_end_of_a_very_long_question_is_what_is_asked() -> None:
    question = "Nothing of note happened on the road. " * 300 + "But where is my sister?"
    assert len(question) > 10_000
    assert texts(await by_words().search(CAMPAIGN, SMITH, TalkQuery(question, limit=1))) == ["u1"]


async def test_a_campaign_that_was_never_stored_has_nothing_to_remember() -> None:
    recall = by_words(a_feed(with_talk=False))
    unknown = CampaignId("nowhere")
    assert recall.recall_nowait(unknown, SMITH, TalkQuery("my sister")) is None
    assert texts(await recall.search(unknown, SMITH, TalkQuery("my sister, last session, what happened?"))) == []
    assert recall.recall_nowait(unknown, SMITH, TalkQuery("my sister")) == []


async def test_a_recap_tells_how_it_began_and_ended_and_of_a_speech_what_there_is_room_for() -> None:
    feed = FeedTwin()
    speech = "The harbour burns. " * 400
    feed.tell(*(said(f"u{n}", f"{speech}{n}", ordinal=n, at_ms=1_000 * n) for n in range(1, 10)))
    found = await by_words(feed).recall(CAMPAIGN, SMITH, TalkQuery("What happened last session?", limit=3))
    assert [one.at_ms for one in found][:: len(found) - 1] == [1_000, 8_000]
    assert all("recap" in one.signals for one in found)
    assert sum(len(one.text) for one in found) < 4 * 40 * 3


async def test_a_turn_that_a_recap_tells_is_not_told_again() -> None:
    feed = FeedTwin()
    feed.tell(*(said(f"u{n}", f"The harbour, part {n}.", ordinal=n, at_ms=1_000 * n) for n in range(1, 4)))
    found = await by_words(feed).recall(
        CAMPAIGN, SMITH, TalkQuery("What happened in the end at the harbour last session?")
    )
    assert len({one.utterance_id for one in found}) == len(found)
    told = [one.at_ms for one in found if "recap" in one.signals]
    assert told == sorted(told, key=lambda at: at or 0)


async def test_unknown_utterances_and_all_of_them_may_be_excluded() -> None:
    recall = by_words()
    strangers = [UtteranceId("nobody"), UtteranceId(""), UtteranceId("\0")]
    assert texts(await recall.search(CAMPAIGN, SMITH, TalkQuery("sister", exclude=strangers)))[0] == "u1"
    everything = [one.utterance_id for one in TALK]
    for question in ("sister", "What happened last session?"):
        assert texts(await recall.search(CAMPAIGN, SMITH, TalkQuery(question, exclude=everything))) == []


@pytest.mark.parametrize("asked", ["My sister sails with the pirates.", "my SISTER sails  with the pirates."])
async def test_logged_question_does_not_recall_itself(asked: str) -> None:
    assert "u1" not in texts(await by_words().search(CAMPAIGN, SMITH, TalkQuery(asked)))


# -- the embedder


async def _embed_all(texts: list[str]) -> NDArray[float32]:
    return np.stack([embed(text) for text in texts])


async def _down(texts: list[str]) -> None:
    raise Unavailable("no model is there")


async def _broken(texts: list[str]) -> NDArray[float32]:
    raise RuntimeError("what was said stands here")


async def _never(texts: list[str]) -> NDArray[float32]:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (_down, "meaning: no model is there"),
        (_broken, "failed (RuntimeError)"),
        (_never, "late: it took more than 40 ms"),
    ],
)
def test_without_a_vector_words_decide_in_time_and_it_is_said_why(
    model: Callable[[list[str]], Awaitable[NDArray[float32]]], why: str
) -> None:
    async def scene() -> None:
        feed = a_feed()
        feed.has_meanings = False  # a thread takes time of the outside world
        recall = Recall(
            Transcripts(feed, embedder=an_embedder(model, name="words", dimensions=DIMENSIONS)), now_ms=lambda: 0
        )
        clock = asyncio.get_running_loop()
        for _ in range(2):
            began = clock.time()
            found = await recall.search(CAMPAIGN, SMITH, TalkQuery("Where is my sister?"))
            assert clock.time() - began <= 0.0401
            assert texts(found)[0] == "u1"
            [left_out] = found.left_out
            assert left_out.startswith("meaning: ")
            assert why in left_out
            assert "what was said" not in left_out
        await recall.close()

    run_in_virtual_time(scene())


def test_a_patient_question_waits_for_a_slow_model_and_a_hurried_one_has_it_then() -> None:
    async def slowly(texts: list[str]) -> NDArray[float32]:
        await asyncio.sleep(0.5)
        return await _embed_all(texts)

    async def scene() -> None:
        feed = a_feed()
        feed.has_meanings = False
        recall = Recall(Transcripts(feed, embedder=Embedder("words", DIMENSIONS, slowly)), now_ms=lambda: 0)
        assert (await recall.search(CAMPAIGN, SMITH, TalkQuery("Where is my sister?"), patient=True)).left_out == ()
        began = asyncio.get_running_loop().time()
        assert (await recall.search(CAMPAIGN, SMITH, TalkQuery("Where is my sister?"))).left_out == ()
        assert asyncio.get_running_loop().time() == began
        await recall.close()

    run_in_virtual_time(scene())


async def test_what_was_left_out_once_is_not_said_of_a_later_answer() -> None:
    feed = a_feed()
    recall = by_words(feed)
    question = "Where is my sister?"
    first = await recall.search(CAMPAIGN, SMITH, TalkQuery(question))

    async def away(_what: str) -> None:
        raise Unavailable("the database is away")

    feed.before = away
    assert (await recall.search(CAMPAIGN, SMITH, TalkQuery(question))).left_out == (
        "the latest utterances: the database is away",
        *first.left_out,
    )
    feed.before = FeedTwin().before
    assert await recall.search(CAMPAIGN, SMITH, TalkQuery(question)) == first


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ({"session": SessionId("s1")}, ["u1", "u2"]),
        ({"session": SessionId("s3")}, []),
        ({"speaker": "mira"}, ["u2"]),
        ({"speaker": "Vale Mira", "session": SessionId("s2")}, []),
        ({"speaker": "..."}, []),
        ({"speaker": "Tamsin", "between": Between(before_ms=2_000)}, ["u1"]),
    ],
)
@pytest.mark.parametrize("question", ["Where is the ferry?", "What happened with the ferry, in what order?"])
async def test_only_lines_of_a_session_and_a_speaker_are_ranked(
    question: str, only: dict[str, Any], found: list[str]
) -> None:
    feed = FeedTwin()
    feed.tell(
        said("u1", "The ferry leaves at noon.", at_ms=1_000),
        said("u2", "The ferry sank.", ordinal=2, speaker="Mira Vale", at_ms=2_000),
        *(said(f"v{n}", "The ferry, the ferry!", session="s2", ordinal=n, at_ms=9_000 + n) for n in range(1, 9)),
    )
    recall = Recall(Transcripts(feed), settings=PATIENT)
    recalled = await recall.recall(CAMPAIGN, SMITH, TalkQuery(question, limit=2, **only))
    assert sorted(one.utterance_id for one in recalled if isinstance(one, RecalledUtterance)) == found
