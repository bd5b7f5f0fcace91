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
FactId = NewType("FactId", str)
"""See `glyphoxa.domain.knowledge.Claim.fact_id`."""


def slug(name: str) -> str:
    """An id made of a name: "Tower of Whispers" becomes "tower-of-whispers". Empty when no letter is left."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", "-", kept.replace("'", "").replace("’", "")).strip("-")[:64].strip("-")
