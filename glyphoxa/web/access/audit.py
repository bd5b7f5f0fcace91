"""Who came to a table, was refused, moved it or left: a file that the game master can read later.

One JSON object a line, appended by a thread of its own, so that a slow disk holds up nobody's voice. A flood of
refusals makes one line a minute for each kind. When the file has reached its size it is set aside as `.1`, and the one
set aside before is removed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from loguru import logger
from pydantic import TypeAdapter, ValidationError

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, slug
from glyphoxa.web.access.private_files import open_private, private_directory

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


def audit_path(data_dir: Path, campaign: CampaignId) -> Path:
    return data_dir / "audit" / f"{slug(campaign) or 'campaign'}-{campaign.encode().hex()[:16]}.jsonl"


class AuditLog:
    """Appends to the file of one campaign.

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
        """Returns at once. What cannot be written is logged, and the table plays on."""
        now_s = self._now_s()
        if kind is AuditKind.REFUSED and self._was_told(who, what, now_s):
            return
        self._writer.submit(self._append, AuditEntry(int(now_s * 1_000), kind, who, what, address))

    def close(self) -> None:
        """Until all is written."""
        self._writer.shutdown()

    def _was_told(self, who: str, what: str, now_s: float) -> bool:
        latest = {each: at for each, at in self._refused_at.items() if now_s - at < ONE_REFUSAL_EVERY_S}
        known = (who, what) in latest
        self._refused_at = latest if known else {**latest, (who, what): now_s}
        return known

    def _append(self, entry: AuditEntry) -> None:
        line = json.dumps(asdict(entry), ensure_ascii=False) + "\n"
        try:
            private_directory(self._path.parent)
            if self._path.exists() and self._path.stat().st_size + len(line) > self._max_bytes:
                self._path.replace(self._path.with_suffix(".jsonl.1"))
            with open_private(self._path, "a") as file:
                file.write(line)
        except OSError as error:
            logger.warning("{}: {}; who joins and leaves is not written down", self._path, error.strerror)


def read_audit(path: Path) -> Iterator[AuditEntry]:
    """Oldest first. A line that a killed process left torn is passed over.

    Raises:
        InvalidInput: The file cannot be read.
    """
    for each in (path.with_suffix(".jsonl.1"), path):
        try:
            lines = each.read_text("utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InvalidInput(f"{each}: {error.strerror}") from error
        for line in lines:
            try:
                yield _ENTRY.validate_json(line)
            except ValidationError:
                continue
