"""What an evening leaves behind: the recap, the entities, the findings, and what each NPC knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.chronicle_log import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker, episode_writer
from glyphoxa.desk import recap_of
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM
from glyphoxa.domain.turn import Unaddressed
from tests.support.builders import INNKEEPER, SMITH, a_known_party, an_utterance

EVENING = SessionId("evening")
TOWN: Campaign = replace(a_known_party(), name="Quillon Reach")
LINES: tuple[tuple[str, NpcId | None, Unaddressed | None], ...] = (
    ("Grimjaw, good evening.", None, None),
    ("(to Bran) watch the smith, he hides the zircon key.", None, Unaddressed.WHISPER),
    ("ooc: my cousin Xaver flies to Porto tomorrow.", None, Unaddressed.OUT_OF_CHARACTER),
    ("We could just burn the granary tonight.", None, Unaddressed.PLANNING),
    ("Do you know my cousin Edvard? He owns the Gilded Plough.", SMITH, None),
    ("Who is Edvard?", None, None),
    ("My sister Ysmay Corrin lives in Harth Hollow.", None, None),
    ("I promise to bring you the copper bell before the harvest.", None, None),
    ("We played Quillon Reach for a year now.", None, None),
    ("Did you forge a false crown for the king?", None, None),
    ("Grimjaw forged the false crown, I am sure of it.", None, None),
    ("I promise you a sword by Sunday.", SMITH, None),
)


def said(n: int, text: str, npc: NpcId | None, aside: Unaddressed | None) -> Utterance:
    line = an_utterance(text, id=f"u{n}", speaker="Tamsin" if npc is None else "Grimjaw", npc=npc)
    heard = frozenset[NpcId]() if aside else frozenset((SMITH, INNKEEPER))
    return replace(line, session_id=EVENING, at_ms=1_000_000 + n, witnesses=heard, aside=aside)


@pytest.fixture
async def table(store: Store) -> Store:
    await store.campaigns.load(TOWN)
    await store.log.append([said(n, *line) for n, line in enumerate(LINES, start=1)])
    await chronicle_worker(store).read_new(TOWN.id)
    return store


async def test_recap_for_players_tells_only_what_players_stated_in_the_story(table: Store) -> None:
    told = " ".join(await recap_of(table, TOWN.id, EVENING, "players"))
    assert "copper bell" in told
    for left_out in ("zircon", "Xaver", "granary", "Edvard", "false crown", "sword"):
        assert left_out not in told


async def test_no_entity_comes_from_an_aside_an_npc_or_the_campaigns_name(table: Store) -> None:
    known = await PostgresChronicleLog(table.database, table.world).known(TOWN.id)
    assert {each.name for each in known if each.is_of_talk} == {"Ysmay Corrin", "Harth Hollow"}


async def test_findings_are_pending_and_rest_on_players_words(table: Store) -> None:
    facts = await PostgresInspection(table.database).current(TOWN.id, DM, limit=100)
    found = [each for each in facts if each.provenance.origin == "talk"]
    assert {each.status for each in found} == {"pending"}
    asides = {UtteranceId(f"u{n}") for n, (_, npc, aside) in enumerate(LINES, start=1) if npc or aside}
    assert asides.isdisjoint(each.provenance.utterance_id for each in found)
    assert "promise" in {each.claim.predicate for each in found}


async def test_no_npc_recalls_an_aside(table: Store) -> None:
    told = await (await episode_writer(table, TOWN.id)).write(EVENING) or {}
    assert "copper bell" in told[SMITH]
    asides = [text for text, _, aside in LINES if aside]
    assert not any(text in summary for text in asides for summary in told.values())
    lines = await PostgresInspection(table.database).lines(TOWN.id, EVENING, first=1, limit=99)
    assert [each.said.aside for each in lines] == [aside for _, _, aside in LINES]
