"""Nobody is heard at a table who has not agreed: the server refuses the sound, not the page alone."""

from __future__ import annotations

from pathlib import Path

import httpx
from loguru import logger

from glyphoxa.config.settings import Settings
from glyphoxa.web.access.records import AuditKind, ConsentRegister, ConsentText, consent_text
from glyphoxa.web.access.roles import Grant, Role
from tests.support.web_client import Browser, Tone, next_of
from tests.support.web_door import Visitor, a_door
from tests.support.web_table import BRAN, TAMSIN, TwinTable

HERE = consent_text(Settings(), language="en")
ELSEWHERE = consent_text(Settings.model_validate({"providers": {"stt": {"name": "deepgram-nova"}}}), language="en")


async def asked(visitor: Visitor, sdp: str, ticket: str) -> httpx.Response:
    body = {"player": "tamsin", "sdp": sdp, "type": "offer", "ticket": ticket}
    return await visitor.http.post("/api/offer", json=body)


async def decides(visitor: Visitor, agrees: bool, text: ConsentText, player: str = "tamsin") -> httpx.Response:
    body = {"player": player, "agrees": agrees, "text": text.digest}
    return await visitor.http.post("/api/consent", json=body)


async def test_sound_is_refused_without_consent_taken_with_it_and_ends_when_it_is_withdrawn(tmp_path: Path) -> None:
    path = tmp_path / "consents.jsonl"
    speaker, table = Browser(microphone=Tone(440)), TwinTable()
    async with a_door(tmp_path, table, consents=ConsentRegister(path, HERE)) as door:
        visitor = await door.invited(Grant(Role.PLAYER, TAMSIN.id))
        async with visitor.opens("player=tamsin") as socket:
            welcome = await next_of(socket, "welcome")
            assert (welcome["consent"]["text"], welcome["consent"]["given_at_ms"]) == (HERE.digest, None)
            sdp = await speaker.offer()
            refused = await asked(visitor, sdp, welcome["ticket"])
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "no_consent")
            assert (await decides(visitor, True, ELSEWHERE)).status_code == 409
            assert (await decides(visitor, True, HERE, "bran")).status_code == 403
            assert (await decides(visitor, True, HERE)).json()["consent"]["given_at_ms"] is not None
            await speaker.accept(await asked(visitor, sdp, welcome["ticket"]))
            await table.wait_until(lambda: len(table.seats[TAMSIN.id].heard) > 0)
            assert (await decides(visitor, False, HERE)).status_code == 200
            await speaker.wait_until_closed()
            assert (await asked(visitor, sdp, welcome["ticket"])).status_code == 403
            assert TAMSIN.id in table.seats
        kinds = [kind for kind, who in door.recorded if who == "player:tamsin"]
        assert [kind for kind in kinds if kind in (AuditKind.AGREED, AuditKind.WITHDREW)] == [
            AuditKind.AGREED,
            AuditKind.WITHDREW,
        ]
        await speaker.close()
    assert path.stat().st_mode & 0o777 == 0o600
    kept = ConsentRegister(path, HERE).current()
    assert [(each.who, each.player, each.agrees, each.text) for each in kept] == [
        ("player:tamsin", TAMSIN.id, False, HERE.whole)
    ]


async def test_who_only_listens_hears_the_npcs_and_is_not_heard(tmp_path: Path) -> None:
    listener, table, errors = Browser(microphone=Tone(440)), TwinTable(), list[str]()
    sink = logger.add(lambda message: errors.append(str(message)), level="ERROR")
    listener.connection.getTransceivers()[0].direction = "recvonly"
    async with a_door(tmp_path, table, consents=ConsentRegister(tmp_path / "c", HERE)) as door:
        visitor = await door.invited(Grant(Role.PLAYER, TAMSIN.id))
        await listener.accept(await asked(visitor, await listener.offer(), ""))
        await listener.wait_until_connected()
        table.say(TAMSIN.id, "Grimjaw?")
        await listener.wait_until_loud()
        assert not table.seats[TAMSIN.id].heard
        await listener.close()
    logger.remove(sink)
    assert errors == []


async def test_consent_outlives_the_evening_but_not_its_text_and_is_of_one_person(tmp_path: Path) -> None:
    path = tmp_path / "consents.jsonl"
    for text, status in ((HERE, 403), (HERE, 400), (ELSEWHERE, 403)):
        async with a_door(tmp_path, consents=ConsentRegister(path, text)) as door:
            visitor = await door.invited(Grant(Role.PLAYER, TAMSIN.id))
            # The offer is broken: who may send sound is told so.
            assert await visitor.offers("tamsin", "m=audio 9 X 96") == status
            master = await door.invited(Grant(Role.DM))
            assert await master.offers("tamsin", "m=audio 9 X 96") == 403
            if status == 403 and text is HERE:
                assert (await decides(visitor, True, text)).status_code == 200
            links = (await master.http.get("/desk/links")).text
            assert ("asked again" in links) is (text is ELSEWHERE)
            assert "Tamsin" in links
            assert await master.offers(BRAN.id, "m=audio 9 X 96") == 403
