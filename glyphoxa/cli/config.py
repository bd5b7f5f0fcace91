from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from rich.text import Text

from glyphoxa.bootstrap.local_models import weights_for
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, argument, at_once
from glyphoxa.config.check import Finding, check
from glyphoxa.config.settings import read_settings

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


VERB = Verb(at_once)


@VERB.action(
    "say what will be used, and what is missing",
    argument("file", nargs="?", type=Path, help="settings file (YAML); without it, the defaults"),
)
def _check(options: argparse.Namespace) -> int:
    """Exits with 1 when something is missing that the settings need."""
    settings = read_settings(options.file)
    findings = check(settings, has_weights=weights_for(settings).has)
    show_findings(findings)
    return 1 if any(finding.level == "error" for finding in findings) else 0


def show_findings(findings: Iterable[Finding]) -> None:
    """Print a line for each."""
    table = a_table("", "", "")
    for finding in findings:
        table.add_row(Text(finding.level, style=_COLOURS[finding.level]), finding.subject, finding.text)
    show(table)


@VERB.action("every setting with its type, default and meaning, as a page in Markdown")
def _reference(_options: argparse.Namespace) -> int:
    from glyphoxa.config.reference import reference

    print(reference(), end="")
    return 0
