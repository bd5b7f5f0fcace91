"""Talk that an NPC did not witness changes nothing of what it recalls: neither what, nor how sure, nor why.

Each test asks the whole of recall twice: over the log as it is, and over one that has only what the NPC witnessed. One
thing may differ, and only where a session is asked for by its number or as the last one: its number is the table's.
Who asks counts the evenings that were played, and those are no secret: that there was one without the NPC is known to
all who play, and nothing of what was said there is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import RecalledTalk, RecalledUtterance
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.recall.recall import Recall, RecallResult
from glyphoxa.recall.transcript_memory import Transcripts
from glyphoxa.transcript.ports import FeedUtterance, TalkQuery
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH
from tests.support.embedders import an_embedder
from tests.support.proof import n_examples
from tests.support.recalled import PATIENT
from tests.support.talk_feed import DIMENSIONS, FeedTwin, an_embedder_of_words, said

DAY_MS = 86_400_000
NOW_MS = 1_794_000_000_000
LINES = (
    "My sister sails with the pirates.",
    "Where is the sword?",
    "Yesterday it rained on the feast.",
    "Will has two swords.",
    "The pirates hunt Eldrinax.",
    "Before the feast she was in Skarn.",
    "Joren knows.",
    "We met at the harbour in June.",
)
SPEAKERS = ("Tamsin", "Joren", "Will", "Grimjaw", "The Ferryman")
QUESTIONS = (
    "Where is my sister?",
    "What did Joren say of the sword?",
    "Has Will two swords, and when did Tamsin see the pirates?",
    "What was said yesterday of the pirates?",
    "What happened before the feast?",
    "What happened after we met at the harbour?",
    "What came first, the feast or the harbour?",
    "Which of the swords has Joren seen?",
    "What do you remember of last week?",
    "When did we first meet?",
    "What of Grimjaw and the ferryman, a long time ago?",
    "Tell me everything that happened so far.",
)
BY_PLACE = ("What happened in the last session?", "What of the sister in session 2?", "What happened two sessions ago?")


@st.composite
def talk(draw: st.DrawFn) -> list[FeedUtterance]:
    """Up to four sessions, some of them without the smith, a part of it said to him, in any order of arrival."""
    told: list[FeedUtterance] = []
    for session in range(draw(st.integers(1, 4))):
        for ordinal in range(1, draw(st.integers(1, 6)) + 1):
            there = draw(st.sampled_from([{SMITH}, {INNKEEPER}, {SMITH, INNKEEPER}, set()]))
            told.append(
                said(
                    f"u{session}-{ordinal}",
                    draw(st.sampled_from(LINES)),
                    session=f"s{session}",
                    ordinal=ordinal,
                    speaker=draw(st.sampled_from(SPEAKERS)),
                    at_ms=NOW_MS - (5 - session) * DAY_MS + ordinal * 60_000,
                    witnesses=frozenset(there),
                    retracted=draw(st.integers(0, 9)) == 0,
                )
            )
    return draw(st.permutations(told))


class Summaries:
    """The smith knows of every session that he was at, and of no other."""

    def __init__(self, told: Sequence[FeedUtterance]) -> None:
        self._known = {one.session_id for one in told if SMITH in one.witnesses}

    async def __call__(self, campaign: CampaignId) -> Callable[[NpcId, SessionId], str | None]:
        return lambda npc, session: f"What {npc} knows of {session}." if session in self._known else None


def of_smith(told: Sequence[FeedUtterance]) -> list[FeedUtterance]:
    return [one for one in told if SMITH in one.witnesses]


async def everything(
    told: Sequence[FeedUtterance], questions: Sequence[str], exclude: Sequence[UtteranceId]
) -> list[RecallResult]:
    feed = FeedTwin()
    feed.tell(*told)
    recall = Recall(
        Transcripts(feed, embedder=an_embedder_of_words()),
        summaries=Summaries(of_smith(told)),
        settings=PATIENT,
        now_ms=lambda: NOW_MS,
    )
    found: list[RecallResult] = []
    for question in questions:
        found.append(_rounded(await recall.search(CAMPAIGN, SMITH, TalkQuery(question, exclude=exclude))))
        # Once more, as remembered, and by words alone.
        found.append(_rounded(await recall.search(CAMPAIGN, SMITH, TalkQuery(question, exclude=exclude))))
        found.append(
            _rounded(
                RecallResult(tuple(recall.recall_nowait(CAMPAIGN, SMITH, TalkQuery(question, exclude=exclude)) or ()))
            )
        )
    return found


def _rounded(found: RecallResult) -> RecallResult:
    """The last digit of a product depends on what else is multiplied with it."""

    def of(one: RecalledTalk) -> RecalledTalk:
        if not isinstance(one, RecalledUtterance):
            return one
        return replace(
            one,
            score=round(one.score, 3),
            similarity=None if one.similarity is None else round(one.similarity, 3),
            signals={name: round(value, 2) for name, value in one.signals.items() if abs(value) > 0.01},
        )

    return replace(found, items=tuple(map(of, found.items)))


@settings(max_examples=n_examples(60), derandomize=True, deadline=None)
@given(talk(), st.lists(st.sampled_from([f"u{n}-{m}" for n in range(4) for m in range(1, 7)]), max_size=3))
def test_what_an_npc_did_not_witness_changes_nothing_of_its_answers(
    told: list[FeedUtterance], exclude: list[str]
) -> None:
    left_out = [UtteranceId(one) for one in exclude]
    whole = asyncio.run(everything(told, QUESTIONS, left_out))
    own = asyncio.run(everything(of_smith(told), QUESTIONS, left_out))
    assert whole == own


@settings(max_examples=n_examples(60), derandomize=True, deadline=None)
@given(talk())
def test_a_session_has_the_tables_number_and_nothing_is_told_of_what_was_said_without_the_npc(
    told: list[FeedUtterance],
) -> None:
    """Where the smith was at every evening, not even that makes a difference."""
    whole = asyncio.run(everything(told, BY_PLACE, ()))
    known = {one.utterance_id for one in of_smith(told) if not one.retracted}
    for found in whole:
        assert all(one.utterance_id in known for one in found.items if isinstance(one, RecalledUtterance))
        assert all(str(one.session_id) in one.reason for one in found.items)
    sessions = {one.session_id for one in told if not one.retracted}
    began = {at: min(one.at_ms for one in told if one.session_id == at and not one.retracted) for at in sessions}
    assume({one.session_id for one in of_smith(told) if not one.retracted} == sessions and len(began) == len(sessions))
    assert whole == asyncio.run(everything(of_smith(told), BY_PLACE, ()))


@settings(max_examples=n_examples(40), derandomize=True, deadline=None)
@given(talk(), st.data())
def test_while_others_talk_among_themselves_an_npc_is_reminded_of_the_same(
    told: list[FeedUtterance], data: st.DataObject
) -> None:
    """Not only what was read before, also what comes while all is in memory: new, bettered, rolled back."""
    others = [one for one in told if SMITH not in one.witnesses]
    assume(others)

    async def scene() -> None:
        feed = FeedTwin()
        feed.tell(*of_smith(told))
        recall = Recall(Transcripts(feed, embedder=an_embedder_of_words()), settings=PATIENT, now_ms=lambda: NOW_MS)
        before = [_rounded(await recall.search(CAMPAIGN, SMITH, TalkQuery(question))) for question in QUESTIONS]
        feed.tell(*others)
        await recall.transcript(CAMPAIGN).refresh()
        for one in others:
            ways: list[dict[str, Any]] = [{"text": "The pirates have my sister."}, {"retracted": True}, {}]
            changes = data.draw(st.sampled_from(ways))
            feed.change(one.utterance_id, **changes)
        after = [_rounded(await recall.search(CAMPAIGN, SMITH, TalkQuery(question))) for question in QUESTIONS]
        assert before == after

    asyncio.run(scene())


def test_nor_does_a_campaign_full_of_what_others_heard() -> None:
    """So much that every frequency and every average would be another."""
    own = [
        said(f"o{n}", LINES[n % 8], ordinal=10 * n, at_ms=NOW_MS - 2 * DAY_MS + n, speaker=SPEAKERS[n % 5])
        for n in range(1, 41)
    ]
    hidden = [
        said(
            f"h{n}",
            f"{LINES[n % 8]} {LINES[(n + 3) % 8]}",
            ordinal=n,
            at_ms=NOW_MS - 2 * DAY_MS,
            speaker=SPEAKERS[n % 3],
            witnesses=frozenset({INNKEEPER}),
        )
        for n in range(1, 900)
        if n % 10
    ]
    questions = (*QUESTIONS, *BY_PLACE)
    whole = asyncio.run(everything([*hidden[:400], *own, *hidden[400:]], questions, ()))
    assert whole == asyncio.run(everything(own, questions, ()))


# -- one by one, what could reveal it


async def scene_of(
    *told: FeedUtterance, npc: NpcId = SMITH, question: str = "Where is Joren with my sister?"
) -> list[RecalledTalk]:
    feed = FeedTwin()
    feed.tell(*told)
    recall = Recall(Transcripts(feed, embedder=an_embedder_of_words()), settings=PATIENT, now_ms=lambda: NOW_MS)
    return await recall.recall(CAMPAIGN, npc, TalkQuery(question))


async def test_the_name_of_somebody_it_never_heard_is_a_word_like_others_in_its_question() -> None:
    """A question is asked as by those it names, if the NPC has heard them: whom it never heard speaks to nobody."""
    asked: list[str] = []

    async def listen(texts: list[str]) -> NDArray[float32]:
        asked.extend(texts)
        return np.eye(len(texts), DIMENSIONS, dtype=float32)

    feed = FeedTwin()
    feed.tell(
        said("u1", "It rains.", witnesses=frozenset({SMITH})),
        said("u2", "It snows.", speaker="Joren", ordinal=2, witnesses=frozenset({INNKEEPER})),
    )
    recall = Recall(
        Transcripts(feed, embedder=an_embedder(listen, name="words", dimensions=DIMENSIONS)),
        settings=PATIENT,
        now_ms=lambda: NOW_MS,
    )
    for npc in (SMITH, INNKEEPER):
        await recall.recall(CAMPAIGN, npc, TalkQuery("And where is Joren now?"))
    assert asked == ["And where is Joren now?", "And where is I now?"]
    index = recall.transcript(CAMPAIGN).index
    assert index is not None
    assert (set(index.speakers(SMITH)), set(index.speakers(INNKEEPER))) == ({"Tamsin"}, {"Joren"})


@pytest.mark.parametrize("change", [{"witnesses": frozenset({INNKEEPER})}, {"retracted": True}])
async def test_what_is_no_longer_to_be_known_is_in_no_later_answer(change: dict[str, Any]) -> None:
    feed = FeedTwin()
    feed.tell(said("u1", "My sister sails."), said("u2", "The feast.", ordinal=2))
    recall = Recall(Transcripts(feed, embedder=an_embedder_of_words()), settings=PATIENT, now_ms=lambda: NOW_MS)
    for question in ("Where is my sister?", "What happened so far?"):
        await recall.recall(CAMPAIGN, SMITH, TalkQuery(question))
    feed.change("u1", **change)
    for question in ("Where is my sister?", "What happened so far?"):
        assert "u1" not in [one.utterance_id for one in await recall.recall(CAMPAIGN, SMITH, TalkQuery(question))]
        assert "u1" not in [
            one.utterance_id for one in recall.recall_nowait(CAMPAIGN, SMITH, TalkQuery(question)) or ()
        ]


async def test_a_summary_that_may_not_be_known_any_more_is_not_remembered() -> None:
    feed = FeedTwin()
    feed.tell(said("u1", "My sister sails.", at_ms=NOW_MS - DAY_MS))

    text: str | None = "The crown was false."

    async def summaries(campaign: CampaignId) -> Callable[[NpcId, SessionId], str | None]:
        return lambda npc, session: text

    recall = Recall(Transcripts(feed), summaries=summaries, settings=PATIENT, now_ms=lambda: NOW_MS)
    question = "What happened last session?"
    assert "The crown was false." in [one.text for one in await recall.recall(CAMPAIGN, SMITH, TalkQuery(question))]
    text = None
    assert "The crown was false." not in [one.text for one in await recall.recall(CAMPAIGN, SMITH, TalkQuery(question))]


async def test_of_a_session_that_it_was_not_at_an_npc_is_told_no_summary() -> None:
    asked: list[str] = []
    feed = FeedTwin()
    feed.tell(
        said("u1", "My sister sails.", at_ms=NOW_MS - 2 * DAY_MS),
        said("u2", "The crown is false.", session="s2", at_ms=NOW_MS - DAY_MS, witnesses=frozenset({INNKEEPER})),
    )

    def everything_of(npc: NpcId, session: SessionId) -> str | None:
        asked.append(session)
        return "Everything."

    async def summaries(campaign: CampaignId) -> Callable[[NpcId, SessionId], str | None]:
        return everything_of

    recall = Recall(Transcripts(feed), summaries=summaries, settings=PATIENT, now_ms=lambda: NOW_MS)
    await recall.recall(CAMPAIGN, SMITH, TalkQuery("What happened last session?"))
    assert set(asked) == {"s1"}


async def test_an_npc_hears_itself_as_you_and_nobody_elses_words_are_its_own() -> None:
    own = replace(said("u1", "My sister sails.", speaker="Grimjaw"), speaker_id=SpeakerId(SMITH))
    assert [recalled_line(one) for one in await scene_of(own, question="sister")] == ["You said: My sister sails."]
    assert [recalled_line(one) for one in await scene_of(own, npc=INNKEEPER, question="sister")] == [
        "Grimjaw said: My sister sails."
    ]
