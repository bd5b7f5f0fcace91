"""The calendar of sessions: as a file, and as a feed that calendar programs read with a personal address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from icalendar import Calendar

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.desk import SessionRecaps
from glyphoxa.app.scope import Scope
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings
from glyphoxa.dm.handouts import PlayedSession
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from glyphoxa.domain.knowledge import HIDDEN
from glyphoxa.plugins.exports import CalendarFeed, calendar_of
from glyphoxa.providers.extras import NotInstalled
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.world.event_kinds import EntityScoped
from glyphoxa.world.event_log import Cause
from tests.support.builders import an_utterance
from tests.support.command_line import CAMPAIGN_FILE, SALTMERE, CommandLine, a_settings_file
from tests.support.web_door import Door, a_door
from tests.support.web_table import TwinTable

BERLIN = ZoneInfo("Europe/Berlin")
BEGAN = datetime(2023, 11, 14, 23, 13, tzinfo=BERLIN)
FIRST = PlayedSession(
    SessionId("s1"), 1, BEGAN, BEGAN + timedelta(hours=2), "3 Hammer 1492", ["Bran fell; he lived, I heard."]
)


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    return read_campaign(CAMPAIGN_FILE).campaign


@pytest.fixture
async def evenings(evenings_dsn: str) -> AsyncIterator[Store]:
    async with open_store(evenings_dsn) as store:
        yield store


@pytest.fixture
async def door(evenings: Store, campaign: Campaign, tmp_path: Path) -> AsyncIterator[Door]:
    table = TwinTable(campaign)
    async with a_door(tmp_path, table, desk=Scope(evenings, Settings(), SALTMERE)) as door:
        yield door


def path_of(door: Door, grant: Grant) -> str:
    return door.links.calendar(grant).removeprefix(door.links.url.rstrip("/"))


# The file


def test_event_has_times_of_the_zone_recap_and_a_lasting_id() -> None:
    content = calendar_of(SALTMERE, "Saltmere", [FIRST])
    [event] = Calendar.from_ical(content).walk("VEVENT")
    assert event["dtstart"].dt == BEGAN
    assert event["dtend"].dt - event["dtstart"].dt == timedelta(hours=2)
    assert event["summary"] == "Saltmere: Session 1"
    assert event["description"] == "3 Hammer 1492\nBran fell; he lived, I heard."
    assert b"BEGIN:VTIMEZONE" in content
    assert calendar_of(SALTMERE, "Saltmere", [FIRST]) == content
    later = calendar_of(SALTMERE, "New name", [replace(FIRST, number=2, recap=(), began=BEGAN.astimezone(UTC))])
    [renumbered] = Calendar.from_ical(later).walk("VEVENT")
    assert renumbered["uid"] == event["uid"]
    assert renumbered["dtstart"].dt.utcoffset() == timedelta()
    [other] = Calendar.from_ical(calendar_of(CampaignId("x"), "x", [FIRST])).walk("VEVENT")
    assert other["uid"] != event["uid"]


def test_event_of_a_single_utterance_ends_after_it_begins() -> None:
    content = calendar_of(SALTMERE, "S", [replace(FIRST, ended=BEGAN)])
    [event] = Calendar.from_ical(content).walk("VEVENT")
    assert event["dtend"].dt > event["dtstart"].dt


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glyphoxa.providers.extras.module_is_there", lambda name: name != "icalendar")
    with pytest.raises(NotInstalled, match=r"needs 'icalendar', .* pip install 'glyphoxa\[exchange\]'"):
        calendar_of(SALTMERE, "Saltmere", [FIRST])


async def test_command_writes_a_calendar(evenings_dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli = CommandLine(a_settings_file(tmp_path, evenings_dsn), capsys)
    file = tmp_path / "sessions.ics"
    assert "sessions.ics: 2 sessions" in await cli.told("campaign", "ical", file)
    events = Calendar.from_ical(file.read_bytes()).walk("VEVENT")
    assert [str(each["summary"]) for each in events] == [f"The Bell of Saltmere: Session {n}" for n in (1, 2)]
    assert "Elowen never goes near the water" in events[0]["description"]
    assert "exists already" in await cli.problem("campaign", "ical", file)


# The feed


async def test_feed_needs_a_calendar_address_of_this_campaign(door: Door) -> None:
    stranger, tamsin = door.browser(), Grant(Role.PLAYER, door.table.campaign.players[0].id)
    for grant in (tamsin, Grant(Role.SPECTATOR), Grant(Role.DM)):
        answer = await stranger.http.get(path_of(door, grant))
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
        assert len(Calendar.from_ical(answer.content).walk("VEVENT")) == 2
    link = door.links.link(tamsin).partition("#")[2]
    for token in ("", "x", "\u2603", link, "a" * 5_000):
        assert (await stranger.http.get("/calendar.ics", params={"token": token})).status_code == 403, token
    assert (AuditKind.REFUSED, "") in door.recorded
    calendar = path_of(door, tamsin).partition("=")[2]
    assert (await stranger.http.post("/api/join", json={"token": calendar})).status_code == 403
    address = path_of(door, tamsin)
    door.links.revoke(tamsin)
    assert (await stranger.http.get(address)).status_code == 403
    assert (await stranger.http.get(path_of(door, tamsin))).status_code == 200


async def test_feed_of_a_player_who_left_is_closed(door: Door) -> None:
    gone = Grant(Role.PLAYER, door.table.campaign.players[0].id.__class__("gone"))
    assert (await door.browser().http.get(path_of(door, gone))).status_code == 403


async def test_reader_who_asks_too_often_has_to_wait(door: Door) -> None:
    tamsin, stranger = Grant(Role.PLAYER, door.table.campaign.players[0].id), door.browser()
    statuses = [(await stranger.http.get(path_of(door, tamsin))).status_code for _ in range(25)]
    assert statuses[0] == 200
    assert 429 in statuses
    assert (await stranger.http.get(path_of(door, Grant(Role.SPECTATOR)))).status_code == 200


async def test_feed_without_a_database_is_one_clear_error(
    evenings_dsn: str, campaign: Campaign, tmp_path: Path
) -> None:
    async with open_store(evenings_dsn) as closed:
        source = Scope(closed, Settings(), SALTMERE)
    table = TwinTable(campaign)
    async with a_door(tmp_path, table, desk=source) as door:
        answer = await door.browser().http.get(path_of(door, Grant(Role.SPECTATOR)))
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "unavailable"
    async with a_door(tmp_path, TwinTable(campaign)) as door:
        answer = await door.browser().http.get(path_of(door, Grant(Role.SPECTATOR)))
        assert "no long-term memory" in answer.json()["error"]["message"]


async def test_recap_is_made_once_until_something_changes(evenings: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    told = SessionRecaps.told

    async def counted(self: SessionRecaps, said: list[Utterance], audience: str, **more: int) -> list[str]:
        made.append(audience)
        return await told(self, said, audience, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(SessionRecaps, "told", counted)
    feed = CalendarFeed(evenings, SALTMERE)
    first = await feed.read()
    assert await feed.read() == first
    assert made == ["players"] * 2
    line = replace(
        an_utterance("Elowen took Vaelith and promised it to Borin."), campaign_id=SALTMERE, session_id=SessionId("s2")
    )
    await evenings.log.append([replace(line, at_ms=4_000_200_000_000)])
    assert b"Elowen took Vaelith" in await feed.read()
    assert made == ["players"] * 3, "of the session that has changed"
    hidden = EntityScoped(EntityId("the-anvil"), HIDDEN)
    await evenings.world.commit(SALTMERE, [hidden], Cause("dm", 4_000_200_000_001))
    assert b"Anvil" in first
    assert b"Anvil" not in await feed.read()
