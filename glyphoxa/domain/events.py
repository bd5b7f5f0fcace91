"""What happens at a table, as those who watch it are told: captions, reports, benchmarks."""

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
from glyphoxa.domain.turn import TurnRecord


@dataclass(frozen=True, slots=True)
class UtteranceKept:
    """It is on disk: from here on it is not lost."""

    utterance: Utterance


@dataclass(frozen=True, slots=True)
class UtteranceRetracted:
    """The DM says that this was never said, and nobody recalls it; or takes that back."""

    utterance: Utterance
    is_retracted: bool = True


@dataclass(frozen=True, slots=True)
class UtteranceRevised:
    """Better words for something that was kept before: a second look found them, or the DM.

    Attributes:
        utterance: As it is now; the same id and the same `raw_text`.
        was: As it was until now.
    """

    utterance: Utterance
    was: Utterance


@dataclass(frozen=True, slots=True)
class NpcThinks:
    """An NPC owes a player an answer from now on; `TurnFinished` comes in any case, `NpcSpeaks` before it or never."""

    npc: NpcId
    npc_name: str
    turn: TurnId
    player: PlayerId
    at_ms: int


@dataclass(frozen=True, slots=True)
class NpcSpeaks:
    """An NPC's voice can be heard from now on. `text` is the sentence that begins."""

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
    """NPCs of the scene, by name, that still read who they are: until then they answer later than usual. Empty: all are
    ready.
    """

    names: tuple[str, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class MemoryHealth:
    """How long-term memory is.

    Attributes:
        state: "degraded": the table plays on; some of what was ever said or known may be out of reach, and what is
            said now waits on disk. "off": the settings want none.
        since_ms: Since when it is degraded, Unix epoch.
        why: Why it is degraded, for the DM.
        waiting: Utterances of this session that are on disk and not in the database yet.
    """

    state: Literal["ok", "degraded", "off"]
    since_ms: int | None = None
    why: str = ""
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class MemoryChanged:
    """Long-term memory is lost, or there again."""

    health: MemoryHealth
    at_ms: int


@dataclass(frozen=True, slots=True)
class Whispered:
    """The DM whispers to a player: for that player's eyes alone, and no part of the talk."""

    player: PlayerId
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class PauseChanged:
    """The DM has paused the table, so that nothing is heard, answered or kept; or it is played on."""

    is_paused: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class SessionEnds:
    """The DM ends the session, or nobody is there any more: whoever opened the table closes it now."""

    at_ms: int


class Trouble(StrEnum):
    """What a player is told of something that does not work."""

    UNWRITTEN = "unwritten"
    """What is said cannot be written to disk now."""
    DISK = "disk"
    """The disk on which it is written is full, or soon will be."""
    RESTARTED = "restarted"
    """A part of the table fell and was started again."""
    OUT = "out"
    """A part of the table fell too often, and is out until the session is opened anew."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """Something does not work now and the table plays on without it.

    Attributes:
        what: For the DM: it may hold an address, a path or what a provider answered.
        npc: Whom it concerns, if one NPC alone.
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


# Who hears what is public at a place.
#
#     a place reaches     who is at it, or at a place inside it: LOCATED_AT, as often as it takes
#                         whoever knows, is a member of, or is allied with one whom it reaches so
#
# A place that contains two towns reaches both; a town does not reach the other. A path leads over what the one at its
# end may know, and what is accepted.


_BOTH_WAYS: Final = frozenset(("KNOWS", "ALLIED_WITH"))
_ONE_WAY: Final = frozenset(("MEMBER_OF",))


def reached_from(places: Set[EntityId], npcs: Iterable[Npc], relationships: Iterable[Relationship]) -> list[NpcId]:
    """The NPCs with a path to one of these places; a group is as good as a place.

    Args:
        relationships: Of the whole campaign.
    """
    accepted = [one for one in relationships if not one.hidden and _is_accepted(one)]
    return [npc.id for npc in npcs if _has_path(npc, places, accepted)]


def _is_accepted(one: Relationship) -> bool:
    return one.dm_confirmed or one.confidence >= AUTO_ACCEPT


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
