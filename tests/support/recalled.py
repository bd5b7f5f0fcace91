"""Recalled passages that hold only what a test specifies, and recall that waits for a slow machine."""

from __future__ import annotations

from typing import Any, Final

from glyphoxa.domain.ids import FactId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import RecalledFact, RecalledUtterance
from glyphoxa.recall.recall import RecallSettings
from tests.support.patience import DEADLINE_MS

PATIENT: Final = RecallSettings(*[DEADLINE_MS] * 6)
"""It recalls the same as on a fast machine, later."""


def heard(text: str, *, by: str = "tamsin", utterance: str = "", session: str = "s1", **more: Any) -> RecalledUtterance:
    """Somebody said this.

    Args:
        by: Who; their name is this with a capital letter.
        utterance: Its id; by default its words.
    """
    more = {"at_ms": None, **more}
    return RecalledUtterance(
        UtteranceId(utterance or text), SessionId(session), SpeakerId(by), by.title(), text, **more
    )


def said_itself(text: str, *, npc: str, **more: Any) -> RecalledUtterance:
    """The NPC said this."""
    return heard(text, by=npc, is_own=True, **more)


def a_fact(text: str, *, fact: str = "", **more: Any) -> RecalledFact:
    """This is known.

    Args:
        fact: Its id; by default its words.
    """
    return RecalledFact(FactId(fact or text), text, **more)
