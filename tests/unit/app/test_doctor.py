"""Checks of a machine: each line is ok, or names the problem with its remedy; none disturbs the others."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from glyphoxa.adapters.certificates import GOOD_FOR, self_signed
from glyphoxa.app.doctor import (
    OLDEST,
    RELEASED,
    Check,
    DiskNeed,
    clock,
    disk,
    examined,
    https,
    memory,
    packages,
    python,
)
from glyphoxa.config.check import Finding, ports
from glyphoxa.config.sections import ServerSettings
from glyphoxa.domain.errors import Unavailable
from tests.support.patience import DEADLINE_S

GB = 1_000_000_000
WELL = Finding("ok", "well", "as it must be")


# How checks are run


def test_a_check_that_hangs_is_a_line_and_the_others_are_told() -> None:
    ends = threading.Event()

    def hang() -> list[Finding]:
        ends.wait(DEADLINE_S)
        return [WELL]

    checks = [
        Check("disk", hang, "set another disk", within_s=0.0),
        Check("well", lambda: [WELL]),
    ]
    try:
        late = Finding("error", "disk", "not checked: no answer within 0 s: set another disk")
        assert examined(checks, within_s=DEADLINE_S) == [late, WELL]
    finally:
        ends.set()


def test_a_check_that_fails_is_a_line_without_what_nobody_may_read() -> None:
    def refuse() -> Iterator[Finding]:
        yield WELL
        raise Unavailable("the database is away: start it")

    def forbid() -> list[Finding]:
        raise PermissionError(13, "Permission denied", "/srv/town")

    def break_down() -> list[Finding]:
        raise ValueError("the key is hunter2")

    each = [Check(name, look) for name, look in (("a", refuse), ("b", forbid), ("c", break_down))]
    assert [(found.level, found.subject, found.text) for found in examined(each, within_s=DEADLINE_S)] == [
        ("error", "a", "the database is away: start it"),
        ("error", "b", "not checked: Permission denied: /srv/town"),
        ("error", "c", "not checked: ValueError, a bug in Glyphoxa: please report it"),
    ]


# Clock


@pytest.mark.parametrize(
    "now", [RELEASED - timedelta(days=1), datetime(1970, 1, 1, tzinfo=UTC), RELEASED.replace(year=2099)]
)
def test_a_clock_that_cannot_be_right_is_an_error_with_the_command(now: datetime) -> None:
    (finding,) = clock(now)
    assert finding.level == "error"
    assert f"{now:%Y-%m-%d}" in finding.text and "timedatectl set-ntp true" in finding.text


# Ports


def test_a_port_in_use_is_an_error_that_names_who_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (finding,) = ports({"server.port": ("127.0.0.1", port)})
        assert finding.level == "error"
        who = f" by process {os.getpid()} (" if Path("/proc/net/tcp").exists() else ""
        assert f"server.port: {port} on 127.0.0.1 is in use{who}" in finding.text
        assert "set another port, or end the program that uses it" in finding.text
        (own,) = ports({"server.port": ("127.0.0.1", port)}, is_serving=True)
        assert own == Finding("ok", "port", f"server.port: {port} on 127.0.0.1 is used by this table")


def test_port_with_unknown_owner_is_reported_as_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_kind: str) -> NoReturn:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", refuse)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (finding,) = ports({"server.port": taken.getsockname()})
        assert "is in use: set another port" in finding.text


# The microphone


@pytest.mark.parametrize(
    ("settings", "level", "words"),
    [
        (ServerSettings(), "ok", "the table is open to this machine only, at http://127.0.0.1:7860"),
        (ServerSettings(host="::1"), "ok", "at http://[::1]:7860"),
        (ServerSettings(host="192.0.2.1"), "warning", "http://192.0.2.1:7860, and browsers allow it only on https"),
        (ServerSettings(host="0.0.0.0"), "warning", "set server.tls_self_signed"),
        (ServerSettings(host="0.0.0.0", tls_self_signed=True), "ok", "browsers warn about its certificate once"),
        (ServerSettings(public_url="https://table.example/"), "ok", "players open https://table.example, and"),
        (ServerSettings(public_url="http://table.example/"), "warning", "server.public_url to an https address"),
    ],
)
def test_the_address_decides_whether_browsers_give_the_microphone(
    settings: ServerSettings, level: str, words: str
) -> None:
    (finding,) = https(settings)
    assert (finding.level, finding.subject) == (level, "microphone")
    assert words in finding.text


def test_a_certificate_that_has_ended_is_an_error(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    old = self_signed(tmp_path / "old", [], now=now - GOOD_FOR - timedelta(days=1))
    (ended,) = https(ServerSettings(host="0.0.0.0", tls_cert=old.certificate, tls_key=old.key))
    assert ended.level == "error" and "certificate.pem expired on " in ended.text and "renew it" in ended.text
    new = self_signed(tmp_path / "new", [], now=now)
    (good,) = https(ServerSettings(host="0.0.0.0", tls_cert=new.certificate, tls_key=new.key))
    assert good.level == "ok" and "https://" in good.text


# Disk and memory


def closed(tmp_path: Path) -> Path:
    """A directory in which this user may make nothing: root may anywhere but in the kernel's own."""
    if os.geteuid() == 0:
        return Path("/proc")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    return closed


def test_unwritable_directory_is_an_error_naming_the_setting(tmp_path: Path) -> None:
    place = closed(tmp_path)
    for directory in (place, place / "to" / "come"):
        (finding,) = disk([DiskNeed("data", directory, "data_dir")])
        assert finding.level == "error"
        assert f"data: {directory} cannot be written to ({place}: " in finding.text
        assert finding.text.endswith("or set data_dir to another directory")


