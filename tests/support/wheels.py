"""Wheels of this project, and environments outside the checkout into which they are installed.

An environment has no package of its own but the wheel. The rest comes from the environment that runs the tests: all of
it, or what the wheel needs without an extra.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.patience import DEADLINE_S

ROOT = Path(__file__).parents[2]


def built(kind: str, directory: Path, *, source: Path = ROOT) -> Path:
    """The `wheel` or `sdist` that is built from a source tree."""
    run_in(source, sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", directory)
    (archive,) = directory.iterdir()
    return archive


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def environment_with_all(directory: Path, wheel: Path) -> Path:
    """An environment with the wheel and every extra. Returns its directory of programs."""
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return _environment(directory, wheel, lambda site: (site / "others.pth").write_text("\n".join(others)))


def environment_without_extras(directory: Path, wheel: Path) -> Path:
    """An environment with the wheel and what it requires without an extra. Returns its directory of programs."""

    def link(site: Path) -> None:
        for needed in _without_extras(wheel):
            for top in {file.parts[0] for file in needed.files or () if file.parts[0] not in ("..", "__pycache__")}:
                (site / top).symlink_to(Path(str(needed.locate_file(top))))

    return _environment(directory, wheel, link)


def run_in(directory: Path, *command: object, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program there that must end well, with nothing of these tests' own environment but the PATH."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=directory,
        env=bare_environ(directory) | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done


def bare_environ(home: Path) -> dict[str, str]:
    """Without PYTHONPATH. The data are below `home`, too: root's own are the machine's, where a table may be played."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GLYPHOXA_DATA": str(home / "data"),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }


def _environment(directory: Path, wheel: Path, fill: Callable[[Path], object]) -> Path:
    venv.create(directory, symlinks=True)
    (site,) = directory.glob("lib/python*/site-packages")
    fill(site)
    programs = directory / "bin"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", programs / "python")
    run_in(directory, *pip, "install", "-q", "--no-index", "--no-deps", "--no-compile", wheel)
    return programs


def _without_extras(wheel: Path) -> Iterator[Distribution]:
    """The installed packages that the wheel requires, and those that they require in turn."""
    (metadata,) = (text for name, text in contents(wheel).items() if name.endswith(".dist-info/METADATA"))
    rows = metadata.decode().partition("\n\n")[0].splitlines()
    waiting = [row.partition(": ")[2] for row in rows if row.startswith("Requires-Dist: ")]
    seen: set[str] = set()
    while waiting:
        needed = Requirement(waiting.pop())
        name = canonicalize_name(needed.name)
        if name in seen or (needed.marker is not None and not needed.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        found = distribution(name)
        waiting += found.requires or ()
        yield found
