"""Verbs write to any kind of output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glyphoxa.cli.main import commands
from tests.support.patience import DEADLINE_S

_HEAVY = ("asyncio", "asyncpg", "loguru", "numpy", "pydantic", "rich", "yaml")
_NEEDS_NO_MEMORY = (["models", "list"], ["facts", "--help"])
_A_ROW = r"""
import sys
from rich.text import Text
from glyphoxa.cli.main import on_any_output
from glyphoxa.dm.wording import IndentedLine
from glyphoxa.cli.render import show_lines, show_rows
with on_any_output():
    row = (Text("\u017baneta"), Text("\u201eNo.\u201c \u2026 \U0001f409"))
    show_rows(("who", "said"), [row])
    show_lines([IndentedLine("\u2192 M\u0142yn")])
    print("\u017baneta", file=sys.stderr)
"""


def glyphoxa(*arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "glyphoxa.cli.main", *arguments]
    return subprocess.run(command, text=True, check=False, timeout=DEADLINE_S, **how)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("arguments", _NEEDS_NO_MEMORY, ids=" ".join)
def test_a_disk_that_is_full_is_told_in_one_line(arguments: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with Path("/dev/full").open("w") as full:
        done = glyphoxa(*arguments, stdout=full, stderr=subprocess.PIPE)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    if "--help" not in arguments:  # argparse lets it pass
        assert done.stderr == "glyphoxa: No space left on device (while writing the output)\n"
        assert done.returncode == 1


@pytest.mark.parametrize("arguments", _NEEDS_NO_MEMORY, ids=" ".join)
def test_nobody_has_to_read_to_the_end(arguments: list[str]) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = glyphoxa(*arguments, stdout=writes, stderr=subprocess.PIPE)
    finally:
        os.close(writes)
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_process_without_an_output_answers_all_the_same() -> None:
    command = f'"{sys.executable}" -m glyphoxa.cli.main models list >&-'
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False, timeout=DEADLINE_S)
    assert (done.returncode, done.stderr) == (0, "")


def test_characters_that_a_terminal_does_not_know_are_replaced() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _A_ROW],
        env=os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    assert "?aneta  ?No.? ? ?" in done.stdout
    assert "? M?yn" in done.stdout
    assert done.stderr == "?aneta\n"


def test_help_imports_no_verb() -> None:
    program = f"""
import sys
from glyphoxa.cli.main import main
try:
    main(["--help"])
except SystemExit:
    print("imported:", [name for name in {_HEAVY} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=DEADLINE_S
    )
    assert done.stdout.splitlines()[-1] == "imported: []"
    assert all(verb in done.stdout for verb in commands())
    assert "GLYPHOXA_DATA" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["serve", "--open"]])
def test_windows_without_linux_gets_one_line_that_names_wsl(arguments: list[str]) -> None:
    program = "import sys; sys.modules.update(fcntl=None, resource=None, pwd=None); from glyphoxa.cli.main import main"
    command = [sys.executable, "-c", f"{program}; sys.exit(main({arguments}))"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("glyphoxa: Glyphoxa runs on Linux and macOS; on Windows, use WSL 2")
    assert len(done.stderr.splitlines()) == 1
