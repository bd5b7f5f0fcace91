"""Embedding far away: the real client libraries against servers of their protocols, and the real database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.servers.google import GeminiServer
from benchmarks.servers.openai import OpenAiServer
from benchmarks.servers.vectors import Vectors, invented
from glyphoxa.actors.limits import COOLDOWN_MS, MAX_FAILURES, QuietGate
from glyphoxa.adapters.google_models import GoogleEmbeddings
from glyphoxa.adapters.hosted_embedding import HostedEmbeddings
from glyphoxa.adapters.openai_models import OpenAiEmbeddings
from glyphoxa.adapters.postgres.chunks import Filled
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.memory import open_store_for
from glyphoxa.app.models import LocalModels, load_embedder, open_embedder
from glyphoxa.app.transcript_reader import EmbeddingWork
from glyphoxa.chat.dialect import Connection
from glyphoxa.config.provider_sections import EmbeddingsSettings, ProvidersSettings
from glyphoxa.config.settings import MemorySettings, Settings
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.recall.vectors import Embedder, LeftOut, QuestionVectors, WrongDimensions
from tests.support.builders import CAMPAIGN, SMITH, an_utterance
from tests.support.chunk_rows import nearest, reindexed
from tests.support.patience import DEADLINE_MS

KEY = "secret-1234"
ENVIRON = {"OPENAI_API_KEY": KEY, "GOOGLE_API_KEY": KEY}
DIMENSIONS = 384
PREFIX = "Tamsin: "

Server = OpenAiServer | GeminiServer

both = pytest.mark.parametrize("name", ["openai", "google"])


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients try again at once."""
    monkeypatch.setattr("glyphoxa.adapters.google_models._FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("glyphoxa.adapters.google_models._JITTER_S", 0.0)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)


def by_topic(text: str, dimensions: int) -> Sequence[float]:
    """Kin one way, the weather another, everything else nowhere near; not of unit length."""
    for axis, word in enumerate(("sister", "kin", "rain", "weather")):
        if word in text.lower():
            return [3.0 if n == axis // 2 else 0.0 for n in range(dimensions)]
    return [0.0, 0.0, *invented(text, dimensions - 2)]


def chosen(name: str, server: Server | None, **changes: Any) -> Settings:
    """Settings that name a provider at a server's address."""
    address = None if server is None else server.base_url if isinstance(server, OpenAiServer) else server.http_url
    embeddings = EmbeddingsSettings(**{"name": name, "base_url": address, **changes})
    return Settings(
        providers=ProvidersSettings(embeddings=embeddings), memory=MemorySettings(embedding_dimensions=DIMENSIONS)
    )


@asynccontextmanager
async def provider(
    name: str, vectors: Vectors | None = None, *, key: str | None = KEY, **changes: Any
) -> AsyncIterator[tuple[Embedder, Vectors]]:
    """An embedder and what its provider answers with."""
    async with AsyncExitStack() as stack:
        kind = GeminiServer if name == "google" else OpenAiServer
        server: Server = await stack.enter_async_context(kind(vectors=vectors or Vectors(by_topic), key=key))
        embedder = await load_embedder(chosen(name, server, **changes), environ=ENVIRON)
        stack.push_async_callback(embedder.aclose)
        yield embedder, server.vectors


def texts_of(body: dict[str, Any]) -> list[str]:
    """Return the texts of a request to either."""
    if "input" in body:
        return list(body["input"])
    return [part["text"] for each in body["requests"] for part in each["content"]["parts"]]


def said(text: str, *, id: str = "u1") -> Utterance:
    return replace(an_utterance(text, id=id), at_ms=1_000)


# -- as it should be


@both
async def test_talk_is_embedded_once_and_found_by_its_meaning(name: str, dsn: str) -> None:
    async with provider(name) as (embedder, vectors), open_store(dsn, embedder=embedder) as store:
        talk = [("u1", "My sister is a pirate."), ("u2", "Rain again."), ("u3", "A sword is four crowns.")]
        await store.log.append([said(text, id=utterance) for utterance, text in talk])
        assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=3)
        [[first, *others]] = [texts_of(body) for body in vectors.requests]
        assert first.endswith(PREFIX + "My sister is a pirate.")
        assert len(others) == 2
        asked = await QuestionVectors(embedder).embed_in_time("Who is her kin?", deadline_ms=DEADLINE_MS)
        assert not isinstance(asked, LeftOut)
        [(chunk, distance), *_] = await nearest(store, CAMPAIGN, SMITH, asked, model=embedder.name)
        assert chunk == "u1"
        assert distance == pytest.approx(0, abs=1e-6)
    # Another process, the same talk: whatever it looks at, it has nothing to embed.
    async with provider(name) as (embedder, vectors), open_store(dsn, embedder=embedder) as store:
        assert await reindexed(store, embedder, CAMPAIGN) == Filled()
        assert vectors.requests == []


@both
async def test_vectors_are_of_unit_length_and_in_the_order_of_the_texts(name: str) -> None:
    async with provider(name) as (embedder, _):
        rows = await embedder.embed(["rain", "sister", "something else"])
        assert rows is not None
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)
        assert rows[:2].argmax(axis=1).tolist() == [1, 0]
        assert (await embedder.embed([])).shape == (0, DIMENSIONS)  # type: ignore[union-attr]


