"""Sound between a browser's WebRTC and the table, with real connections on this machine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.npc.table_interface import INPUT_RATE_HZ, Offer
from glyphoxa.web.requests import MAX_BODY_BYTES
from glyphoxa_pipelines.webrtc import WebRtcPeers
from tests.support.patience import until
from tests.support.web_client import Browser, Site, Tone, a_site, next_of, pitch_hz
from tests.support.web_table import BRAN, TAMSIN, TONE_HZ, TwinTable

_CANDIDATES = (
    "a=candidate:",
    "a=candidate:1 1 udp 1 example.com 9 typ host",
    "a=candidate:1 1 tcp 1 127.0.0.1 9 typ host",
    "a=candidate:1 1 udp -5 127.0.0.1 99999 typ host",
    "a=candidate:1 9 udp 5 127.0.0.1 9 typ srflx raddr x rport y",
    "a=candidate:1 1 udp 1 255.255.255.255 9 typ host",
    "a=candidate:1 1 udp 1 ::1 9 typ host",
    "a=candidate:1 1 udp x 127.0.0.1 0 typ host",
)
_MORE_LINES = (
    "a=ssrc:99999999999 cname:x",
    "a=ssrc:x y",
    "a=extmap:x",
    "a=rtcp:x",
    "a=rtcp-fb:x y",
    "a=fmtp:111 x=y",
    "a=msid:",
    "a=mid:é",
    "a=\x00\x00",
    "a=ice-options:",
    "a=" + "x" * 40_000,
)
_OTHER_LINES = (
    ("a=setup:", "a=setup:holdconn"),
    ("a=setup:", "a=setup:x"),
    ("a=setup:", ""),
    ("a=fingerprint:", "a=fingerprint:sha-256 ZZ:11"),
    ("a=fingerprint:", "a=fingerprint:md5000 00:11"),
    ("a=fingerprint:", "a=fingerprint:sha-256"),
    ("a=fingerprint:", ""),
    ("a=ice-ufrag:", ""),
    ("a=ice-ufrag:", "a=ice-ufrag:" + "u" * 30_000),
    ("a=rtcp-mux", ""),
    ("a=rtpmap:", ""),
    ("a=candidate:", ""),
    ("a=mid:", ""),
    ("a=mid:", "a=mid:same"),
    ("a=group:", ""),
    ("a=group:", "a=group:BUNDLE 7 8 9"),
    ("a=sctp-port:", "a=sctp-port:x"),
    ("a=sctp-port:", "a=sctp-port:0"),
    ("a=max-message-size:", "a=max-message-size:x"),
    ("o=", "o="),
    ("c=", "c=IN IP6 x"),
    ("m=audio", "m=audio"),
    ("m=audio", "m=audio x y z"),
    ("m=audio", "m=audio 0 UDP/TLS/RTP/SAVPF 96"),
    ("m=audio", "m=audiox 9 UDP/TLS/RTP/SAVPF 96"),
    ("m=application", "m=application 0 UDP/DTLS/SCTP webrtc-datachannel"),
    ("m=application", "m=application 9 UDP/BFCP *"),
    ("m=application", "m=text 9 UDP/DTLS/SCTP webrtc-datachannel"),
)


def odd_offers(sdp: str) -> Iterator[tuple[str, str]]:
    """Each with the name of what is odd.

    Args:
        sdp: An offer of audio and a data channel, in this order.
    """
    lines = sdp.split("\r\n")[:-1]
    starts = [n for n, line in enumerate(lines) if line.startswith("m=")]
    head, audio, data = lines[: starts[0]], lines[starts[0] : starts[1]], lines[starts[1] :]

    def with_lines(beginning: str, other: str) -> list[str]:
        changed = [other if line.startswith(beginning) else line for line in lines]
        return [line for line in changed if line]

    def again(part: list[str], mid: str) -> list[str]:
        return [f"a=mid:{mid}" if line.startswith("a=mid:") else line for line in part]

    def join(some: list[str]) -> str:
        return "\r\n".join(some) + "\r\n"

    yield "the data channel first", join([*head, *data, *audio])
    yield "no data channel", join([*head, *audio])
    yield "audio twice under one mid", join([*head, *audio, *audio])
    yield "audio twice", join([*head, *audio, *again(audio, "77"), *data])
    yield "two data channels", join([*head, *audio, *data, *again(data, "99")])
    video = [line.replace("m=audio", "m=video") for line in again(audio, "78")]
    yield "pictures with codecs of sound", join([*head, *audio, *video])
    yield "many media", join([*head, *(line for n in range(60) for line in again(audio, str(n)))])
    yield "one line", "m=audio 9 UDP/TLS/RTP/SAVPF 96\r\n"
    yield "other line ends", "\n".join(lines)
    for direction in ("sendonly", "recvonly", "inactive"):
        yield direction, sdp.replace("a=sendrecv", f"a={direction}")
    for candidate in _CANDIDATES:
        others = [line for line in lines if not line.startswith("a=candidate:")]
        yield candidate, join([*others[: starts[0]], others[starts[0]], candidate, *others[starts[0] + 1 :]])
    for line in _MORE_LINES:
        yield line[:30], join([*head, *audio, line, *data])
    for beginning, other in _OTHER_LINES:
        yield f"{beginning} is {other[:30] or 'missing'}", join(with_lines(beginning, other))
    flood = [f"a=candidate:{n} 1 udp {n} 127.0.0.1 {n + 1_000} typ host" for n in range(800)]
    yield "many candidates", join([*head, *audio, *flood, *data])


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as site:
        yield site


async def test_what_a_microphone_hears_reaches_the_seat_at_16_khz(site: Site) -> None:
    browser = Browser(microphone=Tone(440))
    try:
        await browser.accept(await site.offer("tamsin", await browser.offer()))
        seat = site.table.seats[TAMSIN.id]
        await site.table.wait_until(lambda: len(seat.heard) > 2 * INPUT_RATE_HZ)
        assert pitch_hz(bytes(seat.heard[-INPUT_RATE_HZ:])) == pytest.approx(440, abs=15)
    finally:
        await browser.close()


async def test_everyone_hears_the_npc_that_answers_one_of_them(site: Site) -> None:
    listeners = [Browser(), Browser()]
    try:
        for player, browser in zip(("tamsin", "bran"), listeners, strict=True):
            await browser.accept(await site.offer(player, await browser.offer()))
        for browser in listeners:
            await browser.wait_until_connected()
        site.table.say(BRAN.id, "Grimjaw, sing for us.")
        for browser in listeners:
            await browser.wait_until_loud()
            assert pitch_hz(bytes(browser.heard)) == pytest.approx(TONE_HZ, abs=15)
    finally:
        for browser in listeners:
            await browser.close()


async def test_nobody_hears_their_own_voice_or_another_players(site: Site) -> None:
    speaker, listener = Browser(microphone=Tone(440)), Browser()
    try:
        await speaker.accept(await site.offer("tamsin", await speaker.offer()))
        await listener.accept(await site.offer("bran", await listener.offer()))
        await site.table.wait_until(lambda: len(site.table.seats[TAMSIN.id].heard) > 2 * INPUT_RATE_HZ)
        assert not speaker.heard
        assert not listener.heard
    finally:
        await speaker.close()
        await listener.close()


async def test_a_peer_that_hangs_up_frees_a_seat_held_by_it_alone(site: Site) -> None:
    browser = Browser()
    await browser.accept(await site.offer("tamsin", await browser.offer()))
    assert await site.seat_state("tamsin")
    await browser.wait_until_connected()
    await browser.close()
    await site.table.wait_until(lambda: not site.table.seats)
    assert not await site.seat_state("tamsin")


async def test_a_page_connects_its_sound_with_its_ticket_and_again_when_it_broke(site: Site) -> None:
    first, second = Browser(), Browser()
    try:
        async with site.sits("tamsin") as tamsin:
            ticket = (await next_of(tamsin, "welcome"))["ticket"]
            await first.accept(await site.offer("tamsin", await first.offer(), ticket=ticket))
            await first.wait_until_connected()
            await second.accept(await site.offer("tamsin", await second.offer(), ticket=ticket))
            await second.wait_until_connected()
            await first.wait_until_closed()
            site.table.say(TAMSIN.id, "Grimjaw?")
            await second.wait_until_loud()
            assert len(site.table.sinks) == 1
        await second.wait_until_closed()
        await site.table.wait_until(lambda: not site.table.seats)
    finally:
        await first.close()
        await second.close()


async def test_sound_for_a_seat_somebody_else_sits_on_is_refused(site: Site) -> None:
    browser = Browser()
    try:
        async with site.sits("tamsin") as tamsin:
            await next_of(tamsin, "welcome")
            sdp = await browser.offer()
            for more in ({}, {"ticket": "stolen"}):
                response = await site.offer("tamsin", sdp, **more)
                assert response.status_code == 409
                assert response.json()["error"]["code"] == "seat_taken"
    finally:
        await browser.close()


USELESS = (
    (b"", 422),
    (b"{", 422),
    (b'{"player": "tamsin"}', 422),
    (b'{"player": "tamsin", "sdp": "v=0", "type": "answer"}', 422),
    (b'{"player": "tamsin", "sdp": "v=0", "type": "offer", "x": 1}', 422),
    (b'{"player": 7, "sdp": "v=0", "type": "offer"}', 422),
    (b'{"player": "tamsin", "sdp": "v=0", "type": "offer"}', 400),
    (b'{"player": "tamsin", "sdp": "m=video 9 X 96", "type": "offer"}', 400),
    (b'{"player": "tamsin", "sdp": "m=audio 9 UDP/TLS/RTP/SAVPF", "type": "offer"}', 400),
    (b'{"player": "tamsin", "sdp": "v=0\\r\\nm=audio x y z\\r\\na=rtpmap:q", "type": "offer"}', 400),
    (b'{"player": "tamsin", "sdp": "m=audiox 9 X 96", "type": "offer"}', 400),
    (b'{"player": "tamsin", "sdp": "m=audio 9 X 96\\nm=audiox", "type": "offer"}', 400),
    (b'{"player": "tamsin", "sdp": "v=0", "type": "offer", "ticket": "\\ud800"}', 422),
    (b" " * (MAX_BODY_BYTES + 1), 413),
)


async def test_offers_that_cannot_be_used_are_refused_and_leave_the_seat_free(site: Site) -> None:
    for body, status in USELESS:
        response = await site.http.post("/api/offer", content=body)
        assert response.status_code == status, (body, response.text)
        assert response.json()["error"]["message"]
        assert site.table.seats == {}, body


def n_open_files() -> int:
    """0 where the system does not tell."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir()) if sys.platform == "linux" else 0


async def test_every_odd_offer_is_answered_or_refused_and_nothing_of_it_stays() -> None:
    browser = Browser()
    table = TwinTable()
    seat = await table.seat(TAMSIN)
    peers = WebRtcPeers(table)
    await peers.start()
    sdp = await browser.offer()
    await browser.close()
    n_open = n_open_files()
    for odd, offer in odd_offers(sdp):
        try:
            peer = await peers.connect(seat, Offer(offer, "127.0.0.1"), on_closed=lambda: None)
        except InvalidInput as error:
            assert str(error), odd
        else:
            assert "m=audio" in peer.answer_sdp, odd
            await peer.close()
        assert table.sinks == [], odd
        assert table.listeners == [], odd
    await peers.close()
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    await until(lambda: n_open_files() <= n_open)


async def test_offers_are_rationed_and_other_seats_are_not_part_of_it(site: Site) -> None:
    statuses = [(await site.offer("tamsin", "v=0")).status_code for _ in range(40)]
    assert set(statuses) == {400, 429}
    assert (await site.offer("bran", "v=0")).status_code == 400
