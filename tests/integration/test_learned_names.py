from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import asdict, replace

import pytest

from glyphoxa.adapters.postgres.server.listen import NAMES
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.adapters.postgres.world.learned_names import PostgresLearnedNames
from glyphoxa.app.desk import names_desk_of
from glyphoxa.app.scope import Scope
from glyphoxa.config.settings import Settings
from glyphoxa.dm.timeline import Timeline
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.heard import Correction
from glyphoxa.domain.ids import CampaignId, EntityId, UtteranceId
from glyphoxa.names.corrector import Corrector
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.learning import Learner, NamesDesk
from glyphoxa.names.wrong_forms import FormHeard, LearnedName, form_of
from glyphoxa.world.event_kinds import EntityAdded
from glyphoxa.world.event_log import Cause
from tests.support.builders import CAMPAIGN, a_campaign, an_utterance
from tests.support.patience import DEADLINE_MS, DEADLINE_S

ELDRINAX, GRIMJAW = EntityId("e-eldrinax"), EntityId("e-grimjaw")
OTHER = CampaignId("other")


@pytest.fixture
async def learned(store: Store) -> PostgresLearnedNames:
    await store.campaigns.load(a_campaign())
    await store.campaigns.load(replace(a_campaign(), id=OTHER))
    return PostgresLearnedNames(store.database)


@pytest.fixture
async def desk(store: Store, learned: PostgresLearnedNames) -> NamesDesk:
    return await names_desk_of(Scope(store, Settings(), CAMPAIGN))


async def the_names(learned: PostgresLearnedNames, campaign: CampaignId = CAMPAIGN) -> Gazetteer:
    return Gazetteer.build(await learned.entries(campaign))


async def corrected(learned: PostgresLearnedNames, text: str, campaign: CampaignId = CAMPAIGN) -> str:
    return Corrector(await the_names(learned, campaign)).correct(text).text


def a_learner(learned: PostgresLearnedNames, names: Gazetteer) -> Learner:
    return Learner(CAMPAIGN, learned, lambda: names, now_ms=lambda: 1_790_000_000_000)


async def prove(learned: PostgresLearnedNames, *proofs: FormHeard) -> list[LearnedName]:
    """Prove wrong forms; return what is known of them then."""
    await a_learner(learned, await the_names(learned)).prove(proofs)
    forms = {proof.heard for proof in proofs}
    return [pair for pair in await learned.statuses(CAMPAIGN) if form_of(pair.heard)[0] in forms]


def a_proof(heard: str, utterance: str, entity: EntityId = ELDRINAX) -> FormHeard:
    return FormHeard(*form_of(heard), entity, "proved", "llm", "fits the talk", UtteranceId(utterance))


def confirmed(heard: str, entity: EntityId) -> FormHeard:
    return FormHeard(*form_of(heard), entity, "confirmed", "dm")


async def test_confirmed_form_is_corrected_until_undone(learned: PostgresLearnedNames, desk: NamesDesk) -> None:
    said = "So we asked Mellow Dracks."
    assert await corrected(learned, said) == said
    assert await desk.accept("Mellow Dracks", ELDRINAX, unless=None) == (
        "Mellow Dracks means Eldrinax from now on",
        None,
    )
    [pair] = await learned.statuses(CAMPAIGN)
    assert (pair.name, pair.status.state, pair.status.count) == ("Eldrinax", "active", 1)
    assert await corrected(learned, said) == "So we asked Eldrinax."
    assert await desk.undo() == "undone: accepted Mellow Dracks for Eldrinax"
    assert await corrected(learned, said) == said
    with pytest.raises(NotFound, match="no decision to undo in campaign 'town'"):
        await desk.undo()


async def test_ordinary_words_that_stand_in_talk_as_themselves_wait_for_the_dm(
    store: Store, learned: PostgresLearnedNames, desk: NamesDesk
) -> None:
    talk = [an_utterance(f"A mandolin, {n} of them: mandolin music!", id=f"t{n}") for n in range(4)]
    await store.log.append([*talk, an_utterance("No strings here.", id="t9", speaker="Mandolin")])
    proofs = await prove(learned, *(a_proof("mandolin", f"u{n}") for n in range(5)))
    assert {pair.status.state for pair in proofs} == {"suggested"}
    with pytest.raises(InvalidInput, match=r"occur in 4 earlier utterances: .*\. Not again$"):
        await desk.accept("mandolin", ELDRINAX, unless="Not again")
    _, warned = await desk.accept("mandolin", ELDRINAX, unless=None)
    assert warned is not None and "occur in 4 earlier utterances" in warned
    [pair] = await learned.statuses(CAMPAIGN)
    assert pair.status.state == "active"


