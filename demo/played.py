"""The result of a played session, passed from its process to the report as a JSON file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from glyphoxa.domain.errors import Corrupt
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.turn_record import TurnRecord


@dataclass(frozen=True, slots=True)
class LinePlayed:
    """A recording and when it was audible, in milliseconds since the Unix epoch."""

    line_id: str
    player: str
    scene: str
    began_ms: int
    ended_ms: int


@dataclass(frozen=True, slots=True)
class NpcSpoke:
    """A stretch in which an NPC was audible."""

    npc: str
    began_ms: int
    ended_ms: int


@dataclass(frozen=True, slots=True)
class SessionPlayed:
    """A session as it was heard.

    Attributes:
        began_ms: Start of its recording (`session-N.wav`).
        complete: False if it was stopped before its last line.
        l1_entries: Rows of this session in memory level 1. If stopped early: stored utterances observed.
        notes: Failures and delays, for people.
    """

    number: int
    session_id: str
    began_ms: int
    ended_ms: int
    complete: bool
    turns: tuple[TurnRecord, ...]
    utterances: tuple[Utterance, ...]
    lines: tuple[LinePlayed, ...]
    speech: tuple[NpcSpoke, ...]
    l1_entries: int
    notes: tuple[str, ...] = ()


_PLAYED = TypeAdapter(SessionPlayed)


def session_json(out: Path, number: int) -> Path:
    return out / f"session-{number}.json"


def session_wav(out: Path, number: int) -> Path:
    return out / f"session-{number}.wav"


def write_played(out: Path, played: SessionPlayed) -> None:
    session_json(out, played.number).write_bytes(_PLAYED.dump_json(played, indent=1))


def read_played(out: Path, number: int) -> SessionPlayed | None:
    """Read what the session's process wrote. None if it wrote nothing.

    Raises:
        Corrupt: The file is invalid.
    """
    path = session_json(out, number)
    if not path.exists():
        return None
    try:
        return _PLAYED.validate_json(path.read_bytes())
    except ValidationError as error:
        raise Corrupt(f"{path} is not the record of a session: {error.errors()[0]['msg']}") from None
