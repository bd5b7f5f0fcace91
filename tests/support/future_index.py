"""A package index as it may look some months after the lock was made.

Every locked package has a newer release that wants more than the lock has, one locked release has been yanked, and one
has lost its wheel for this platform. The packages are empty and declare what the real ones declare, so that a whole
installation takes seconds. The build back ends are real: they have to build.
"""

from __future__ import annotations

import hashlib
import html
import importlib.metadata
import io
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

YANKED = "loguru"
WITHOUT_A_WHEEL_HERE = "rapidfuzz"
NEVER_HAD_A_WHEEL = "docopt"
NEWER_WANTS = "a-package-that-no-lock-has"

_LOCKED = re.compile(r"^[A-Za-z0-9].*?(?=\s*\\?$)", re.MULTILINE)
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class File:
    """One file of a release, as its index lists it."""

    name: str
    content: bytes
    is_yanked: bool = False

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def project(self) -> str:
        parse = parse_wheel_filename if self.name.endswith(".whl") else parse_sdist_filename
        return parse(self.name)[0]


def read_lock(path: Path) -> list[Requirement]:
    """What a requirement file pins, without the hashes."""
    return [Requirement(line) for line in _LOCKED.findall(path.read_text("utf-8"))]


def future_lock(pinned: Iterable[Requirement], index: Iterable[File]) -> str:
    """The same pins with the hashes of the files of `index`."""
    hashes: dict[str, list[str]] = {}
    for file in index:
        hashes.setdefault(file.project, []).append(f" --hash=sha256:{file.sha256}")
    return "".join(f"{pin}{''.join(hashes[canonicalize_name(pin.name)])}\n" for pin in pinned)


def future_index(pinned: Iterable[Requirement], *, real: Iterable[Path]) -> list[File]:
    """The files of all locked releases and of a newer release of each.

    Args:
        real: Wheels that are taken as they are, in place of empty ones.
    """
    files = [File(path.name, path.read_bytes()) for path in real]
    are_real = {file.project for file in files}
    for name, version in sorted({(canonicalize_name(pin.name), _version(pin)) for pin in pinned}):
        if name not in are_real:
            files += _release(name, version)
        files.append(File(_wheel_name(name, newer := _newer(version)), _wheel(name, newer, [NEWER_WANTS])))
    return files


def write_index(files: Iterable[File], root: Path) -> None:
    """As a simple repository in a directory: pip reads it by its file address."""
    pages: dict[str, list[str]] = {}
    for file in files:
        folder = root / file.project
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file.name).write_bytes(file.content)
        yanked = ' data-yanked="it was found to be broken"' if file.is_yanked else ""
        link = f'<a href="{html.escape(file.name)}#sha256={file.sha256}"{yanked}>{html.escape(file.name)}</a><br>'
        pages.setdefault(file.project, []).append(link)
    for project, links in pages.items():
        (root / project / "index.html").write_text(
            f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>", "utf-8"
        )


def _release(name: str, version: str) -> Iterator[File]:
    if name not in (WITHOUT_A_WHEEL_HERE, NEVER_HAD_A_WHEEL):
        yield File(_wheel_name(name, version), _wheel(name, version, _wants(name)), is_yanked=name == YANKED)
        return
    yield File(f"{name}-{version}.tar.gz", _sdist(name, version))
    if name == WITHOUT_A_WHEEL_HERE:
        yield File(f"{name}-{version}-cp311-cp311-win_arm64.whl", _wheel(name, version, _wants(name)))


def _version(pin: Requirement) -> str:
    (specifier,) = pin.specifier
    return specifier.version


def _newer(version: str) -> str:
    *head, last = Version(version).release
    return ".".join(map(str, (*head, last + 1)))


def _wants(name: str) -> list[str]:
    """What the real package requires, where it is installed."""
    try:
        return importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _wheel_name(name: str, version: str) -> str:
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def _wheel(name: str, version: str, wants: Iterable[str]) -> bytes:
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    extras = sorted({extra for want in wants for extra in re.findall(r"extra\s*==\s*['\"]([^'\"]+)", want)})
    content = {
        f"{info}/METADATA": "".join(
            (
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                *(f"Provides-Extra: {extra}\n" for extra in extras),
                *(f"Requires-Dist: {want}\n" for want in wants),
            )
        ),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    content[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in content.items():
            archive.writestr(zipfile.ZipInfo(path, _EPOCH), text)
    return packed.getvalue()


def _sdist(name: str, version: str) -> bytes:
    """A source release of the old kind: setup.py, and no word of the back end that it needs."""
    setup = f"from setuptools import setup\nsetup(name={name!r}, version={version!r}, py_modules=[])\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in {
            "setup.py": setup,
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        }.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()
