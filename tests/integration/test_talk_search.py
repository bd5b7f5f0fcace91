"""Utterances are found by their words, speaker, session and time."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.log import update_text_search_config
from glyphoxa.adapters.postgres.transcript.reading import names_in
from glyphoxa.domain.heard import Correction, Utterance
from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId
from glyphoxa.domain.knowledge import DM, Between, Dm, Viewer
from glyphoxa.transcript.ports import Found, TalkFilter, TalkSearch
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH, an_utterance
from tests.support.postgres import TestServer
from tests.support.proof import n_examples


def said(
    n: int, text: str, *, speaker: str = "Tamsin", by: tuple[NpcId, ...] = (SMITH,), session: str = "s1"
) -> Utterance:
    return replace(
        an_utterance(text, id=f"u{n}", speaker=speaker),
        at_ms=1_000 * n,
        witnesses=frozenset(by),
        session_id=SessionId(session),
    )


def ids(found: list[Found]) -> list[str]:
    return [item.utterance.id for item in found]


async def search(store: Store, words: str, viewer: Viewer = DM, **filters: object) -> list[str]:
    return ids(await store.talk_search.search(CAMPAIGN, viewer, TalkFilter(words, **filters)))  # type: ignore[arg-type]


async def speak(store: Store, language: str) -> None:
    async with store.database.use(CAMPAIGN) as connection:
        await connection.execute("INSERT INTO campaigns (id, name, language) VALUES ($1, $1, $2)", CAMPAIGN, language)


async def test_one_word_is_enough_unless_all_are_asked_for(store: Store) -> None:
    log: TalkSearch = store.talk_search
    await store.log.append([said(1, "The forge is cold."), said(2, "The sword is in the forge."), said(3, "A sword!")])
    assert sorted(ids(await log.search(CAMPAIGN, DM, TalkFilter("sword and forge")))) == ["u1", "u2", "u3"]
    assert ids(await log.search(CAMPAIGN, DM, TalkFilter("sword and forge", match="all"))) == ["u2"]


async def test_what_fits_best_comes_first_and_the_latest_among_equals(store: Store) -> None:
    await store.log.append([said(n, "The forge is cold.") for n in (1, 2, 3)])
    await store.log.append([said(4, "The sword is in the forge."), said(5, "Nothing of the kind.")])
    assert await search(store, "sword forge") == ["u4", "u3", "u2", "u1"]
    assert await search(store, "sword forge", limit=2) == ["u4", "u3"]
    assert await search(store, "sword forge", limit=0) == []


async def test_an_utterance_is_found_as_it_was_said_with_its_ordinal(store: Store) -> None:
    whole = replace(
        said(2, "Eldrinax has the crown"),
        raw_text="elder nacks has the crown",
        duration_ms=1_500,
        corrections=(Correction(0, 11, "elder nacks", "Eldrinax", 0.9, "phonetic", "sounds alike"),),
    )
    await store.log.append([said(1, "before"), whole])
    [found] = await store.talk_search.search(CAMPAIGN, DM, TalkFilter("crown"))
    assert (found.utterance, found.ordinal) == (whole, 2)
    assert found.score > 0


async def test_words_are_found_in_the_forms_of_the_campaign_s_language(store: Store) -> None:
    await speak(store, "de-AT")
    await store.log.append([said(1, "Die Drachen haben die Häuser verbrannt."), said(2, "The dragons burned it.")])
    assert await search(store, "Drache") == ["u1"]
    assert await search(store, "Haus", match="all") == ["u1"]
    assert await search(store, "burning") == []  # that is no German ending


async def test_talk_follows_its_campaign_into_another_language(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when that is interrupted half-way."""
    monkeypatch.setattr("glyphoxa.adapters.postgres.transcript.log._BATCH", 3)
    await store.log.append([said(n, "Die Häuser brannten.") for n in range(8)])
    assert await update_text_search_config(store.database, CAMPAIGN) == 0  # no campaign, no other language
    await speak(store, "de")
    assert await search(store, "Haus") == []
    async with store.database.use(CAMPAIGN) as connection:
        await connection.execute("UPDATE session_entries SET fts_config = 'german' WHERE ordinal > 5")
    assert await update_text_search_config(store.database, CAMPAIGN) == 5
    assert len(await search(store, "Haus")) == 8
    assert await update_text_search_config(store.database, CAMPAIGN) == 0


