"""Identifiers. Each has its own type, so that a speaker is never passed for a session."""

import re
import unicodedata
from typing import NewType

CampaignId = NewType("CampaignId", str)
SessionId = NewType("SessionId", str)
EntityId = NewType("EntityId", str)
NpcId = NewType("NpcId", str)
PlayerId = NewType("PlayerId", str)
SpeakerId = NewType("SpeakerId", str)
"""Whoever said something: the text of a `PlayerId` or of an `NpcId`."""
UtteranceId = NewType("UtteranceId", str)
TurnId = NewType("TurnId", str)
SceneId = NewType("SceneId", str)
LineId = NewType("LineId", str)
"""What a page calls a line that was typed there: 16 to 32 lower-case letters and digits, never used twice."""
FactId = NewType("FactId", str)
"""See `glyphoxa.domain.knowledge.Claim.fact_id`."""


_LINE = re.compile(r"[0-9a-z]{16,32}")


def is_line(text: str) -> bool:
    return _LINE.fullmatch(text) is not None


def id_of_line(session: SessionId, player: PlayerId, line: LineId) -> UtteranceId:
    """The id of what was typed: the same whenever the line is sent, so that it is kept once."""
    return UtteranceId(f"{session}~{player}~{line}")


def line_of(utterance: UtteranceId) -> LineId | None:
    """The line that became this utterance; None when it was spoken."""
    _, tilde, line = utterance.rpartition("~")
    return LineId(line) if tilde and is_line(line) else None


def slug(name: str) -> str:
    """An id made of a name: "Tower of Whispers" becomes "tower-of-whispers". Empty when no letter is left."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", "-", kept.replace("'", "").replace("’", "")).strip("-")[:64].strip("-")
