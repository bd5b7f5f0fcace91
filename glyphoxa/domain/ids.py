"""Identifiers. Each has its own type, so that a speaker id cannot be used as a session id."""

import re
import unicodedata
from typing import NewType

CampaignId = NewType("CampaignId", str)
SessionId = NewType("SessionId", str)
EntityId = NewType("EntityId", str)
NpcId = NewType("NpcId", str)
PlayerId = NewType("PlayerId", str)
SpeakerId = NewType("SpeakerId", str)
"""The speaker of an utterance: the text of a `PlayerId` or of an `NpcId`."""
UtteranceId = NewType("UtteranceId", str)
TurnId = NewType("TurnId", str)
SceneId = NewType("SceneId", str)
LineId = NewType("LineId", str)
"""A page's id for a line typed there: 16 to 32 lower-case letters and digits, never reused."""
FactId = NewType("FactId", str)
"""See `glyphoxa.domain.knowledge.Claim.fact_id`."""


_LINE = re.compile(r"[0-9a-z]{16,32}")


def is_line(text: str) -> bool:
    return _LINE.fullmatch(text) is not None


def id_of_line(session: SessionId, player: PlayerId, line: LineId) -> UtteranceId:
    """The id of a typed line: the same each time the line is sent, so that it is stored once."""
    return UtteranceId(f"{session}~{player}~{line}")


def line_of(utterance: UtteranceId) -> LineId | None:
    """The typed line that became this utterance; None if it was spoken."""
    _, tilde, line = utterance.rpartition("~")
    return LineId(line) if tilde and is_line(line) else None


def slug(name: str) -> str:
    """Make an id from a name: "Tower of Whispers" becomes "tower-of-whispers". Empty if no letter is left."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", "-", kept.replace("'", "").replace("’", "")).strip("-")[:64].strip("-")