def test_a_disk_without_room_for_what_is_to_come_is_an_error(tmp_path: Path) -> None:
    more = shutil.disk_usage(tmp_path).total
    data, models = disk(
        [DiskNeed("data", tmp_path / "data", "data_dir"), DiskNeed("models", tmp_path / "models", "models.dir", more)]
    )
    assert (data.level, models.level) == ("error", "error"), "they are on one disk"
    assert "of models to download, which is too little: free some space, or set models.dir" in models.text
    assert not list(tmp_path.iterdir()), "nothing was made"


@pytest.mark.parametrize(
    ("needed", "level", "words"),
    [
        (2 * GB, "ok", "4.0 GB of 8.0 GB free, 2.0 GB needed"),
        (6 * GB, "warning", "end other programs, or set a smaller model"),
        (9 * GB, "error", "set a smaller model (see `glyphoxa models recommend`)"),
    ],
)
def test_models_have_room_in_memory_or_a_remedy_is_named(needed: int, level: str, words: str) -> None:
    (finding,) = memory(free=4 * GB, of=8 * GB, needed=needed)
    assert finding.level == level
    assert words in finding.text


# The installation, told from what is installed in a directory

ROOT = Path(__file__).parents[3]


def install(place: Path, name: str, version: str, *requires: str, extras: Sequence[str] = ()) -> None:
    """A package's own metadata."""
    folder = place / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    told = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    told += [f"Provides-Extra: {each}" for each in extras] + [f"Requires-Dist: {each}" for each in requires]
    (folder / "METADATA").write_text("\n".join(told) + "\n", "utf-8")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Glyphoxa with two packages that it needs, and an extra that is installed; another is not."""
    site = tmp_path / "site"
    site.mkdir()
    needs = [
        "numpy>=2.0",
        "ears>=1",
        "mouth[tongue]>=3; extra == 'voice'",
        "sky>=1; extra == 'far'",
        "old; python_version<'3'",
    ]
    install(site, "glyphoxa", "0.1.0", *needs, extras=("voice", "far"))
    install(site, "numpy", "2.1")
    install(site, "ears", "1.5")
    install(site, "mouth", "3.1", "tongue-tip>=1; extra == 'tongue'", extras=("tongue",))
    install(site, "tongue-tip", "1.0")
    return site


def found(site: Path, *, lock: str | None = None) -> list[Finding]:
    file = site.parent / "app.txt"
    if lock is not None:
        file.write_text(lock, "utf-8")
    return list(packages([str(site)], lock=file))


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [
        ((3, 10, 9), "error", "is too old: install Python 3.11 to 3.14"),
        ((3, 11, 0), "ok", "3.11.0 in /venv"),
        ((3, 14, 2), "ok", "3.14.2 in /venv"),
        ((3, 15, 0), "warning", "newer than the supported versions: if something fails"),
    ],
)
def test_a_version_of_python_is_supported_or_said_with_those_that_are(
    version: tuple[int, ...], level: str, words: str
) -> None:
    (finding,) = python(version, place="/venv")
    assert (finding.level, finding.subject) == (level, "python")
    assert words in finding.text


def test_the_oldest_python_is_the_one_that_the_package_asks_for() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    assert declared == f">={'.'.join(map(str, OLDEST))}"


def test_packages_that_are_all_there_are_counted_with_the_extras(site: Path) -> None:
    assert found(site) == [Finding("ok", "packages", "glyphoxa[voice] 0.1.0, with 4 packages")]


def test_a_missing_package_and_one_too_old_are_errors_with_the_command(site: Path) -> None:
    (site / "ears-1.5.dist-info").rename(site.parent / "gone")
    (site / "numpy-2.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.26\n")
    (finding,) = found(site)
    assert finding.level == "error"
    assert "ears>=1, which is not installed; numpy>=2.0, and 1.26 is installed" in finding.text
    assert "run `pip install -U 'glyphoxa[voice]'`" in finding.text


def test_an_extra_that_lacks_a_package_of_its_own_is_not_installed(site: Path) -> None:
    (site / "tongue_tip-1.0.dist-info").rename(site.parent / "gone")
    assert found(site) == [Finding("ok", "packages", "glyphoxa 0.1.0, with 2 packages")]


def test_conflicting_package_requirements_are_a_warning(site: Path) -> None:
    (site / "tongue_tip-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tongue-tip\nVersion: 0.9\n"
    )
    (finding,) = found(site)
    assert finding.level == "warning"
    assert "mouth needs tongue-tip>=1, and 0.9 is installed" in finding.text


def test_checkout_versions_are_compared_with_the_lock(site: Path) -> None:
    hashed = "numpy==2.1 \\\n    --hash=sha256:00\n    # via glyphoxa\n"
    lock = f"{hashed}ears==1.5\nsky==9\nmouth==3.1; sys_platform != 'nowhere'\n"
    (well,) = found(site, lock=lock)
    assert well.level == "ok" and well.text.endswith(f", as in {site.parent / 'app.txt'}")
    (other,) = found(site, lock=lock.replace("ears==1.5", "ears==1.6"))
    assert other.level == "warning"
    assert "ears 1.5 (locked==1.6): run `pip install --no-deps --require-hashes -r " in other.text


def test_a_program_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    (finding,) = packages([str(tmp_path)], lock=tmp_path / "none")
    assert finding.level == "error"
    assert "run `pip install glyphoxa`" in finding.text
