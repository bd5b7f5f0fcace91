from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.chunks import Filled
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.domain.knowledge import Between, RecalledUtterance
from glyphoxa.recall.recall import RecallSettings
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH, an_utterance
from tests.support.embedders import an_embedder, embedder_of_topics

TOPICS = {"sister": 0, "sibling": 0, "kin": 0, "blade": 1, "sword": 1, "rain": 2, "weather": 2}


EMBEDDER = embedder_of_topics(TOPICS)


@pytest.fixture
async def by_meaning(dsn: str) -> AsyncIterator[Store]:
    async with open_store(dsn, embedder=EMBEDDER) as opened:
        yield opened


def told(text: str, *, id: str, at_ms: int = 1_000, **changes: object) -> Any:
    return replace(an_utterance(text, id=id), at_ms=at_ms, **changes)  # type: ignore[arg-type]


async def ids(store: Store, question: str, *, npc: Any = SMITH, **options: Any) -> list[str]:
    return [str(r.utterance_id) for r in await store.past_talk.recall(CAMPAIGN, npc, TalkQuery(question, **options))]


async def test_a_natural_question_finds_what_shares_a_word_with_it(store: Store) -> None:
    """Hardly any utterance has all the words of a question."""
    await store.log.append([told("My sister Ilvara sails with the pirates.", id="u1"), told("It rains.", id="u2")])
    assert await ids(store, "Do you remember what I told you about my sister?", limit=1) == ["u1"]


async def test_what_is_recalled_says_who_said_it_when_and_why_it_may_be_known(store: Store) -> None:
    await store.log.append([told("My sister is a pirate.", id="u1", at_ms=5_000)])
    [found] = await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery("What does my sister do?"))
    assert isinstance(found, RecalledUtterance)
    assert (found.speaker_name, found.text, found.is_own, found.reason) == (
        "Tamsin",
        "My sister is a pirate.",
        False,
        "witnessed in session s1",
    )
    assert (found.session_id, found.utterance_id, found.at_ms, found.score) == ("s1", "u1", 5_000, 1.0)


async def test_what_was_said_at_another_time_takes_no_place_from_what_was_said_then(by_meaning: Store) -> None:
    at_that_time = [told(f"My sister Ilvara is {n} years old.", id=f"u{n}", at_ms=1_000 * n) for n in range(40)]
    await by_meaning.log.append(at_that_time)
    then = Between(after_ms=7_000, before_ms=9_000)
    assert set(await ids(by_meaning, "What of my sister?", limit=5, between=then)) == {"u7", "u8"}
    found = by_meaning.past_talk.recall_nowait(CAMPAIGN, SMITH, TalkQuery("What of my sister?", limit=5, between=then))
    assert {str(one.utterance_id) for one in found or ()} == {"u7", "u8"}
    assert "u7" not in await ids(by_meaning, "What of my sister?", limit=2)


async def test_who_was_not_there_recalls_nothing_by_words_or_by_meaning(by_meaning: Store) -> None:
    await by_meaning.log.append([told("My sister is a pirate.", id="u1", witnesses=frozenset({SMITH}))])
    assert (await by_meaning.chunks.fill_missing(CAMPAIGN)).embedded == 1
    assert await ids(by_meaning, "What about my sister?") == ["u1"]
    assert await ids(by_meaning, "What about my sister?", npc=INNKEEPER) == []


async def test_unseen_talk_does_not_crowd_out_what_was_witnessed(by_meaning: Store) -> None:
    """Visibility is decided before LIMIT."""
    hidden = [told(f"sister sister sister {n}", id=f"h{n}", witnesses=frozenset({INNKEEPER})) for n in range(60)]
    await by_meaning.log.append([*hidden, told("A sister, once.", id="mine")])
    await by_meaning.chunks.fill_missing(CAMPAIGN)
    assert await ids(by_meaning, "Have you a sister?", limit=1) == ["mine"]


