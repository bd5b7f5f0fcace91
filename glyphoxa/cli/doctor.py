"""`glyphoxa doctor`: whether this machine and these settings are fit for a table."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from glyphoxa.bootstrap.doctor import before_a_table, without_settings
from glyphoxa.cli.config import show_findings
from glyphoxa.cli.scope import CONFIG
from glyphoxa.cli.verb import Verb, argument, at_once
from glyphoxa.config.check import Finding
from glyphoxa.config.settings import read_settings
from glyphoxa.domain.errors import GlyphoxaError

VERB = Verb(at_once)


@VERB.itself(
    CONFIG,
    argument("--campaign", type=Path, metavar="FILE", help="campaign file; wins over the settings"),
    argument("--quick", help="start no database and measure no model"),
    argument("--json", help="the findings, as JSON"),
    text="Check Python, packages, settings, models, database, disk, ports, clock, https and memory, and measure the "
    "language model for a few seconds. Each line is ok, or says what is wrong and what to do. Exits with 1 if a line "
    "is an error.",
)
def run(options: argparse.Namespace) -> int:
    findings = _found(options)
    is_well = all(each.level != "error" for each in findings)
    if options.json:
        told = {"ok": is_well, "findings": [asdict(each) for each in findings]}
        print(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        show_findings(findings)
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
    return before_a_table(settings, certificate_until=_certificate_until, is_quick=options.quick)


def _certificate_until(certificate: Path | None, key: Path | None) -> datetime | None:
    # It is in a package of the extra `voice`.
    from glyphoxa.web.tls import good_until

    return good_until(certificate, key)
