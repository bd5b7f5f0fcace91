"""The memory graph on the desk: nodes, the timeline down to its lines, the last prompt, and the types."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.background import timeline_writer
from glyphoxa.app.scope import Scope
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import text_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import NodeType
from glyphoxa.domain.ids import EntityId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Provenance, RecalledUtterance, secret_of
from glyphoxa.domain.turn_record import AssembledPrompt, PromptPart
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Cause
from tests.support.builders import a_turn_record, an_utterance
from tests.support.command_line import CAMPAIGN_FILE, ELOWEN, GRIMJAW, SALTMERE
from tests.support.web_door import Visitor, a_door
from tests.support.web_table import TwinTable

_BREAK_MS = 11 * 60_000
BOTH = frozenset({GRIMJAW, ELOWEN})


@pytest.fixture
async def store(evenings_dsn: str) -> AsyncIterator[Store]:
    async with open_store(evenings_dsn) as store:
        yield store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "campaign.yaml"
    text = CAMPAIGN_FILE.read_text("utf-8")
    path.write_text(text.replace("entity_types: [spell]", "entity_types: [spell, relic]   # of old"), "utf-8")
    return path


@pytest.fixture
async def dm(store: Store, file: Path, tmp_path: Path) -> AsyncIterator[Visitor]:
    campaign = read_campaign(file).campaign
    await store.campaigns.load(campaign)
    table = TwinTable(campaign)
    async with a_door(tmp_path, table, desk=Scope(store, Settings(campaign=file), SALTMERE)) as door:
        yield await door.invited(Grant(Role.DM))


async def page(dm: Visitor, path: str, status: int = 200) -> str:
    response = await dm.http.get(path, follow_redirects=True)
    assert response.status_code == status, response.text
    return html.unescape(response.text)


async def state(store: Store, *events: EntityAdded | FactStated) -> None:
    await store.world.commit(SALTMERE, events, Cause("dm", 1))


async def play(store: Store, scenes: int, *, only_grimjaw: int | None = None) -> None:
    """Store a session of short scenes, in each of which Tamsin promises something, and its timeline."""
    said = []
    for n in range(scenes):
        heard = frozenset({GRIMJAW}) if n == only_grimjaw else BOTH
        one = an_utterance(f"I promise to bring Elowen the {n + 2} silver keys of house {n}.", id=f"k{n}")
        at_ms = 4_000_500_000_000 + n * _BREAK_MS
        said.append(replace(one, campaign_id=SALTMERE, session_id=SessionId("keys"), at_ms=at_ms, witnesses=heard))
    await store.log.append(said)
    await (await timeline_writer(store, SALTMERE)).write(SessionId("keys"), is_over=True)


async def test_nodes_are_listed_by_type_with_their_fields(dm: Visitor, store: Store) -> None:
    crown = EntityId("crown")
    await state(
        store,
        EntityAdded(crown, "relic", "Tide Crown"),
        FactStated(Claim.attribute(crown, "kind", "crown")),
        FactStated(Claim.attribute(EntityId("elowen"), "goal", "the far shore")),
    )
    shown = await page(dm, "/desk/memory")
    for heading in ("character_sheet", "location_state", "relic"):
        assert f"<h2>{heading}</h2>" in shown
    assert "<td>the far shore</td>" in shown and '<th scope="col">language_sample</th>' in shown
    assert "kind: crown" in shown
    assert 'href="/desk/world/crown?npc="' in shown
    only = await page(dm, "/desk/memory?type=relic")
    assert "Tide Crown" in only and "Elowen</a>" not in only
    assert "Elowen" in await page(dm, "/desk/memory?type=npc"), "a type of entities means its type of nodes"
    assert "did you mean 'relic'" in await page(dm, "/desk/memory?type=relics", 404)
    await page(dm, "/desk/memory?page=2", 400)


async def test_what_an_npc_may_not_know_is_not_on_its_view(dm: Visitor, store: Store) -> None:
    crown, elowen = EntityId("crown"), EntityId("elowen")
    await state(
        store,
        EntityAdded(crown, "relic", "Tide Crown", (), secret_of([ELOWEN])),
        FactStated(Claim.attribute(elowen, "goal", "drown the king"), Provenance(), secret_of([ELOWEN])),
        FactStated(Claim.attribute(elowen, "traits", "patient")),
    )
    for view in ("", "elowen"):
        shown = await page(dm, f"/desk/memory?npc={view}")
        assert "drown the king" in shown and "Tide Crown" in shown
    grimjaws = await page(dm, "/desk/memory?npc=grimjaw")
    assert "patient" in grimjaws
    assert "drown the king" not in grimjaws and "Tide Crown" not in grimjaws


async def test_the_timeline_opens_down_to_the_lines_it_rests_on(dm: Visitor, store: Store) -> None:
    await play(store, 8, only_grimjaw=1)
    shown = await page(dm, "/desk/memory/timeline")
    tiers = re.findall(r'<span class="quiet">tier (\d)</span>', shown)
    assert tiers == ["1", "0", "0", "0", *("0",) * 5], "the sum first, with the three nodes that it sums up"
    for n in range(8):
        assert f"</b> I promise to bring Elowen the {n + 2} silver keys of house {n}.</li>" in shown
    assert 'href="/desk/sessions/keys?line=2#l2"' in shown
    elowens = await page(dm, "/desk/memory/timeline?npc=elowen")
    assert "house 0." in elowens and "house 1." not in elowens
    [first] = {
        found.replace("&amp;", "&")
        for found in re.findall(r"timeline\?node=(episode-keys%23\d+%2B1)", await page(dm, "/desk/memory?type=event"))
    }
    one = await page(dm, f"/desk/memory/timeline?node={first}")
    assert one.count("<details") == 4 and "house 7" not in one
    assert "No event node" in await page(dm, "/desk/memory/timeline?node=forge", 404)


async def test_an_npcs_last_prompt_is_shown_with_its_parts_and_memories(dm: Visitor, store: Store) -> None:
    assert "This NPC has had no prompt yet" in await page(dm, "/desk/memory?npc=grimjaw")
    recalled = RecalledUtterance(
        UtteranceId("s1-1"),
        SessionId("s1"),
        SpeakerId("tamsin"),
        "Tamsin",
        "The ferry leaks.",
        1,
        reason="it was there",
    )
    parts = (PromptPart("identity", "the campaign", 12), PromptPart("past", "summaries", 8))
    for id_, prompt in (("t-1", AssembledPrompt("You are Grimjaw.", parts, (recalled,))), ("t-2", AssembledPrompt())):
        turn = a_turn_record(id=TurnId(id_), session_id=SessionId("s1"), prompt=prompt)
        await store.log.record_turn(SALTMERE, turn)
    shown = await page(dm, "/desk/memory?npc=grimjaw")
    assert "identity: 12" in shown and "past: 8" in shown and "The ferry leaks." in shown
    assert "/desk/turns/t-1" in shown


async def test_a_type_is_changed_and_added_by_form_with_a_preview(dm: Visitor, store: Store, file: Path) -> None:
    shown = await page(dm, "/desk/memory/types")
    for name, origin in (
        ("character_sheet", "default"),
        ("relic", "own"),
        ("world_law", "template"),
        ("item", "without fields"),
    ):
        assert re.search(rf">{name}</th><td>{origin}</td>", shown), name
    assert "above 5 nodes, 3 become one, up to tier 10; the latest 3 stay" in shown
    opened = await dm.http.get("/desk/campaign?type=world_law")
    form = _form(opened.text)
    assert form["type-fields"] == "law, consequence" and form["type-always_inject"] == "yes"
    added = await dm.http.post("/desk/campaign", data={**form, "type-every": "4", "do": "add type"})
    assert "<li>entity type world_law</li>" in added.text
    relic = {"type-name": "relic", "type-fields": "maker, age", "type-active": "yes", "type-compress": ""}
    form = {name: value for name, value in _form(added.text).items() if not name.startswith("type-")}
    changed = await dm.http.post("/desk/campaign", data={**form, **relic, "do": "add type"})
    saved = await dm.http.post("/desk/campaign", data={**_form(changed.text), "do": "save"}, follow_redirects=True)
    assert "The campaign file is saved" in saved.text
    stored = (await store.campaigns.get(SALTMERE)).schema
    assert stored.declared["relic"] == NodeType(("maker", "age"))
    assert stored.declared["world_law"] == NodeType(("law", "consequence"), always_inject=True, every=4)
    assert "# of old" in text_of(file)
    assert read_campaign(file).campaign.schema == stored
    assert ">world_law</th><td>own</td>" in await page(dm, "/desk/memory/types")


async def test_wrong_settings_of_a_type_get_the_errors_of_the_file(dm: Visitor) -> None:
    form = _form((await dm.http.get("/desk/campaign?type=relic")).text)
    wrong = await dm.http.post("/desk/campaign", data={**form, "type-every": "often", "do": "add type"})
    assert "A table cannot be opened until these mistakes are corrected" in wrong.text and "every" in wrong.text
    merged = await dm.http.post("/desk/campaign", data={**form, "type-compress": "yes", "do": "add type"})
    assert "must also have `appends: true`" in html.unescape(merged.text)
    refused = await dm.http.post("/desk/campaign", data={**form, "type-name": " ", "do": "add type"})
    assert "Name is empty: a type has a name" in refused.text


async def test_types_are_shown_without_a_campaign_file_but_not_changed(store: Store, tmp_path: Path) -> None:
    campaign = read_campaign(CAMPAIGN_FILE).campaign
    table = TwinTable(campaign)
    async with a_door(tmp_path, table, desk=Scope(store, Settings(), SALTMERE)) as door:
        shown = await page(await door.invited(Grant(Role.DM)), "/desk/memory/types")
    assert "This table was opened without a campaign file" in shown and "/desk/campaign?type" not in shown


async def test_own_types_are_offered_where_an_entity_gets_its_type(dm: Visitor) -> None:
    for path in ("/desk/world", "/desk/world/elowen", "/desk/import", "/desk/campaign"):
        assert "relic" in re.sub(r"<textarea.*?</textarea>", "", await page(dm, path), flags=re.DOTALL), path
    added = await dm.http.post("/desk/world", data={"name": "Tide Crown", "type": "relic"}, follow_redirects=True)
    assert "Tide Crown" in added.text and added.status_code == 200


def _form(text: str) -> dict[str, str]:
    """Return the fields of the page's form as a browser sends them."""
    fields = dict(re.findall(r'<input (?:type="hidden" )?name="([\w-]+)" value="([^"]*)"', text))
    fields |= dict.fromkeys(re.findall(r'<input type="checkbox" name="(type-\w+)" value="yes" checked', text), "yes")
    fields |= {
        name: found.removeprefix("\n")
        for name, found in re.findall(r'<textarea name="([\w-]+)".*?>(.*?)</textarea>', text, re.DOTALL)
    }
    return {name: html.unescape(value) for name, value in fields.items()}
