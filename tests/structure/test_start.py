"""`glyphoxa --help` answers at once: it imports what it needs and nothing that a verb, a table or a provider needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ASKED = """
import contextlib, io, json, sys
before = set(sys.modules)
from glyphoxa.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def imported_by(*arguments: str) -> set[str]:
    answer = subprocess.run([sys.executable, "-c", ASKED, *arguments], capture_output=True, text=True, check=True)
    return {module.partition(".")[0] for module in json.loads(answer.stdout)}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_the_standard_library_and_our_own_alone(arguments: list[str]) -> None:
    libraries = imported_by(*arguments) - {"glyphoxa"} - sys.stdlib_module_names
    assert libraries == set()


def test_a_table_without_servers_of_tools_loads_nothing_of_mcp() -> None:
    code = "import sys, glyphoxa.app.table; print(*sorted(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"mcp", "mcp_types", "httpx2"}.isdisjoint(answer.stdout.split())
