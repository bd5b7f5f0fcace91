"""Files about who comes to a table, for this user alone: the audit log, and the erasure of one player.

The audit log holds who came to a table, was refused, moved it or left: one JSON object a line, appended by a thread of
its own, so that a slow disk holds up nobody's voice. A flood of refusals makes one line a minute for each kind. A file
that has reached its size is set aside as `.1`, and the one set aside before is removed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from loguru import logger
from pydantic import TypeAdapter, ValidationError

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.files import PRIVATE, open_private, replace_file
from glyphoxa.domain.ids import CampaignId, PlayerId, slug

T = TypeVar("T")


def lines_in(path: Path) -> list[str]:
    """Return the lines of a file; none if there is no such file.

    Raises:
        OSError: It cannot be read.
    """
    try:
        return path.read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []


def entries_in(path: Path, kind: TypeAdapter[T]) -> list[T]:
    """Return the entries of a file of JSON lines, oldest first. A line that a killed process left torn is skipped.

    Raises:
        InvalidInput: The file cannot be read.
    """
    try:
        lines = lines_in(path)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    found = []
    for line in lines:
        with suppress(ValidationError):
            found.append(kind.validate_json(line))
    return found


def links_path(data_dir: Path, campaign: CampaignId) -> Path:
    return data_dir / "access" / f"{_file_name(campaign)}.json"


def consents_path(data_dir: Path, campaign: CampaignId) -> Path:
    return data_dir / "access" / f"{_file_name(campaign)}.consents.jsonl"


def audit_path(data_dir: Path, campaign: CampaignId) -> Path:
    return data_dir / "audit" / f"{_file_name(campaign)}.jsonl"


def _file_name(campaign: CampaignId) -> str:
    return f"{slug(campaign) or 'campaign'}-{campaign.encode().hex()[:16]}"


# -- the audit log

MAX_BYTES = 4 * 1024 * 1024
ONE_REFUSAL_EVERY_S = 60.0


class AuditKind(StrEnum):
    OPENED = "opened"
    CLOSED = "closed"
    JOINED = "joined"
    SAT_DOWN = "sat down"
    CAME_BACK = "came back"
    WATCHES = "watches"
    LEFT = "left"
    REFUSED = "refused"
    MOVED = "moved"
    COMMANDED = "commanded"
    DECIDED = "decided"
    REVOKED = "revoked"
    INVITED = "invited"
    AGREED = "agreed"
    WITHDREW = "withdrew consent"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """
    Attributes:
        at_ms: Unix time.
        who: Whose link it was: `dm`, `player:mira`, `spectator`; "" of a stranger.
        what: More of it: the seat, the scene, the reason.
        address: Where the request came from; "" if it came from this machine's command line.
    """

    at_ms: int
    kind: AuditKind
    who: str = ""
    what: str = ""
    address: str = ""


_ENTRY = TypeAdapter(AuditEntry)


class AuditLog:
    """Appends to the audit log of one campaign.

    Args:
        now_s: Unix time in seconds.
    """

    def __init__(self, path: Path, *, now_s: Callable[[], float] = time.time, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._now_s = now_s
        self._max_bytes = max_bytes
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="audit")
        self._refused_at: dict[tuple[str, str], float] = {}

    def record(self, kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None:
        """Record an entry; returns at once. A failure is logged, and the table plays on."""
        now_s = self._now_s()
        if kind is AuditKind.REFUSED and self._was_told(who, what, now_s):
            return
        self._writer.submit(self._append, AuditEntry(int(now_s * 1_000), kind, who, what, address))

    def close(self) -> None:
        """Wait until everything is written."""
        self._writer.shutdown()

    def _was_told(self, who: str, what: str, now_s: float) -> bool:
        latest = {each: at for each, at in self._refused_at.items() if now_s - at < ONE_REFUSAL_EVERY_S}
        known = (who, what) in latest
        self._refused_at = latest if known else {**latest, (who, what): now_s}
        return known

    def _append(self, entry: AuditEntry) -> None:
        line = json.dumps(asdict(entry), ensure_ascii=False) + "\n"
        try:
            if self._path.exists() and self._path.stat().st_size + len(line) > self._max_bytes:
                self._path.replace(self._path.with_suffix(".jsonl.1"))
            with open_private(self._path, "a") as file:
                file.write(line)
        except OSError as error:
            logger.warning("{}: {}; who joins and leaves is not written down", self._path, error.strerror)


def read_audit(path: Path) -> list[AuditEntry]:
    """Return the entries of a log, oldest first. As `entries_in`."""
    return [*entries_in(path.with_suffix(".jsonl.1"), _ENTRY), *entries_in(path, _ENTRY)]


# -- one player


def lines_about(data_dir: Path, campaign: CampaignId, player: PlayerId) -> dict[str, list[Mapping[str, Any]]]:
    """Return a player's `consents` and `audit` lines as they are stored, oldest first."""
    audit = audit_path(data_dir, campaign)
    paths = {"consents": [consents_path(data_dir, campaign)], "audit": [audit.with_suffix(".jsonl.1"), audit]}
    return {
        name: [entry for path in of for line in _lines(path) if _is_about(player, entry := _entry(line))]
        for name, of in paths.items()
    }


def forget(data_dir: Path, campaign: CampaignId, player: PlayerId) -> int:
    """Replace lines about a player by lines that say only when something was erased. Returns their number.

    Raises:
        Unavailable: The disk fails; do it again.
    """
    audit = audit_path(data_dir, campaign)
    n_gone = 0
    for path in (consents_path(data_dir, campaign), audit.with_suffix(".jsonl.1"), audit):
        lines = _lines(path)
        kept = [_erased(entry) if _is_about(player, entry := _entry(line)) else line for line in lines]
        n_here = sum(before != after for before, after in zip(lines, kept, strict=True))
        if n_here:
            _replace(path, kept)
            n_gone += n_here
    return n_gone


def _entry(line: str) -> Mapping[str, Any]:
    """Return what a line holds; nothing for one that a killed process left torn."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_about(player: PlayerId, entry: Mapping[str, Any]) -> bool:
    return f"player:{player}" == entry.get("who") or player in (entry.get("player"), entry.get("what"))


def _erased(entry: Mapping[str, Any]) -> str:
    return json.dumps(asdict(AuditEntry(entry.get("at_ms", 0), AuditKind.ERASED)))


def _lines(path: Path) -> list[str]:
    try:
        return lines_in(path)
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}; try again") from None


def _replace(path: Path, lines: list[str]) -> None:
    try:
        for left in path.parent.glob(f"{path.name}.*.new"):  # of an erasure that was killed
            left.unlink()
        replace_file(path, "".join(f"{line}\n" for line in lines).encode(), mode=PRIVATE)
    except OSError as error:
        raise Unavailable(f"{path} cannot be rewritten: {error.strerror}; try again") from None