@both
@pytest.mark.parametrize("n", [1, 100, 101, 300])
async def test_no_request_holds_more_than_the_provider_takes(name: str, n: int) -> None:
    async with provider(name, Vectors()) as (embedder, vectors):
        texts = [f"line {n}" for n in range(n)]
        rows = await embedder.embed(texts)
        most = 100 if name == "google" else 128
        assert embedder.batch == most
        sizes = [len(texts_of(body)) for body in vectors.requests]
        assert sizes == [min(most, n - at) for at in range(0, n, most)]
        assert rows is not None
        alone = await embedder.embed(texts[-1:])
        assert alone is not None
        assert rows[-1] == pytest.approx(alone[0])


async def test_openai_is_asked_for_the_dimensions_that_the_database_has() -> None:
    async with provider("openai", model="text-embedding-3-large") as (embedder, vectors):
        await embedder.embed(["Aye."])
        assert embedder.name == "openai/text-embedding-3-large"
        [body] = vectors.requests
        assert (body["model"], body["dimensions"], body["input"]) == ("text-embedding-3-large", DIMENSIONS, ["Aye."])
    vectors = Vectors(unasked=DIMENSIONS)
    async with provider("openai", vectors, model="text-embedding-ada-002") as (embedder, _):
        await embedder.embed(["Aye."])
        assert "dimensions" not in vectors.requests[0]


async def test_gemini_is_told_what_is_a_question_each_model_in_its_own_way() -> None:
    async with provider("google") as (embedder, vectors):
        await embedder.embed(["Aye.", "Nay."])
        await embedder.embed_questions(["Who?"])
        assert embedder.name == "google/gemini-embedding-2"
        assert [texts_of(body) for body in vectors.requests] == [
            ["title: none | text: Aye.", "title: none | text: Nay."],
            ["task: search result | query: Who?"],
        ]
        # Two texts are two contents: as parts of one they would have one vector between them.
        assert [len(body["requests"]) for body in vectors.requests] == [2, 1]
        assert all("taskType" not in each for body in vectors.requests for each in body["requests"])
        assert vectors.requests[0]["requests"][0]["outputDimensionality"] == DIMENSIONS
    async with provider("google", model="gemini-embedding-001") as (embedder, vectors):
        await embedder.embed(["Aye."])
        await embedder.embed_questions(["Who?"])
        asked = [each for body in vectors.requests for each in body["requests"]]
        assert [each["taskType"] for each in asked] == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]
        assert [texts_of(body) for body in vectors.requests] == [["Aye."], ["Who?"]]


@pytest.mark.parametrize(
    ("model", "found", "question"),
    [
        ("nomic-embed-text", "search_document: Aye.", "search_query: Who?"),
        ("intfloat/multilingual-e5-small", "passage: Aye.", "query: Who?"),
        ("embeddinggemma:300m", "title: none | text: Aye.", "task: search result | query: Who?"),
        ("multilingual-e5-large-instruct", "Aye.", "Who?"),
        ("all-minilm", "Aye.", "Who?"),
    ],
)
async def test_any_server_of_openai_s_protocol_will_do_and_needs_no_key(model: str, found: str, question: str) -> None:
    vectors = Vectors(unasked=DIMENSIONS)
    async with provider("openai-compatible", vectors, key=None, model=model) as (embedder, _):
        await embedder.embed(["Aye."])
        await embedder.embed_questions(["Who?"])
        assert [texts_of(body) for body in vectors.requests] == [[found], [question]]
        assert "dimensions" not in vectors.requests[0]
        assert embedder.name == f"openai-compatible/{model}"


@both
async def test_whatever_text_there_is_can_be_sent(name: str) -> None:
    async with provider(name) as (embedder, vectors):
        rows = await embedder.embed(["", "half a \ud83c character", "x" * 100_000, "🗡" * 5_000, "\0"])
        assert rows is not None
        assert np.isfinite(rows).all()
        assert all(0 < len(text.encode()) <= 8_000 for text in texts_of(vectors.requests[0]))


# -- as it may go wrong


@both
async def test_a_provider_that_is_busy_once_is_asked_again(name: str) -> None:
    for status in (429, 503):
        async with provider(name, Vectors(by_topic, refusals=[status])) as (embedder, vectors):
            assert await embedder.embed(["Aye."]) is not None
            assert len(vectors.requests) == 2
    async with provider(name, Vectors(by_topic, refusals=[429] * 50)) as (embedder, vectors):
        with pytest.raises(Unavailable, match="fails: "):
            await embedder.embed(["Aye."])
        assert len(vectors.requests) == 3


