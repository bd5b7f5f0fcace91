from __future__ import annotations

from glyphoxa.domain.ids import SessionId, TurnId, UtteranceId


class SessionIds:
    """Ids of what happens in a session. A session may be opened again: what is said then has other ids than what was
    said before.

    Args:
        opened_ms: When it was opened now, Unix epoch.
    """

    def __init__(self, session: SessionId, *, opened_ms: int) -> None:
        self._opened = f"{session}-{opened_ms:x}"
        self._numbers = 0

    def new_utterance(self) -> UtteranceId:
        self._numbers += 1
        return UtteranceId(f"{self._opened}-{self._numbers:06d}")

    def logged(self, turn: TurnId) -> TurnId:
        """At one table a turn's number is enough; in the log it is one of many tables."""
        return TurnId(f"{self._opened}-{turn}")
