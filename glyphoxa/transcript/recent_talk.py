from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.domain.utterance import Utterance

_MOST = 500


class RecentTalk:
    """The last utterances that this process has kept, in memory. Nothing here is written."""

    def __init__(self) -> None:
        self._said: deque[Utterance] = deque(maxlen=_MOST)

    def of(self, session: SessionId, *, since_ms: int = 0, limit: int = 50) -> list[Utterance]:
        """A session's last utterances, oldest first."""
        found = [said for said in self._said if said.session_id == session and said.at_ms >= since_ms]
        return found[-limit:] if limit > 0 else []

    def heard(self, utterance: Utterance) -> None:
        known = any(said.id == utterance.id and said.campaign_id == utterance.campaign_id for said in self._said)
        if not known:  # who could not keep it tries again
            self._said.append(utterance)

    def remember(self, utterances: Sequence[Utterance]) -> None:
        """What was said in a session that goes on after a restart, oldest first."""
        self._said.extend(utterances)

    def revised(self, utterance: Utterance) -> None:
        """There is a better text. The log has its own (`TranscriptLog.revise`), which nothing replaces that the spool
        still sends there.
        """
        for at, said in enumerate(self._said):
            if said.id == utterance.id and said.campaign_id == utterance.campaign_id:
                self._said[at] = utterance
                return

    def retracted(self, utterance: UtteranceId) -> None:
        """The DM says that it was never said. It stays on disk and in the log."""
        kept = [said for said in self._said if said.id != utterance]
        self._said.clear()
        self._said.extend(kept)
