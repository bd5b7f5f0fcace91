"""The local page's server, with a table that needs no models."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from glyphoxa.cli.main import main
from glyphoxa.domain.events import Degraded, MemoryChanged, MemoryHealth, Trouble
from glyphoxa.web.serving import bind
from tests.support.web_client import Site, a_site, next_of
from tests.support.web_table import GRIMJAW, REPLY, SECRET, TAMSIN


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as site:
        yield site


# What anybody may ask


async def test_the_page_and_all_it_needs_come_from_the_server_itself(site: Site) -> None:
    page = await site.http.get("/")
    assert page.status_code == 200
    assert "http://" not in page.text
    assert "https://" not in page.text
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    for asset in ("app.css", "icon.svg", "js/main.js", "js/voice.js"):
        response = await site.http.get(f"/static/{asset}")
        assert response.status_code == 200
        assert response.headers["x-content-type-options"] == "nosniff"


async def test_a_file_outside_the_page_cannot_be_read(site: Site) -> None:
    assert (await site.http.get("/static/..%2fapp.py")).status_code == 404
    assert (await site.http.get("/static/nothing.js")).status_code == 404


async def test_the_table_tells_its_campaign_scene_players_and_npcs(site: Site) -> None:
    table = (await site.http.get("/api/table")).json()
    assert table["campaign"]["name"] == "The Lamps of Thornwick"
    assert table["scene"]["location"] == "The Cold Forge"
    assert [(p["id"], p["taken"]) for p in table["players"]] == [("tamsin", False), ("bran", False)]
    assert [n["name"] for n in table["scene"]["npcs"]] == ["Grimjaw", "Odwina Vell"]


# Sitting down and leaving


async def test_a_player_who_sits_down_is_welcomed_and_shown_to_everyone(site: Site) -> None:
    async with site.sits("tamsin") as tamsin:
        welcome = await next_of(tamsin, "welcome")
        assert welcome["player"] == {"id": "tamsin", "name": "Tamsin"}
        async with site.sits("bran"):
            seats = await next_of(tamsin, "seats")
            assert all(player["taken"] for player in seats["players"])
        left = await next_of(tamsin, "seats")
        assert [player["taken"] for player in left["players"]] == [True, False]


# What is said and shown


async def test_typed_words_are_answered_and_everyone_reads_both(site: Site) -> None:
    async with site.sits("tamsin") as tamsin, site.sits("bran") as bran:
        await next_of(bran, "welcome")
        await next_of(tamsin, "welcome")
        await tamsin.send(json.dumps({"say": "  Grimjaw, is it done?  "}))
        asked = await next_of(bran, "utterance")
        assert asked["speaker"] == {"id": "tamsin", "name": "Tamsin", "kind": "player"}
        assert asked["spans"] == [{"text": "Grimjaw, is it done?"}]
        speaks = await next_of(bran, "npc_speaks")
        assert (speaks["npc"], speaks["text"]) == (GRIMJAW.id, REPLY)
        assert (await next_of(bran, "npc_silent"))["npc"] == GRIMJAW.id
        turn = await next_of(bran, "turn")
        assert turn["outcome"] == "answered"
        assert turn["first_audio_ms"] == 1_180
        assert [bar["stage"] for bar in turn["bars"]][-1] == "first_audio"
        assert sum(bar["to_ms"] - bar["from_ms"] for bar in turn["bars"]) == 1_180


async def test_what_only_an_npc_knows_is_never_sent_to_a_page(site: Site) -> None:
    async with site.sits("tamsin") as tamsin:
        await tamsin.send(json.dumps({"say": "What do you hide, Grimjaw?"}))
        while (message := await next_of(tamsin, "welcome", "utterance", "npc_speaks", "turn"))["type"] != "turn":
            assert SECRET not in json.dumps(message)
        assert SECRET not in json.dumps(message)
        assert message["recalled"] == 1


async def test_pages_and_watchers_are_told_how_memory_is(site: Site) -> None:
    """Who comes later is told too, and the process counts as alive without it."""
    lost = MemoryHealth("degraded", 7, "the database is away", 3)
    told = {"state": "degraded", "since_ms": 7, "waiting": 3}
    async with site.sits("tamsin") as tamsin:
        assert (await next_of(tamsin, "welcome"))["table"]["memory"]["state"] == "ok"
        site.table.health = lost
        site.table.tell(MemoryChanged(lost, at_ms=8))
        message = await next_of(tamsin, "memory")
        assert {name: message[name] for name in told} == told
    assert (await site.http.get("/healthz")).json() == {"ok": True, "trouble": [], "memory": told}
    assert (await site.http.get("/api/table")).json()["memory"] == told


async def test_a_table_that_lost_something_says_so(site: Site) -> None:
    async with site.sits("tamsin") as tamsin:
        await next_of(tamsin, "welcome")
        site.table.tell(Degraded("grimjaw fell too often (RuntimeError)", 1, Trouble.OUT, GRIMJAW.id))
        told = await next_of(tamsin, "degraded")
        assert (told["what"], told["npc"]) == ("out", "Grimjaw")


SENSELESS = (
    "not json",
    "[]",
    "{}",
    '{"say": ""}',
    '{"say": "   "}',
    '{"say": 3}',
    '{"shout": "hello"}',
    '{"say": "a", "move": "inn-night"}',
    json.dumps({"say": "a" * 601}),
    '{"move": "nowhere"}',
    b"\x00\x01",
)


async def test_messages_that_make_no_sense_are_answered_and_the_page_stays(site: Site) -> None:
    async with site.sits("tamsin") as tamsin:
        for message in SENSELESS:
            await tamsin.send(message)
            assert (await next_of(tamsin, "error"))["message"], message
        await tamsin.send('{"say": "Still here."}')
        await next_of(tamsin, "utterance")
        assert site.table.said == [(TAMSIN.id, "Still here.")]


# Strangers


async def test_a_page_of_another_site_can_neither_connect_nor_listen(site: Site) -> None:
    for origin in ({"Origin": "http://evil.example"}, {"Origin": f"http://localhost:{site.port + 1}"}, {"Origin": ""}):
        response = await site.http.post("/api/offer", json={}, headers=origin)
        assert response.status_code == 403
    for strange in ("http://evil.example", None):
        with pytest.raises(InvalidStatus, match="403"):
            async with connect(f"ws://localhost:{site.port}/ws?player=tamsin", origin=strange):  # type: ignore[arg-type]
                pass


async def test_a_rebound_name_is_not_served(site: Site) -> None:
    headers = {"Host": f"evil.example:{site.port}", "Origin": f"http://evil.example:{site.port}"}
    assert (await site.http.get("/api/table", headers=headers)).status_code == 403


# Serving


def test_a_table_on_a_taken_port_is_one_line_before_anything_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        f"glyphoxa: port {port} on 127.0.0.1 is in use; choose another with --port (0 takes any free one)"
    ]
