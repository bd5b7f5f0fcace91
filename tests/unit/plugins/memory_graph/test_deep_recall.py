"""Recall that takes its time: it starts from what recall is, knows no more than the NPC does, and never fails alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loguru import logger

from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import StructuredLlm
from glyphoxa.config.provider_sections import MemoryGraphSettings, RecallMethod, RecallStage
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.domain.knowledge import Recalled
from glyphoxa.plugins.memory_graph import deep_recall
from glyphoxa.plugins.memory_graph.deep_recall import DeepRecall
from glyphoxa.plugins.memory_graph.graph import graph_of_view
from glyphoxa.recall.recall import Recall, RecallResult
from glyphoxa.recall.transcript_memory import Transcripts
from glyphoxa.transcript.ports import FeedUtterance, TalkQuery
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH
from tests.support.memory_graph import GRAPH_STAGES, PickingLlm, RerankerTwin
from tests.support.patience import DEADLINE_MS
from tests.support.proof import n_examples
from tests.support.recalled import PATIENT
from tests.support.talk_feed import FeedTwin, an_embedder_of_words, said

WORDS = ("sister", "sails", "storm", "Ilvara", "harbour", "rain", "Joren", "sword", "bought", "they")
QUESTIONS = (
    "What of my sister?",
    "Did Ilvara ever sail?",
    "Which swords has Joren bought?",
    "What happened last time?",
)


def two_sessions() -> FeedTwin:
    feed = FeedTwin()
    texts = ("My sister Ilvara sails.", "It rains.", "We met Ilvara at sea.", "A storm came up.", "Nobody drowned.")
    feed.tell(*(said(f"u{n}", text, ordinal=n, at_ms=n * 1_000) for n, text in enumerate(texts, start=1)))
    feed.tell(said("v1", "Ilvara bought a sword.", session="s2", ordinal=1, at_ms=9_000_000))
    return feed


def a_recall(feed: FeedTwin) -> Recall:
    return Recall(Transcripts(feed, embedder=an_embedder_of_words()), settings=PATIENT, now_ms=lambda: 20_000_000)


def deep_over(
    feed: FeedTwin, *stages: RecallStage, method: RecallMethod = "hybrid", llm: StructuredLlm | None = None
) -> DeepRecall:
    settings = MemoryGraphSettings(method=method, stages=stages)
    return DeepRecall(
        a_recall(feed), settings=settings, llm=ModelAsker(llm or PickingLlm(), retries=0), reranker=RerankerTwin()
    )


async def asked(
    deep: DeepRecall, question: str = QUESTIONS[0], *, npc: NpcId = SMITH, **options: Any
) -> RecallResult[Any]:
    of_talk = {name: options.pop(name) for name in ("exclude", "limit", "between") if name in options}
    deep.deadline_ms = options.pop("deadline_ms", None)
    for name, known in options.items():
        setattr(deep, name, lambda _, known=known: known)
    return await deep.search(CAMPAIGN, npc, TalkQuery(question, **{"limit": 15, **of_talk}))


def ids(found: RecallResult[Any]) -> list[str]:
    return [str(one.utterance_id) for one in found.items]


utterances = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), max_size=12)


def told(texts: Sequence[str], **changes: Any) -> list[FeedUtterance]:
    """Half of them in each of two sessions."""
    return [
        said(f"u{n}", text, session=f"s{1 + 2 * n // len(texts)}", ordinal=n + 1, at_ms=n * 1_000_000, **changes)
        for n, text in enumerate(texts)
    ]


@settings(derandomize=True, deadline=None, max_examples=n_examples(60))
@given(texts=utterances, question=st.sampled_from(QUESTIONS), limit=st.integers(1, 12), excluded=st.integers(0, 12))
def test_with_no_stage_on_it_is_what_recall_is(texts: list[str], question: str, limit: int, excluded: int) -> None:
    feed = FeedTwin()
    feed.tell(*told(texts))
    exclude = [UtteranceId(f"u{excluded}")]

    async def both() -> tuple[RecallResult[Any], RecallResult[Any]]:
        recall = a_recall(feed)
        plain = await recall.search(CAMPAIGN, SMITH, TalkQuery(question, exclude=exclude, limit=limit), patient=True)
        return plain, await asked(DeepRecall(recall), question, exclude=exclude, limit=limit)

    plain, deep = asyncio.run(both())
    assert [(one.utterance_id, one.text) for one in deep.items] == [(one.utterance_id, one.text) for one in plain.items]
    assert [one.signals for one in deep.items] == [one.signals for one in plain.items]
    assert deep.left_out == plain.left_out


@settings(derandomize=True, deadline=None, max_examples=n_examples(40))
@given(
    texts=utterances.filter(len),
    hidden=utterances,
    question=st.sampled_from(QUESTIONS[:3]),
    method=st.sampled_from(get_args(RecallMethod)),
)
def test_what_an_npc_did_not_witness_changes_nothing_of_what_it_is_reminded_of(
    texts: list[str], hidden: list[str], question: str, method: RecallMethod
) -> None:
    """Nor is a language model shown any of it."""
    alone, among = FeedTwin(), FeedTwin()
    alone.tell(*told(texts))
    secret = told(hidden, witnesses=frozenset({INNKEEPER})) if hidden else []
    among.tell(*(said(f"h{n}", f"{one.text} secretly", ordinal=100 + n, at_ms=one.at_ms + 1,
                      witnesses=one.witnesses) for n, one in enumerate(secret)))  # fmt: skip
    among.tell(*told(texts))

    async def found(feed: FeedTwin) -> tuple[tuple[Recalled, ...], list[list[str]]]:
        llm = PickingLlm([(("sister", "rain"), ("Ilvara", "storm"))])
        deep = deep_over(feed, *GRAPH_STAGES, method=method, llm=llm)
        return (await asked(deep, question)).items, llm.shown

    (with_it, shown_with), (without, shown_without) = asyncio.run(found(among)), asyncio.run(found(alone))
    assert [one.text for one in with_it] == [one.text for one in without]
    assert shown_with == shown_without
    for one, other in zip(with_it, without, strict=True):
        # A product of matrices of other sizes differs in its last digits.
        assert dict(one.signals) == pytest.approx(dict(other.signals), abs=1e-3)


async def test_what_is_filtered_or_reordered_is_more_than_what_is_told() -> None:
    llm = PickingLlm([(("bought", "said"), ())])
    found = await asked(deep_over(two_sessions(), method="hybrid_llm", llm=llm), "Ilvara?", limit=1)
    assert len(llm.shown[0]) > 1
    assert ids(found) == ["v1"]


async def test_what_is_in_the_prompt_and_the_question_itself_are_shown_to_nobody() -> None:
    feed = two_sessions()
    feed.tell(said("q", QUESTIONS[0], session="s2", ordinal=2, at_ms=9_001_000))
    deep = deep_over(feed, method="llm", llm=PickingLlm([(("said",), ())]))
    found = await asked(deep, QUESTIONS[0].upper(), exclude=[UtteranceId("u1")])
    assert sorted(ids(found)) == ["u2", "u3", "u4", "u5", "v1"]


@pytest.mark.parametrize(
    ("method", "problem"), [("llm", "llm needs a language model"), ("hybrid_rerank", r"hybrid_rerank needs recall\.re")]
)
async def test_who_cannot_be_asked_is_named(method: RecallMethod, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        DeepRecall(a_recall(two_sessions()), settings=MemoryGraphSettings(method=method))


@pytest.mark.parametrize("question", ["", "   ", "?!", "the of and", "word " * 2_000, "Что случилось?"])
@pytest.mark.parametrize("method", get_args(RecallMethod))
async def test_whatever_is_asked_there_is_an_answer(question: str, method: RecallMethod) -> None:
    found = await asked(deep_over(two_sessions(), method=method), question)
    assert found.items == () or all(one.source == "said" for one in found.items)


@pytest.mark.parametrize("method", get_args(RecallMethod))
async def test_a_campaign_without_talk_reminds_of_nothing_and_asks_nobody(method: RecallMethod) -> None:
    llm = PickingLlm()
    assert (await asked(deep_over(FeedTwin(), *GRAPH_STAGES, method=method, llm=llm))).items == ()
    assert not llm.prompts


async def test_a_model_that_does_not_answer_is_waited_for_no_longer_than_there_is_time() -> None:
    llm = PickingLlm(is_silent=True)
    deep = deep_over(two_sessions(), method="hybrid_llm", llm=llm)
    found = await asked(deep, deadline_ms=100)
    assert ids(found) == ids(await asked(deep_over(two_sessions())))
    assert len(found.left_out) == 1
    assert all(one <= 100 for one in llm.deadlines_ms)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[int], threading.Event]]:
    """The sizes of the graphs that were made, and what their making waits for."""
    sizes: list[int] = []
    may_go_on = threading.Event()
    may_go_on.set()
    really = graph_of_view

    def counted(index: Any, columns: Any, *known: Any, **options: Any) -> Any:
        assert may_go_on.wait(DEADLINE_MS / 1_000)
        sizes.append(len(columns))
        return really(index, columns, *known, **options)

    monkeypatch.setattr(deep_recall, "graph_of_view", counted)
    yield sizes, may_go_on
    may_go_on.set()


async def test_a_graph_is_made_once_as_long_as_nothing_is_said(made: tuple[list[int], threading.Event]) -> None:
    feed = two_sessions()
    deep = deep_over(feed)
    await asyncio.gather(asked(deep), asked(deep, "Ilvara?"))
    await asked(deep, "A storm?")
    assert made[0] == [6]
    feed.tell(said("v2", "My sister is back.", session="s2", ordinal=2, at_ms=9_001_000))
    assert ids(await asked(deep))[0] in ("u1", "v2")
    await asked(deep, npc=INNKEEPER)
    assert made[0] == [6, 7, 7]


async def test_a_graph_that_is_not_ready_is_left_out_and_there_for_the_next(
    made: tuple[list[int], threading.Event],
) -> None:
    deep = deep_over(two_sessions(), "diffusion")
    plain = await a_recall(two_sessions()).search(CAMPAIGN, SMITH, TalkQuery(QUESTIONS[0], limit=15), patient=True)
    made[1].clear()
    found = await asked(deep, deadline_ms=20)
    assert (ids(found), found.left_out) == (ids(plain), ("memory graph: not ready in time",))
    made[1].set()
    assert (await asked(deep)).left_out == ()
    assert made[0] == [6]
    await deep.close()


# -- as the tools of an NPC ask it


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    heard: list[str] = []
    sink = logger.add(lambda message: heard.append(message.record["message"]), level="WARNING")
    yield heard
    logger.remove(sink)


async def test_a_model_that_fails_is_logged_once_until_it_is_well_again(warnings: list[str]) -> None:
    fails = Unavailable("no route")
    deep = deep_over(two_sessions(), method="hybrid_llm", llm=PickingLlm([fails, fails, ((), ()), fails]))
    plain = ids(await asked(deep_over(two_sessions()), limit=5))
    for expected in (plain, plain, []):
        found = await deep.recall(CAMPAIGN, SMITH, TalkQuery(QUESTIONS[0]))
        assert [one.utterance_id for one in found] == expected
    assert warnings == ["recall by hybrid_llm falls back to words and meaning: language model: no route"]
    await deep.recall(CAMPAIGN, SMITH, TalkQuery(QUESTIONS[0]))
    assert len(warnings) == 2


async def test_talk_that_cannot_be_read_at_all_is_reported_to_the_caller() -> None:
    feed = FeedTwin()

    async def away(_what: str) -> None:
        raise Unavailable("the database is away")

    feed.before = away
    with pytest.raises(Unavailable, match="the database is away"):
        await deep_over(feed).recall(CAMPAIGN, SMITH, TalkQuery("Ilvara?"))
