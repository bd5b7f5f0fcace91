"""NPCs recall lines of a session that they heard, kept when it ends, and as long as nobody takes them back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker, timeline_writer
from glyphoxa.app.desk import desk_of
from glyphoxa.app.scope import Scope
from glyphoxa.config.settings import read_settings
from glyphoxa.dm.sessions import SessionDesk
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM, HIDDEN, RecalledSummary, Viewer
from glyphoxa.transcript.sessions import SummarySentence, episode_of
from glyphoxa.world.event_kinds import EntityAdded, EntityRemoved, EntityScoped, FactScoped
from glyphoxa.world.event_log import Cause
from tests.support.builders import INNKEEPER, SMITH, a_campaign, an_utterance
from tests.support.command_line import a_settings_file, run

CAMPAIGN = a_campaign().id
EVENING = SessionId("evening")
PROMISE = "I promise to bring you the six crowns and the silver ring before the feast."
SECRET = "We found the letter of the king in the chest under the tower."


@pytest.fixture
async def table(store: Store) -> Store:
    await store.campaigns.load(a_campaign())
    lines = [
        (PROMISE, {SMITH}),
        ("Hm.", {SMITH, INNKEEPER}),
        (SECRET, {INNKEEPER}),
        ("17.", {SMITH, INNKEEPER}),
    ]
    await store.log.append(
        [
            replace(
                an_utterance(text, id=f"u{n}"), session_id=EVENING, at_ms=1_000_000 + n, witnesses=frozenset(heard_by)
            )
            for n, (text, heard_by) in enumerate(lines, start=1)
        ]
    )
    return store


def sessions_of(store: Store) -> SessionDesk:
    async def tell(session: SessionId) -> None:
        await (await timeline_writer(store, CAMPAIGN)).tell_whole(session)

    inspection = PostgresInspection(store.database)
    return SessionDesk(CAMPAIGN, store.world, inspection, store.talk_search, tell, lambda: 3_000_000)


async def recalled(store: Store, npc: NpcId) -> str | None:
    return (await store.summaries(CAMPAIGN))(npc, EVENING)


async def latest_of(store: Store, npc: NpcId) -> list[RecalledSummary]:
    await store.read(CAMPAIGN)
    return list(store.earlier_sessions(CAMPAIGN, npc))


async def test_each_npc_recalls_what_it_heard_itself(table: Store) -> None:
    told = await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING)
    assert told == {SMITH: f"Tamsin said: “{PROMISE}”", INNKEEPER: f"Tamsin said: “{SECRET}”"}
    assert await recalled(table, SMITH) == told[SMITH]
    assert await recalled(table, INNKEEPER) == told[INNKEEPER]
    [latest] = await latest_of(table, SMITH)
    assert (latest.session_id, latest.text) == (EVENING, told[SMITH])


async def test_npc_keeps_its_own_word_and_no_invention_in_the_next_session(table: Store) -> None:
    price, refusal = "That lantern costs eight crowns.", "I will not sell you the black blade."
    invention, again = "The paperwork was signed by Juno.", "I promise to bring the lantern back."
    said = [(price, SMITH), (again, None), (f"{invention} {refusal}", SMITH), (invention, INNKEEPER)]
    await table.log.append(
        [
            replace(
                an_utterance(text, id=f"v{n}", npc=npc, speaker="Tamsin" if npc is None else str(npc)),
                session_id=EVENING,
                at_ms=1_000_100 + n,
                witnesses=frozenset({SMITH, INNKEEPER}),
            )
            for n, (text, npc) in enumerate(said, start=1)
        ]
    )
    writer = await timeline_writer(table, CAMPAIGN)
    told = await writer.sum_up(EVENING)
    assert told is not None
    assert f'You said: "{price}" Tamsin said: “{again}” You said: "{refusal}"' in told[SMITH]
    assert told[INNKEEPER] == f"Tamsin said: “{SECRET}” Tamsin said: “{again}”"
    [latest] = await latest_of(table, SMITH)
    assert latest.text == told[SMITH]
    worker = chronicle_worker(table)
    await worker.read_new(CAMPAIGN)
    facts = await PostgresInspection(table.database).current(CAMPAIGN, DM, limit=1_000)
    learned = [fact for fact in facts if fact.claim.predicate != "summary"]
    assert not any(words in str(fact.claim.content) for fact in learned for words in ("eight", "black blade", "Juno"))
    await table.world.retract(CAMPAIGN, UtteranceId("v3"), Cause("dm", 2_000_000))
    await writer.sum_up(EVENING)
    assert "black blade" not in str(await recalled(table, SMITH))


@pytest.mark.parametrize("is_by_dm", [False, True])
async def test_session_is_linked_with_people_place_and_named_entities(table: Store, is_by_dm: bool) -> None:
    await table.world.commit(CAMPAIGN, [EntityAdded(EntityId("tamsin"), "player", "Tamsin")], Cause("dm", 1))
    line = an_utterance("I promise to bring Grimjaw the key of The Anvil.", id="k1")
    await table.log.append([replace(line, session_id=EVENING, at_ms=2_000_000, witnesses=frozenset({INNKEEPER}))])
    if is_by_dm:
        await sessions_of(table).summarise(EVENING, "They met the smith.", [SMITH, INNKEEPER])
    else:
        await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING)

    async def linked(viewer: Viewer) -> set[tuple[str, str]]:
        facts = await PostgresInspection(table.database).current(CAMPAIGN, viewer, about=episode_of(EVENING), limit=100)
        relations = [fact.claim for fact in facts if fact.claim.object is not None]
        return {(end, one.predicate) for one in relations for end in one.ends if end != episode_of(EVENING)}

    grimjaw, (scene, *_) = a_campaign().npc(SMITH).entity_id, a_campaign().scenes
    everything = {(EntityId("tamsin"), "PARTICIPATED_IN"), (grimjaw, "PARTICIPATED_IN"), (grimjaw, "INVOLVED_IN")}
    assert everything | {(scene.location, "OCCURRED_AT")} <= await linked(DM)
    assert (grimjaw, "INVOLVED_IN") in await linked(INNKEEPER)
    assert (grimjaw, "INVOLVED_IN") not in await linked(SMITH), "it did not hear that line"
    for npc in (SMITH, INNKEEPER) if is_by_dm else ():
        facts = await PostgresInspection(table.database).current(CAMPAIGN, npc, about=episode_of(EVENING), limit=100)
        summaries = [fact.claim.content for fact in facts if fact.claim.predicate == "summary"]
        assert summaries == ["They met the smith."] and await recalled(table, npc) == "They met the smith."


async def test_summary_is_written_once_and_again_after_changes(table: Store) -> None:
    writer = await timeline_writer(table, CAMPAIGN)
    await writer.sum_up(EVENING)
    events = await table.world.events(CAMPAIGN)
    await writer.sum_up(EVENING)
    assert await table.world.events(CAMPAIGN) == events
    await table.world.retract(CAMPAIGN, UtteranceId("u3"), Cause("dm", 2_000_000))
    await writer.sum_up(EVENING)
    assert await recalled(table, INNKEEPER) is None
    assert await recalled(table, SMITH) == f"Tamsin said: “{PROMISE}”"
    await table.world.rollback(CAMPAIGN, EVENING, 0, Cause("dm", 2_000_001))
    assert await recalled(table, SMITH) is None


async def test_what_is_taken_back_is_not_recalled_any_more_though_nobody_sums_up_again(table: Store) -> None:
    await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING)
    await table.world.retract(CAMPAIGN, UtteranceId("u3"), Cause("dm", 2_000_000))
    assert await recalled(table, INNKEEPER) is None
    assert await latest_of(table, INNKEEPER) == []
    assert await recalled(table, SMITH) == f"Tamsin said: “{PROMISE}”"
    await table.world.correct(CAMPAIGN, UtteranceId("u1"), "Fine weather.", Cause("dm", 2_000_001))
    assert await recalled(table, SMITH) is None


async def test_what_a_second_look_corrects_is_not_recalled_as_it_was(table: Store) -> None:
    await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING)
    worker = chronicle_worker(table)
    await worker.read_new(CAMPAIGN)
    first = replace(an_utterance(PROMISE, id="u1"), session_id=EVENING, at_ms=1_000_001)
    await table.log.revise(replace(first, text=PROMISE.replace("six", "ten")), was=first)
    await worker.read_new(CAMPAIGN)
    assert await recalled(table, SMITH) is None
    await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING)
    assert "ten crowns" in (await recalled(table, SMITH) or "")


async def test_dms_session_summary_is_kept(table: Store) -> None:
    await sessions_of(table).summarise(EVENING, "They met the smith.", [SMITH])
    assert await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING) is None
    assert await recalled(table, SMITH) == "They met the smith."
    assert await recalled(table, INNKEEPER) is None


async def rewritten(store: Store) -> str:
    await sessions_of(store).summarise(EVENING, "They met the smith.", [SMITH])
    return "They met the smith."


async def hidden(store: Store) -> None:
    await store.world.commit(CAMPAIGN, [EntityScoped(episode_of(EVENING), HIDDEN)], Cause("dm", 3_000_000))


async def hidden_by_its_fact(store: Store) -> None:
    facts = (await store.episodes.read(CAMPAIGN)).sessions[episode_of(EVENING)]
    await store.world.commit(CAMPAIGN, [FactScoped(fact.id, HIDDEN) for fact in facts], Cause("dm", 3_000_000))


async def removed(store: Store) -> None:
    await store.world.commit(CAMPAIGN, [EntityRemoved(episode_of(EVENING))], Cause("dm", 3_000_000))


@pytest.mark.parametrize("decide", [rewritten, hidden, hidden_by_its_fact, removed])
async def test_what_the_dm_decides_on_a_summary_stays_when_the_session_goes_on(
    table: Store, decide: Callable[[Store], Awaitable[str | None]]
) -> None:
    await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING)
    wanted = await decide(table)
    again = replace(an_utterance("I promise to bring the lantern back."), id=UtteranceId("u8"), session_id=EVENING)
    await table.log.append([replace(again, at_ms=1_000_100, witnesses=frozenset({SMITH}))])
    assert await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING) is None
    assert await recalled(table, SMITH) == wanted
    assert await recalled(table, INNKEEPER) is None


async def test_what_the_dm_writes_while_a_summary_is_made_stays(table: Store) -> None:
    class WhileTheDmWrites:
        async def summarise(self, said: Sequence[Utterance]) -> list[SummarySentence]:
            await rewritten(table)
            return [SummarySentence("Tamsin promised crowns.", (said[0].id,))]

    await replace(await timeline_writer(table, CAMPAIGN), summariser=WhileTheDmWrites()).sum_up(EVENING)
    assert await recalled(table, SMITH) == "They met the smith."


async def test_a_recap_for_the_players_names_nobody_they_may_not_know(
    table: Store, dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = a_settings_file(tmp_path, dsn)
    vorlath = EntityAdded(EntityId("vorlath"), "npc", "Vorlath", visibility=HIDDEN)
    await table.world.commit(CAMPAIGN, [vorlath], Cause("dm", 1))
    heard = replace(
        an_utterance("We found out that Vorlath stole the crown and the map."),
        id=UtteranceId("u9"),
        session_id=EVENING,
        at_ms=1_000_009,
        raw_text="We found out that four laths stole the crown and the map.",
    )
    await table.log.append([heard])
    assert await run("show", "recap", EVENING, "--config", settings) == 0
    players = capsys.readouterr().out
    assert "four laths stole the crown" in players
    assert "Vorlath" not in players
    assert await run("show", "recap", EVENING, "--dm", "--config", settings) == 0
    assert "Vorlath stole the crown" in capsys.readouterr().out
    assert await run("show", "recap", EVENING, "--as", "Mirelle", "--config", settings) == 0
    of_mirelle = capsys.readouterr().out
    assert "letter of the king" in of_mirelle
    assert "six crowns" not in of_mirelle
    assert await run("show", "recap", EVENING, "--as", "Mirele", "--config", settings) == 1
    assert "did you mean 'Mirelle'?" in capsys.readouterr().err
    assert await run("worker", "summarise", EVENING, "--config", settings) == 0
    assert "Grimjaw: Tamsin said" in " ".join(capsys.readouterr().out.split())


async def test_lists_of_known_facts_leave_out_who_took_part(table: Store, tmp_path: Path, dsn: str) -> None:
    await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING)
    desk = await desk_of(Scope(table, read_settings(a_settings_file(tmp_path, dsn)), CAMPAIGN))
    for knower in (SMITH, DM):
        known, _ = await desk.timeline.known(knower, limit=100)
        told = [desk.facts.words(fact) for fact in known]
        assert f"Session 1, summary: Tamsin said: “{PROMISE}”" in told
        assert not [each for each in told if "took part" in each or "kind" in each]