async def test_somebody_may_be_called_like_a_word_that_means_nothing(store: Store) -> None:
    await store.log.append([said(1, "Will has the key."), said(2, "The key is lost."), said(3, "A door.")])
    assert await search(store, "Will") == ["u1"]
    assert await search(store, "will") == ["u1"]  # nothing is left of it in English, so that it counts as it is
    assert await search(store, "has Will the key?") == ["u1", "u2"]
    assert await search(store, "has Will the key?", match="all") == ["u1"]
    assert await search(store, "where is Will?", match="all") == ["u1"]
    assert await search(store, "the of and") == ["u2", "u1"]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("Have you seen Will?", ["Will"]),
        ("Will Scarlet", ["Will", "Scarlet"]),
        ("will scarlet", []),
        ("Grimjaw", ["Grimjaw"]),
        ("", []),
        ("?! 12 — …", []),
        ("the Sword of Öl'ka", ["Sword", "Öl'ka"]),
    ],
)
def test_names_are_the_words_that_are_written_like_names(words: str, names: list[str]) -> None:
    assert names_in(words) == names


async def test_random_searches_find_what_a_reader_of_all_talk_would(store: Store) -> None:
    """Nothing that the viewer did not witness, and nothing less than it did."""
    chance = random.Random(4)
    words, speakers = ["lantern", "goblin", "harbor", "dragon", "wizard"], ["Tamsin", "Bran"]
    npcs = [SMITH, INNKEEPER, NpcId("osric")]
    talk = [
        said(
            n,
            " ".join(chance.sample(words, chance.randint(0, 3))),
            speaker=chance.choice(speakers),
            by=tuple(npc for npc in npcs if chance.random() < 0.4),
            session=f"s{chance.randint(1, 3)}",
        )
        for n in range(200)
    ]
    await store.log.append(talk)
    for _ in range(n_examples(1_000)):
        asked = chance.sample([*words, *(name.lower() for name in speakers)], chance.randint(0, 3))
        match = chance.choice((any, all))
        viewer: Viewer = chance.choice([DM, *npcs, NpcId("nobody")])
        session = chance.choice([None, SessionId("s1"), SessionId("s2")])
        speaker = chance.choice([None, None, SpeakerId("bran")])
        after, before = chance.choice([None, 50_000]), chance.choice([None, 150_000])
        expected = {
            u.id
            for u in talk
            if (isinstance(viewer, Dm) or viewer in u.witnesses)
            and (not asked or match(w in f"{u.speaker_name} {u.text}".lower().split() for w in asked))
            and session in (None, u.session_id)
            and speaker in (None, u.speaker_id)
            and (after is None or u.at_ms >= after)
            and (before is None or u.at_ms < before)
        }
        filters = {"session": session, "speaker": speaker, "between": Between(after, before)}
        found = await search(store, " ".join(asked), viewer, match=match.__name__, limit=200, **filters)
        assert (len(found), set(found)) == (len(expected), expected)


async def test_what_was_rolled_back_is_not_found_not_even_by_the_dm(store: Store) -> None:
    await store.log.append([said(1, "The crown is false."), said(2, "The crown is real.")])
    async with store.database.use(CAMPAIGN) as connection:
        await connection.execute("UPDATE session_entries SET retracted = TRUE WHERE utterance_id = 'u2'")
    for viewer in (DM, SMITH):
        assert await search(store, "crown", viewer) == ["u1"]
        assert await search(store, "", viewer) == ["u1"]
        assert await search(store, "", viewer, speaker=SpeakerId("tamsin")) == ["u1"]
        assert await search(store, "", viewer, session=SessionId("s1")) == ["u1"]


def test_no_words_are_an_error(postgres: TestServer) -> None:
    """Whatever somebody types or a model invents: at worst, nothing is found."""
    hard = st.text(st.sampled_from("ab wWill'\"\\&|!()<->:*@%#\0\ud83d\n –Ä漢🐉0.1/-_"), max_size=60)
    queries = st.lists(st.one_of(hard, st.text(max_size=60)), min_size=1, max_size=20)

    async def ask_all(dsn: str, batches: list[list[str]]) -> None:
        async with open_store(dsn) as store:
            await store.log.append([said(1, "a b will & 漢 0.1")])
            for batch in batches:
                for words in batch:
                    for match in ("any", "all"):
                        await search(store, words, match=match)
            assert await search(store, "x" * 2_000_000 + " will") == []
            assert await search(store, "will " * 100_000) == ["u1"]

    batches: list[list[str]] = [["'", "\\", "' & '", "a & | b", ":*", "<->", "!!", "http://a.b/c?d=1 & e", "a-b_c'd"]]

    @given(batch=queries)
    @settings(max_examples=n_examples(40), derandomize=True, database=None)
    def collect(batch: list[str]) -> None:
        batches.append(batch)

    collect()

    async def run() -> None:
        name = await postgres.create()
        try:
            await ask_all(postgres.server.dsn(name), batches)
        finally:
            await postgres.drop(name)

    asyncio.run(run())
