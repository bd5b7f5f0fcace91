"""Files of invitations and visits are private to this user and survive crashes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from glyphoxa.adapters.certificates import GOOD_FOR, fingerprint, given, self_signed
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, PlayerId
from glyphoxa.web.access.links import BadInvitation, Links
from glyphoxa.web.access.records import AuditKind, AuditLog, read_audit
from glyphoxa.web.access.roles import Grant, Role
from tests.support.builders import a_campaign

MIRA = Grant(Role.PLAYER, PlayerId("mira"))
NOW = 1_800_000_000


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def links_in(directory: Path, campaign: str = "thornwick") -> Links:
    return Links(replace(a_campaign(), id=CampaignId(campaign), players=(Player(PlayerId("mira"), "Mira"),)), directory)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_another_process_sees_the_same_links(tmp_path: Path) -> None:
    server, command_line = (links_in(tmp_path) for _ in range(2))
    token = server.current().token(MIRA)
    assert command_line.current().token(MIRA) == token
    command_line.change(lambda now: (now.revoked(MIRA), None))
    with pytest.raises(BadInvitation):
        server.current().redeemed(token, now_s=NOW)


def test_two_campaigns_have_keys_of_their_own(tmp_path: Path) -> None:
    one, other = (links_in(tmp_path, name).current() for name in ("one", "other"))
    assert one.key != other.key


@pytest.mark.usefixtures("open_umask")
def test_only_this_user_reads_them(tmp_path: Path) -> None:
    links_in(tmp_path).current()
    (folder,) = tmp_path.iterdir()
    assert mode(folder) == 0o700
    assert {mode(file) for file in folder.iterdir()} == {0o600}


def test_changes_made_at_once_are_all_there(tmp_path: Path) -> None:
    grants = [Grant(Role.PLAYER, PlayerId(f"p{n}")) for n in range(20)]

    def revoke(grant: Grant) -> None:
        links_in(tmp_path).change(lambda now: (now.revoked(grant), None))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(revoke, grants))
    assert links_in(tmp_path).current().numbers == {grant.key: 1 for grant in grants}


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"key": "xyz", "numbers": {}, "codes": {}, "url": ""}'])
def test_a_file_that_holds_no_invitations_is_named(tmp_path: Path, content: str) -> None:
    register = links_in(tmp_path)
    register.current()
    (file,) = tmp_path.glob("access/*.json")
    file.write_text(content)
    with pytest.raises(InvalidInput, match=f"{file.name} does not contain invitations"):
        links_in(tmp_path).current()


def test_damaged_or_lost_links_file_disconnects_nobody(tmp_path: Path) -> None:
    register = links_in(tmp_path)
    cookie = register.current().cookie(MIRA, now_s=NOW)
    (file,) = tmp_path.glob("access/*.json")
    whole = file.read_text()
    file.write_text("{")
    assert register.current().grant_of(cookie, now_s=NOW) == MIRA
    file.unlink()
    assert register.current().grant_of(cookie, now_s=NOW) == MIRA
    file.write_text(whole)
    links_in(tmp_path).change(lambda now: (now.revoked(MIRA), None))
    assert register.current().grant_of(cookie, now_s=NOW) is None


def test_links_lead_where_the_table_was_opened_last(tmp_path: Path) -> None:
    links = links_in(tmp_path)
    links.served_at("https://table.example/")
    link = links.link(MIRA)
    assert link.startswith("https://table.example/join#")
    assert links.dm_link() != links.dm_link()
    links.revoke(MIRA)
    assert links.link(MIRA) != link


def test_a_player_who_is_not_in_the_campaign_gets_no_link(tmp_path: Path) -> None:
    links = links_in(tmp_path)
    assert [links.grant_named(who) for who in ("mira", "dm")] == [MIRA, Grant(Role.DM)]
    with pytest.raises(InvalidInput, match="did you mean 'mira'"):
        links.grant_named("mirra")


# Who came


@pytest.mark.usefixtures("open_umask")
def test_audit_log_is_read_back_and_private(tmp_path: Path) -> None:
    path = tmp_path / "audit" / "thornwick.jsonl"
    log = AuditLog(path, now_s=lambda: NOW)
    log.record(AuditKind.JOINED, who=MIRA.key, address="192.0.2.7")
    log.record(AuditKind.MOVED, who="dm", what="to the\ninn")
    log.close()
    assert [(e.at_ms, e.kind, e.who, e.what, e.address) for e in read_audit(path)] == [
        (NOW * 1_000, AuditKind.JOINED, "player:mira", "", "192.0.2.7"),
        (NOW * 1_000, AuditKind.MOVED, "dm", "to the\ninn", ""),
    ]
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_a_flood_of_refusals_is_one_line_a_minute(tmp_path: Path) -> None:
    now = [float(NOW)]
    log = AuditLog(tmp_path / "a.jsonl", now_s=lambda: now[0])
    for _ in range(1_000):
        log.record(AuditKind.REFUSED, what="a link that is not good")
    now[0] += 61
    log.record(AuditKind.REFUSED, what="a link that is not good")
    log.close()
    assert len(list(read_audit(tmp_path / "a.jsonl"))) == 2


def test_a_full_file_is_set_aside_and_a_torn_line_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    log = AuditLog(path, now_s=lambda: NOW, max_bytes=400)
    for n in range(30):
        log.record(AuditKind.MOVED, what=str(n))
    log.close()
    with path.open("a") as file:
        file.write('{"at_ms": 1, "ki')
    assert path.stat().st_size < 500
    entries = list(read_audit(path))
    assert entries[-1].what == "29"
    assert [int(entry.what) for entry in entries] == list(range(30 - len(entries), 30))


def test_a_directory_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file where the directory should be")
    log = AuditLog(tmp_path / "audit" / "a.jsonl")
    log.record(AuditKind.OPENED)
    log.close()


# The certificate


@pytest.mark.usefixtures("open_umask")
def test_a_certificate_is_made_once_and_kept(tmp_path: Path) -> None:
    made = self_signed(tmp_path / "tls", ["table.example"])
    assert given(made.certificate, made.key) == made
    assert {mode(made.key), mode(made.certificate)} == {0o600}
    assert fingerprint(self_signed(tmp_path / "tls", ["table.example"])) == fingerprint(made)


def test_certificate_is_renewed_for_new_names_and_before_expiry(tmp_path: Path) -> None:
    first = fingerprint(self_signed(tmp_path, ["table.example"]))
    second = fingerprint(self_signed(tmp_path, ["other.example"]))
    almost = datetime.now(UTC) + GOOD_FOR - timedelta(days=1)
    third = fingerprint(self_signed(tmp_path, ["other.example"], now=almost))
    assert len({first, second, third}) == 3


def test_a_certificate_of_ones_own_is_looked_at_before_anything_is_loaded(tmp_path: Path) -> None:
    made, other = self_signed(tmp_path / "a", []), self_signed(tmp_path / "b", [])
    assert given(None, None) is None
    with pytest.raises(InvalidInput, match="needs both"):
        given(made.certificate, None)
    with pytest.raises(InvalidInput, match="no such file"):
        given(made.certificate, tmp_path / "missing.pem")
    with pytest.raises(InvalidInput, match="not a certificate and its key"):
        given(made.certificate, other.key)
    with pytest.raises(InvalidInput, match="not a certificate and its key"):
        given(made.key, made.certificate)
