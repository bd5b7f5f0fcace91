"""The game master's desk on a real database: every page, every decision, and nobody else."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.background import chronicle_worker
from glyphoxa.app.scope import Scope
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.provider_sections import LlmSettings, ProvidersSettings
from glyphoxa.config.settings import MemorySettings, ModelsSettings, Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Provenance, witnessed_by
from glyphoxa.npc.commands import Direct, Mute, SayAs, StopAll
from glyphoxa.transcript.sessions import SummarySentence, View
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Cause
from tests.support.builders import an_utterance
from tests.support.command_line import BAKER, CAMPAIGN_FILE, DEBT, ELOWEN, GRIMJAW, SALTMERE
from tests.support.web_door import Door, Visitor, a_door
from tests.support.web_table import TwinTable

PAGES = (
    "/desk",
    "/desk/review",
    "/desk/knowledge",
    "/desk/knowledge?npc=grimjaw&about=Elowen",
    "/desk/knowledge?as_of=s1",
    f"/desk/facts/{DEBT.fact_id}",
    "/desk/ask",
    "/desk/ask?npc=elowen&player=tamsin&say=Who+owes+you+money%3F",
    "/desk/secrets",
    "/desk/world",
    "/desk/world?type=npc&name=elo",
    "/desk/world/elowen",
    "/desk/world/elowen?hops=3&npc=grimjaw",
    "/desk/memory",
    "/desk/memory?npc=grimjaw&type=npc",
    "/desk/memory/timeline",
    "/desk/memory/types",
    "/desk/sessions",
    "/desk/sessions/s1",
    "/desk/sessions/s1/recap",
    "/desk/sessions/s1/wrap-up",
    "/desk/sessions/s1/memory",
    "/desk/sessions/s1/transcript.md",
    "/desk/sessions/s1/line?line=2",
    "/desk/sessions/s1/back?line=1",
    "/desk/names",
    "/desk/campaign",
    "/desk/campaign.yaml",
    "/desk/turns",
    "/desk/table",
    "/desk/lines/s1-2",
    "/desk/find?words=elo",
    "/desk/links",
    "/desk/links/tamsin/qr.svg",
)
POSTS = (
    "/desk/command",
    "/desk/facts",
    "/desk/world",
    "/desk/world/elowen",
    "/desk/sessions/s1",
    "/desk/sessions/s1/line",
    "/desk/sessions/s1/wrap-up",
    "/desk/sessions/s1/back",
    "/desk/names",
    "/desk/campaign",
    "/desk/links",
)
PENDING = (DEBT.fact_id, BAKER.fact_id)
MARKUP = '<script>alert("x")</script><img src=x onerror=alert(1)>'


@pytest.fixture
async def store(evenings_dsn: str) -> AsyncIterator[Store]:
    async with open_store(evenings_dsn) as store:
        yield store


@pytest.fixture
def campaign() -> Campaign:
    return read_campaign(CAMPAIGN_FILE).campaign


@pytest.fixture
async def door(store: Store, campaign: Campaign, tmp_path: Path) -> AsyncIterator[Door]:
    table = TwinTable(campaign)
    settings = Settings(campaign=tmp_path / "campaign.yaml")
    shutil.copy(CAMPAIGN_FILE, tmp_path / "campaign.yaml")
    async with a_door(tmp_path, table, desk=Scope(store, settings, SALTMERE)) as door:
        yield door


@pytest.fixture
async def dm(door: Door) -> Visitor:
    return await door.invited(Grant(Role.DM))


async def page(dm: Visitor, path: str, status: int = 200) -> str:
    response = await dm.http.get(path, follow_redirects=True)
    assert response.status_code == status, response.text
    return response.text


async def post(dm: Visitor, path: str, **form: str) -> httpx.Response:
    return await dm.http.post(path, data=form, follow_redirects=True)


async def test_game_master_gets_every_page(dm: Visitor) -> None:
    for path in PAGES:
        shown = await page(dm, path)
        assert "<script>" not in shown, path
        assert "style=" not in shown, path


@pytest.mark.parametrize(("grant", "status"), [(None, 401), (Grant(Role.SPECTATOR), 403)], ids=["nobody", "spectator"])
async def test_others_get_no_page_and_change_nothing(door: Door, grant: Grant | None, status: int) -> None:
    player = door.table.campaign.players[0].id
    for visitor, expected in (
        (await door.invited(grant), status),
        (await door.invited(Grant(Role.PLAYER, player)), 403),
    ):
        for path in PAGES:
            answer = await visitor.http.get(path)
            assert answer.status_code == expected, path
            for secret in ("debt", "the sea", "ferry", "/join#"):
                assert secret not in answer.text, path
        for path in POSTS:
            form = {"do": "stop", "fact": DEBT.fact_id, "who": player, "summary": "x"}
            assert (await visitor.http.post(path, data=form)).status_code == expected, path
    assert not door.table.obeyed
    assert (AuditKind.REFUSED, "" if grant is None else grant.key) in door.recorded


async def test_form_of_another_site_is_refused(dm: Visitor, door: Door) -> None:
    dm.http.headers["Origin"] = "http://evil.example"
    for path in POSTS:
        assert (await dm.http.post(path, data={"do": "stop"})).status_code == 403
    assert not door.table.obeyed


# Review


async def test_pending_fact_is_shown_with_its_line_and_accepted(dm: Visitor, store: Store) -> None:
    shown = await page(dm, "/desk/review")
    assert "debt" in shown
    assert "session 1, line 2" in shown
    after = await post(dm, "/desk/facts", do="confirm", fact=DEBT.fact_id, back="/desk/review")
    assert after.url.path == "/desk/review"
    assert "Accepted: " in after.text
    assert DEBT.fact_id not in after.text
    known = await page(dm, "/desk/knowledge?about=Elowen")
    assert re.search(r"debt.*?confirmed", known, re.DOTALL)


async def test_session_page_lists_open_threads(dm: Visitor, store: Store) -> None:
    assert "Open threads" not in await page(dm, "/desk/sessions/s1")
    await store.log.append([replace(an_utterance("I promise to mend <b>it</b>."), campaign_id=SALTMERE)])
    await chronicle_worker(store).read_new(SALTMERE)
    shown = await page(dm, "/desk/sessions/s1")
    assert "<li>Tamsin said: “I promise to mend &lt;b&gt;it&lt;/b&gt;.”</li>" in shown


async def test_fact_page_shows_knowers_source_and_history(dm: Visitor) -> None:
    shown = await page(dm, f"/desk/facts/{DEBT.fact_id}")
    for words in (
        "Elowen, debt: 40",
        "pending",
        "I heard she owes forty silver.",
        "Depends on",
        "fears: the sea",
        "Grimjaw",
    ):
        assert words in shown
    await post(dm, "/desk/facts", do="reject", fact=DEBT.fact_id)
    gone = await page(dm, f"/desk/facts/{DEBT.fact_id}")
    assert "Ended: " in gone
    assert 'value="reject"' not in gone, "nothing is left to be decided"
    await page(dm, "/desk/facts/zzz", 404)


async def test_knowledge_page_shows_an_earlier_world(dm: Visitor) -> None:
    now = await page(dm, "/desk/knowledge?npc=grimjaw&about=Elowen")
    then = await page(dm, "/desk/knowledge?npc=grimjaw&about=Elowen&as_of=s1")
    assert "is at The Anvil" in now
    assert "is at The Anvil" not in then
    assert "fears: the sea" in then
    assert 'name="do" value="reject"' not in then, "the past is not decided on"
    assert "is not a time such as" in html.unescape(await page(dm, "/desk/knowledge?as_of=never", 404))


async def test_several_facts_are_decided_together_or_not_at_all(dm: Visitor) -> None:
    marked = {f"fact:{each}": "on" for each in (DEBT.fact_id, BAKER.fact_id)}
    lost = await post(dm, "/desk/facts", do="confirm_marked", **marked, **{"fact:zzz": "on"})
    assert lost.status_code == 404
    assert DEBT.fact_id in await page(dm, "/desk/review")
    done = await post(dm, "/desk/facts", do="confirm_marked", back="/desk/review", **marked)
    assert "Accepted: 2 facts; ended 1 contradicting fact" in done.text
    assert "Something went wrong" in (await post(dm, "/desk/facts", do="reject_marked")).text
    await post(dm, "/desk/facts", do="undo")
    assert DEBT.fact_id in await page(dm, "/desk/review"), "one decision is taken back as a whole"


async def test_pending_value_is_corrected(dm: Visitor) -> None:
    done = await post(dm, "/desk/facts", do="edit", fact=DEBT.fact_id, value="50", back="/desk/review")
    assert "Corrected: " in done.text
    assert "debt: 50" in await page(dm, "/desk/knowledge?about=Elowen")


async def test_decision_on_a_changed_fact_is_refused(dm: Visitor) -> None:
    seen = {fact: re.search(rf'name="fact:{fact}" value="(.*?)"', await page(dm, "/desk/review")) for fact in PENDING}
    boxes = {f"fact:{fact}": found[1] for fact, found in seen.items() if found}
    assert len(boxes) == 2
    await post(dm, "/desk/facts", do="hide", fact=DEBT.fact_id)
    late = await post(dm, "/desk/facts", do="confirm", fact=DEBT.fact_id, seen=boxes[f"fact:{DEBT.fact_id}"])
    several = await post(dm, "/desk/facts", do="confirm_marked", **boxes)
    for refused in (late, several):
        assert refused.status_code == 400
        assert "has changed meanwhile: you saw" in html.unescape(refused.text)
        assert "hidden" in refused.text
    shown = await page(dm, "/desk/review")
    assert all(f'name="fact:{fact}"' in shown for fact in PENDING), "nothing was decided"


async def test_form_redirects_only_within_the_desk(dm: Visitor) -> None:
    for back in ("https://evil.example/", "//evil.example/desk", "/desk//evil", "/\\evil.example", "/"):
        answer = await dm.http.post("/desk/facts", data={"do": "confirm", "fact": DEBT.fact_id, "back": back})
        assert answer.status_code == 303, back
        assert answer.headers["location"].startswith("/desk/review?done="), back


async def test_invalid_form_body_is_refused(dm: Visitor) -> None:
    for body in (b"\xff\xfe", b"a=1&" * 100, b"x" * 100_000):
        assert (await dm.http.post("/desk/facts", content=body)).status_code == 400, body[:8]


# Who knows what


async def test_knowledge_page_shows_only_what_an_npc_knows(dm: Visitor) -> None:
    grimjaw, elowen = [await page(dm, f"/desk/knowledge?npc={npc}") for npc in (GRIMJAW, ELOWEN)]
    assert "ferry" in grimjaw
    assert "ferry" not in elowen
    matrix = await page(dm, "/desk/secrets")
    row = next(each for each in matrix.split("<tr>") if "ferry" in each)
    assert "secret" in row


async def test_markup_in_facts_and_lines_is_escaped(dm: Visitor, store: Store, door: Door) -> None:
    claim = Claim.attribute(EntityId("elowen"), "motto", MARKUP)
    provenance = Provenance(0.4, reason=MARKUP)
    stated = FactStated(claim, provenance, witnessed_by([NpcId("grimjaw")], at_ms=1))
    await store.world.commit(SALTMERE, [stated], Cause("talk", 1))
    for path in (
        "/desk/review",
        "/desk/knowledge",
        "/desk/secrets",
        "/desk/world/elowen",
        f"/desk/ask?say={quote(MARKUP)}",
        f"/desk/review?done={MARKUP}",
    ):
        shown = await page(dm, path)
        assert "<script>alert" not in shown
        assert "<img src=x" not in shown
        assert "&lt;script&gt;" in shown


async def test_secret_is_told_to_one_npc_and_kept_from_it_again(dm: Visitor) -> None:
    def elowens(matrix: str) -> str:
        return next(each for each in matrix.split("<tr>")[1:] if "ferry" in each)

    fact = re.search(r'name="fact" value="(.*?)"', elowens(await page(dm, "/desk/secrets")))
    assert fact is not None
    told = await post(dm, "/desk/facts", do="tell", fact=fact[1], to=ELOWEN, back="/desk/secrets")
    assert "told" in elowens(told.text)
    kept = await post(dm, "/desk/facts", do="keep_from", fact=fact[1], npc=ELOWEN, back="/desk/secrets")
    assert ">told" not in elowens(kept.text)
    assert "secret" in elowens(kept.text)


async def test_secrets_page_leaves_out_session_summaries(dm: Visitor) -> None:
    await post(dm, "/desk/sessions/s1", summary="They met the smith.")
    assert "They met the smith." in await page(dm, "/desk/knowledge")
    secrets = await page(dm, "/desk/secrets")
    assert "They met the smith." not in secrets
    assert "took part in" not in secrets
    assert "ferry" in secrets


async def test_knowledge_page_takes_session_number_or_id(dm: Visitor) -> None:
    for session in ("s1", "1", "session 1"):
        then = await page(dm, f"/desk/knowledge?npc=grimjaw&about=Elowen&as_of={quote(session)}")
        assert "As of s1." in then, session
        assert "session 1, line 1" in then, session


async def test_ask_page_shows_only_the_secrets_of_the_asked_npc(dm: Visitor, store: Store) -> None:
    said = await store.log.recent(SALTMERE, SessionId("s1"), since_ms=0, limit=100)
    asked = {
        npc: await page(dm, f"/desk/ask?npc={npc}&say=What+about+the+harbour+ferry%3F") for npc in (GRIMJAW, ELOWEN)
    }
    for npc, shown in asked.items():
        assert "What about the harbour ferry?" in shown
        assert "tokens" in shown
        assert ("sank the harbour ferry" in shown) == (npc == GRIMJAW)
    assert await store.log.recent(SALTMERE, SessionId("s1"), since_ms=0, limit=100) == said


# The world


async def test_world_page_filters_by_name_and_type(dm: Visitor) -> None:
    assert ">Elowen</a>" in await page(dm, "/desk/world?name=ELOW")
    assert ">Elowen</a>" not in await page(dm, "/desk/world?type=location")
    assert "No entity has this name" in await page(dm, "/desk/world?name=nobody+at+all")
    for wrong in ("page=2", "page=0", "page=x", "page=-1"):
        assert "a number from 1 to" in await page(dm, f"/desk/world?{wrong}", 400)


async def test_entity_is_added_related_renamed_merged_and_removed(dm: Visitor) -> None:
    made = await post(dm, "/desk/world", name="The Black Bell", type="item")
    assert made.url.path == "/desk/world/the-black-bell"
    own = made.url.path
    stated = await post(dm, own, do="state", predicate="OWNED_BY", object="Elowen", known_to="grimjaw")
    assert "accepted" in stated.text
    assert "<svg" in stated.text
    assert 'class="secret"' in stated.text
    assert "<svg" not in await page(dm, f"{own}?npc=elowen"), "a secret relation is drawn for nobody else"
    await post(dm, own, do="state", predicate="weight", value="40")
    renamed = await post(dm, own, do="change", name="The Bell of Ash", type="item")
    assert "<h1>The Bell of Ash" in renamed.text
    assert "Aliases: The Black Bell" in renamed.text
    assert "Ashbell" in (await post(dm, own, do="alias", alias="Ashbell")).text
    assert "Ashbell" not in (await post(dm, own, do="unalias", alias="Ashbell")).text.split("</p>")[3]
    await post(dm, "/desk/world", name="Old Bell", type="item")
    merged = await post(dm, own, do="merge", gone="Old Bell")
    assert merged.status_code == 200
    assert "Old Bell" not in [*re.findall(r">([^<]*)</a></th>", await page(dm, "/desk/world"))]
    removed = await post(dm, own, do="remove")
    assert removed.url.path == "/desk/world"
    await page(dm, own, 404)
    assert "Undone" in (await post(dm, "/desk/facts", do="undo", back=own)).text


async def test_entity_is_kept_secret_hidden_and_revealed(dm: Visitor) -> None:
    await post(dm, "/desk/world", name="The Black Bell", type="item")
    own = "/desk/world/the-black-bell"
    assert "Known to: secret: Grimjaw" in (await post(dm, own, do="scope", known_to="grimjaw")).text
    assert "Known to: hidden" in (await post(dm, own, do="scope", known_to="-")).text
    assert "Known to: public" in (await post(dm, own, do="scope")).text


async def test_entity_id_with_slash_has_a_page(dm: Visitor, store: Store) -> None:
    added = EntityAdded(EntityId("a/b?c"), "item", "Odd & End")
    await store.world.commit(SALTMERE, [added], Cause("dm", 1))
    link = re.search(r'href="(/desk/world/[^"]*)">Odd', await page(dm, "/desk/world"))
    assert link is not None
    assert "<h1>Odd &amp; End" in await page(dm, link[1])
    assert (await post(dm, link[1], do="alias", alias="Oddity")).status_code == 200


# Sessions


async def test_lines_are_accepted_reworded_assigned_and_dropped(dm: Visitor) -> None:
    path = "/desk/sessions/s1/wrap-up"
    assert 'href="/desk/sessions/s1/wrap-up"' in await page(dm, "/desk/sessions/s1")
    shown = await page(dm, path)
    seen = re.findall(r'name="number" value="(\w+)"><input type="hidden" name="seen" value="([^"]+)"', shown)
    found = {html.unescape(words): number for number, words in seen}
    assert found["Elowen, debt: 40"]
    debt = {"number": found["Elowen, debt: 40"], "seen": "Elowen, debt: 40"}
    for form, problem in (
        ({**debt, "do": "confirm", "seen": "Elowen, debt: 50"}, "has changed meanwhile"),
        ({**debt, "do": "confirm", "number": "77"}, "not proposed, or decided already"),
        ({**debt, "do": "burn"}, "nknown decision"),
        ({**debt, "do": "edit", "words": " "}, "fact is empty"),
        ({**debt, "do": "to", "words": "Nobody At All"}, "o entity"),
    ):
        assert problem in html.unescape((await dm.http.post(path, data=form)).text)
    answer = await dm.http.post(path, data={**debt, "do": "edit", "words": "fifty silver"}, follow_redirects=True)
    assert answer.status_code == 200
    assert "Elowen, debt: fifty silver" in await page(dm, "/desk/knowledge?npc=grimjaw")
    assert 'value="Elowen, debt: 40"' not in await page(dm, path)
    answer = await dm.http.post("/desk/facts", data={"do": "undo", "back": path}, follow_redirects=True)
    assert 'value="Elowen, debt: 40"' in answer.text
    await dm.http.post(path, data={**debt, "do": "reject"})
    assert 'value="Elowen, debt: 40"' not in await page(dm, path)


async def test_rollback_is_previewed_done_and_undone(dm: Visitor) -> None:
    shown = await page(dm, "/desk/sessions/s1/back?line=1")
    assert "debt" in shown
    assert "debt" in await page(dm, "/desk/knowledge")
    after = await post(dm, "/desk/sessions/s1/back", line="1")
    assert "Rolled back to line 1 of session 1" in after.text
    assert "retracted" in after.text
    assert "debt" not in await page(dm, "/desk/knowledge")
    await post(dm, "/desk/facts", do="undo")
    assert "debt" in await page(dm, "/desk/knowledge")
    for wrong in ("line=x", "line=99999", ""):
        await page(dm, f"/desk/sessions/s1/back?{wrong}", 400)


async def test_session_page_shows_transcript_and_saves_summary(dm: Visitor) -> None:
    shown = await page(dm, "/desk/sessions/s1")
    assert 'id="l2"' in shown
    assert "/desk/sessions/s2" in shown
    after = await post(dm, "/desk/sessions/s1", summary="They met the <b>smith</b>.")
    assert "They met the &lt;b&gt;smith&lt;/b&gt;." in after.text
    assert "They met the &lt;b&gt;smith" in await page(dm, "/desk/sessions")
    file = await dm.http.get("/desk/sessions/s1/transcript.md")
    assert file.headers["content-type"].startswith("text/markdown")
    assert file.text.startswith("# Session 1\n\nThey met the \\<b\\>smith")


async def test_memory_page_shows_each_view_with_its_own_knowledge(dm: Visitor, store: Store) -> None:
    term, s1 = EntityId("e-geometers"), SessionId("s1")
    heard = witnessed_by([GRIMJAW], at_ms=1)
    meaning = Claim.attribute(term, "meaning", "builders of the hall")
    events = [
        EntityAdded(term, "concept", "Geometers", (), heard, "talk"),
        FactStated(meaning, Provenance(1.0, dm_confirmed=True, session_id=s1), heard),
    ]
    await store.world.commit(SALTMERE, events, Cause("dm", 1))
    await store.states(SALTMERE, s1).note(View(GRIMJAW), flags={"decision_made": True})
    told = UtteranceId("s1-2")
    summary = [SummarySentence("Tamsin spoke of a debt.", (told,))]
    await store.states(SALTMERE, s1).cover(View(GRIMJAW), summary, up_to=told, after=0)
    shown = await page(dm, "/desk/sessions/s1/memory")
    views = dict(zip(("DM", "Grimjaw", "Elowen"), shown.split('<section class="card">')[1:], strict=False))
    assert "Tamsin spoke of a debt." in views["Grimjaw"] and "up to line 2" in views["Grimjaw"]
    assert "decision_made" in views["Grimjaw"] and "builders of the hall" in views["Grimjaw"]
    assert "builders of the hall" in views["DM"] and "ferry" in views["DM"]
    for word in ("builders", "ferry", "debt", "decision_made"):
        assert word not in views["Elowen"], word
    assert "builders" not in await page(dm, "/desk/sessions/s2/memory"), "it was coined before"


async def test_long_session_is_paged_and_searched(dm: Visitor, store: Store) -> None:
    long = SessionId("long/1")
    said = [
        replace(each, id=UtteranceId(f"x{n}"), session_id=long, text=f"Line {n} of many.", at_ms=each.at_ms + n)
        for n in range(1, 302)
        for each in await store.log.recent(SALTMERE, SessionId("s2"), since_ms=0, limit=1)
    ]
    await store.log.append(said)
    own = "/desk/sessions/long%2F1"
    assert own in await page(dm, "/desk/sessions")
    last = await page(dm, own)
    assert "Line 301 of many." in last
    assert "Line 300 of many." not in last
    first = await page(dm, f"{own}?line=12")
    assert 'id="l12"' in first
    assert "Line 301 of many." not in first
    found = await page(dm, f"{own}?words=line+237")
    assert "Line 237 of many." in found
    assert "Line 12 of many." not in found
    assert "No line contains these words" in await page(dm, f"{own}?words=zebra")
    assert (await page(dm, f"{own}/transcript.md")).count("of many") == 301
    assert (await post(dm, own, summary="A long walk.")).status_code == 200
    await page(dm, f"{own}?line=x", 400)


async def test_line_is_corrected_or_retracted_with_dependent_facts(dm: Visitor) -> None:
    own = "/desk/sessions/s1/line"
    assert "debt" in await page(dm, f"{own}?line=2")
    put = await post(dm, own, do="correct", line="3", text="Grimjaw is a <b>smith</b>.", speaker="borin-ashfoot")
    assert "<b>Borin Ashfoot:</b>" in (await dm.http.get(f"{own}?line=3")).text
    assert "Line 3 of session 1 is corrected." in put.text
    assert "Grimjaw is a &lt;b&gt;smith" in put.text
    gone = await post(dm, own, do="retract", line="2")
    assert 'id="l2" class="gone"' in gone.text
    assert "debt" not in await page(dm, "/desk/review")
    assert "This line is retracted" in await page(dm, f"{own}?line=2")
    await post(dm, "/desk/facts", do="undo")
    assert "debt" in await page(dm, "/desk/review")


# Names


async def test_wrong_form_of_a_name_is_accepted_undone_and_rejected(dm: Visitor) -> None:
    learned = await post(dm, "/desk/names", do="confirm", heard="Ella Wenn", name="Elowen")
    assert "means Elowen from now on" in learned.text
    assert "ella wenn" in learned.text.split("<tbody>")[1].casefold()
    assert "Undone: accepted" in (await post(dm, "/desk/names", do="undo")).text
    rejected = await post(dm, "/desk/names", do="reject", heard="Ella Wenn", name="Elowen")
    assert "will not be suggested again" in rejected.text


# What cannot be done


WRONG_FORMS: dict[str, tuple[dict[str, str], ...]] = {
    "/desk/facts": (
        {},
        {"do": "confrim"},
        {"do": "confirm"},
        {"do": "confirm", "fact": "zzz"},
        {"do": "tell"},
    ),
    "/desk/world/elowen": (
        {},
        {"do": "dance"},
        {"do": "change", "name": "Elowen"},
        {"do": "merge", "gone": "Elowen"},
        {"do": "merge", "gone": "Nobody"},
        {"do": "state", "predicate": "x"},
        {"do": "state", "predicate": "", "value": "1"},
        {"do": "scope", "known_to": "nobody"},
        {"do": "alias", "alias": "..."},
    ),
    "/desk/sessions/s1": ({"summary": "  "},),
    "/desk/sessions/s1/line": (
        {},
        {"line": "1"},
        {"line": "1", "do": "burn"},
        {"line": "1", "do": "correct", "text": " "},
        {"line": "99", "do": "retract"},
    ),
    "/desk/names": (
        {},
        {"do": "confirm"},
        {"do": "confirm", "heard": "x", "name": "Nobody"},
        {"do": "confirm", "heard": "<b>", "name": "Elowen"},
        {"do": "undo"},
    ),
}


async def test_refused_form_reports_why_and_changes_nothing(dm: Visitor) -> None:
    shown = ("/desk/knowledge", "/desk/world/elowen", "/desk/sessions/s1", "/desk/names")
    before = [await page(dm, each) for each in shown]
    for path, forms in WRONG_FORMS.items():
        for form in forms:
            answer = await post(dm, path, **form)
            assert answer.status_code in (400, 404), (path, form)
            assert "Something went wrong" in answer.text, (path, form)
    assert [await page(dm, each) for each in shown] == before


async def test_page_of_unknown_thing_reports_an_error(dm: Visitor) -> None:
    for path, status in (
        *((f"/desk/knowledge?{query}", 404) for query in ("npc=nobody", "about=Nowhere", "npc=%00", "about=%27%3B--")),
        *((f"/desk/ask?{query}", 400) for query in ("npc=nobody&say=x", "player=nobody&say=x", f"say={'x' * 501}")),
        *((f"/desk/sessions/s9{more}", 404) for more in ("", "/recap", "/wrap-up", "/memory", "/transcript.md")),
        ("/desk/lines/none", 404),
        ("/desk/turns/none", 404),
    ):
        assert "Something went wrong" in await page(dm, path, status), path


# Finding


async def test_palette_finds_pages_by_part_of_a_name(dm: Visitor) -> None:
    for words, titles in (
        ("ELO", ["Elowen (npc)", "What Elowen knows"]),
        ("innkeeper", ["Elowen (npc)"]),
        ("jaw", ["Grimjaw (npc)", "What Grimjaw knows"]),
        ("s1", ["Session 1 (s1)"]),
        ("session 2", ["Session 2 (s2)"]),
        ("", []),
        ("no such name", []),
        ("<b>" * 500, []),
    ):
        found = (await dm.http.get("/desk/find", params={"words": words})).json()["found"]
        assert [each["title"] for each in found] == titles
        for each in found:
            assert (await dm.http.get(each["url"])).status_code == 200


async def test_live_line_links_to_its_correction_page(dm: Visitor) -> None:
    answer = await dm.http.get("/desk/lines/s1-2", follow_redirects=True)
    assert answer.url.path == "/desk/sessions/s1/line"
    assert "I heard she owes forty silver." in answer.text


async def test_table_page_shows_providers_and_reading_progress(dm: Visitor) -> None:
    shown = await page(dm, "/desk/table")
    for words in ("hibari, on this machine", "unread talk", "No NPC has answered in this session yet"):
        assert words in shown


async def test_table_page_shows_doctor_checks_without_secrets(
    campaign: Campaign, evenings_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    monkeypatch.delenv("GLYPHOXA_MODELS", raising=False)
    with_password = evenings_dsn.replace("//postgres@", "//postgres:hunter2@")
    settings = Settings(
        data_dir=tmp_path,
        memory=MemorySettings(postgres_dsn=with_password),
        models=ModelsSettings(dir=tmp_path / "models"),
        providers=ProvidersSettings(llm=LlmSettings(name="openai")),
    )
    table = TwinTable(campaign)
    async with open_store(evenings_dsn) as store:
        source = Scope(store, settings, SALTMERE)
        async with a_door(tmp_path, table, desk=source) as door:
            shown = html.unescape(await page(await door.invited(Grant(Role.DM)), "/desk/table"))
            player = await door.invited(Grant(Role.PLAYER, campaign.players[0].id))
            assert (await player.http.get("/desk/table")).status_code == 403
    for words in (
        ">python</th>",
        ">packages</th>",
        ">clock</th>",
        "openai, key from OPENAI_API_KEY",
        "for 3 hours, 4 open microphones",
        "run `glyphoxa models fetch whisper-tiny.en`",
        f"free for {tmp_path}",
        "migrated",
        "is used by this table",
        ">microphone</th>",
    ):
        assert words in shown
    assert "hunter2" not in shown
    assert ">speed</th>" not in shown, "no model is measured at an open table"


# At the table


async def test_commands_of_the_live_page_reach_the_table(dm: Visitor, door: Door) -> None:
    for form in (
        {"do": "mute", "npc": "grimjaw"},
        {"do": "say", "npc": "grimjaw", "text": "Out!"},
        {"do": "direct", "npc": "grimjaw", "text": "be curt", "turns": "3"},
        {"do": "stop"},
    ):
        answer = (await post(dm, "/desk/command", **form)).json()
        assert answer == {"done": f"done: {type(door.table.obeyed[-1]).__name__}", "in_force": "here: Grimjaw"}
    assert door.table.obeyed == [Mute(GRIMJAW), SayAs(GRIMJAW, "Out!"), Direct(GRIMJAW, "be curt", 3), StopAll()]
    assert (AuditKind.COMMANDED, "dm") in door.recorded


async def test_refused_command_reports_why(dm: Visitor, door: Door) -> None:
    forms: tuple[dict[str, str], ...] = (
        {},
        {"do": "dance"},
        {"do": "say", "npc": "nobody", "text": "x"},
        {"do": "direct", "npc": "grimjaw", "text": "x", "turns": "many"},
    )
    for form in forms:
        answer = await post(dm, "/desk/command", **form)
        assert answer.status_code == 400, form
        assert answer.json()["error"]["message"], form
    assert not door.table.obeyed


async def test_slider_shows_summary_rounds_in_force_and_the_whole_range(dm: Visitor, door: Door) -> None:
    door.table.summary_rounds = 33
    assert 'type="range" min="1" max="50" value="33"' in await page(dm, "/desk")


async def test_link_is_revoked_from_the_desk(dm: Visitor, door: Door) -> None:
    player = door.table.campaign.players[0].id
    tamsin = await door.invited(Grant(Role.PLAYER, player))
    assert (await tamsin.http.get("/api/table")).status_code == 200
    assert "are revoked" in (await post(dm, "/desk/links", who=player)).text
    assert (await tamsin.http.get("/api/table")).status_code == 401
    assert (await post(dm, "/desk/links", who="nobody")).status_code == 404


async def test_links_page_says_who_can_open_them(dm: Visitor, door: Door) -> None:
    for url, is_remarked in (("http://localhost:7860/", True), ("https://table.example/", False)):
        door.links.served_at(url)
        assert ("These links work on this machine only." in await page(dm, "/desk/links")) == is_remarked


async def test_live_page_works_without_long_term_memory(campaign: Campaign, tmp_path: Path) -> None:
    table = TwinTable(campaign)
    async with a_door(tmp_path, table) as door:
        dm = await door.invited(Grant(Role.DM))
        assert "/desk/review" not in await page(dm, "/desk")
        assert "no long-term memory" in await page(dm, "/desk/review", 400)
        assert "/join#" in await page(dm, "/desk/links")


async def test_live_page_works_while_the_database_is_unavailable(
    campaign: Campaign, evenings_dsn: str, tmp_path: Path
) -> None:
    table = TwinTable(campaign)
    async with open_store(evenings_dsn) as closed:
        source = Scope(closed, Settings(), SALTMERE)
    async with a_door(tmp_path, table, desk=source) as door:
        dm = await door.invited(Grant(Role.DM))
        assert "Something went wrong" in await page(dm, "/desk/review", 503)
        await page(dm, "/desk")
