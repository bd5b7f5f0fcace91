"""Who may do what at a served table: each route and each message, for each role and for strangers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from ssl import create_default_context

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from glyphoxa.adapters.certificates import self_signed
from glyphoxa.domain.campaign import Campaign, Entity, Scene
from glyphoxa.domain.ids import EntityId, NpcId, SceneId
from glyphoxa.web.access.links import Entrance, Links
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.seats import Pulse
from tests.support.patience import DEADLINE_MS, until
from tests.support.web_client import next_of
from tests.support.web_door import Door, Visitor, a_door
from tests.support.web_table import BRAN, CAMPAIGN, GRIMJAW, ODWINA, TAMSIN, TwinTable, served

TAMSINS = Grant(Role.PLAYER, TAMSIN.id)
WATCHER = Grant(Role.SPECTATOR)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    async with a_door(tmp_path) as door:
        yield door


async def status_of(visitor: Visitor, query: str) -> int:
    """101 of an open websocket, else what it was answered."""
    try:
        async with visitor.opens(query) as socket:
            await next_of(socket, "welcome")
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


ROLES = pytest.mark.parametrize(
    ("grant", "reads", "sits", "sits_elsewhere"),
    [
        (Grant(Role.DM), 200, 101, 101),
        (TAMSINS, 200, 101, 403),
        (WATCHER, 200, 403, 403),
        (None, 401, 401, 401),
    ],
    ids=["dm", "player", "spectator", "nobody"],
)


@ROLES
async def test_each_role_reads_sits_and_offers_sound_as_the_table_says(
    door: Door, grant: Grant | None, reads: int, sits: int, sits_elsewhere: int
) -> None:
    visitor = await door.invited(grant)
    assert (await visitor.http.get("/api/table")).status_code == reads
    assert await status_of(visitor, "watch=1") == (101 if reads == 200 else 401)
    assert await status_of(visitor, "player=tamsin") == sits
    assert await status_of(visitor, "player=bran") == sits_elsewhere
    # A seat that may be taken is asked for what the offer says; the offer here is none.
    assert await visitor.offers("tamsin") == (400 if sits == 101 else sits)
    assert await visitor.offers("bran") == (400 if sits_elsewhere == 101 else sits_elsewhere)
    assert not door.table.said


@ROLES
async def test_only_the_game_master_is_told_what_ails_the_table(
    door: Door, grant: Grant | None, reads: int, sits: int, sits_elsewhere: int
) -> None:
    visitor = await door.invited(grant)
    health = (await visitor.http.get("/healthz")).json()
    assert health.keys() == ({"ok", "trouble", "memory"} if grant == Grant(Role.DM) else {"ok"})
    assert (await visitor.http.get("/readyz")).json() == {"ready": True}
    for page in ("/", "/join", "/static/js/join.js"):
        assert (await visitor.http.get(page)).status_code == 200


@pytest.mark.parametrize("grant", [Grant(Role.DM), TAMSINS], ids=["dm", "player"])
async def test_only_the_game_master_moves_the_table(door: Door, grant: Grant) -> None:
    visitor = await door.invited(grant)
    async with visitor.opens("player=tamsin") as socket:
        await next_of(socket, "welcome")
        await socket.send(json.dumps({"move": "inn-night"}))
        answer = await next_of(socket, "scene", "error")
    may = grant.role is Role.DM
    assert answer["type"] == ("scene" if may else "error")
    assert door.table.scene.id == ("inn-night" if may else "forge-evening")
    if may:
        assert answer["scene"]["id"] == "inn-night"
        assert (AuditKind.MOVED, "dm") in door.recorded
    else:
        assert answer["code"] == "forbidden"


async def test_a_spectator_reads_along_and_says_nothing(door: Door) -> None:
    visitor = await door.invited(WATCHER)
    player = await door.invited(TAMSINS)
    async with visitor.opens("watch=1") as socket, player.opens("player=tamsin") as seat:
        welcome = await next_of(socket, "welcome")
        assert (welcome["player"], welcome["table"]["seats"], welcome["table"]["role"]) == (None, [], "spectator")
        for message in ({"say": "I am here"}, {"move": "inn-night"}):
            await socket.send(json.dumps(message))
            assert (await next_of(socket, "error"))["code"] == "forbidden"
        await next_of(seat, "welcome")
        await seat.send(json.dumps({"say": "Good evening."}))
        assert (await next_of(socket, "utterance"))["spans"][0]["text"] == "Good evening."
    assert door.table.said == [(TAMSIN.id, "Good evening.")]


# Links


async def test_the_cookie_of_a_link_is_out_of_reach_for_scripts_and_other_sites(door: Door) -> None:
    visitor = door.browser()
    cookie = (await visitor.joins(door.links.link(TAMSINS))).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie


@pytest.mark.parametrize("token", ["", "x", "player.74616d73696e.0..AAAAAAAAAAAAAAAAAAAAAA", "a" * 5_000])
async def test_a_link_that_is_not_good_gives_nothing(door: Door, token: str) -> None:
    visitor = door.browser()
    response = await visitor.http.post("/api/join", json={"token": token})
    assert response.status_code in (403, 422)
    assert "set-cookie" not in response.headers
    assert (await visitor.http.get("/api/table")).status_code == 401


async def test_the_game_masters_link_lets_one_browser_in(door: Door) -> None:
    link = door.links.dm_link()
    first, second = door.browser(), door.browser()
    answers = await asyncio.gather(first.joins(link), second.joins(link))
    assert sorted(answer.status_code for answer in answers) == [200, 403]


async def test_revoked_user_is_disconnected_and_stays_out(door: Door) -> None:
    tamsin, bran = await door.invited(TAMSINS), await door.invited(Grant(Role.PLAYER, BRAN.id))
    async with tamsin.opens("player=tamsin") as gone, bran.opens("player=bran") as stays:
        await next_of(gone, "welcome")
        await next_of(stays, "welcome")
        door.links.revoke(TAMSINS)
        with pytest.raises(ConnectionClosed):
            await next_of(gone, "nothing more")
        assert gone.close_code == 4401
        await stays.send(json.dumps({"say": "Where is she?"}))
        await next_of(stays, "utterance")
    assert await status_of(tamsin, "player=tamsin") == 401
    assert (await tamsin.joins(door.links.link(TAMSINS))).status_code == 200
    assert await status_of(tamsin, "player=tamsin") == 101


async def test_words_that_were_on_their_way_when_a_link_was_revoked_are_not_obeyed(tmp_path: Path) -> None:
    patient = Pulse(page_waits_ms=DEADLINE_MS, server_waits_ms=DEADLINE_MS)
    async with a_door(tmp_path, pulse=patient) as door:
        tamsin = await door.invited(TAMSINS)
        async with tamsin.opens("player=tamsin") as socket:
            await next_of(socket, "welcome")
            door.links.revoke(TAMSINS)
            await socket.send(json.dumps({"say": "One more thing."}))
            assert (await next_of(socket, "error"))["code"] == "not_invited"
        assert not door.table.said


async def test_who_came_and_who_was_refused_is_recorded(door: Door) -> None:
    stranger = door.browser()
    await stranger.http.get("/api/table")
    await stranger.joins("/join#player.x.0..y")
    tamsin = await door.invited(TAMSINS)
    await status_of(tamsin, "player=bran")
    assert await status_of(tamsin, "player=tamsin") == 101
    await until(lambda: (AuditKind.LEFT, "player:tamsin") in door.recorded)
    assert door.recorded == [
        (AuditKind.REFUSED, ""),
        (AuditKind.REFUSED, ""),
        (AuditKind.JOINED, "player:tamsin"),
        (AuditKind.REFUSED, "player:tamsin"),
        (AuditKind.SAT_DOWN, "player:tamsin"),
        (AuditKind.LEFT, "player:tamsin"),
    ]


# What a player is told


SECRETS = ("Zharothrix", "the-betrayal-of-korvald", "Korvald is the traitor", "Vault of Ash", "veiled-crypt", "Nethra")


def hiding_campaign() -> Campaign:
    """Everything that the game master keeps for later, by names that are easy to find."""
    crypt = Entity(EntityId("veiled-crypt"), "location", "Vault of Ash")
    nethra = replace(ODWINA, id=NpcId("nethra"), entity_id=EntityId("nethra"), name="Nethra")
    scenes = (
        Scene(
            SceneId("forge-evening"), EntityId("forge"), (GRIMJAW.id,), "evening", "Zharothrix listens.", "Embers glow."
        ),
        Scene(SceneId("the-betrayal-of-korvald"), crypt.id, (nethra.id,), "night", "Korvald is the traitor."),
    )
    return replace(
        CAMPAIGN,
        entities=(*CAMPAIGN.entities, crypt, Entity(nethra.entity_id, "npc", "Nethra")),
        npcs=(GRIMJAW, nethra),
        scenes=scenes,
    )


@pytest.mark.parametrize("grant", [TAMSINS, WATCHER], ids=["player", "spectator"])
async def test_nothing_hidden_is_in_any_message_that_others_than_the_game_master_get(
    tmp_path: Path, grant: Grant
) -> None:
    campaign = hiding_campaign()
    table = TwinTable(campaign, hidden={"Zharothrix", "Vault of Ash"})
    async with a_door(tmp_path, table) as door:
        visitor, dm = await door.invited(grant), await door.invited(Grant(Role.DM))
        got = [(await visitor.http.get(path)).text for path in ("/api/table", "/healthz", "/readyz")]
        query = "watch=1" if grant is WATCHER else "player=tamsin"
        async with visitor.opens(query) as socket, dm.opens("player=bran") as master:
            got.append(json.dumps(await next_of(socket, "welcome")))
            assert "Embers glow." in got[-1]
            await next_of(master, "welcome")
            await master.send(json.dumps({"say": "We go on."}))
            got += [json.dumps(await next_of(socket, kind)) for kind in ("utterance", "npc_speaks", "turn")]
            before_nethra_is_met = list(got)
            await master.send(json.dumps({"move": "the-betrayal-of-korvald"}))
            whole = (await next_of(master, "scene"))["scene"]
            assert (whole["id"], whole["description"]) == ("the-betrayal-of-korvald", "Korvald is the traitor.")
            moved = await next_of(socket, "scene")
            assert moved["scene"] == {
                "location": "",
                "npcs": [{"id": "nethra", "name": "Nethra", "portrait": False}],
                "time_of_day": "night",
                "read_aloud": "",
            }
            got.append(json.dumps(moved))
        async with visitor.opens(query) as again:
            got.append(json.dumps(await next_of(again, "welcome")))
    for secret in SECRETS:
        assert secret not in "".join(got if secret != "Nethra" else before_nethra_is_met), secret


# Over https


async def test_a_table_is_served_over_https_and_its_cookies_are_for_https_alone(tmp_path: Path) -> None:
    table = TwinTable()
    tls = self_signed(tmp_path / "tls", [])
    links = Links(table.campaign, tmp_path)
    entrance = Entrance(links, is_secure=True)
    trusted = create_default_context(cafile=str(tls.certificate))
    async with served(table, entrance=entrance, tls=tls) as url:
        async with httpx.AsyncClient(base_url=url, verify=trusted, headers={"Origin": url}) as http:
            token = links.link(TAMSINS).partition("#")[2]
            assert "secure" in (await http.post("/api/join", json={"token": token})).headers["set-cookie"].lower()
            cookies = "; ".join(f"{name}={value}" for name, value in http.cookies.items())
        async with connect(
            f"{url.replace('https', 'wss', 1)}/ws?player=tamsin",
            origin=url,  # type: ignore[arg-type]
            additional_headers={"Cookie": cookies},
            ssl=trusted,
        ) as socket:
            assert (await next_of(socket, "welcome"))["player"]["id"] == "tamsin"
    await table.close()
