"""What is kept of somebody's talk: erased in the database, then in the files of the data directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.world.erasure import ErasedTalk, Meant, PostgresErasure
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.transcript.spool_erasure import erase_from_spool, spool_of

_FILES: Final = 1_000
"""Rewriting files takes as long as reading so many rows."""


async def erase(
    erasure: PostgresErasure, data_dir: Path, campaign: CampaignId, meant: Meant, *, at_ms: int
) -> tuple[Sequence[ErasedTalk], int]:
    """First the database, in one transaction, then the files. Killed between them, the same again finishes.

    Returns:
        What was erased of each campaign, and how many records of the spool.

    Raises:
        Unavailable: The database is away, and nothing was erased; or a running table has the spool: what is in the
            database is erased.
    """
    done = await erasure.erase(campaign, meant, at_ms=at_ms)
    gone = await erasure.erased(campaign)
    n_records = await offload(lambda: _erase_files(data_dir, campaign, meant, gone), amount=_FILES)
    return done, n_records


def _erase_files(data_dir: Path, campaign: CampaignId, meant: Meant, gone: frozenset[UtteranceId]) -> int:
    def is_meant(said: Utterance) -> bool:
        if said.campaign_id != campaign:
            return False
        return said.id in gone or (
            (meant.player is None or (str(said.speaker_id) == str(meant.player) and said.npc_id is None))
            and (meant.session is None or said.session_id == meant.session)
            and (meant.before_ms is None or said.at_ms < meant.before_ms)
        )

    mentions = [str(each) for each in (meant.player, meant.session) if each is not None]
    if meant == Meant():
        mentions = [str(campaign)]
    n_records = erase_from_spool(spool_of(data_dir), is_meant, mentions=mentions)
    try:
        # What a local model has read of the NPCs, which may be what was learned from talk. It is made again.
        for path in sorted((data_dir / "prompts").glob("*")):
            if path.is_file():
                path.unlink()
    except OSError as error:
        raise Unavailable(f"{data_dir / 'prompts'} cannot be emptied: {error.strerror}; erase again") from None
    return n_records
