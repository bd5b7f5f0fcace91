"""The DM retracts or corrects an utterance, and everything that depends on it follows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.learned_names import PostgresLearnedNames
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import SpokenBy
from glyphoxa.domain.ids import EntityId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import DM, Claim, Provenance
from glyphoxa.names.wrong_forms import FormHeard, form_of
from glyphoxa.transcript.ports import TalkFilter, TalkQuery
from glyphoxa.world.event_kinds import FactStated
from glyphoxa.world.event_log import Cause
from tests.support.builders import CAMPAIGN, SESSION, SMITH, a_campaign, an_utterance
from tests.support.command_line import CommandLine
from tests.support.embedders import embedder_of_topics
from tests.support.known_of import known_of

ELDRINAX = EntityId("e-eldrinax")
BY_DM = Cause("dm", 5_000)
CLAIM = UtteranceId("u1")


@pytest.fixture
async def table(dsn: str) -> AsyncIterator[Store]:
    """A claim (ordinal 1), something else, and a fact from each of them."""
    embedder = embedder_of_topics({"tithe": 0, "rain": 1})
    async with open_store(dsn, embedder=embedder) as store:
        await store.campaigns.load(a_campaign())
        said = ("It was Eldrinax who stole the tithe box.", "Eldrinax likes the rain.")
        await store.log.append([an_utterance(text, id=f"u{n}") for n, text in enumerate(said, start=1)])
        await store.chunks.fill_missing(CAMPAIGN)
        for n, value in enumerate(("stole the tithe box", "likes the rain"), start=1):
            await learn(store, n, value)
        yield store


async def learn(store: Store, ordinal: int, value: str) -> None:
    cause = Cause("talk", 1_000, SESSION, ordinal, UtteranceId(f"u{ordinal}"))
    stated = FactStated(Claim.attribute(ELDRINAX, "note", value), Provenance(0.9, utterance_id=cause.utterance_id))
    await store.world.commit(CAMPAIGN, [stated], cause)


async def notes(store: Store) -> set[object]:
    known = await known_of(store, CAMPAIGN, DM, ELDRINAX)
    assert known is not None
    return {fact.claim.content for fact in known.attributes if fact.claim.predicate == "note"}


async def recalled(store: Store, question: str) -> list[str]:
    return [one.text for one in await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery(question), patient=True)]


async def found(store: Store, words: str) -> list[str]:
    return [one.utterance.text for one in await store.talk_search.search(CAMPAIGN, DM, TalkFilter(words))]


async def test_what_is_retracted_is_said_to_nobody_and_what_was_learned_from_it_alone_is_not_known(
    table: Store,
) -> None:
    event = await table.world.retract(CAMPAIGN, CLAIM, BY_DM)
    assert await notes(table) == {"likes the rain"}
    assert not any("tithe" in line for line in await recalled(table, "Who stole the tithe box?"))
    assert await found(table, "tithe") == []
    assert [said.id for said in await table.log.recent(CAMPAIGN, SESSION, since_ms=0)] == ["u2"]
    assert await table.log.count(CAMPAIGN) == 2  # it was said

    await table.world.undo(CAMPAIGN, [event.seq], BY_DM)
    assert await notes(table) == {"stole the tithe box", "likes the rain"}
    assert await recalled(table, "Who stole the tithe box?") != []
    assert await found(table, "tithe") != []


async def test_what_two_said_is_still_known_when_one_of_them_is_retracted(table: Store) -> None:
    await learn(table, 2, "stole the tithe box")
    await table.world.retract(CAMPAIGN, CLAIM, BY_DM)
    assert await notes(table) == {"stole the tithe box", "likes the rain"}


async def test_other_words_are_what_everybody_heard_and_the_old_ones_reach_nobody(table: Store) -> None:
    event = await table.world.correct(CAMPAIGN, CLAIM, "It was Mirelle who stole the tithe box.", BY_DM)
    assert await notes(table) == {"likes the rain"}
    [said, _] = await table.log.recent(CAMPAIGN, SESSION, since_ms=0)
    assert (said.text, said.raw_text) == (
        "It was Mirelle who stole the tithe box.",
        "It was Eldrinax who stole the tithe box.",
    )
    told = await recalled(table, "Who stole the tithe box?")
    assert "It was Mirelle who stole the tithe box." in told
    assert not any("Eldrinax who" in line for line in told)
    assert await found(table, "Mirelle") == [said.text]
    embedded = await table.chunks.fill_missing(CAMPAIGN)
    assert embedded.embedded == 1

    again = await table.world.correct(CAMPAIGN, CLAIM, "It was nobody.", BY_DM)
    await table.world.undo(CAMPAIGN, [again.seq], BY_DM)
    assert (await table.log.recent(CAMPAIGN, SESSION, since_ms=0))[0].text == said.text
    await table.world.undo(CAMPAIGN, [event.seq], BY_DM)
    assert (await table.log.recent(CAMPAIGN, SESSION, since_ms=0))[0].text == said.raw_text
    assert await notes(table) == {"stole the tithe box", "likes the rain"}


async def test_a_correction_survives_a_second_look_that_comes_later(table: Store) -> None:
    was = an_utterance("It was Eldrinax who stole the tithe box.", id="u1")
    await table.world.correct(CAMPAIGN, CLAIM, "Nobody stole it.", BY_DM)
    assert not await table.log.revise(replace(was, text="It was Eldrinaxx."), was=was)
    assert (await table.log.recent(CAMPAIGN, SESSION, since_ms=0))[0].text == "Nobody stole it."


@pytest.mark.parametrize("decision", ["retract", "correct", "rollback"])
async def test_names_that_were_learned_from_it_are_not_known_any_more(table: Store, decision: str) -> None:
    learned = PostgresLearnedNames(table.database)
    proof = FormHeard(*form_of("Elder Max"), ELDRINAX, "proved", "spelled", "so", CLAIM)
    decision = FormHeard(*form_of("Finkeldrum"), ELDRINAX, "confirmed", "dm", "", CLAIM)
    for step in (proof, decision):
        await learned.record(CAMPAIGN, step, at_ms=1_000)
    before = {(one.heard, one.status.state) for one in await learned.statuses(CAMPAIGN)}
    assert len(before) == 2
    if decision == "rollback":
        event = await table.world.rollback(CAMPAIGN, SESSION, 0, BY_DM)
    elif decision == "retract":
        event = await table.world.retract(CAMPAIGN, CLAIM, BY_DM)
    else:
        event = await table.world.correct(CAMPAIGN, CLAIM, "Hm.", BY_DM)
    assert event is not None
    assert [one.heard for one in await learned.statuses(CAMPAIGN)] == ["Finkeldrum"]
    await table.world.undo(CAMPAIGN, [event.seq], BY_DM)
    assert {(one.heard, one.status.state) for one in await learned.statuses(CAMPAIGN)} == before


# The command


async def test_an_utterance_is_found_retracted_and_taken_up_again(cli: CommandLine) -> None:
    listed = await cli.told("show", "said")
    assert "baker" in listed and "What a night." in listed
    listed = await cli.told("show", "said", "baker")
    assert "What a night." not in listed
    [row] = [line for line in listed.splitlines() if "baker" in line]
    utterance = row.split()[0]

    code, shown, asked = await cli.run("transcript", "retract", utterance)
    assert (code, "Use --yes to skip the question" in asked) == (1, True)
    assert "retracted: " in shown and "no longer known: Grimjaw, occupation: baker" in shown
    assert "baker" in await cli.told("facts", "review", "conflict")

    done = await cli.told("transcript", "retract", "Grimjaw is a baker", "--yes")
    undo = re.search(r"retracted; to undo it: glyphoxa facts undo (\d+)", done)
    assert undo is not None
    assert "no facts disagree" in await cli.told("facts", "review", "conflict")
    assert "baker" not in await cli.told("show", "said")
    assert "is already retracted" in (await cli.run("transcript", "retract", utterance, "--yes"))[2]
    shown = await cli.told("show", "history", "--limit", "1")
    assert "retracted what was said at line 3 of session 1" in shown
    assert "undone: retracted what was said" in await cli.told("facts", "undo", undo[1])
    assert "baker" in await cli.told("show", "said")


async def test_words_and_speaker_of_an_utterance_are_corrected(cli: CommandLine) -> None:
    done = await cli.told("transcript", "correct", "Grimjaw is a baker", "Grimjaw is a smith.", "--yes")
    assert "instead: Grimjaw is a smith.\nno longer known: Grimjaw, occupation: baker\n" in done
    assert "corrected; to undo it: " in done
    assert "Grimjaw is a smith." in await cli.told("show", "said")
    assert "Grimjaw is a baker" in await cli.told("show", "history", "--limit", "1")
    done = await cli.told("transcript", "correct", "Grimjaw is a smith", "--speaker", "borin ashfoot", "--yes")
    assert re.search(r"instead: Borin Ashfoot: .*Grimjaw is a smith", done)
    assert "Borin Ashfoot" in await cli.told("show", "said", "smith")
    assert "said by Borin Ashfoot" in await cli.told("show", "history", "--limit", "1")


async def test_another_speaker_unlearns_a_line_until_the_correction_is_undone(table: Store) -> None:
    bran = SpokenBy(SpeakerId("bran"), "Bran")
    text = "It was Eldrinax who stole the tithe box."
    first = await table.world.correct(CAMPAIGN, CLAIM, text, BY_DM, by=bran)
    assert await notes(table) == {"likes the rain"}
    assert await speakers(table) == ["Bran", "Tamsin"]
    with pytest.raises(InvalidInput, match="already has"):
        await table.world.correct(CAMPAIGN, CLAIM, text, BY_DM, by=bran)
    words = await table.world.correct(CAMPAIGN, CLAIM, "Nobody.", BY_DM)
    second = await table.world.correct(CAMPAIGN, CLAIM, "Nobody.", BY_DM, by=SpokenBy(SpeakerId("cara"), "Cara"))
    assert await speakers(table) == ["Cara", "Tamsin"]
    await table.world.undo(CAMPAIGN, [first.seq], BY_DM)
    assert await speakers(table) == ["Cara", "Tamsin"]
    await table.world.undo(CAMPAIGN, [second.seq], BY_DM)
    assert await speakers(table) == ["Tamsin", "Tamsin"]
    await table.world.undo(CAMPAIGN, [words.seq], BY_DM)
    assert (await table.log.recent(CAMPAIGN, SESSION, since_ms=0))[0].text == text
    assert await notes(table) == {"stole the tithe box", "likes the rain"}


async def speakers(store: Store) -> list[str]:
    return [said.speaker_name for said in await store.log.recent(CAMPAIGN, SESSION, since_ms=0)]


async def test_an_npcs_line_gets_no_player_as_its_speaker(table: Store) -> None:
    await table.log.append([an_utterance("Aye.", id="u3", speaker="Grimjaw", npc=SMITH)])
    with pytest.raises(InvalidInput, match="Grimjaw, an NPC, spoke utterance 'u3'"):
        await table.world.correct(CAMPAIGN, UtteranceId("u3"), "Aye.", BY_DM, by=SpokenBy(SpeakerId("bran"), "Bran"))


async def test_speaker_of_an_utterance_is_corrected(cli: CommandLine) -> None:
    done = await cli.told("transcript", "correct", "Grimjaw is a baker", "--speaker", "borin ashfoot", "--yes")
    assert re.search(r"instead: Borin Ashfoot: .*Grimjaw is a baker", done)
    assert "Borin Ashfoot" in await cli.told("show", "said", "baker")
    assert "said by Borin Ashfoot" in await cli.told("show", "history", "--limit", "1")


async def test_what_cannot_be_retracted_or_corrected_is_said_in_one_line(cli: CommandLine) -> None:
    for arguments, problem in (
        (("retract", "the moon is cheese"), "nobody said 'the moon is cheese'"),
        (("retract", " "), "name an utterance by its id"),
        (("retract", "Elowen"), "'Elowen' matches several utterances: "),
        (("correct", "Grimjaw is a baker", "  "), "the correction is empty"),
        (("correct", "What a night.", "What a night."), "already has the text"),
        (("correct", "What a night.", "--speaker", "Brann"), "'Brann'"),
        (("correct", "What a night."), "give WORDS, --speaker PLAYER, or both"),
    ):
        code, _, said = await cli.run("transcript", *arguments, "--yes")
        assert (code, problem in said) == (1, True), arguments
