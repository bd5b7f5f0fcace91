"""Nobody recalls a line that its player withholds, until that player allows it again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker
from glyphoxa.chronicle.chronicler import Chronicler
from glyphoxa.chronicle.judge import RulesJudge
from glyphoxa.chronicle.ports import ReadingStep
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.dm.timeline import Timeline
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SpeakerId, UtteranceId
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.world.event_log import Cause
from glyphoxa.world.graph import ConsentChange, ConsentState
from tests.support.builders import CAMPAIGN, EVENING, SMITH, a_known_party, said
from tests.support.bundles import exported, imported
from tests.support.embedders import embedder_of_topics
from tests.support.proof import IS_PROOF
from tests.support.recalled import PATIENT

TAMSIN, BRAN = SpeakerId("tamsin"), SpeakerId("bran")
BY_PLAYER, BY_DM = Cause("player", 2_000_000), Cause("dm", 2_000_000)
PROMISE = "I promise to bring you six crowns by Friday."
EMBEDDER = embedder_of_topics({"crowns": 0, "six": 0, "bridge": 1})


@pytest.fixture
async def table(dsn: str) -> AsyncIterator[Store]:
    async with open_store(dsn, embedder=EMBEDDER, recall=PATIENT) as opened:
        await opened.campaigns.load(a_known_party("accept"))
        yield opened


async def read_new(store: Store) -> None:
    await chronicle_worker(store).read_new(CAMPAIGN)


async def known(store: Store, campaign: CampaignId = CAMPAIGN) -> set[str]:
    """Return the contents of facts that the smith learned from talk."""
    facts = await PostgresInspection(store.database).current(campaign, SMITH, limit=1_000)
    return {str(fact.claim.content) for fact in facts if fact.provenance.origin == "talk"}


async def recalled(store: Store, question: str = "How many crowns?") -> list[str]:
    found = await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery(question))
    return [str(one.utterance_id) for one in found]


async def states(store: Store, campaign: CampaignId = CAMPAIGN) -> dict[str, tuple[bool, bool]]:
    """Return each retracted utterance: whether it is retracted, and whether it is withheld."""
    async with store.database.use(campaign) as connection:
        rows = await connection.fetch("SELECT utterance_id, retracted, withheld FROM session_entries ORDER BY ordinal")
    return {row["utterance_id"]: (row["retracted"], row["withheld"]) for row in rows if row["retracted"]}


def a_chronicler(log: PostgresChronicleLog) -> Chronicler:
    rules = RulesExtractor("en")
    return Chronicler(CAMPAIGN, "en", log, rules, RulesJudge("en", rules.index))


def withhold(*utterances: str, by: SpeakerId = TAMSIN) -> ConsentChange:
    return ConsentChange(by, "withheld", tuple(UtteranceId(each) for each in utterances))


def give(*utterances: str, by: SpeakerId = TAMSIN) -> ConsentChange:
    return ConsentChange(by, "given", tuple(UtteranceId(each) for each in utterances))


async def test_spoken_request_withholds_until_consent_is_given_again(table: Store) -> None:
    await table.log.append([said(1, PROMISE), said(2, "Six crowns, then!", by="Grimjaw", npc=SMITH)])
    await read_new(table)
    before = await known(table), await recalled(table)
    assert before[0]
    await table.log.append([said(3, "Don't remember that."), said(4, "The bridge is out.", by="Bran")])
    await read_new(table)
    assert await states(table) == dict.fromkeys(("u1", "u2", "u3"), (True, True))
    assert await known(table) == set()
    assert not {"u1", "u2", "u3"} & set(await recalled(table))
    async with table.database.use(CAMPAIGN) as connection:
        gone = await connection.fetch("SELECT kind, predicate, consent_state FROM withheld_knowledge")
        nodes = await connection.fetch("SELECT title, summary FROM ontology_nodes WHERE consent_state = 'withheld'")
    assert ("fact", "promise", "withheld") in [tuple(row) for row in gone]
    assert {tuple(row) for row in nodes} == {("", "")}

    await table.log.append([said(5, "You can remember that again.")])
    await read_new(table)
    await read_new(table)
    assert await states(table) == {}
    assert await known(table) == before[0]


async def test_answer_that_comes_later_is_withheld_with_its_line(table: Store) -> None:
    await table.log.append([said(1, f"Off the record: {PROMISE}")])
    await read_new(table)
    await table.log.append([said(2, "Six crowns!", by="Grimjaw", npc=SMITH), said(3, "Hm.", by="Bran")])
    await table.log.append([said(4, "Fine.", by="Grimjaw", npc=SMITH)])
    assert await states(table) == {"u1": (True, True), "u2": (True, True)}
    await table.world.consent(CAMPAIGN, give("u1"), BY_PLAYER)
    assert await states(table) == {}


async def test_request_counts_once_however_often_it_is_read(table: Store) -> None:
    await table.log.append([said(1, PROMISE), said(2, "Don't write that down.")])
    await read_new(table)
    await table.world.consent(CAMPAIGN, give("u1", "u2"), BY_PLAYER)
    await PostgresChronicleLog(table.database, table.world).read_again(CAMPAIGN, EVENING)
    await read_new(table)
    assert await states(table) == {}
    assert await known(table)


async def test_reread_of_changed_words_keeps_consent(table: Store) -> None:
    first = said(1, PROMISE)
    await table.log.append([first, said(2, "Don't write that down.")])
    await read_new(table)
    await table.log.revise(replace(first, text="I promise to bring you ten crowns by Friday."), was=first)
    await read_new(table)
    assert set(await states(table)) == {"u1", "u2"}
    assert await known(table) == set()


async def test_dm_and_player_do_not_overrule_each_other(table: Store) -> None:
    await table.log.append([said(1, PROMISE)])
    await read_new(table)
    before = await known(table)
    [withheld] = await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    struck = await table.world.retract(CAMPAIGN, UtteranceId("u1"), BY_DM)
    timeline = Timeline(CAMPAIGN, table.world, PostgresInspection(table.database), lambda: 3_000_000)
    with pytest.raises(InvalidInput, match="only they can change it"):
        await timeline.undo(withheld.seq)
    await table.world.consent(CAMPAIGN, give("u1"), BY_PLAYER)
    assert await states(table) == {"u1": (True, False)}
    assert await known(table) == set()
    await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    await timeline.undo(struck.seq)
    assert await states(table) == {"u1": (True, True)}
    assert await known(table) == set()
    await table.world.consent(CAMPAIGN, give("u1"), BY_PLAYER)
    assert await states(table) == {}
    assert await known(table) == before


async def test_player_decides_about_their_own_lines_only(table: Store) -> None:
    await table.log.append([said(1, PROMISE), said(2, "The bridge is out.", by="Bran")])
    assert await table.world.consent(CAMPAIGN, withhold("u1", by=BRAN), BY_PLAYER) == []
    await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    assert await table.world.consent(CAMPAIGN, give("u1", by=BRAN), BY_PLAYER) == []
    assert set(await states(table)) == {"u1"}
    await table.world.consent(CAMPAIGN, ConsentChange(BRAN, "withheld", session=EVENING), BY_PLAYER)
    assert set(await states(table)) == {"u1", "u2"}


async def test_entity_stays_if_another_player_named_it_too(table: Store) -> None:
    await table.log.append([said(1, "My sister Wenna Thistlebrook lives in Dunharrow.")])
    await read_new(table)
    await table.log.append([said(2, "Wenna Thistlebrook is a blacksmith.", by="Bran")])
    await read_new(table)
    before = await known(table)
    await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    await read_new(table)
    assert "blacksmith" in await known(table)
    await table.world.consent(CAMPAIGN, give("u1"), BY_PLAYER)
    await read_new(table)
    assert await known(table) == before


ACTIONS = ("withhold", "give", "withhold session", "give session", "strike", "restore", "say", "read", "answer")


@pytest.mark.parametrize("seed", range(40 if IS_PROOF else 4))
async def test_nothing_rests_on_a_withheld_line_in_any_order(table: Store, seed: int) -> None:
    """Keep the decisions of players and the DM on each line. All facts rest on lines that neither took away."""
    dice, promised = random.Random(seed), list[str]()
    withheld, struck = set[str](), dict[str, int]()
    for at_ms in range(2_000_000, 2_000_025):
        line = dice.choice(promised) if promised else None
        match dice.choice(ACTIONS), line:
            case "say", _:
                promised.append(f"u{len(promised)}")
                await table.log.append([said(len(promised) - 1, promise(len(promised) - 1))])
            case "read", _:
                await read_new(table)
            case "withhold" | "give" as action, str(line):
                change = withhold(line) if action == "withhold" else give(line)
                await table.world.consent(CAMPAIGN, change, Cause("player", at_ms))
                (withheld.add if action == "withhold" else withheld.discard)(line)
            case "withhold session" | "give session" as action, _:
                state: ConsentState = "withheld" if action == "withhold session" else "given"
                change = ConsentChange(TAMSIN, state, session=EVENING)
                await table.world.consent(CAMPAIGN, change, Cause("player", at_ms))
                withheld = set(promised) if state == "withheld" else set()
            case "strike", str(line) if line not in struck:
                struck[line] = (await table.world.retract(CAMPAIGN, UtteranceId(line), Cause("dm", at_ms))).seq
            case "restore", str(line) if line in struck:
                await table.world.undo(CAMPAIGN, [struck.pop(line)], Cause("dm", at_ms))
            case _:
                continue
        gone = withheld | struck.keys()
        assert await states(table) == {each: (True, each in withheld) for each in promised if each in gone}
        kept = {promise(n).rstrip(".") for n, each in enumerate(promised) if each not in gone}
        assert await known(table) <= kept
        assert not gone & set(await recalled(table))
    await table.world.consent(CAMPAIGN, ConsentChange(TAMSIN, "given", session=EVENING), BY_PLAYER)
    for seq in struck.values():
        await table.world.undo(CAMPAIGN, [seq], BY_DM)
    await PostgresChronicleLog(table.database, table.world).read_again(CAMPAIGN, EVENING)
    await read_new(table)
    assert await known(table) == {promise(n).rstrip(".") for n in range(len(promised))}


def promise(n: int) -> str:
    return f"I promise to bring you {n + 2} crowns by Friday."


async def test_request_is_decided_once_if_the_reader_crashes(table: Store) -> None:
    class Crashing(PostgresChronicleLog):
        async def learn(self, campaign: CampaignId, step: ReadingStep) -> None:
            raise Unavailable("the database is away")

    await table.log.append([said(1, PROMISE), said(2, "Don't write that down.")])
    log = Crashing(table.database, table.world, worker="one")
    with pytest.raises(Unavailable):
        await a_chronicler(log).run(EVENING)
    async with table.database.use(CAMPAIGN) as connection:
        await connection.execute("UPDATE chronicle_progress SET taken_until = clock_timestamp(), retry_at = NULL")
    await read_new(table)
    assert set(await states(table)) == {"u1", "u2"}
    events = await table.world.events(CAMPAIGN)
    assert sum(each.cause.by == "player" for each in events) == 2


async def decided(store: Store, *lines: Utterance) -> bool:
    """Apply the requests in these lines of the log, as an open table does."""
    return await PostgresChronicleLog(store.database, store.world).decide(CAMPAIGN, EVENING, lines)


async def test_request_decided_by_two_processes_counts_once(table: Store) -> None:
    lines = [said(1, PROMISE), said(2, "Off the record: I lied."), said(3, "Don't remember that.")]
    consents = said(4, "You can remember that again.")
    await table.log.append([*lines, consents])
    assert await decided(table, *lines)
    assert not await decided(table, *lines)
    assert await asyncio.gather(*(decided(table, consents) for _ in range(3))) in (
        [True, False, False],
        [False, True, False],
        [False, False, True],
    )
    assert set(await states(table)) == {"u2"}


async def test_consent_that_is_read_late_concerns_earlier_requests_only(table: Store) -> None:
    lines = [said(1, "You can remember that again."), said(2, PROMISE), said(3, "Don't remember that.")]
    await table.log.append(lines)
    await decided(table, *lines[1:])
    await read_new(table)
    assert set(await states(table)) == {"u2", "u3"}


async def test_line_withheld_while_it_is_read_teaches_nothing(table: Store) -> None:
    class Slow(PostgresChronicleLog):
        async def learn(self, campaign: CampaignId, step: ReadingStep) -> None:
            if step.effects:
                await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
            await super().learn(campaign, step)

    await table.log.append([said(1, PROMISE)])
    log = Slow(table.database, table.world)
    assert await a_chronicler(log).run(EVENING) is None
    assert await known(table) == set()


async def test_copies_of_a_campaign_keep_consent(table: Store) -> None:
    await table.log.append([said(1, PROMISE), said(2, "Aye.", by="Grimjaw", npc=SMITH)])
    await read_new(table)
    before = await known(table)
    await table.world.consent(CAMPAIGN, withhold("u1"), BY_PLAYER)
    fork, other = CampaignId("fork"), CampaignId("imported")
    await table.world.fork(CAMPAIGN, fork, name="Fork")
    await imported(table, await exported(table, CAMPAIGN), other)
    for copy in (fork, other):
        assert await states(table, copy) == {"u1": (True, True), "u2": (True, True)}
        await table.world.consent(copy, give("u1"), BY_PLAYER)
        assert await states(table, copy) == {}
        assert await known(table, copy) == before
    assert set(await states(table)) == {"u1", "u2"}
