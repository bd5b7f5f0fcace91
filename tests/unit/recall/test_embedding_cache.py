"""Vectors of questions: in time or left out, with the reason; once for all who ask; and a dead model costs no turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.actors.limits import COOLDOWN_MS, MAX_FAILURES
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.recall.vectors import LONGEST_MS, MOST_CHARACTERS, MOST_REMEMBERED, Embedder, LeftOut, QuestionVectors
from tests.support.proof import n_examples
from tests.support.virtual_time import run_in_virtual_time

DIMENSIONS = 4


def in_virtual_time(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(story)
    def run(*arguments: Any, **named: Any) -> None:
        run_in_virtual_time(story(*arguments, **named))

    return run


class Model:
    """Takes `takes_ms` for each call, then does what `fails_with` says. `asked` holds the texts, in order."""

    def __init__(self, *, takes_ms: int = 0, fails_with: Exception | None = None) -> None:
        self.takes_ms = takes_ms
        self.fails_with = fails_with
        self.gives: Callable[[int], NDArray[float32]] | None = None
        self.asked: list[str] = []

    @property
    def embedder(self) -> Embedder:
        return Embedder("twin", DIMENSIONS, self._embed)

    async def _embed(self, texts: list[str]) -> NDArray[float32]:
        self.asked += texts
        await asyncio.sleep(self.takes_ms / 1_000)
        if self.fails_with is not None:
            raise self.fails_with
        if self.gives is not None:
            return self.gives(len(texts))
        rows = np.zeros((len(texts), DIMENSIONS), float32)
        rows[:, 0] = 1
        return rows


LATE = "the embedding was late: it took more than 40 ms"


async def reason(vectors: QuestionVectors, question: str = "Who forged it?", *, deadline_ms: int = 40) -> str | None:
    """None when there was a vector."""
    found = await vectors.embed_in_time(question, deadline_ms=deadline_ms)
    return found.text if isinstance(found, LeftOut) else None


async def pass_ms(ms: int) -> None:
    await asyncio.sleep(ms / 1_000)


# -- asked once


@in_virtual_time
async def test_a_question_is_embedded_once_however_often_it_is_asked() -> None:
    model = Model(takes_ms=10)
    vectors = QuestionVectors(model.embedder)
    for question in ("Who forged it?", "Who forged it?", "  Who   forged it?\n"):
        found = await vectors.embed_in_time(question, deadline_ms=40)
        assert not isinstance(found, LeftOut)
        assert found.shape == (DIMENSIONS,)
    assert model.asked == ["Who forged it?"]


@in_virtual_time
async def test_all_who_hear_a_question_share_one_call() -> None:
    model = Model(takes_ms=10)
    vectors = QuestionVectors(model.embedder)
    assert await asyncio.gather(*(reason(vectors) for _ in range(20))) == [None] * 20
    assert model.asked == ["Who forged it?"]


@in_virtual_time
async def test_who_stops_waiting_takes_nothing_from_the_others() -> None:
    model = Model(takes_ms=30)
    vectors = QuestionVectors(model.embedder)
    impatient = asyncio.create_task(vectors.embed_in_time("Who?", deadline_ms=40))
    patient = asyncio.create_task(vectors.embed_in_time("Who?", deadline_ms=40))
    await pass_ms(10)
    impatient.cancel()
    assert not isinstance(await patient, LeftOut)
    assert len(model.asked) == 1


@in_virtual_time
async def test_what_was_not_asked_for_longest_is_forgotten_first() -> None:
    model = Model()
    vectors = QuestionVectors(model.embedder)
    others = [f"other {n}" for n in range(MOST_REMEMBERED - 2)]
    for question in ("one", "two", *others, "one", "three", "one", "two"):
        assert await reason(vectors, question) is None
    assert model.asked == ["one", "two", *others, "three", "two"]


@in_virtual_time
async def test_nobody_can_change_what_is_remembered_for_the_others() -> None:
    vectors = QuestionVectors(Model().embedder)
    found = await vectors.embed_in_time("Who?", deadline_ms=40)
    assert not isinstance(found, LeftOut)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 2


@in_virtual_time
async def test_a_model_that_tells_questions_from_what_they_find_is_told_that_this_is_one() -> None:
    asked: list[str] = []

    async def as_question(texts: list[str]) -> NDArray[float32]:
        asked.extend(texts)
        return np.full((1, DIMENSIONS), 0.5, float32)

    model = Model()
    embedder = Embedder("twin", DIMENSIONS, model.embedder.embed, embed_otherwise=as_question)
    assert await reason(QuestionVectors(embedder)) is None
    assert (asked, model.asked) == (["Who forged it?"], [])


# -- in time, or not at all


@in_virtual_time
async def test_what_comes_late_is_left_out_and_there_for_the_next_turn() -> None:
    model = Model(takes_ms=100)
    vectors = QuestionVectors(model.embedder)
    before = asyncio.get_running_loop().time()
    found = await vectors.embed_in_time("Who?", deadline_ms=40)
    assert asyncio.get_running_loop().time() - before == pytest.approx(0.04)
    assert isinstance(found, LeftOut)
    assert found.text == LATE
    await pass_ms(60)
    assert await reason(vectors, "Who?", deadline_ms=0) is None
    assert len(model.asked) == 1


@in_virtual_time
async def test_without_a_model_or_a_question_there_is_no_vector() -> None:
    model = Model()
    assert await reason(QuestionVectors(None)) == "no embeddings model is set"
    vectors = QuestionVectors(model.embedder)
    for question in ("", "  \n", "\0"):
        assert await reason(vectors, question) == "nothing was asked"
    assert model.asked == []


@in_virtual_time
async def test_of_a_speech_its_end_is_embedded_in_whole_words() -> None:
    model = Model()
    vectors = QuestionVectors(model.embedder)
    assert await reason(vectors, "blah " * 2_000 + "who forged the crown?") is None
    [asked] = model.asked
    assert len(asked) <= MOST_CHARACTERS
    assert asked.startswith("blah ")
    assert asked.endswith("who forged the crown?")


@given(st.text(max_size=3_000))
@settings(max_examples=n_examples(60), derandomize=True, deadline=None)
def test_whatever_is_asked_has_a_vector_or_a_reason_and_can_be_sent(question: str) -> None:
    async def story() -> None:
        model = Model()
        found = await QuestionVectors(model.embedder).embed_in_time(question, deadline_ms=40)
        assert isinstance(found, LeftOut) == (not model.asked)
        for text in model.asked:
            text.encode()
            assert 0 < len(text) <= MOST_CHARACTERS

    run_in_virtual_time(story())


# -- what a model can do wrong


async def _down(vectors: QuestionVectors) -> str:
    found = await vectors.embed_in_time("Who?", deadline_ms=10_000)
    assert isinstance(found, LeftOut)
    return found.text


@in_virtual_time
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unavailable("the provider is away"), "the provider is away"),
        (InvalidInput("cannot embed: Who?"), "the model twin rejects the question"),
        (RuntimeError("it broke on: Who?"), "the model twin failed (RuntimeError)"),
        (TimeoutError(), "the model twin did not answer within 5000 ms"),
    ],
)
async def test_a_model_that_fails_is_a_reason_and_no_error(error: Exception, told: str) -> None:
    assert await _down(QuestionVectors(Model(fails_with=error).embedder)) == told


def _zeros(n: int, dimensions: int = DIMENSIONS) -> NDArray[float32]:
    return np.zeros((n, dimensions), float32)


@in_virtual_time
@pytest.mark.parametrize(
    ("gives", "told"),
    [
        (_zeros, "the vector that the model twin gave points nowhere"),
        (lambda n: _zeros(n) / np.float32(0), "the vector that the model twin gave points nowhere"),
        (lambda n: _zeros(n + 1), "the model twin returned vectors of shape (2, 4) for one text"),
        (
            lambda _n: np.ones(DIMENSIONS, float32),
            "the model twin returned vectors of shape (4,) for one text",
        ),
        (
            lambda n: np.ones((n, 3), float32),
            "memory.embedding_dimensions is 4, but the model twin gave a vector of 3: set it to 3 and run "
            "`glyphoxa worker reindex`, or name another model as providers.embeddings.model",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
async def test_what_is_no_vector_is_left_out_and_not_remembered(gives: Any, told: str) -> None:
    model = Model()
    model.gives = gives
    vectors = QuestionVectors(model.embedder)
    assert await _down(vectors) == told
    model.gives = None
    assert await reason(vectors, "Who?") is None


# -- a dead model costs no turn


@in_virtual_time
async def test_a_model_that_is_too_slow_three_times_is_not_waited_for_until_it_had_a_rest() -> None:
    model = Model(takes_ms=10_000_000)
    vectors = QuestionVectors(model.embedder)
    for n in range(MAX_FAILURES):
        assert await reason(vectors, f"question {n}") == LATE
    before = asyncio.get_running_loop().time()
    found = await vectors.embed_in_time("another", deadline_ms=40)
    assert isinstance(found, LeftOut)
    assert found == LeftOut("the embeddings model failed repeatedly; it is retried in 10 s")
    assert asyncio.get_running_loop().time() == before
    assert len(model.asked) == MAX_FAILURES

    model.takes_ms = 5
    await pass_ms(COOLDOWN_MS + LONGEST_MS)
    assert await reason(vectors, "another") is None
    assert await reason(vectors, "and another") is None


@in_virtual_time
async def test_nothing_is_asked_any_more_once_the_session_is_over() -> None:
    model = Model(takes_ms=1_000)
    vectors = QuestionVectors(model.embedder)
    waiting = asyncio.create_task(vectors.embed_in_time("Who?", deadline_ms=40))
    await pass_ms(1)
    await vectors.close()
    found = await waiting
    assert isinstance(found, LeftOut)
    assert found.text == "the session is over"
    assert await reason(vectors, "another") == "the session is over"
    assert len(model.asked) == 1