async def test_ordinary_words_of_the_campaign_s_own_text_are_never_learned(
    learned: PostgresLearnedNames, desk: NamesDesk
) -> None:
    with pytest.raises(InvalidInput, match=r"'old wizard' cannot be learned: it occurs in the campaign's own text"):
        await desk.accept("old wizard", ELDRINAX, unless=None)
    pairs = await prove(learned, *(a_proof("old wizard", f"u{n}") for n in range(9)))
    assert pairs == []
    assert await learned.statuses(CAMPAIGN) == []


async def test_a_table_learns_from_its_talk(learned: PostgresLearnedNames) -> None:
    names = await the_names(learned)
    talk = a_learner(learned, names)
    lines = (
        "We asked Aldrinacks.",
        "No, E-L-D-R-I-N-A-X.",
        "Elder Knacks lives.",
        "No, Eldrinax!",
        "Ride to Elder Knacks.",
    )
    for number, line in enumerate(lines):
        await talk.heard(replace(an_utterance(line, id=f"u{number}"), at_ms=1_000 * number))
    llm = Correction(8, 20, "Elder Knacks", "Eldrinax", 0.9, "llm", "he lives there")
    await talk.revised(replace(an_utterance(lines[-1], id="u4"), corrections=(llm,)))
    pairs = {pair.heard: pair.status for pair in await learned.statuses(CAMPAIGN)}
    assert {heard: (each.state, each.utterances) for heard, each in pairs.items()} == {
        "Aldrinacks": ("active", ("u0",)),
        "Elder Knacks": ("suggested", ("u2", "u4")),  # ordinary words: one more
    }


async def test_what_one_player_types_rewrites_no_name_until_another_bears_it_out(learned: PostgresLearnedNames) -> None:
    names = await the_names(learned)
    talk = a_learner(learned, names)
    for number, line in enumerate(("Ride to Aldrinacks.", "Eldrinax, not Aldrinacks.", "No, E-L-D-R-I-N-A-X.")):
        said = an_utterance(line, id=f"u{number}", speaker="Kira")
        await talk.heard(replace(said, at_ms=1_000 * number, typed=True))
    [alone] = await learned.statuses(CAMPAIGN)
    assert (alone.heard, alone.status.state) == ("Aldrinacks", "suggested")
    said = an_utterance("Eldrinax, not Aldrinacks.", id="u9", speaker="Bran")
    await talk.heard(replace(said, at_ms=9_000, typed=True))
    [borne_out] = await learned.statuses(CAMPAIGN)
    assert (borne_out.heard, borne_out.status.state) == ("Aldrinacks", "active")


