"""Events of a table for its observers: captions, reports, benchmarks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from glyphoxa.domain.campaign import Npc, Relationship, Scene
from glyphoxa.domain.heard import Speech, Utterance
from glyphoxa.domain.ids import EntityId, NpcId, PlayerId, TurnId
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.domain.turn_record import TurnRecord


@dataclass(frozen=True, slots=True)
class UtteranceKept:
    """The utterance is on disk and can no longer be lost."""

    utterance: Utterance


@dataclass(frozen=True, slots=True)
class UtteranceRetracted:
    """The DM retracted an utterance, so nobody recalls it; or restored it."""

    utterance: Utterance
    is_retracted: bool = True


@dataclass(frozen=True, slots=True)
class UtteranceRevised:
    """The text of a recorded utterance was revised by a second look or the DM.

    Attributes:
        utterance: The new version; the same id and the same `raw_text`.
        was: The previous version.
    """

    utterance: Utterance
    was: Utterance


@dataclass(frozen=True, slots=True)
class NpcThinks:
    """An NPC has begun to prepare an answer. `TurnFinished` always follows; `NpcSpeaks` may come before it."""

    npc: NpcId
    npc_name: str
    turn: TurnId
    player: PlayerId
    at_ms: int


@dataclass(frozen=True, slots=True)
class NpcSpeaks:
    """An NPC's voice has become audible. `text` is the sentence that begins."""

    npc: NpcId
    npc_name: str
    turn: TurnId
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class NpcSilent:
    npc: NpcId
    turn: TurnId
    at_ms: int


@dataclass(frozen=True, slots=True)
class TurnFinished:
    turn: TurnRecord


@dataclass(frozen=True, slots=True)
class SceneChanged:
    scene: Scene
    at_ms: int


@dataclass(frozen=True, slots=True)
class NpcsGetReady:
    """Names of the scene's NPCs that are still loading their prompt and answer late; empty: all are ready."""

    names: tuple[str, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class MemoryHealth:
    """State of long-term memory.

    Attributes:
        state: "degraded": the table plays on, parts of memory may be unavailable, and new utterances wait on disk.
            "off": disabled in the settings.
        since_ms: When it became degraded, Unix epoch.
        why: Why it is degraded, for the DM.
        waiting: Utterances of this session that are on disk and not in the database yet.
    """

    state: Literal["ok", "degraded", "off"]
    since_ms: int | None = None
    why: str = ""
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class MemoryChanged:
    """Long-term memory became unavailable or available again."""

    health: MemoryHealth
    at_ms: int


@dataclass(frozen=True, slots=True)
class Whispered:
    """A whisper of the DM to one player. It is not part of the transcript."""

    player: PlayerId
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class PauseChanged:
    """The DM paused or resumed the table. While paused, nothing is heard, answered or recorded."""

    is_paused: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class SessionEnds:
    """The DM ended the session, or everybody left: the owner of the table must close it now."""

    at_ms: int


class Trouble(StrEnum):
    """Problems that players are shown."""

    UNWRITTEN = "unwritten"
    """Utterances cannot be written to disk now."""
    DISK = "disk"
    """The disk is full or nearly full."""
    RESTARTED = "restarted"
    """A part of the table crashed and was restarted."""
    OUT = "out"
    """A part of the table crashed too often and stays off until the session is reopened."""
    MOVING = "moving"
    """The table moves to another machine."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """Something does not work now, and the table continues without it.

    Attributes:
        what: For the DM: it may hold an address, a path or a provider's response.
        npc: The NPC that is affected, if only one is.
    """

    what: str
    at_ms: int
    trouble: Trouble
    npc: NpcId | None = None


TableEvent = (
    Speech
    | UtteranceKept
    | UtteranceRevised
    | UtteranceRetracted
    | NpcThinks
    | NpcSpeaks
    | NpcSilent
    | TurnFinished
    | SceneChanged
    | NpcsGetReady
    | MemoryChanged
    | Degraded
    | Whispered
    | PauseChanged
    | SessionEnds
)


# Which NPCs learn what is public at a place.
#
#     a place reaches     everyone located there or in a place inside it (LOCATED_AT, transitively)
#                         everyone who knows, is a member of, or is allied with someone reached
#
# A place that contains two towns reaches both; one town does not reach the other. A path uses only accepted relations
# that the NPC at its end may know.


_BOTH_WAYS: Final = frozenset(("KNOWS", "ALLIED_WITH"))
_ONE_WAY: Final = frozenset(("MEMBER_OF",))


def reached_from(places: Set[EntityId], npcs: Iterable[Npc], relationships: Iterable[Relationship]) -> list[NpcId]:
    """The NPCs with a path to one of these places or groups.

    Args:
        relationships: All relationships of the campaign.
    """
    accepted = [one for one in relationships if not one.hidden and (one.dm_confirmed or one.confidence >= AUTO_ACCEPT)]
    return [npc.id for npc in npcs if _has_path(npc, places, accepted)]


def _has_path(npc: Npc, places: Set[EntityId], relationships: Iterable[Relationship]) -> bool:
    is_at: defaultdict[EntityId, set[EntityId]] = defaultdict(set)
    tied = {npc.entity_id}
    for one in relationships:
        if one.known_by and npc.id not in one.known_by:
            continue
        if one.type == "LOCATED_AT":
            is_at[one.source].add(one.target)
        if one.source == npc.entity_id and one.type in _BOTH_WAYS | _ONE_WAY:
            tied.add(one.target)
        if one.target == npc.entity_id and one.type in _BOTH_WAYS:
            tied.add(one.source)
    seen, edge = set(tied), list(tied)
    while edge:
        further = is_at[edge.pop()] - seen
        seen |= further
        edge.extend(further)
    return not seen.isdisjoint(places)
