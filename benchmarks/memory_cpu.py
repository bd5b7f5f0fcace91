"""How much of a processor an operation takes, whatever else the machine does meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.ids import CampaignId


class CpuClock:
    """Time that this process and the server's processes for its connections have spent on a processor, nanoseconds.

    Only Linux tells it that finely; elsewhere it is always 0.
    """

    def __init__(self, backends: Sequence[int] = ()) -> None:
        self._files = [path for pid in backends if (path := Path(f"/proc/{pid}/schedstat")).exists()]

    @classmethod
    async def of(cls, store: Store, campaign: CampaignId) -> CpuClock:
        """For the connections that are open now."""
        async with store.database.use(campaign) as connection:
            rows = await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'glyphoxa'"
            )
        return cls([row["pid"] for row in rows])

    def start(self) -> tuple[int, int]:
        servers = self._servers_ns()
        return servers, time.process_time_ns()

    def since_ns(self, start: tuple[int, int]) -> int:
        """What reading the clock itself takes is in neither."""
        ours = time.process_time_ns() - start[1]
        return ours + self._servers_ns() - start[0] if self._files else 0

    def _servers_ns(self) -> int:
        return sum(map(_ran_ns, self._files))


def _ran_ns(path: Path) -> int:
    try:
        return int(path.read_bytes().split(maxsplit=1)[0])
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has ended since it was found