@pytest.mark.parametrize("heard", ["", "?!", "x" * 10_000, "far too many words " * 20])
async def test_what_can_be_no_form_is_refused_in_a_short_line(
    learned: PostgresLearnedNames, desk: NamesDesk, heard: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await desk.reject(heard, ELDRINAX)
    assert len(str(refused.value)) < 150
    with pytest.raises(InvalidInput):
        await desk.accept(heard, ELDRINAX, unless=None)


async def test_a_name_that_left_and_came_back_is_still_known_by_its_wrong_forms(
    store: Store, learned: PostgresLearnedNames, desk: NamesDesk
) -> None:
    await desk.accept("Finkeldrum", ELDRINAX, unless=None)
    entities = tuple(entity for entity in a_campaign().entities if entity.id != ELDRINAX)
    await store.campaigns.load(replace(a_campaign(), entities=entities))
    assert await corrected(learned, "Finkeldrum") == "Finkeldrum"
    await store.campaigns.load(a_campaign())
    assert await corrected(learned, "Finkeldrum") == "Eldrinax"


async def test_a_table_is_told_of_names_that_were_changed_elsewhere(
    store: Store, learned: PostgresLearnedNames, desk: NamesDesk
) -> None:
    async with asyncio.timeout(DEADLINE_S), aclosing(store.listener.follow(NAMES, CAMPAIGN)) as changes:
        assert await anext(changes) is None
        await learned.record(OTHER, confirmed("Finkeldrum", ELDRINAX), at_ms=1_000)
        await prove(learned, a_proof("Finkeldrum", "u1"))  # a suggestion changes nothing for players
        await desk.accept("Finkeldrum", ELDRINAX, unless=None)
        assert await anext(changes) == frozenset({ELDRINAX})
        await store.campaigns.load(a_campaign())  # nothing is new in it
        new = Entity(EntityId("e-orla"), "npc", "Orla")
        renamed = replace(a_campaign().entity(GRIMJAW), aliases=("the farrier",))
        others = tuple(entity for entity in a_campaign().entities if entity.id != GRIMJAW)
        await store.campaigns.load(replace(a_campaign(), entities=(*others, renamed, new)))
        assert await anext(changes) == frozenset({GRIMJAW, new.id})


async def test_the_steps_of_a_form_are_served_by_their_index(store: Store, learned: PostgresLearnedNames) -> None:
    sql = load_queries("world/learned_names")["steps"]
    async with store.database.use(CAMPAIGN, deadline_ms=DEADLINE_MS) as connection:
        await connection.execute(
            "INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by) "
            "SELECT 'town', 1000 + n, 'form_heard', jsonb_build_object('heard', 'form' || n / 10), now(), 'talk' "
            "  FROM generate_series(1, 20000) n"
        )
        await connection.execute("ANALYZE world_events")
        plan = await connection.fetch(f"EXPLAIN {sql}", CAMPAIGN, "form77", None)
    assert "idx_world_events_forms" in "\n".join(row[0] for row in plan)


@pytest.fixture
def timeline(store: Store) -> Timeline:
    return Timeline(CAMPAIGN, store.world, PostgresInspection(store.database), lambda: 1_790_000_000_000)


async def test_history_of_the_world_has_decisions_about_names_without_proofs(
    learned: PostgresLearnedNames, desk: NamesDesk, timeline: Timeline
) -> None:
    await desk.accept("Mellow Dracks", ELDRINAX, unless=None)
    await prove(learned, *(a_proof("Finkeldrum", f"u{n}") for n in range(30)))
    [(confirmed, counts)] = await timeline.history(limit=1)
    assert counts and confirmed.event == FormHeard("mellowdracks", "Mellow Dracks", ELDRINAX, "confirmed", "dm")
    assert len(await learned.history(CAMPAIGN, heard="Finkeldrum")) == 20


async def test_undo_of_the_world_skips_decisions_about_names(
    store: Store, learned: PostgresLearnedNames, desk: NamesDesk, timeline: Timeline
) -> None:
    orla = EntityAdded(EntityId("e-orla"), "npc", "Orla")
    await store.world.commit(CAMPAIGN, [orla], Cause("dm", 1_000))
    await desk.accept("Mellow Dracks", ELDRINAX, unless=None)
    await prove(learned, *(a_proof("Finkeldrum", f"u{n}") for n in range(2)))
    assert [event.event for event in await timeline.undo()] == [orla]
    assert {pair.status.state for pair in await learned.statuses(CAMPAIGN)} == {"active"}
    [confirmed] = [each for each in await learned.history(CAMPAIGN) if each.step.kind == "confirmed"]
    await timeline.undo(confirmed.seq)
    assert [pair.heard for pair in await learned.statuses(CAMPAIGN)] == ["Finkeldrum"]
    with pytest.raises(NotFound):
        await desk.undo()


async def test_a_table_is_told_of_names_learned_from_a_retracted_utterance(
    store: Store, learned: PostgresLearnedNames, timeline: Timeline
) -> None:
    await store.log.append([an_utterance("No, Eldrinax!", id="u1")])
    await prove(learned, replace(a_proof("Finkeldrum", "u1"), by="spelled"))
    assert await corrected(learned, "Finkeldrum") == "Eldrinax"
    async with asyncio.timeout(DEADLINE_S), aclosing(store.listener.follow(NAMES, CAMPAIGN)) as changes:
        assert await anext(changes) is None
        retracted = await store.world.retract(CAMPAIGN, UtteranceId("u1"), Cause("dm", 1_000))
        assert await anext(changes) == frozenset({ELDRINAX})
        assert await corrected(learned, "Finkeldrum") == "Finkeldrum"
        await prove(learned, a_proof("Finkeldrum", "u1"))  # evidence that comes too late
        assert await learned.statuses(CAMPAIGN) == []
        await timeline.undo(retracted.seq)
        assert await anext(changes) == frozenset({ELDRINAX})
        assert await corrected(learned, "Finkeldrum") == "Eldrinax"


async def test_utterance_that_is_read_again_still_proves_its_names(store: Store, learned: PostgresLearnedNames) -> None:
    await store.log.append([an_utterance("No, Eldrinax!", id="u1")])
    await prove(learned, a_proof("Finkeldrum", "u1"))
    async with store.world.writing(CAMPAIGN, amount=1) as writing:
        await writing.unlearn([UtteranceId("u1")], Cause("talk", 2_000))
    assert [pair.heard for pair in await learned.statuses(CAMPAIGN)] == ["Finkeldrum"]


async def test_step_with_a_field_of_a_later_release_is_read(store: Store, learned: PostgresLearnedNames) -> None:
    payload = {**asdict(confirmed("Finkeldrum", ELDRINAX)), "later": 1}
    async with store.database.use(CAMPAIGN, deadline_ms=DEADLINE_MS) as connection:
        await connection.execute(
            "INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by) "
            "SELECT $1, max(seq) + 1, 'form_heard', $2, now(), 'dm' FROM world_events WHERE campaign_id = $1",
            CAMPAIGN,
            payload,
        )
    [pair] = await learned.statuses(CAMPAIGN)
    assert (pair.heard, pair.status.state) == ("Finkeldrum", "active")