@pytest.mark.parametrize("kind", [OpenAiEmbeddings, GoogleEmbeddings])
async def test_a_provider_that_is_slow_is_unavailable_after_its_deadline(
    kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostedEmbeddings, "deadline_ms", 30)
    server: Server = (GeminiServer if kind is GoogleEmbeddings else OpenAiServer)(vectors=Vectors(delay_ms=600_000))
    async with server:
        address = server.base_url if isinstance(server, OpenAiServer) else server.http_url
        model = kind(Connection("m", address, KEY), dimensions=4)
        with pytest.raises(Unavailable, match="'m' did not answer within 30 ms"):
            await model.embed(["Aye."])
        await model.close()


@both
async def test_a_setting_that_the_provider_does_not_take_is_no_fault_of_all_the_talk(
    name: str,
    dsn: str,
) -> None:
    vectors = Vectors(by_topic, refuses=lambda _: True)
    async with provider(name, vectors) as (embedder, _), open_store(dsn, embedder=embedder) as store:
        await store.log.append([said(f"line {n}", id=f"u{n}") for n in range(4)])
        for _ in range(5):
            with pytest.raises(Unavailable, match=r"fails on every text: .*This cannot be embedded"):
                await store.chunks.fill_missing(CAMPAIGN)
        vectors.refuses = lambda _: False
        assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=4)


@both
async def test_provider_that_is_away_is_reported_once_and_seldom_asked(
    name: str, dsn: str, warnings: list[str]
) -> None:
    vectors, now_ms = Vectors(by_topic), 0
    async with (
        provider(name, vectors) as (embedder, _),
        open_store(dsn, embedder=embedder) as store,
    ):
        work = EmbeddingWork(store, QuietGate(), now_ms=lambda: now_ms)
        await store.log.append([said("My sister.")])
        vectors.refusals = [403] * 100
        for _ in range(20):
            await work.fill(CAMPAIGN)
        assert len(vectors.requests) == MAX_FAILURES
        [told] = warnings
        assert "refuses the key" in told
        assert KEY not in told
        now_ms, vectors.refusals = COOLDOWN_MS, []
        await work.fill(CAMPAIGN)
        assert await store.chunks.fill_missing(CAMPAIGN) == Filled()
        assert len(vectors.requests) == MAX_FAILURES + 1


# -- as the settings want it


@both
async def test_without_its_key_a_provider_is_not_opened(name: str) -> None:
    variable = "GOOGLE_API_KEY" if name == "google" else "OPENAI_API_KEY"
    async with AsyncExitStack() as stack:
        with pytest.raises(InvalidInput, match=f"providers.embeddings '{name}' needs a key: .* {variable} is not set"):
            await open_embedder(chosen(name, None), LocalModels(), stack, environ={})
        with pytest.raises(InvalidInput, match="MY_KEY is not set"):
            await load_embedder(chosen(name, None, api_key_env="MY_KEY"), environ=ENVIRON)


@both
async def test_a_table_s_embedder_is_warm_when_the_first_question_comes(name: str) -> None:
    async with AsyncExitStack() as stack:
        kind = GeminiServer if name == "google" else OpenAiServer
        server = await stack.enter_async_context(kind(vectors=Vectors(by_topic), key=KEY))
        assert isinstance(server, OpenAiServer | GeminiServer)
        embedder = await open_embedder(chosen(name, server), LocalModels(), stack, environ=ENVIRON)
        assert embedder is not None
        assert len(server.vectors.requests) == 1


@both
async def test_a_table_opens_without_its_provider_and_not_with_one_that_cannot_fit(name: str) -> None:
    async with AsyncExitStack() as stack:
        away = chosen(name, None, base_url="http://127.0.0.1:1/v1")
        assert await open_embedder(away, LocalModels(), stack, environ=ENVIRON) is not None
        kind = GeminiServer if name == "google" else OpenAiServer
        server = await stack.enter_async_context(kind(vectors=Vectors(lambda text, _: invented(text, 768)), key=KEY))
        assert isinstance(server, OpenAiServer | GeminiServer)
        with pytest.raises(WrongDimensions, match="768"):
            await open_embedder(chosen(name, server), LocalModels(), stack, environ=ENVIRON)


async def test_memory_is_opened_with_the_provider_that_the_settings_name(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(GeminiServer(vectors=Vectors(by_topic), key=KEY))
        settings = chosen("google", server).model_copy(update={"data_dir": tmp_path})
        memory = settings.memory.model_copy(update={"postgres_dsn": dsn})
        store = await open_store_for(settings.model_copy(update={"memory": memory}), LocalModels(), stack)
        assert store is not None
        await store.log.append([said("My sister.")])
        assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=1)
        async with store.database.use(CAMPAIGN) as connection:
            assert await connection.fetchval("SELECT model FROM chunks") == "google/gemini-embedding-2"


async def test_with_none_nothing_is_embedded_and_a_verb_that_needs_it_says_so() -> None:
    async with AsyncExitStack() as stack:
        assert await open_embedder(chosen("none", None), LocalModels(), stack) is None
    with pytest.raises(InvalidInput, match="so nothing can be embedded"):
        await load_embedder(chosen("none", None))
