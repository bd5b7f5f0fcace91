"""The lock installs what it lists, whatever has been published since it was made."""

from __future__ import annotations

import functools
import hashlib
import html
import importlib.metadata
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from tests.support.patience import DEADLINE_S
from tests.support.proof import proof_only

YANKED = "loguru"
WITHOUT_A_WHEEL_HERE = "rapidfuzz"
NEVER_HAD_A_WHEEL = frozenset({"docopt", "metaphone"})
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
    """Return the pins of a requirement file, without the hashes."""
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
    """Write a simple repository into a directory: pip reads it by its file address."""
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
    if name not in {WITHOUT_A_WHEEL_HERE, *NEVER_HAD_A_WHEEL}:
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
    """Return the requirements of the real package, where it is installed."""
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


ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIPS = (Path(__file__).parents[1] / "support" / "pips.txt").read_text("utf-8").splitlines()
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@functools.cache
def interpreter(version: str) -> str | None:
    """A Python of this version that can make environments: this one, one on the path, or one of pyenv's."""
    if version == HERE:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *map(str, pyenv.glob(f"{version}.*/bin/python3"))]
    works = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):
        said = subprocess.run([candidate, "-c", works], capture_output=True, text=True, timeout=60, check=False)
        if said.stdout.strip() == version:
            return candidate
    return None


def fetched(*requirements: str) -> list[Path]:
    """The wheels of some lines of a requirement file: from the index once, and from then on from this machine."""
    kept = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glyphoxa" / "test-wheels"
    found: list[Path] = []
    for requirement in requirements:
        pin = Requirement(requirement.partition("--hash")[0].strip())
        pattern = f"{pin.name.replace('-', '_')}-{next(iter(pin.specifier)).version}-*.whl"
        if not list(kept.glob(pattern)):
            kept.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=kept) as scratch:
                line = Path(scratch, "line.txt")
                line.write_text(requirement)
                download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
                command = [*download, "--require-hashes", "-r", str(line), "-d", scratch]
                subprocess.run(command, check=True, timeout=DEADLINE_S)
                for wheel in Path(scratch).glob("*.whl"):
                    wheel.replace(kept / wheel.name)
        found += kept.glob(pattern)
    return found


def pip_wheels(version: str) -> dict[str, Path]:
    """The oldest pip that this Python ships, and the newest."""
    lines = [line for line in PIPS if line.startswith("pip==")]
    oldest = next(line for line in lines if f'python_version == "{version}"' in line)
    unmarked = [line.partition(" ;")[0] + " --hash" + line.partition("--hash")[2] for line in (oldest, lines[-1])]
    return dict(zip(("oldest", "newest"), fetched(*unmarked), strict=True))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[File]]]:
    build = (ROOT / "requirements" / "build.txt").read_text("utf-8").replace("\\\n", " ")
    back_ends = fetched(*(line for line in build.splitlines() if "==" in line))
    pinned = [pin for lock in LOCKS for pin in read_lock(lock)]
    files = future_index(pinned, real=back_ends)
    root = tmp_path_factory.mktemp("index")
    write_index(files, root)
    yield root, files


def a_checkout(directory: Path, files: list[File]) -> Path:
    """Copy the files that `make` needs of a checkout, with the locks of the packages that the index has."""
    (directory / "requirements").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, directory)
    for lock in LOCKS:
        (directory / "requirements" / lock.name).write_text(future_lock(read_lock(lock), files))
    shutil.copytree(ROOT / "migrations", directory / "migrations")
    for package in ("glyphoxa", "processors/glyphoxa_processors", "pipelines/glyphoxa_pipelines"):
        (directory / package).mkdir(parents=True)
        (directory / package / "__init__.py").touch()
    return directory


def an_environment(checkout: Path, python: str, pip: Path) -> None:
    """An empty environment with this very pip, where `make` looks for one."""
    subprocess.run([python, "-m", "venv", "--without-pip", checkout / ".venv"], check=True, timeout=DEADLINE_S)
    (site_packages,) = (checkout / ".venv").glob("lib/python3*/site-packages")
    with zipfile.ZipFile(pip) as wheel:
        wheel.extractall(site_packages)


def installed(checkout: Path, index: Path, *, targets: tuple[str, ...]) -> dict[str, str]:
    """Name and version of what these targets of the Makefile install, without pip and Glyphoxa."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(checkout),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index.as_uri(),
        "PIP_NO_CACHE_DIR": "1",
    }
    made = subprocess.run(
        ["make", *targets],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    listing = [checkout / ".venv/bin/python", "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    shown = subprocess.run(listing, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    have = {canonicalize_name(entry["name"]): entry["version"] for entry in json.loads(shown.stdout)}
    return {name: version for name, version in have.items() if name not in ("pip", "glyphoxa")}


def locked(version: str) -> dict[str, str]:
    """Name and version of everything that the locks list for this Python on this platform."""
    environment = {"python_version": version, "python_full_version": f"{version}.0"}
    pins = [pin for lock in LOCKS for pin in read_lock(lock)]
    return {
        canonicalize_name(pin.name): next(iter(pin.specifier)).version
        for pin in pins
        if pin.marker is None or pin.marker.evaluate(environment)
    }


@proof_only
@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("age", ["oldest", "newest"])
def test_lock_installs_exactly_from_a_future_index(
    tmp_path: Path, index: tuple[Path, list[File]], version: str, age: str
) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    checkout = a_checkout(tmp_path / "checkout", index[1])
    an_environment(checkout, python, pip_wheels(version)[age])
    have = installed(checkout, index[0], targets=(".venv/dev", ".venv/mutation"))
    assert have == locked(version)


def test_locks_agree_on_every_version() -> None:
    pins: dict[tuple[str, str], set[str]] = {}
    for lock in LOCKS:
        for pin in read_lock(lock):
            pins.setdefault((canonicalize_name(pin.name), str(pin.marker)), set()).add(str(pin.specifier))
    assert {name: versions for name, versions in pins.items() if len(versions) > 1} == {}
