"""The wheel holds all that a table needs: installed outside the checkout, with every extra and with none."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import venv
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from glyphoxa.cli.main import commands as verbs
from tests.support.patience import DEADLINE_S
from tests.support.proof import proof_only

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


PACKAGES = {
    "glyphoxa": "glyphoxa",
    "processors/glyphoxa_processors": "glyphoxa_processors",
    "pipelines/glyphoxa_pipelines": "glyphoxa_pipelines",
    "migrations": "glyphoxa/adapters/postgres/migrations",
    "docs": "share/doc/glyphoxa/docs",
}
"""Where it is in the tree, and where in the wheel."""

MISSING_FOR = {
    ("serve",): "voice",
    ("models", "voices", "heart"): "local",
    ("campaign", "load", "mine.yaml"): "local",
    ("campaign", "calendar"): "local",
    ("show", "facts"): "local",
    ("show", "entities"): "local",
    ("privacy", "erase", "--player", "tamsin"): "local",
    ("show", "said"): "local",
    ("show", "recap", "1"): "local",
    ("worker", "status"): "local",
    ("facts", "review"): "local",
    ("entity", "hide", "Marta"): "local",
    ("transcript", "retract", "words"): "local",
    ("worker",): "local",
    ("show", "sessions"): "local",
    ("recall", "beds", "--npc", "Marta"): "local",
    ("show", "context", "--npc", "Marta", "--say", "hello"): "local",
    ("show", "turns", "last"): "local",
    ("names", "list"): "local",
    ("table", "log"): "local",
    ("mcp", "--npc", "Marta"): "mcp",
    ("mcp", "dice"): "mcp",
    ("worker", "reindex"): "local",
    ("models", "recommend"): "local",
}
"""Commands that cannot do their work without an extra."""
DO_WITHOUT = [
    ("--version",),
    ("campaign", "new", "mine.yaml"),
    ("campaign", "check", "mine.yaml"),
    ("table", "invite", "--campaign", "mine.yaml"),
    ("table", "audit", "--campaign", "mine.yaml"),
    ("models", "voices"),
    ("models", "list"),
    ("config", "check"),
    ("config", "reference"),
]

_RUN_EACH = """
import contextlib, io, json, sys, traceback
from glyphoxa.cli.main import main
for arguments in json.load(sys.stdin):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException:
            code = traceback.format_exc()
    print(json.dumps([code, said.getvalue(), errors.getvalue()]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", tmp_path_factory.mktemp("wheel"))


def test_wheel_holds_every_file_of_its_packages(wheel: Path) -> None:
    expected = {
        f"{place}/{path.relative_to(ROOT / source)}"
        for source, place in PACKAGES.items()
        for path in (ROOT / source).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found = {re.sub(r"^[^/]+\.data/data/", "", name) for name in contents(wheel) if ".dist-info/" not in name}
    assert found == expected


@proof_only
def test_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = built("sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        archive.extractall(tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    assert contents(built("wheel", tmp_path / "wheel", source=source)) == contents(wheel)


@proof_only
def test_wheel_opens_a_table_in_an_empty_directory(wheel: Path, tmp_path: Path, reachable_dir: Path) -> None:
    programs = environment_with_all(tmp_path / "environment", wheel)
    home = tmp_path / "empty"
    home.mkdir()
    settings = home / "settings.yaml"

    def glyphoxa(*arguments: object) -> str:
        return run_in(home, programs / "glyphoxa", *arguments, OPENAI_API_KEY="k", DEEPGRAM_API_KEY="k").stdout

    glyphoxa("campaign", "new", "mine.yaml")
    settings.write_text(
        yaml.safe_dump(
            {
                "campaign": "mine.yaml",
                "data_dir": str(reachable_dir),
                "server": {"port": 0},
                "memory": {"chronicle": "none"},
                "providers": {
                    "stt": {"name": "deepgram-nova"},
                    "llm": {"name": "openai"},
                    "tts": {"name": "openai"},
                    "embeddings": {"name": "none"},
                },
            }
        )
    )
    assert "whisper-tiny.en" in glyphoxa("models", "list")
    assert f"embedded PostgreSQL in {reachable_dir}" in glyphoxa("config", "check", settings)
    with subprocess.Popen(
        [programs / "glyphoxa", "serve", "--open", "--config", settings],
        cwd=home,
        env=bare_environ(home) | {"OPENAI_API_KEY": "k", "DEEPGRAM_API_KEY": "k"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            found = next((found for row in process.stdout if (found := re.search(r"is open at (\S+)", row))), None)
            assert found is not None, process.stderr.read()
            for path in ("", "static/js/main.js", "static/words/de.json", "desk"):
                with urllib.request.urlopen(found[1] + path, timeout=DEADLINE_S) as answer:
                    assert answer.status == 200 and answer.read()
            assert "innkeeper" in glyphoxa("show", "facts", "--config", settings)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
    assert (process.returncode, "Traceback" in errors) == (0, False), errors


@proof_only
def test_verb_without_its_extra_names_it_in_one_line(wheel: Path, tmp_path: Path) -> None:
    programs = environment_without_extras(tmp_path / "environment", wheel)
    home = tmp_path / "empty"
    home.mkdir()
    named = {arguments[0] for arguments in (*MISSING_FOR, *DO_WITHOUT)}
    commands = [*DO_WITHOUT, *MISSING_FOR, *((verb,) for verb in verbs() if verb not in named)]
    done = subprocess.run(
        [programs / "python", "-c", _RUN_EACH],
        input=json.dumps(commands),
        cwd=home,
        env=bare_environ(home),
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    for command, row in zip(commands, done.stdout.splitlines(), strict=True):
        code, said, errors = json.loads(row)
        assert isinstance(code, int), f"{command}: {code}"
        extra = MISSING_FOR.get(command)
        if extra is not None:
            assert code == 1, (command, said, errors)
            assert re.fullmatch(rf"glyphoxa: .*pip install 'glyphoxa\[{extra}\]'.*\n", errors), (command, errors)
        elif command in DO_WITHOUT:
            assert said or errors.startswith("glyphoxa: "), command
