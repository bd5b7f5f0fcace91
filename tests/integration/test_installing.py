"""Programs that tests need are come by in several ways: a real apt with lists of its own, and stand-ins on the PATH."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.support.browser import NAMES, chromium_path
from tests.support.hub_server import HubServer
from tests.support.installing import CannotInstall, apt_install, first_way, run

needs_apt = pytest.mark.skipif(
    not (shutil.which("apt-get") and shutil.which("dpkg-deb")), reason="needs apt-get and dpkg-deb"
)
CONTROL = "Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: us <us@example.org>\nDescription: nothing\n"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sources.list of a real apt that keeps all it has below `tmp_path`, and puts packages into its cache only."""
    for folder in ("etc/sources", "etc/preferences.d", "state/lists/partial", "cache/archives/partial", "empty"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "state" / "status").touch()
    config = {
        "Dir::State": tmp_path / "state",
        "Dir::State::status": tmp_path / "state" / "status",
        "Dir::Cache": tmp_path / "cache",
        "Dir::Etc": tmp_path / "etc",
        "Dir::Etc::sourcelist": tmp_path / "etc" / "sources.list",
        "Dir::Etc::sourceparts": tmp_path / "etc" / "sources",
        "Dir::Etc::parts": tmp_path / "empty",
        "APT::Sandbox::User": "root",
        "APT::Get::Download-Only": "true",
        "Acquire::Retries": "0",
    }
    (tmp_path / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in config.items()))
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LC_ALL", "C")
    tree, repository = tmp_path / "tree", tmp_path / "repository"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(CONTROL)
    repository.mkdir()
    subprocess.run(["dpkg-deb", "-b", str(tree), str(repository / "tiny.deb")], check=True, capture_output=True)
    (repository / "Packages").write_text(
        f"{CONTROL}Filename: ./tiny.deb\nSize: {(repository / 'tiny.deb').stat().st_size}\n"
        f"SHA256: {run(['sha256sum', str(repository / 'tiny.deb')]).split()[0]}\n"
    )
    found = tmp_path / "etc" / "sources.list"
    found.write_text(f"deb [trusted=yes] copy:{repository} ./\n")
    return found


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """By another process, as apt sees it."""
    with path.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield


class Gone(HubServer):
    """A repository that is no longer there."""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        request.send_error(404)


@needs_apt
def test_a_broken_repository_does_not_keep_a_package_of_another_away(
    sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Gone() as server:
        with sources.open("a") as file:
            file.write(f"deb {server.address} ./\n")
        apt_install("tiny", is_root=True)
    assert list((tmp_path / "cache" / "archives").glob("tiny*.deb"))
    assert "does not have a Release file" in capsys.readouterr().err


@needs_apt
def test_lists_that_another_process_locks_are_used_as_they_are(
    sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["apt-get", "update"])
    with locked(tmp_path / "state" / "lists" / "lock"):
        apt_install("tiny", is_root=True)
    assert "Could not get lock" in capsys.readouterr().err


@needs_apt
def test_a_lock_that_is_held_is_the_reason(sources: Path, tmp_path: Path) -> None:
    with (
        locked(tmp_path / "cache" / "archives" / "lock"),
        pytest.raises(CannotInstall, match=r"apt-get install.*: E: Could not get lock"),
    ):
        apt_install("tiny", is_root=True)


@needs_apt
def test_without_a_network_both_steps_of_apt_are_named(sources: Path) -> None:
    sources.write_text("deb [trusted=yes] http://127.0.0.1:9/nothing ./\n")
    with pytest.raises(CannotInstall, match="E: Unable to locate package tiny"):
        apt_install("tiny", is_root=True)


def test_only_root_installs_packages() -> None:
    with pytest.raises(CannotInstall, match="only root"):
        apt_install("tiny", is_root=False)


def test_a_way_that_fails_is_followed_by_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    def no() -> str:
        raise CannotInstall("it rains")

    assert first_way("coach", {"horse": no, "train": lambda: "at nine"}) == "at nine"
    assert capsys.readouterr().err == "coach: horse: it rains; trying train\n"
    with pytest.raises(CannotInstall, match=r"^no coach: horse: it rains; ox: it rains$"):
        first_way("coach", {"horse": no, "ox": no})


def test_a_browser_that_cannot_be_had_is_said_with_every_reason(path: Path) -> None:
    program(path / "npm", "echo 'npm warn old' >&2; echo 'npm error code E404' >&2; exit 1")
    with pytest.raises(CannotInstall) as failed:
        chromium_path.__wrapped__()
    said = str(failed.value)
    assert f"installed before: none of {', '.join(NAMES)} is on the PATH" in said
    assert "; apt-get: " in said
    assert "; npm: npm install: npm error code E404. " in said
    assert "GLYPHOXA_CHROMIUM" in said


def test_a_browser_comes_from_npm_when_apt_fails(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(path / "npm", "exit 0")
    program(path / "node", "echo /somewhere/chromium")
    assert chromium_path.__wrapped__() == "/somewhere/chromium"
    assert "; trying npm\n" in capsys.readouterr().err


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory with programs, where apt has no network."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder / "apt-get", "echo 'E: Temporary failure resolving deb.example.org' >&2; exit 100")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GLYPHOXA_CHROMIUM", raising=False)
    return folder


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
