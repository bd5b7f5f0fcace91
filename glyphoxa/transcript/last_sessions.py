"""Which session of each campaign was played last with this data, and whether it was closed: `DIR/sessions.json`.

Written by the one process that plays with the data; read by whoever wants to go on. Nothing rests on it: what was said
is in the log. A file that cannot be read is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from loguru import logger
from pydantic import TypeAdapter, ValidationError

from glyphoxa.domain.ids import CampaignId, SceneId, SessionId


@dataclass(frozen=True, slots=True)
class LastSession:
    """
    Attributes:
        began_ms: When the first word was said in it, Unix epoch.
        scene: Where the table was last.
        closed_ms: When it was closed; None while it is played, and when its process ended otherwise.
    """

    session: SessionId
    began_ms: int
    scene: SceneId
    closed_ms: int | None = None


_FILE = TypeAdapter(dict[CampaignId, LastSession])


class LastSessions:
    """See the module.

    Args:
        directory: The data directory.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "sessions.json"

    def of(self, campaign: CampaignId) -> LastSession | None:
        return self._read().get(campaign)

    def note(self, campaign: CampaignId, last: LastSession) -> None:
        """This is the campaign's last session now. A disk that is full keeps what was noted before."""
        temporary = self._path.with_suffix(".new")
        try:
            temporary.write_bytes(_FILE.dump_json({**self._read(), campaign: last}, indent=1))
            temporary.replace(self._path)
        except OSError as error:
            logger.warning("{} cannot be written: {}", self._path, error.strerror)

    def _read(self) -> dict[CampaignId, LastSession]:
        try:
            return _FILE.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as error:
            logger.warning("{} cannot be read, and is as good as empty: {}", self._path, type(error).__name__)
            return {}