async def test_the_question_itself_and_what_is_in_the_prompt_anyway_are_left_out(store: Store) -> None:
    await store.log.append([told("What about my sister?", id="u1"), told("My sister sails.", id="u2")])
    assert await ids(store, "what about my sister?") == ["u2"]
    assert await ids(store, "What about my sister?", exclude=[UtteranceId("u2")]) == []


async def test_meaning_finds_what_words_cannot(by_meaning: Store) -> None:
    await by_meaning.log.append([told("My sister is a pirate.", id="u1"), told("Rain again.", id="u2")])
    await by_meaning.chunks.fill_missing(CAMPAIGN)
    assert await ids(by_meaning, "Who are your kin?", limit=1) == ["u1"]


async def test_found_by_words_and_by_meaning_outranks_found_by_one(by_meaning: Store) -> None:
    await by_meaning.log.append(
        [told("A sword for my cousin.", id="meaning"), told("The blade is done.", id="both"), told("Done.", id="words")]
    )
    await by_meaning.chunks.fill_missing(CAMPAIGN)
    found = await ids(by_meaning, "Is the blade done?")
    assert found[0] == "both"
    assert set(found) == {"both", "meaning", "words"}


async def test_without_an_embedding_in_time_words_decide(dsn: str) -> None:
    async def never(texts: list[str]) -> None:
        await asyncio.Event().wait()

    async def broken(texts: list[str]) -> None:
        raise Unavailable("no model")

    for embed in (never, broken):
        settings = RecallSettings(embed_deadline_ms=1)
        async with open_store(dsn, embedder=an_embedder(embed), recall=settings) as store:
            await store.log.append([told("My sister is a pirate.", id="u1")])
            assert await ids(store, "My sister?") == ["u1"]


async def test_whoever_asks_for_embeddings_meanwhile_waits_and_nothing_is_embedded_twice(
    dsn: str,
) -> None:
    embedded: list[str] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(texts: list[str]) -> NDArray[float32]:
        embedded.extend(texts)
        begun.set()
        await go_on.wait()
        return await EMBEDDER.embed(texts)

    async with open_store(dsn, embedder=an_embedder(slowly)) as store:
        await store.log.append([told(f"line {n}", id=f"u{n}") for n in range(4)])
        first = asyncio.create_task(store.chunks.fill_missing(CAMPAIGN))
        await begun.wait()
        second = asyncio.create_task(store.chunks.fill_missing(CAMPAIGN))
        # The second has had every chance to read what is missing when others have written in the same database.
        await store.log.append([told("line 4", id="u4")])
        await store.log.count(CAMPAIGN)
        go_on.set()
        assert (await first) + (await second) == Filled(embedded=5)
    assert sorted(embedded) == sorted(f"Tamsin: line {n}" for n in range(5))


async def test_a_rare_word_outweighs_common_ones_and_who_was_not_there_recalls_nothing(store: Store) -> None:
    """Each word of the refrain is in two thirds of 600 turns."""
    await store.log.append(
        [
            told("My sister's cask leaks.", id="rare"),
            told("O'Brien\\'s cask: it leaks & leaks | leaks.", id="odd"),
            told("The cask of the sister!", id="not heard", witnesses=frozenset({INNKEEPER})),
        ]
    )
    words = ("spring", "rain", "harvest")
    await store.log.append(
        [
            told(f"There is {words[n % 3]} and {words[(n + 1) % 3]} again.", id=f"r{n}", at_ms=2_000 + n)
            for n in range(600)
        ]
    )
    assert await ids(store, "Of the rain, the sister and the cask?", limit=1) == ["rare"]
    assert await ids(store, "Rain, and O'Brien\\'s cask & | ! ( : * ?", limit=1) == ["odd"]
    assert await ids(store, "And dragons?") == []


async def test_an_answer_that_repeats_no_word_of_its_question_comes_with_it(store: Store) -> None:
    await store.log.append(
        [told("Where did your sister sail?", id="u1"), told("To Port Brine.", id="u2"), told("It rains.", id="u9")]
    )
    assert (await ids(store, "Which harbour is your sister's?"))[:2] == ["u2", "u1"]
