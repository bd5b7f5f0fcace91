"""The lock installs what it lists, whatever has been published since it was made."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.future_index import File, future_index, future_lock, read_lock, write_index
from tests.support.patience import DEADLINE_S
from tests.support.proof import IS_PROOF

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
    """What `make` needs of a checkout, with the locks of the packages that the index has."""
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


@pytest.mark.parametrize(
    ("version", "age"),
    # Other Pythons and the newest pip: in `make proof`.
    [(version, age) for version in SUPPORTED for age in ("oldest", "newest")] if IS_PROOF else [(HERE, "oldest")],
)
def test_lock_installs_exactly_from_a_future_index(
    tmp_path: Path, index: tuple[Path, list[File]], version: str, age: str
) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    checkout = a_checkout(tmp_path / "checkout", index[1])
    an_environment(checkout, python, pip_wheels(version)[age])
    have = installed(checkout, index[0], targets=(".venv/dev", ".venv/mutation", ".venv/fuzzing"))
    assert have == locked(version)


def test_locks_agree_on_every_version() -> None:
    pins: dict[tuple[str, str], set[str]] = {}
    for lock in LOCKS:
        for pin in read_lock(lock):
            pins.setdefault((canonicalize_name(pin.name), str(pin.marker)), set()).add(str(pin.specifier))
    assert {name: versions for name, versions in pins.items() if len(versions) > 1} == {}
