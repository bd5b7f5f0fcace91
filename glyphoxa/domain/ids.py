"""Identifiers. Each has its own type, so that a speaker id cannot be used as a session id."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, NewType

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


INVISIBLE: Final[Mapping[int, None]] = dict.fromkeys(
    (0xAD, 0x34F, 0x61C, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
)
"""For `str.translate`: characters without width or sound, such as soft hyphens, zero-width spaces, marks of direction.

Joiners are not among them, because some scripts and emoji need them.
"""


def plain_name(name: str) -> str:
    r"""Return a name as it is stored and compared: in NFC, without invisible characters, with single spaces.

    >>> plain_name("E\u0301orl\u00a0\u200bRusk") == "\u00c9orl Rusk"
    True
    """
    return " ".join(unicodedata.normalize("NFC", name).translate(INVISIBLE).split())


def slug(name: str) -> str:
    """Make an id from a name: "Tower of Whispers" becomes "tower-of-whispers". Empty if no letter is left."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", "-", kept.replace("'", "").replace("’", "")).strip("-")[:64].strip("-")
