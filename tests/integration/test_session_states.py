"""The memory of a running session in PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.log import VERSION
from glyphoxa.adapters.postgres.world.erasure import Meant, PostgresErasure
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, PlayerId, SessionId, UtteranceId
from glyphoxa.transcript.sessions import DM_VIEW, SessionState, SummarySentence, View
from glyphoxa.world.event_log import Cause
from tests.support.builders import an_utterance
from tests.support.world_tables import a_campaign_row

TOWN, SESSION, MIRA = CampaignId("town"), SessionId("first"), View("mira")
DM = Cause("dm", 1_000)
DATA = Path(__file__).parents[1] / "data"


def sentence(text: str, *lines: int) -> SummarySentence:
    return SummarySentence(text, tuple(UtteranceId(f"u{line}") for line in lines))


FOUND, OWED = sentence("Bran found the seal.", 1), sentence("Mira owes Bran a boat.", 2, 3)


@pytest.fixture
async def town(store: Store) -> Store:
    """Six lines of a session."""
    await a_campaign_row(store, TOWN)
    said = [
        replace(an_utterance(f"line {n}", id=f"u{n}"), campaign_id=TOWN, session_id=SESSION, speaker_id=f"player{n}")
        for n in range(1, 7)
    ]
    await store.log.append(said)
    return store


async def test_state_of_a_view_is_read_as_it_was_stored(town: Store) -> None:
    assert await town.states(TOWN, SESSION).state(MIRA) == SessionState()
    assert await town.states(TOWN, SESSION).cover(MIRA, [FOUND], up_to=UtteranceId("u2"), after=0) == 2
    await town.states(TOWN, SESSION).note(MIRA, {"new_npc": True})
    assert await town.states(TOWN, SESSION).cover(MIRA, [FOUND, OWED], up_to=UtteranceId("u4"), after=2) == 4
    expected = SessionState((FOUND, OWED), {"new_npc": True}, 4)
    assert await town.states(TOWN, SESSION).all() == {MIRA: expected}
    assert expected.text == "Bran found the seal. Mira owes Bran a boat."
    assert await town.states(TOWN, SESSION).state(DM_VIEW) == SessionState()
    assert await town.states(CampaignId("elsewhere"), SESSION).all() == {}


async def test_flags_may_precede_the_first_summary(town: Store) -> None:
    await town.states(TOWN, SESSION).note(DM_VIEW, {"decision_made": True})
    assert await town.states(TOWN, SESSION).cover(DM_VIEW, [FOUND], up_to=UtteranceId("u1"), after=0) == 1
    assert (await town.states(TOWN, SESSION).state(DM_VIEW)).flags == {"decision_made": True}


INSERT = """
INSERT INTO session_states (campaign_id, session_id, view, state) VALUES ('town', 'first', 'mira', $1::text::jsonb)
"""


@pytest.mark.parametrize("version", [1, 2])
async def test_state_of_each_version_is_read_and_written_as_the_newest(town: Store, version: int) -> None:
    async with town.database.use(TOWN) as connection:
        await connection.execute(INSERT, (DATA / f"session-state-{version}.json").read_text("utf-8"))
    assert await town.states(TOWN, SESSION).state(MIRA) == SessionState((FOUND,), {"new_npc": True}, 2)
    assert await town.states(TOWN, SESSION).cover(MIRA, [FOUND, OWED], up_to=UtteranceId("u4"), after=2) == 4
    assert await town.states(TOWN, SESSION).state(MIRA) == SessionState((FOUND, OWED), {"new_npc": True}, 4)
    async with town.database.use(TOWN) as connection:
        assert (await connection.fetchval("SELECT state FROM session_states"))["version"] == VERSION


async def test_state_of_a_later_version_is_refused_and_stays_as_it_is(town: Store) -> None:
    async with town.database.use(TOWN) as connection:
        await connection.execute(INSERT, '{"version": 3, "summary": {}, "flags": {}, "last_ordinal": 0}')
        before = await connection.fetchval("SELECT state FROM session_states")
    with pytest.raises(
        InvalidInput, match="has version 3: this release reads versions 1 to 2; install a newer Glyphoxa"
    ):
        await town.states(TOWN, SESSION).all()
    await town.states(TOWN, SESSION).note(MIRA, {"new_npc": True})
    assert await town.states(TOWN, SESSION).cover(MIRA, [FOUND], up_to=UtteranceId("u4"), after=0) is None
    async with town.database.use(TOWN) as connection:
        assert await connection.fetchval("SELECT state FROM session_states") == before


async def test_one_of_two_writers_is_refused(town: Store) -> None:
    done = await asyncio.gather(
        *(town.states(TOWN, SESSION).cover(MIRA, [FOUND], up_to=UtteranceId(f"u{n}"), after=0) for n in range(1, 7))
    )
    [reached] = [each for each in done if each is not None]
    assert (await town.states(TOWN, SESSION).state(MIRA)).last_ordinal == reached
    assert await town.states(TOWN, SESSION).cover(MIRA, [], up_to=UtteranceId("u1"), after=0) is None


async def test_what_the_log_does_not_have_is_not_covered(town: Store) -> None:
    assert await town.states(TOWN, SESSION).cover(MIRA, [FOUND], up_to=UtteranceId("u9"), after=0) is None
    assert await town.states(TOWN, SESSION).cover(MIRA, [FOUND], up_to=UtteranceId("u6"), after=4) is None
    assert await town.states(TOWN, SESSION).all() == {}


async def test_retracted_line_leaves_the_summary(town: Store) -> None:
    await town.states(TOWN, SESSION).cover(MIRA, [FOUND, OWED], up_to=UtteranceId("u4"), after=0)
    await town.world.retract(TOWN, UtteranceId("u3"), DM)
    assert (await town.states(TOWN, SESSION).state(MIRA)).summary == (FOUND,)
    await town.states(TOWN, SESSION).cover(MIRA, [FOUND, OWED], up_to=UtteranceId("u5"), after=4)
    assert (await town.states(TOWN, SESSION).state(MIRA)) == SessionState((FOUND,), last_ordinal=5)


async def test_corrected_line_leaves_the_summary(town: Store) -> None:
    await town.states(TOWN, SESSION).cover(MIRA, [FOUND, OWED], up_to=UtteranceId("u4"), after=0)
    await town.world.correct(TOWN, UtteranceId("u1"), "He found nothing.", DM)
    assert (await town.states(TOWN, SESSION).state(MIRA)).summary == (OWED,)


async def test_rollback_and_erasure_take_their_sentences(town: Store) -> None:
    later = sentence("They sailed.", 5)
    await town.states(TOWN, SESSION).cover(MIRA, [FOUND, OWED, later], up_to=UtteranceId("u6"), after=0)
    await town.world.rollback(TOWN, SESSION, 4, DM)
    assert (await town.states(TOWN, SESSION).state(MIRA)).summary == (FOUND, OWED)
    await PostgresErasure(town.database).erase(TOWN, Meant(player=PlayerId("player2")), at_ms=2_000)
    assert (await town.states(TOWN, SESSION).state(MIRA)).summary == (FOUND,)
