"""`glyphoxa config` and `glyphoxa doctor`: whether the settings, and the machine, are fit for a table."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from glyphoxa.app.doctor import ask_providers, before_a_table, of_settings, without_settings
from glyphoxa.app.engines import languages_of
from glyphoxa.cli.render import show_rows
from glyphoxa.cli.scope import CONFIG as CONFIG_FILE
from glyphoxa.cli.verb import Verb, argument, at_once
from glyphoxa.config.check import Finding
from glyphoxa.config.settings import read_settings
from glyphoxa.domain.errors import GlyphoxaError

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


CONFIG = Verb(at_once)
DOCTOR = Verb(at_once)


@CONFIG.action(
    "check the settings: show what will be used, what is missing, and what an evening costs",
    argument("file", nargs="?", type=Path, help="settings file (YAML); default: all defaults"),
    argument("--live", help="also ask each remote provider one short question: show its latency and what it can do"),
)
def _check(options: argparse.Namespace) -> int:
    """Exit with status 1 if something that the settings need is missing, or does not answer."""
    settings = read_settings(options.file)
    findings = of_settings(settings)
    if options.live:
        wrong = {finding.subject for finding in findings if finding.level == "error"}
        findings += ask_providers(settings, but_not=wrong)
    _show_findings(findings)
    return 1 if any(finding.level == "error" for finding in findings) else 0


def _show_findings(findings: Iterable[Finding]) -> None:
    show_rows(("", "", ""), ((Text(one.level, style=_COLOURS[one.level]), one.subject, one.text) for one in findings))


@CONFIG.action("print every setting with its type, default and meaning, in Markdown")
def _reference(_options: argparse.Namespace) -> int:
    from glyphoxa.config.reference import reference

    print(reference(languages_of), end="")
    return 0


@DOCTOR.itself(
    CONFIG_FILE,
    argument("--campaign", type=Path, metavar="FILE", help="campaign file; overrides the settings"),
    argument("--quick", help="skip the database and the measurement of the model"),
    argument("--json", help="the findings, as JSON"),
    text="Check Python, packages, settings, models, database, disk, ports, clock, https and memory, and measure the "
    "language model for a few seconds. Each line is ok, or says what is wrong and what to do. The exit status is 1 "
    "if there is an error.",
)
def _doctor(options: argparse.Namespace) -> int:
    findings = _found(options)
    is_well = all(each.level != "error" for each in findings)
    if options.json:
        told = {"ok": is_well, "findings": [asdict(each) for each in findings]}
        print(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        _show_findings(findings)
    return 0 if is_well else 1


def _found(options: argparse.Namespace) -> list[Finding]:
    try:
        settings = read_settings(options.config)
    except GlyphoxaError as error:
        # What needs no settings is checked all the same.
        mistakes = [Finding("error", "settings", line) for line in str(error).splitlines()]
        return [*mistakes, *without_settings()]
    if options.campaign is not None:
        settings = settings.model_copy(update={"campaign": options.campaign.absolute()})
    return before_a_table(settings, is_quick=options.quick)
