"""What the files of who comes to a table say of one player: told, and taken out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, PlayerId
from glyphoxa.web.access.audit import AuditKind, audit_path
from glyphoxa.web.access.consents import consents_path
from glyphoxa.web.access.private_files import open_private


def lines_about(data_dir: Path, campaign: CampaignId, player: PlayerId) -> dict[str, list[Mapping[str, Any]]]:
    """`consents` and `audit`, each oldest first, as they are kept."""
    is_about = _about(player)
    audit = audit_path(data_dir, campaign)
    return {
        "consents": [each for each in _read(consents_path(data_dir, campaign)) if is_about(each)],
        "audit": [each for path in (audit.with_suffix(".jsonl.1"), audit) for each in _read(path) if is_about(each)],
    }


def forget(data_dir: Path, campaign: CampaignId, player: PlayerId) -> int:
    """Lines about a player say only when something was erased. Each file is replaced whole. Returns how many.

    Raises:
        Unavailable: The disk fails; do it again.
    """
    is_about = _about(player)
    audit = audit_path(data_dir, campaign)
    n_gone = 0
    for path in (consents_path(data_dir, campaign), audit.with_suffix(".jsonl.1"), audit):
        lines = _lines(path)
        kept = [_erased(line) if _is_one(line, is_about) else line for line in lines]
        n_here = sum(before != after for before, after in zip(lines, kept, strict=True))
        if n_here:
            _replace(path, kept)
            n_gone += n_here
    return n_gone


def _about(player: PlayerId) -> Callable[[Mapping[str, Any]], bool]:
    def is_about(line: Mapping[str, Any]) -> bool:
        return f"player:{player}" == line.get("who") or player in (line.get("player"), line.get("what"))

    return is_about


def _erased(line: str) -> str:
    at_ms = json.loads(line).get("at_ms", 0)
    return json.dumps({"at_ms": at_ms, "kind": AuditKind.ERASED, "who": "", "what": "", "address": ""})


def _is_one(line: str, is_about: Callable[[Mapping[str, Any]], bool]) -> bool:
    try:
        found = json.loads(line)
    except ValueError:
        return False
    return isinstance(found, dict) and is_about(found)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}; try again") from None


def _read(path: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in _lines(path) if _is_one(line, lambda _: True)]


def _replace(path: Path, lines: list[str]) -> None:
    temporary = path.with_name(f"{path.name}.new")
    try:
        with open_private(temporary, "w") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise Unavailable(f"{path} cannot be rewritten: {error.strerror}; try again") from None
